"""One check of one op in the making: calls both sides on a sample and notes every difference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import samples
from .compare import CANCELS, Compare, Failure, Outcome, attempt, first_line, op_class
from .readings import CHOICES, chosen, reading
from .samples import describe, draws, tensors
from .subject import Subject, Unconvertible, dtype_name

Pick = Callable[[Subject], Any]  # finds the function to call on one side; None where it has none
SEEDS = range(20)


class Run:
    """One check of one op: what to compare, and what came of it."""

    def __init__(self, subject: Subject, name: str, check: str, dtypes: list[str] | None = None) -> None:
        self.subject = subject
        self.torch = Subject(torch)
        self.name = name
        self.check = check
        self.dtypes = dtypes
        self.calls = 0
        self.skipped: Counter[str] = Counter()
        self.failures: list[Failure] = []

    def fail(self, kind: str, detail: str, dtype: Any = "-", sample: Any = None, how: str = "") -> None:
        """Note a difference."""
        text = "" if sample is None else f"{how or self.name}{describe_call(sample)}"
        self.failures.append(Failure(self.name, self.check, dtype_name(dtype), kind, detail, text))

    def chosen(self, op: Any, dtypes: tuple[torch.dtype, ...], supported: Any) -> Iterator[torch.dtype]:
        """Yield the dtypes to go through."""
        for dtype in dtypes:
            if dtype in supported and (self.dtypes is None or dtype_name(dtype) in self.dtypes):
                yield dtype

    def sides(self, sample: Any, dtype: Any) -> tuple[Any, Any] | None:
        """Return the arguments for the subject and for torch; None where the sample cannot be had in the subject."""
        try:
            return self.subject.arguments(sample), self.torch.arguments(sample)
        except Unconvertible as reason:
            self.skipped[str(reason)] += 1
        except Exception as error:
            self.fail("raised", f"making the sample: {type(error).__name__}: {first_line(error)}", dtype, sample)
        return None

    def compare(self, op: Any, sample: Any, dtype: Any, pick: Pick, how: str = "", words: str = "") -> None:
        """Call both sides on a sample; compare what they return or raise, and what they leave in their inputs.

        `words` is a pattern that an error of PyTorch's matches, and the subject's has to.
        """
        call, reference = pick(self.subject), pick(self.torch)
        sides = self.sides(sample, dtype)
        if sides is None or reference is None:
            return
        (args, kwargs, _), (torch_args, torch_kwargs, _) = sides
        values = op.name not in samples.UNINITIALISED and not (draws(op) and scatters(self.torch, reference, sample))
        if draws(op):
            # PyTorch may draw the same with every seed tried, where one draw in thousands gives another result.
            self.subject.module.manual_seed(0)
        got = attempt(call, *args, **kwargs)
        want = attempt(reference, *torch_args, **torch_kwargs)
        if any(t.dtype is torch.complex32 for t in tensors(want.value)):
            self.skipped["torch gives complex32"] += 1
            return
        self.calls += 1
        scale = sample.input.detach() if op.name in CANCELS else None
        compare = Compare(self.subject, op_class(op), values=values, scale=scale)
        found = list(compare.outcomes(got, want))
        if any(kind == "value" for kind, _ in found) and self.excused(op, sample, reference, got, want, compare):
            found = [(kind, detail) for kind, detail in found if kind != "value"]
        if not found and want.error is not None and re.search(words, str(want.error)):
            said = str(got.error).replace("mortice.", "torch.")
            if not re.search(words, said):
                found = [("words", f"says {said!r}; torch {str(want.error)!r}")]
        for kind, detail in found:
            self.fail(kind, detail, dtype, sample, how)
        if not found and values and want.error is None:
            after = list(tensors((args, kwargs), self.subject.Tensor))
            for kind, detail in compare.results(after, list(tensors((torch_args, torch_kwargs)))):
                self.fail("input", f"an input afterwards: {kind}: {detail}", dtype, sample, how)

    def excused(self, op: Any, sample: Any, reference: Any, got: Outcome, want: Outcome, compare: Compare) -> bool:
        """Whether values differ only where PyTorch leaves a choice, or where it loses more digits than we do."""
        mine, theirs = as_torch(self.subject, got.value), as_torch(self.torch, want.value)
        strict = Compare(self.torch, compare.group)
        if op.name in CHOICES and not sample.kwargs.get("stable"):
            return not list(strict.results(chosen(op.name, sample, mine), chosen(op.name, sample, theirs)))
        if op_class(op) == "linalg":
            process = reading(op, sample)
            left, right = attempt(process, mine), attempt(process, theirs)
            if right.error is None and not list(strict.outcomes(left, right)):
                return True
        if any(t.dtype in WIDER for t in tensors(samples.parts(sample))):
            args, kwargs, _ = self.torch.arguments(sample.transform(widened))
            better = attempt(reference, *args, **kwargs)
            if better.error is None:
                return not list(compare.outcomes(got, Outcome(value=rounded(better.value, want.value))))
        return False


# The dtypes in which PyTorch's results in narrower ones are judged: nearer to the truth than PyTorch is no difference.
WIDER = {
    torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64, torch.complex64: torch.complex128,
}  # fmt: skip


def widened(value: Any) -> Any:
    """Return tensors and dtypes in the next wider precision."""
    if isinstance(value, torch.Tensor):
        return value.to(WIDER[value.dtype]) if value.dtype in WIDER else value.clone()
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def rounded(value: Any, like: Any) -> Any:
    """Return results computed in wider precision with the dtypes of `like`."""
    if isinstance(like, torch.Tensor):
        return value.to(like.dtype)
    if isinstance(like, (tuple, list)) and not isinstance(like, torch.Size):
        return type(like)([rounded(x, y) for x, y in zip(value, like)])
    return value


def as_torch(subject: Subject, value: Any) -> Any:
    """Return a result with its tensors as torch's."""
    if isinstance(value, subject.Tensor):
        return subject.back(value)
    return tuple(as_torch(subject, item) for item in value) if isinstance(value, (tuple, list)) else value


def scatters(side: Subject, function: Any, sample: Any) -> bool:
    """Whether PyTorch itself gives other values when seeded otherwise."""
    first = None
    for seed in SEEDS:
        args, kwargs, _ = side.arguments(sample)
        samples.seed(seed)
        outcome = attempt(function, *args, **kwargs)
        if outcome.error is not None:
            return False
        if first is None:
            first = outcome
        elif list(Compare(side, "elementwise").outcomes(outcome, first)):
            return True
    return False


def describe_call(sample: Any) -> str:
    """Write a sample as the arguments of a call."""
    given = [describe(value) for value in (sample.input, *sample.args)]
    return f"({', '.join(given + [f'{key}={describe(value)}' for key, value in sample.kwargs.items()])})"
