"""Helpers for tests: `assert_close` and `make_tensor`, as in torch.testing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import mortice
from mortice import Tensor
from mortice.notice import warn

_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7), "float": (1e-7, 1e-7), "complex": (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = (int, float, complex)
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses
_ATTRIBUTES: tuple[tuple[str, str | None, Callable[[Any], Any]], ...] = (
    ("shape", None, lambda t: t.shape), ("device", "device", lambda t: t.device), ("dtype", "dtype", lambda t: t.dtype),
    ("layout", "layout", lambda t: t.layout),
    ("stride()", "stride", lambda t: t.stride() if t.layout is mortice.strided else None),
)  # fmt: skip


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Assert that `actual` and `expected` (tensors, numbers, arrays, or containers of them) are close.

    Raises:
        AssertionError: saying where and by how much they differ.
        TypeError: for a pair of kinds that cannot be compared, such as a tensor and a number.
    """
    _checked(rtol, atol)
    how = _How(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride, allow_subclasses)
    problem = _compare(actual, expected, "", how)
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """Assert that two values are close, whatever their dtypes and devices: the old form of `assert_close`."""
    if not isinstance(actual, Tensor):
        actual = mortice.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = mortice.tensor(expected, dtype=actual.dtype)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, msg=msg or None
    )


class _How(NamedTuple):
    """What `assert_close` was asked for."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    device: bool
    dtype: bool
    layout: bool
    stride: bool
    subclasses: bool


def _checked(rtol: float | None, atol: float | None) -> None:
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")


def get_tolerances(*inputs: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """Return the tolerances that were given, or the loosest of the inputs' dtypes.

    Raises:
        ValueError: where one was given alone.
    """
    _checked(rtol, atol)
    if rtol is not None and atol is not None:
        return rtol, atol
    found = [_TOLERANCES.get(_kind(v), (0.0, 0.0)) for v in inputs]
    return max(r for r, _ in found), max(a for _, a in found)


def _kind(value: Any) -> str:
    return value.dtype.name if isinstance(value, Tensor) else type(value).__name__


def _compare(actual: Any, expected: Any, where: str, how: _How) -> str | None:
    """Return what is wrong, None when nothing is."""
    at = f"\n\nThe failure occurred for item {where}" if where else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, additional = ([k for k in x if k not in y] for x, y in ((expected, actual), (actual, expected)))
        if missing or additional:
            return (
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(missing, key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(additional, key=str)}{at}"
            )
        items = [(f"{where}[{k!r}]", actual[k], expected[k]) for k in actual]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{at}"
        items = [(f"{where}[{i}]", a, e) for i, (a, e) in enumerate(zip(actual, expected))]
    else:
        problem = _compare_pair(actual, expected, how)
        return None if problem is None else problem + at
    return next((p for place, a, e in items if (p := _compare(a, e, place, how)) is not None), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _compare_pair(actual: Any, expected: Any, how: _How) -> str | None:
    if actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    # NumPy's numbers stand for Python's; its arrays, which have a length, do not.
    actual, expected = (v.item() if hasattr(v, "item") and not hasattr(v, "__len__") else v for v in (actual, expected))
    if isinstance(actual, bool) and isinstance(expected, bool):
        return None if actual is expected else f"Booleans mismatch: {actual} is not {expected}"
    if isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
        return _compare_numbers(actual, expected, how)
    # Python's own objects are no arrays, and arrays of two libraries are a mistake more often than meant.
    a, e = type(actual), type(expected)
    related = a is e or (how.subclasses and (issubclass(a, e) or issubclass(e, a)))
    if related and isinstance(actual, Tensor):
        return _compare_tensors(actual, expected, how)
    if related and hasattr(actual, "__array__"):
        return _compare_tensors(mortice.as_tensor(actual), mortice.as_tensor(expected), how)
    raise TypeError(f"No comparison pair was able to handle inputs of type {a} and {e}.")


def _compare_numbers(actual: Any, expected: Any, how: _How) -> str | None:
    if how.dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    rtol, atol = get_tolerances(actual, expected, rtol=how.rtol, atol=how.atol)
    if actual == expected or (how.equal_nan and actual != actual and expected != expected):
        return None
    difference = abs(actual - expected)
    if difference <= atol + rtol * abs(expected) < math.inf:
        return None
    relative = difference / abs(expected) if expected else math.inf
    return _scalars(actual, expected, difference, relative, rtol, atol)


def _compare_sparse(a: Any, e: Any, how: _How) -> str | None:
    if a.is_sparse and a.is_coalesced() != e.is_coalesced():
        a, e = a.coalesce(), e.coalesce()
    kind = str(a.layout)[-3:].upper()
    if a.is_sparse and a.sparse_dim() != e.sparse_dim():
        return f"The number of sparse dimensions in sparse COO tensors does not match: {a.sparse_dim()} != {e.sparse_dim()}"
    if a._nnz() != e._nnz():
        return f"The number of specified values in sparse {kind} tensors does not match: {a._nnz()} != {e._nnz()}"
    for (name, x), y in zip(a._buffer.parts.items(), e._buffer.parts.values()):
        last = name == "values"
        problem = _compare_tensors(x, y, how if last else how._replace(rtol=0.0, atol=0.0, dtype=False))
        if problem is not None:
            return problem.replace("Tensor-likes are", f"Sparse {kind} {name} are", 1)
    return None


def _compare_tensors(a: Any, e: Any, how: _How) -> str | None:
    for name, check, of in _ATTRIBUTES:
        if (check is None or getattr(how, check)) and of(a) != of(e):
            return f"The values for attribute '{name}' do not match: {of(a)} != {of(e)}."
    if a.is_meta or e.is_meta:  # they have no values
        return None
    if a.layout is not e.layout:
        a, e = a.to_dense(), e.to_dense()
    elif a.layout is not mortice.strided:
        return _compare_sparse(a.detach(), e.detach(), how)
    rtol, atol = get_tolerances(a, e, rtol=how.rtol, atol=how.atol)
    a, e = a.detach(), e.detach()
    if a.device != e.device:
        a, e = a.cpu(), e.cpu()
    wide = a if a.dtype is mortice.uint64 else e
    if wide.dtype is mortice.uint64 and "i" in (a.dtype.kind, e.dtype.kind):  # no integer dtype holds both
        dtype = mortice.float64 if wide.numel() and wide.max().item() >= 1 << 63 else mortice.int64
    else:
        dtype = mortice.promote_types(a.dtype, e.dtype)
    if dtype.kind == "b" or (dtype.kind in "ui" and dtype.itemsize < 8):
        dtype = mortice.int64
    a, e = a.to(dtype), e.to(dtype)
    matches = mortice.isclose(a, e, rtol=rtol, atol=atol, equal_nan=how.equal_nan)
    if bool(matches.all()):
        return None
    difference = mortice.maximum(a, e) - mortice.minimum(a, e) if dtype.kind == "u" else (a - e).abs()
    difference = difference.masked_fill(matches, 0)
    relative = (difference / e.abs()).masked_fill(matches, 0)
    if not a.shape:
        return _scalars(a.item(), e.item(), difference.item(), relative.item(), rtol, atol)
    bad, n = a.numel() - int(matches.sum()), a.numel()
    exact, (up_to_a, up_to_r) = _words(rtol, atol)
    (d, d_at), (r, r_at) = _greatest(difference), _greatest(relative)
    return (
        f"Tensor-likes are not {exact}!\n\nMismatched elements: {bad} / {n} ({bad / n:.1%})\n"
        f"Greatest absolute difference: {d} at index {d_at}{up_to_a}\nGreatest relative difference: {r} at index {r_at}{up_to_r}"
    )


def _scalars(actual: Any, expected: Any, difference: Any, relative: Any, rtol: Any, atol: Any) -> str:
    exact, (up_to_a, up_to_r) = _words(rtol, atol)
    return (
        f"Scalars are not {exact}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{up_to_a}\nRelative difference: {relative}{up_to_r}"
    )


def _words(rtol: Any, atol: Any) -> tuple[str, tuple[str, str]]:
    """Return "equal" or "close", and what is allowed as text."""
    if rtol == atol == 0:
        return "equal", ("", "")
    return "close", (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")


def _greatest(x: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the greatest element, nan first, and its index."""
    flat = x.reshape(-1)
    i = int(flat.argmax())
    return flat[i].item(), tuple(int(k) for k in mortice.unravel_index(mortice.tensor(i), tuple(x.shape)))


