"""Checks of what an op returns: values, dtypes, shapes, memory layouts of its operands, devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice.backends import DType, HostBuffer
from mortice.errors import DTypeError
from mortice_conformance.arrays import BY_NAME, bfloat16_bits, native
from mortice_conformance.record import Case, Sample, promoted
from mortice_conformance.subject import Failure, Skip, Subject

# Dtypes that meet in one call: the same kind, different kinds, and a pair that no table should guess.
MIXED = (
    ("float16", "float32"), ("bfloat16", "float32"), ("float16", "bfloat16"), ("float32", "float64"),
    ("int32", "float32"), ("int64", "float16"), ("uint8", "int8"), ("int16", "int64"), ("bool", "uint8"),
    ("bool", "float32"), ("float32", "complex64"), ("complex64", "float64"), ("uint64", "int64"),
)  # fmt: skip


def _call(subject: Subject, sample: Sample, case: Case, dtype: DType, arrays: Any = None) -> None:
    """Compare a call with the reference, and see that no operand was written."""
    arrays = sample.draw(case, dtype) if arrays is None else arrays
    tensors = subject.tensors(sample, case, dtype, arrays)
    before = [None if t is None else subject.bits(t) for t in tensors]
    subject.compare(
        sample, case, dtype, sample.apply(tensors, case.attrs), sample.expected(case, arrays, dtype), arrays
    )
    for i, (t, old) in enumerate(zip(tensors, before)):
        if t is not None and subject.bits(t) != old:
            raise Failure(f"{sample.id} {dtype.name} {case}: the call changed operand {i}. Return a new buffer.")


def check_values(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Compare with the float64 reference: every case in float32, the first ones in other dtypes, then written ones and edge values."""
    many = dtype.name in ("float32", "int64", "complex64") or dtype is sample.widest(subject.available)
    for case in sample.cases if many else sample.cases[:2]:
        _call(subject, sample, case, dtype)
    for case, arrays, why in sample.given_cases(dtype):
        try:
            _call(subject, sample, case, dtype, arrays)
        except Failure as failure:
            raise Failure(f"{failure} {why}") from None
    edge = sample.edge_case(dtype)
    if edge is not None:
        _call(subject, sample, edge[0], dtype, edge[1])


