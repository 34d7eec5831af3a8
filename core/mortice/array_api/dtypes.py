"""What the standard asks about dtypes: kinds, promotion, casting, limits."""

from __future__ import annotations

import builtins
from typing import Any

import mortice as mt
from mortice.dtype import DTYPES, promote_scalar
from mortice.errors import DTypeError

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

# The standard's kinds of dtypes, as the kinds that mortice's dtypes have.
KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def astype(x: Any, dtype: mt.dtype, /, *, copy: builtins.bool = True, device: Any = None) -> Any:
    """Convert to a dtype, as a copy unless `copy` is False and nothing changes.

    Raises:
        DTypeError: for complex numbers to be made real. Take `real` or `imag` of them first.
    """
    if x.dtype.is_complex and dtype.kind in "iuf":
        raise DTypeError(
            f"astype: expected a complex dtype for complex numbers; got {dtype}. Use real(x) or imag(x) first."
        )
    return x.to(device, dtype, copy=copy) if device is not None else x.to(dtype, copy=copy)


def can_cast(from_: Any, to: mt.dtype, /) -> builtins.bool:
    """Tell whether promotion leads from one dtype, or an array's on its device, to another."""
    if isinstance(from_, mt.Tensor):
        if to not in from_.device.backend.dtypes(from_.device):
            return False
        from_ = from_.dtype
    try:
        return mt.promote_types(from_, to) is to
    except DTypeError:
        return False


def result_type(*arrays_and_dtypes: Any) -> mt.dtype:
    """Return the dtype of an operation on arrays, dtypes and Python numbers, which are weak."""
    found, numbers = None, []
    for given in arrays_and_dtypes:
        if isinstance(given, (builtins.bool, int, float, complex)):
            numbers.append(given)
            continue
        # xarray says dtypes by name, which NumPy takes.
        d = given.dtype if isinstance(given, mt.Tensor) else _BY_NAME.get(given, given)
        found = d if found is None else mt.promote_types(found, d)
    if found is None:
        raise TypeError(f"result_type: expected at least one array or dtype; got {arrays_and_dtypes!r}.")
    for number in numbers:
        found = promote_scalar(found, number)
    return found


def isdtype(dtype: mt.dtype, kind: Any) -> builtins.bool:
    """Tell whether a dtype is of a kind, is another dtype, or is any of several."""
    if isinstance(kind, tuple):
        return any([isdtype(dtype, k) for k in kind])
    if isinstance(kind, mt.dtype):
        return dtype is kind
    return dtype.kind in kinds("isdtype", kind)


def kinds(name: str, kind: str) -> str:
    """Return the letters of mortice's kinds for one of the standard's."""
    try:
        return KINDS[kind]
    except (KeyError, TypeError):
        raise ValueError(f"{name}: expected a dtype or one of {', '.join(KINDS)}; got {kind!r}.") from None


class finfo(mt.finfo):
    """Limits of a floating point dtype, or that of an array: bits, eps, max, min, smallest_normal, dtype."""

    def __init__(self, type: Any, /) -> None:
        super().__init__(_dtype_of(type))
        self.dtype = _BY_NAME[self.dtype]


class iinfo(mt.iinfo):
    """Limits of an integer dtype, or that of an array: bits, max, min, dtype."""

    def __init__(self, type: Any, /) -> None:
        super().__init__(_dtype_of(type))
        self.dtype = _BY_NAME[self.dtype]


_BY_NAME = {d.name: d for d in DTYPES}


def _dtype_of(type: Any) -> Any:
    return type.dtype if isinstance(type, mt.Tensor) else type