def make_tensor(
    *shape: Any, dtype: Any, device: Any = None, low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """Make a tensor of random numbers from [low, high), by default -9 to 9 (0 to 9 for unsigned integers, any bool)."""
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    exact = dtype.kind in "bui"
    if noncontiguous and memory_format is not None:
        text = "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got"
        raise ValueError(f"{text} {noncontiguous=} and {memory_format=}")
    if requires_grad and exact:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    noncontiguous = noncontiguous and math.prod(size) > 1
    if noncontiguous:
        size = (*size[:-1], 2 * size[-1])
    bottom, top = _range(dtype, low, high)
    if exact:
        made = mortice.randint(math.ceil(bottom), math.ceil(top), size, dtype=dtype, device=device)
    else:
        made = mortice.empty(size, dtype=dtype if dtype.itemsize > 1 else mortice.float32, device=device)
        scale = 2 if top - bottom >= mortice.finfo(made.dtype).max else 1  # uniform_ takes no wider interval
        (mortice.view_as_real(made) if dtype.is_complex else made).uniform_(bottom / scale, top / scale).mul_(scale)
        made = made.to(dtype)
    if noncontiguous:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = 1 if exact else mortice.finfo(dtype).tiny
    return made.requires_grad_(requires_grad)


def _range(dtype: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the bounds for `make_tensor`, within what the dtype holds."""
    if dtype.kind == "b":
        least, most, usual = 0, 2, (0, 2)
    elif dtype.kind in "ui":
        limits = mortice.iinfo(dtype)
        # randint cannot draw the greatest int64 or what lies above it.
        least, most, usual = limits.min, min(limits.max + 1, 2**63 - 1), (-9, 10)
    else:
        least, most, usual = mortice.finfo(dtype).min, mortice.finfo(dtype).max, (-9, 9)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and dtype.kind in "bui"):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if low == high:
        text = "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1"
        warn(f"{text} and will be removed in 2.3. Use `torch.full(...)` instead.", FutureWarning)
        return (min(max(low, least), most),) * 2
    if high < least or low >= most:
        text = f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype}"
        raise ValueError(f"{text} only supports [{least}, {most})")
    return min(max(low, least), most), min(max(high, least), most)


__all__ = ["assert_allclose", "assert_close", "make_tensor"]
