"""The catalog: every check of a backend, with its id and level. The pytest plugin and the command line run the same list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mortice.backends import DType
from mortice_conformance.checks import behaviour, gradients, values
from mortice_conformance.record import Sample, load_samples
from mortice_conformance.subject import Subject
from mortice_conformance.suites import load_suites

LEVELS = {
    0: "storage",
    1: "required kernels",
    2: "dtypes and layouts",
    3: "gradients",
    4: "random vectors",
    5: "training",
    6: "robustness and memory",
}


@dataclass(frozen=True)
class Item:
    """One check of one backend."""

    check: str
    parts: tuple[str, ...]
    backend: str
    level: int
    run: Callable[[Subject], None]
    op: str = ""

    @property
    def id(self) -> str:
        """As pytest shows it: test_values[exp-float32-cpu_numpy]."""
        return f"test_{self.check}[{self.key}]"

    @property
    def key(self) -> str:
        """The part in brackets."""
        return "-".join((*self.parts, self.backend))


def representative(sample: Sample, available: Any) -> DType | None:
    """Return the dtype for checks that need only one: float32, else the commonest that the op takes."""
    accepted = {d.name: d for d in sample.dtypes(available)}
    for name in ("float32", "int64", "complex64", "bool"):
        if name in accepted:
            return accepted[name]
    return next(iter(accepted.values()), None)


def sample_items(sample: Sample, subject: Subject) -> Iterator[Item]:
    """Yield the checks that one record drives."""

    def item(check: str, level: int, fn: Any, *args: Any) -> Item:
        parts = (sample.id, *[d.name for d in args])
        return Item(check, parts, subject.name, level, lambda s: fn(s, sample, *args), sample.op)

    usual = representative(sample, subject.available)
    if usual is None or (sample.call is None and sample.record is None):
        # Without a dtype there is nothing to test here; a record without an op fails the kit's own coverage test.
        return
    following = any(sample.follows(sample.cases[0]))
    for d in sample.dtypes(subject.available) if following else [usual]:
        yield item("values", 2, values.check_values, d)
    if sample.edges:
        yield item("shapes", 2, values.check_shapes, usual)
    if following:
        yield item("dtypes", 2, values.check_dtypes)
    if sample.layouts:
        yield item("layouts", 2, values.check_layouts, usual)
    yield item("device", 2, values.check_device)
    yield item("unmodified", 2, behaviour.check_unmodified, usual)
    yield item("deterministic", 2, behaviour.check_deterministic, usual)
    yield item("transfers", 2, behaviour.check_transfers, usual)
    if sample.call is None and hasattr(_tensor_class(), f"{sample.op}_"):
        yield item("inplace", 2, behaviour.check_inplace, usual)
    if sample.misuse:
        yield item("misuse", 6, behaviour.check_misuse)
    yield from _gradient_items(sample, subject, item)


def _gradient_items(sample: Sample, subject: Subject, item: Any) -> Iterator[Item]:
    if not sample.differentiable or not any(sample.grad_operands(c) for c in sample.cases):
        return
    for kind in "fc":
        widest = sample.widest(subject.available, kind)
        if widest is None or widest.itemsize < 4:
            continue
        yield item("gradient", 3, gradients.check_gradient, widest)
        yield item("second_gradient", 3, gradients.check_second_gradient, widest)
        if sample.record is not None and isinstance(sample.record.jvp, str):
            yield item("jvp", 3, gradients.check_jvp, widest)
        for d in sample.dtypes(subject.available):
            if d.kind == kind and d is not widest:
                yield item("gradient_dtypes", 3, gradients.check_gradient_dtypes, d)


def _tensor_class() -> Any:
    import mortice

    return mortice.Tensor


def catalog(subject: Subject) -> list[Item]:
    """Return every check of the subject's backend, lowest level first."""
    items = [Item(entry.suite, (entry.name,), subject.name, entry.level, entry.run) for entry in load_suites()]
    for sample in load_samples().values():
        items += sample_items(sample, subject)
    return sorted(items, key=lambda i: i.level)
