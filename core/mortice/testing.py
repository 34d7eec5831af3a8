"""Helpers for tests: `assert_close` and `make_tensor`, as in torch.testing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mortice
from mortice import Tensor

_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def _tolerances(*tensors: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    if (rtol is None) != (atol is None):
        given, other = ("rtol", "atol") if atol is None else ("atol", "rtol")
        raise ValueError(f"assert_close: rtol and atol must both be specified or both be unspecified; got only {given}, no {other}.")
    if rtol is not None and atol is not None:
        return rtol, atol
    found = [_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in tensors]
    return max(r for r, _ in found), max(a for _, a in found)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Assert that `actual` and `expected` (tensors, numbers, or containers of them) are close.

    Raises:
        AssertionError: saying where and by how much they differ.
    """
    problem = _compare(actual, expected, "", rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def _compare(actual: Any, expected: Any, where: str, rtol: Any, atol: Any, equal_nan: bool, *checks: bool) -> str | None:
    at = f"\n\nThe failure occurred for item {where}" if where else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match: {sorted(map(str, actual))} and {sorted(map(str, expected))}." + at
        pairs = [(f"{where}[{k!r}]", actual[k], expected[k]) for k in actual]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}" + at
        pairs = [(f"{where}[{i}]", a, e) for i, (a, e) in enumerate(zip(actual, expected))]
    elif actual is None and expected is None:
        return None
    else:
        problem = _compare_values(actual, expected, rtol, atol, equal_nan, *checks)
        return None if problem is None else problem + at
    for place, a, e in pairs:
        problem = _compare(a, e, place, rtol, atol, equal_nan, *checks)
        if problem is not None:
            return problem
    return None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _compare_values(
    actual: Any, expected: Any, rtol: Any, atol: Any, equal_nan: bool, device: bool, dtype: bool, stride: bool
) -> str | None:
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    try:
        a, e = (v if isinstance(v, Tensor) else mortice.as_tensor(v, dtype=_wide(v)) for v in (actual, expected))
    except (TypeError, ValueError):
        raise TypeError(
            f"assert_close: no comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
        ) from None
    kind = "Scalars" if numbers else "Tensor-likes"
    if a.shape != e.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {e.shape}."
    if device and not numbers and a.device != e.device:
        return f"The values for attribute 'device' do not match: {a.device} != {e.device}."
    if dtype and not numbers and a.dtype != e.dtype:
        return f"The values for attribute 'dtype' do not match: {a.dtype} != {e.dtype}."
    if stride and a.stride() != e.stride():
        return f"The values for attribute 'stride()' do not match: {a.stride()} != {e.stride()}."
    rtol, atol = _tolerances(a, e, rtol=rtol, atol=atol)
    found, wanted = _flat(a), _flat(e)
    bad, worst, worst_at, worst_relative, relative_at = 0, -1.0, 0, -1.0, 0
    for i, (x, y) in enumerate(zip(found, wanted)):
        if x == y or (equal_nan and x != x and y != y):
            continue
        difference = abs(x - y)
        if difference <= atol + rtol * abs(y) and not math.isinf(abs(y)):
            continue
        bad += 1
        difference = math.inf if difference != difference else difference
        relative = difference / abs(y) if abs(y) else math.inf
        if difference > worst:
            worst, worst_at = difference, i
        if relative > worst_relative:
            worst_relative, relative_at = relative, i
    if not bad:
        return None
    exact = "equal" if rtol == atol == 0 else "close"
    if numbers or not a.shape:
        return (
            f"Scalars are not {exact}!\n\nExpected {wanted[0]} but got {found[0]}.\n"
            f"Absolute difference: {worst} (up to {atol} allowed)\n"
            f"Relative difference: {worst_relative} (up to {rtol} allowed)"
        )
    return (
        f"{kind} are not {exact}!\n\nMismatched elements: {bad} / {len(found)} ({bad / len(found):.1%})\n"
        f"Greatest absolute difference: {worst} at index {_index(worst_at, a.shape)} (up to {atol} allowed)\n"
        f"Greatest relative difference: {worst_relative} at index {_index(relative_at, a.shape)} (up to {rtol} allowed)"
    )


def _wide(value: Any) -> Any:
    return mortice.float64 if type(value) is float else mortice.complex128 if type(value) is complex else None


def _flat(t: Any) -> list[Any]:
    return t.detach().reshape(-1).tolist()  # type: ignore[no-any-return]


def _index(i: int, shape: Any) -> tuple[int, ...]:
    out = []
    for n in reversed(shape):
        i, k = divmod(i, n)
        out.append(k)
    return tuple(reversed(out))


def make_tensor(
    *shape: Any, dtype: Any, device: Any = None, low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """Make a tensor of random numbers from [low, high), by default -9 to 9 (0 to 9 for unsigned, any bool)."""
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if dtype is mortice.bool:
        made = mortice.randint(0, 2, size, device=device).to(dtype)
    elif dtype.kind in "ui":
        limits = mortice.iinfo(dtype)
        lowest = -9 if dtype.kind == "i" else 0
        bottom = max(math.floor(lowest if low is None else low), limits.min)
        top = min(math.floor(10 if high is None else high), min(limits.max, 2**63 - 2) + 1)
        made = mortice.randint(bottom, top, size, device=device).to(dtype)
    else:
        bottom, top = -9.0 if low is None else low, 9.0 if high is None else high
        if bottom > top or bottom != bottom or top != top:
            raise ValueError(f"make_tensor: expected low <= high, neither nan; got {low} and {high}.")
        made = (mortice.rand(size, dtype=dtype, device=device) * (top - bottom)) + (
            complex(bottom, bottom) if dtype.is_complex else bottom
        )
    if exclude_zero:
        tiny = mortice.finfo(dtype).tiny if dtype.kind in "fc" else 1
        made = mortice.where(made == 0, mortice.full_like(made, tiny), made)
    if noncontiguous and made.numel() > 1:
        made = mortice.repeat_interleave(made, 2, dim=-1)[..., ::2]
    return made.detach().requires_grad_(requires_grad) if dtype.kind in "fc" else made


__all__ = ["assert_close", "make_tensor"]
