"""The checks: each takes one form of an op and calls both sides on its samples, in a Run that notes the differences."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NamedTuple

import torch

from . import samples
from .compare import attempt
from .gradients import differentiate
from .run import Pick, Run
from .samples import take
from .subject import Subject


def check_values(run: Run, op: Any) -> None:
    """Call the function."""
    for dtype in run.chosen(op, samples.DTYPES, op.dtypes):
        for sample in take(op, dtype):
            run.compare(op, sample, dtype, lambda side: side.function(op))


def check_errors(run: Run, op: Any) -> None:
    """Call the function as it should not be called."""
    for misuse in samples.errors(op) if run.dtypes is None else ():
        run.compare(op, misuse.sample_input, "-", lambda side: side.function(op), words=misuse.error_regex)


class Way(NamedTuple):
    """Another way to call an op."""

    how: str
    pick: Pick
    positional: bool = False  # an operator: nothing but operands


def method(name: str) -> Way:
    """Return the way through a Tensor method."""
    return Way(f"Tensor.{name}", lambda side: getattr(side.Tensor, name, None))


def through(function: Any) -> Way:
    """Return the way through a Python operator."""
    return Way(f"operator.{function.__name__}", lambda side: function, positional=True)


def try_way(run: Run, op: Any, way: Way) -> None:
    """Compare a way to call the op, on some samples."""
    if way.pick(run.subject) is None:
        run.fail("missing", f"there is no {way.how}")
        return
    for dtype in run.chosen(op, samples.VARIANT_DTYPES, op.dtypes):
        for sample in take(op, dtype, most=12):
            if not (way.positional and (sample.kwargs or len(sample.args) > 1)):
                run.compare(op, sample, dtype, way.pick, way.how)


def check_methods(run: Run, op: Any) -> None:
    """Call the Tensor method, the operator and the aliases."""
    ways = []
    if op.method_variant is not None:
        ways.append(Way(f"Tensor.{op.name}", lambda side: side.counterpart(op.method_variant, op.name)))
    if op.operator_variant is not None:
        ways.append(through(op.operator_variant))
    for alias in op.aliases:
        # The table has names such as torch.special.gammainc among others that begin below `torch`.
        name = alias.name.removeprefix("torch.")
        ways.append(Way(name, lambda side, name=name: side.find(name)))
        if alias.method_variant is not None:
            ways.append(method(alias.name))
    for way in ways:
        try_way(run, op, way)


def written(side: Subject, function: Any) -> Any:
    """Return the in-place function as one that works on a clone and gives the clone."""

    def call(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        target = x.clone()
        same(side, function(target, *args, **kwargs), target)
        return target

    return function and call


def same(side: Subject, returned: Any, target: Any) -> None:
    """Raise if a function returned other tensors than those it was to write."""
    pairs = zip_longest(samples.tensors(returned, side.Tensor), samples.tensors(target, side.Tensor))
    if any(x is not y for x, y in pairs):
        raise AssertionError("expected to get back the tensor that was to be written; got another one")


def check_inplace(run: Run, op: Any) -> None:
    """Call the in-place method, operator and aliases, and differentiate through the method."""
    ways = [method(f"{alias.name}_") for alias in op.aliases if alias.inplace_variant is not None]
    if op.inplace_operator_variant is not None:
        ways.append(through(op.inplace_operator_variant))
    if op.inplace_variant is not None:
        ways.insert(0, Way(f"{op.name}_", lambda side: side.counterpart(op.inplace_variant, op.name)))
    for how, pick, positional in ways:
        way = Way(how, lambda side, pick=pick: written(side, pick(side)), positional)
        try_way(run, op, way)
        if how == f"{op.name}_" and op.supports_inplace_autograd and way.pick(run.subject) is not None:
            differentiate(run, op, (torch.float64,), way.pick, how, most=12)


def check_out(run: Run, op: Any) -> None:
    """Call the function with `out=` of the right dtype and shape."""
    if not op.supports_out:
        return

    def pick(side: Subject) -> Any:
        function = side.function(op)

        def call(*args: Any, **kwargs: Any) -> Any:
            out = blank(side, function(*args, **kwargs))
            returned = function(*args, **kwargs, out=out)
            same(side, returned, out)
            return returned

        return function and call

    for dtype in run.chosen(op, samples.VARIANT_DTYPES, op.dtypes):
        for sample in take(op, dtype, most=6):
            args, kwargs, _ = run.torch.arguments(sample)
            if "out" not in kwargs and attempt(pick(run.torch), *args, **kwargs).error is None:
                run.compare(op, sample, dtype, pick, f"{op.name}(out=)")


def blank(side: Subject, result: Any) -> Any:
    """Return tensors to write a result into."""
    if isinstance(result, (tuple, list)):
        return tuple(blank(side, item) for item in result)
    return side.module.zeros(tuple(result.shape), dtype=result.dtype)


def check_gradients(run: Run, op: Any) -> None:
    """Differentiate once."""
    differentiate(run, op, samples.GRADIENT_DTYPES, lambda side: side.function(op))


def check_second_gradients(run: Run, op: Any) -> None:
    """Differentiate twice, in float64."""
    if op.supports_gradgrad:
        differentiate(run, op, (torch.float64,), lambda side: side.function(op), second=True, most=30)


CHECKS: dict[str, Callable[[Run, Any], None]] = {
    "values": check_values,
    "gradients": check_gradients,
    "second_gradients": check_second_gradients,
    "methods": check_methods,
    "inplace": check_inplace,
    "out": check_out,
    "errors": check_errors,
}


def check(subject: Subject, name: str, kind: str, dtypes: list[str] | None = None) -> Run:
    """Run one check of an op, on each form of it that PyTorch's table has."""
    run = Run(subject, name, kind, dtypes)
    with warnings.catch_warnings(), subject.pytorchs_promotion():
        warnings.simplefilter("ignore")
        if not subject.has(name):
            run.fail("missing", "there is no op of this name")
        else:
            for op in samples.table()[name]:
                try:
                    CHECKS[kind](run, op)
                except Exception:  # a result so odd that it cannot be looked at
                    run.fail("raised", f"while comparing: {traceback.format_exc(limit=-2).strip()}")
    return run
