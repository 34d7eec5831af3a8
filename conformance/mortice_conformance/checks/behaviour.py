"""Checks of how an op behaves: it leaves operands alone, repeats itself, stays off the host, and refuses misuse."""

from __future__ import annotations

import re
from typing import Any

import mortice
from mortice.autograd import backward
from mortice.backends import DType
from mortice.backends.plugins import entries, use_backend, use_device
from mortice_conformance.record import Case, Sample
from mortice_conformance.subject import Failure, Skip, Subject


def _is_view(sample: Sample) -> bool:
    return sample.shares or (sample.record is not None and sample.record.view)


def _pull(subject: Subject, sample: Sample, case: Case, out: Any) -> None:
    """Run a backward through the outputs that have gradients, with ones."""
    roots = [t for t in out if t.requires_grad]
    if roots:
        backward(roots, [mortice.ones_like(t) for t in roots])


def check_unmodified(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Leave operands as they were, in forward, in backward, and when the result is written afterwards."""
    case = sample.cases[0]
    arrays, tensors = subject.operands(sample, case, dtype)
    before = [None if t is None else subject.bits(t) for t in tensors]

    def unchanged(when: str) -> None:
        for i, (t, old) in enumerate(zip(tensors, before)):
            if t is not None and subject.bits(t) != old:
                raise Failure(f"{sample.id} {dtype.name} {case}: operand {i} was changed {when}.")

    out = sample.apply(tensors, case.attrs)
    unchanged("by the call")
    if sample.differentiable and dtype.kind in "fc":
        leaves = [
            t if t is None or i not in sample.grad_operands(case) else t.requires_grad_() for i, t in enumerate(tensors)
        ]
        results = sample.apply(leaves, case.attrs)
        kept = [subject.bits(t) for t in results]
        _pull(subject, sample, case, results)
        unchanged("by backward")
        if kept != [subject.bits(t) for t in results]:
            raise Failure(f"{sample.id} {dtype.name} {case}: an output was changed by backward.")
        for t in leaves:
            if t is not None:
                t.requires_grad = False
    if _is_view(sample) or any(t._is_view() or t is x for t in out for x in tensors):
        return
    for t in out:
        t[...] = 1
    unchanged("by a write to the result: they share memory")


def check_deterministic(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Give the same bits for the same call, and the same gradients."""
    case = sample.cases[min(1, len(sample.cases) - 1)]
    found = []
    for _ in range(2):
        _, tensors = subject.operands(sample, case, dtype)
        wanted = sample.grad_operands(case) if sample.differentiable and dtype.kind in "fc" else []
        for i in wanted:
            tensors[i].requires_grad = True
        out = sample.apply(tensors, case.attrs)
        _pull(subject, sample, case, out)
        grads = [tensors[i].grad for i in wanted]
        found.append([subject.bits(t) for t in out] + [b"" if g is None else subject.bits(g) for g in grads])
    if found[0] != found[1]:
        raise Failure(f"{sample.id} {dtype.name} {case}: two equal calls gave different bits.")


def check_transfers(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Read nothing on the host, in forward and backward, but what the sample allows and explains."""
    case = sample.cases[0]
    _, tensors = subject.operands(sample, case, dtype)
    wanted = sample.grad_operands(case) if sample.differentiable and dtype.kind in "fc" else []
    for i in wanted:
        tensors[i].requires_grad = True
    with subject.counting() as seen:
        out = sample.apply(tensors, case.attrs)
        _pull(subject, sample, case, out)
    if len(seen) > sample.transfers:
        raise Failure(
            f"{sample.id} {dtype.name} {case}: expected {sample.transfers} transfers to the host; got {len(seen)} "
            f"({', '.join(seen)})."
        )


def check_inplace(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Give in place what the function gives, where a method of that name exists."""
    case = sample.cases[0]
    method = getattr(mortice.Tensor, f"{sample.op}_", None)
    if method is None or case.attrs:
        return
    _, tensors = subject.operands(sample, case, dtype)
    want = sample.apply(tensors, case.attrs)[0]
    if tuple(want.shape) != tuple(tensors[0].shape) or want.dtype is not tensors[0].dtype:
        return
    target = tensors[0].clone()
    shown = target[...]
    back = method(target, *tensors[1:])
    if back is not target:
        raise Failure(f"{sample.id}_ {dtype.name}: expected the tensor itself back.")
    subject.inspect(target, f"{sample.id}_")
    if subject.bits(target) != subject.bits(want):
        raise Failure(f"{sample.id}_ {dtype.name} {case}: in place gives another value than the function.")
    if subject.bits(shown) != subject.bits(target):
        raise Failure(f"{sample.id}_ {dtype.name} {case}: a view does not show what was written.")


def check_misuse(subject: Subject, sample: Sample) -> None:
    """Refuse misuse with the exact text, the same on every backend."""
    skips = []
    for number, (wrong, text) in enumerate(sample.misuse):
        try:
            expect_error(subject, f"{sample.id} misuse {number}", wrong, text)
        except Skip as skip:
            skips.append(skip)
    if len(skips) == len(sample.misuse):
        raise skips[0]


def expect_error(subject: Subject, what: str, wrong: Any, text: str) -> None:
    """Check that a call fails with that text; {device} and {backend} in it stand for the subject's."""
    text = text.replace("{device}", str(subject.device)).replace("{backend}", subject.name)
    with on_subject(subject):
        try:
            wrong()
            subject.backend.synchronize(subject.device)  # a device that runs behind may refuse values only now
        except Exception as error:
            got = str(error.args[0]) if error.args else str(error)
            if got != text:
                lacking = re.search(r" has no (\w+)", got)
                if lacking and lacking[1] not in {d.name for d in subject.available}:
                    raise Skip(f"{subject.device} has no {lacking[1]}") from None
                raise Failure(f"{what}: expected the error {text!r}; got {type(error).__name__}: {got!r}.") from error
            return
    raise Failure(f"{what}: expected the error {text!r}; it returned.")


class on_subject:
    """Make new tensors on the subject while the block runs."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __enter__(self) -> None:
        from mortice.backends import plugins

        subject = self.subject
        self.parts: list[Any] = []
        if subject.name in entries():
            self.parts = [use_backend(subject.name), use_device(str(subject.device))]
            for part in self.parts:
                part.__enter__()
        else:
            # A wrapped backend has no entry of its own: its Device stands for it.
            self.before = plugins._local.devices
            plugins._local.devices = (*self.before, subject.device)

    def __exit__(self, *exc: Any) -> None:
        from mortice.backends import plugins

        for part in reversed(self.parts):
            part.__exit__(*exc)
        if not self.parts:
            plugins._local.devices = self.before