def check_shapes(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Compare 0-d, empty and broadcast calls with the reference."""
    for case in sample.edges:
        _call(subject, sample, case, dtype)


def check_dtypes(subject: Subject, sample: Sample) -> None:
    """Give the rule's dtype for every dtype that goes in, alone or mixed, and refuse the others as core does."""
    case = sample.cases[0]
    follows = sample.follows(case)
    if not any(follows):
        raise Skip("its operands have dtypes of their own")
    for dtype in sorted(subject.available, key=lambda d: d.name):
        what = f"{sample.id} {dtype.name}"
        if sample.accepts(dtype):
            tensors = subject.operands(sample, case, dtype)[1]
            _check_results(subject, sample, what, sample.apply(tensors, case.attrs), sample.results(dtype))
        elif sample.call is None and sample.refuses(dtype):
            try:
                sample.apply(_ones(subject, sample, case, dtype), case.attrs)
            except DTypeError:
                continue
            raise Failure(f"{what}: expected DTypeError; it returned.")
    if sample.call is not None or sample.record is None or sample.record.variadic:
        return
    follows = [f and i not in sample.record.fixed for i, f in enumerate(follows)]
    if sum(follows) < 2:
        return
    for names in MIXED:
        pair = [BY_NAME[n] for n in names]
        if not all(d in subject.available for d in pair):
            continue
        chosen = iter(pair * len(follows))
        own = sample.operand_dtypes(case, pair[0])
        given = [next(chosen) if f else d for f, d in zip(follows, own)]
        mixed = [d for d, f in zip(given, follows) if f]
        _check_mixed(subject, sample, case, given, promoted(mixed) if all(map(sample.takes, mixed)) else None)


def _check_mixed(subject: Subject, sample: Sample, case: Case, given: list[DType], common: DType | None) -> None:
    what = f"{sample.id} {' with '.join(d.name for d in given)}"
    tensors = [
        None if s is None else subject.tensor(d.values(np.random.default_rng(1), s, g, case), d.of(g))
        for s, g, d in zip(case.shapes, given, (*sample.domains, *[sample.domains[-1]] * len(given)))
    ]
    if common is not None and not sample.accepts(common) and not sample.refuses(common):
        return
    if common is None or not sample.accepts(common):
        try:
            sample.apply(tensors, case.attrs)
        except DTypeError:
            return
        raise Failure(f"{what}: expected DTypeError; it returned.")
    _check_results(subject, sample, what, sample.apply(tensors, case.attrs), sample.results(common))


def _check_results(subject: Subject, sample: Sample, what: str, out: Any, results: tuple[DType, ...]) -> None:
    for i, t in enumerate(out):
        subject.inspect(t, what)
        due = results[i] if len(results) > 1 else results[0]
        if t.dtype is not due:
            raise Failure(f"{what}: expected dtype {due.name}; got {t.dtype.name}.")


def _ones(subject: Subject, sample: Sample, case: Case, dtype: DType) -> list[Any]:
    own = sample.operand_dtypes(case, dtype)
    return [None if s is None else subject.tensor(np.ones(s), d) for s, d in zip(case.shapes, own)]


# ---- layouts ----


def _transposed(subject: Subject, array: Any, dtype: DType) -> Any:
    t = subject.tensor(np.ascontiguousarray(array.T), dtype)
    return t.permute(tuple(range(array.ndim))[::-1])


def _stepped(subject: Subject, array: Any, dtype: DType) -> Any:
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), native(dtype))
    wide[..., 1::2] = array
    return subject.tensor(wide, dtype)[..., 1::2]


def _reversed(subject: Subject, array: Any, dtype: DType) -> Any:
    key = (slice(None, None, -1),) * array.ndim
    return subject.tensor(np.ascontiguousarray(array[key]), dtype)[key]


def _offset(subject: Subject, array: Any, dtype: DType) -> Any:
    wide = np.zeros((array.shape[0] + 2, *array.shape[1:]), native(dtype))
    wide[1:-1] = array
    return subject.tensor(wide, dtype)[1:-1]


def _read_only(subject: Subject, array: Any, dtype: DType) -> Any:
    """Share memory that nobody may write."""
    data = bfloat16_bits(array).tobytes() if dtype.name == "bfloat16" else np.ascontiguousarray(array).tobytes()
    return subject.wrap(subject.backend.share_host(HostBuffer(data, array.shape, dtype), subject.device), dtype)


LAYOUTS = {
    "transposed": _transposed,
    "stepped": _stepped,
    "reversed": _reversed,
    "offset": _offset,
    "read-only": _read_only,
}


def check_layouts(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Give the same values for transposed, strided, reversed, offset and read-only operands."""
    for case in sample.cases[:2]:
        arrays = sample.draw(case, dtype)
        own = sample.operand_dtypes(case, dtype)
        want = sample.expected(case, arrays, dtype)
        for name, lay in LAYOUTS.items():
            tensors = [
                None if a is None else lay(subject, a, d) if a.ndim and a.size else subject.tensor(a, d)
                for a, d in zip(arrays, own)
            ]
            laid = Case(case.shapes, case.attrs, f"{case} {name}")
            subject.compare(sample, laid, dtype, sample.apply(tensors, case.attrs), want, arrays)


def check_device(subject: Subject, sample: Sample) -> None:
    """Keep results on the operands' device, on each device of the backend."""
    case = sample.cases[0]
    for name in subject.devices:
        there = subject.on(name)
        kinds = [d for d in sample.dtypes(there.available) if d.name in ("float32", "int64", "complex64", "bool")]
        if not kinds:
            continue
        dtype = next((d for d in kinds if d.name == "float32"), kinds[0])
        _call(there, sample, case, dtype)
