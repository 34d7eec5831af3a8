"""Gradients of both sides for one sample: the same random cotangents, pulled back once or twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from . import samples
from .compare import TIMES, Compare, attempt, first_line, op_class
from .readings import reading
from .run import Pick, Run, scatters
from .samples import describe, draws, take
from .subject import Subject, dtype_name

Gradients = tuple[list[bool], list[Any]]


def differentiate(
    run: Run,
    op: Any,
    dtypes: tuple[torch.dtype, ...],
    pick: Pick,
    how: str = "",
    *,
    second: bool = False,
    most: int = samples.MOST_SAMPLES,
) -> None:
    """Compare gradients for all inputs of all samples, for the same random cotangents."""
    if not op.supports_autograd:
        return
    for dtype in run.chosen(op, dtypes, op.supported_backward_dtypes("cpu")):
        for sample in take(op, dtype, grad=True, most=most):
            sides = run.sides(sample, dtype)
            if sides is None or (draws(op) and scatters(run.torch, pick(run.torch), sample)):
                continue
            want = attempt(gradient, run.torch, op, pick(run.torch), sample, sides[1], second)
            if want.error is not None or want.value is None:
                continue  # mortice may differentiate more than PyTorch
            run.calls += 1
            got = attempt(gradient, run.subject, op, pick(run.subject), sample, sides[0], second)
            order = 2 if second else 1
            compare = Compare(run.subject, op_class(op, order), times=TIMES[order])
            if got.error is not None:
                found = iter([("raised", f"{type(got.error).__name__}: {first_line(got.error)}; torch differentiates")])
            elif got.value is None:
                found = iter([("requires_grad", "no output requires grad; torch's does")])
            else:
                found = compare_gradients(compare, got.value, want.value)
            for kind, detail in found:
                run.fail(kind, detail, dtype, sample, how)


def gradient(side: Subject, op: Any, function: Any, sample: Any, given: Any, second: bool) -> Gradients | None:
    """Return (which outputs require grad, gradients by input); None where there is nothing to differentiate."""
    args, kwargs, leaves = given
    wrapper, process = side.own(op.gradcheck_wrapper), side.own(reading(op, sample))
    outputs = list(flat(side, process(wrapper(function, *args, **kwargs))))
    flags = [output.requires_grad for output in outputs]
    if not leaves or not any(flags):
        return None
    grads = pull(side, outputs, leaves, create_graph=second)
    if not second:
        return flags, grads
    if not any(g is not None and g.requires_grad for g in grads):
        return [], [None] * len(leaves)
    return [], pull(side, grads, leaves)


def pull(side: Subject, outputs: list[Any], leaves: list[Any], create_graph: bool = False) -> list[Any]:
    """Return the gradients of outputs, each weighed with random numbers of its own."""
    pairs = []
    for seed, output in enumerate(outputs):
        if output is not None and output.requires_grad:
            samples.seed(seed)
            weight = torch.randn(tuple(output.shape), dtype=getattr(torch, dtype_name(output.dtype)))
            pairs.append((output, side.tensor(weight)))
    ends, weights = zip(*pairs)
    return list(side.module.autograd.grad(ends, leaves, weights, allow_unused=True, create_graph=create_graph))


def flat(side: Subject, value: Any) -> Iterator[Any]:
    """Yield the float and complex tensors of a result."""
    if isinstance(value, side.Tensor):
        if "float" in dtype_name(value.dtype) or "complex" in dtype_name(value.dtype):
            yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from flat(side, item)


def compare_gradients(compare: Compare, got: Gradients, want: Gradients) -> Iterator[tuple[str, str]]:
    """Compare flags, then gradients; no gradient and a gradient of zeros are the same."""
    if got[0] != want[0]:
        yield "requires_grad", f"outputs require grad: {got[0]}; torch: {want[0]}"
        return
    for i, (x, y) in enumerate(zip(got[1], want[1])):
        if x is None or y is None:
            there = y if x is None else compare.subject.back(x)
            if there is not None and bool((there != 0).any()):
                here = "none" if x is None else describe(there)
                yield "value", f"gradient {i}: gives {here}; torch gives {'none' if y is None else describe(y)}"
            continue
        for kind, detail in compare.tensors(x, y):
            yield kind, f"gradient {i}: {detail}"
