"""The rules that ops name: which dtype they compute in and give, which shape results have, what a Python number becomes."""

from __future__ import annotations

import functools
from math import isfinite

from mortice.backends.host import pack, unpack
from mortice.dtype import DType, bool_, finfo, float32, get_default_dtype, iinfo, int64
from mortice.shape import SCALAR, Size, prod, reduced_shape
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mortice.op import Op


# ---- whether results, and gradients, have the memory format of the first operands: (dims, attributes) -> bool ----


def of_images(ndim: int, attrs: Any) -> bool:
    """Batches of images and of volumes."""
    return 4 <= ndim <= 5


def of_windows(ndim: int, attrs: Any) -> bool:
    """Batches, not single samples, of rows, images and volumes that windows move over."""
    return ndim == 2 + len(attrs["kernel" if "kernel" in attrs else "output_size"])


def of_flat_windows(ndim: int, attrs: Any) -> bool:
    """The same without volumes."""
    return ndim < 5 and of_windows(ndim, attrs)


# ---- dtype rules: (op, dtype of the operands together) -> (dtype to compute in, dtype of the result) ----


def promote(op: Op, d: DType) -> tuple[DType, DType]:
    """The operands' common dtype."""
    return d, d


def floating(op: Op, d: DType) -> tuple[DType, DType]:
    """Like promote; integers and bools compute in the default float dtype."""
    if d.kind in "bui":
        d = get_default_dtype()
    return d, d


def comparison(op: Op, d: DType) -> tuple[DType, DType]:
    """Compute in the common dtype, give bool."""
    return d, bool_


def logical(op: Op, d: DType) -> tuple[DType, DType]:
    """Read every operand as a truth value, give bool."""
    return bool_, bool_


def accumulate(op: Op, d: DType) -> tuple[DType, DType]:
    """Bools and integers add up in int64."""
    return (int64, int64) if d.kind in "bui" else (d, d)


def indices(op: Op, d: DType) -> tuple[DType, DType]:
    """Give int64 positions."""
    return d, int64


def real_part(op: Op, d: DType) -> tuple[DType, DType]:
    """Complex gives the real dtype of its parts."""
    return d, d.to_real()


def beside_wide(op: Op, d: DType) -> tuple[DType, Any]:
    """The operand's dtype; a second result, of which gradients are made, is at the least in float32."""
    return d, (d, float32 if d.itemsize == 2 else d)


# ---- shape rules: (op name, shapes..., **attributes) -> shape of the result ----


def same(name: str, shape: Size, *rest: Any, **attrs: Any) -> Size:
    """The first operand's shape."""
    return shape


def to_scalar(name: str, shape: Size) -> Size:
    """No dims."""
    return SCALAR


@functools.lru_cache(4096)  # shapes recur, and a look-up costs a fifth
def reduced(name: str, shape: Size, *, axis: Any, keepdims: bool, **attrs: Any) -> Size:
    """Without the reduced axes, or with them as 1."""
    if axis is None and not keepdims:
        return SCALAR
    dims = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return reduced_shape(shape, dims, keepdims)


# ---- number rules: (op, number, dtype to compute in, position) -> the number as the kernel gets it ----


def hold(name: str, value: Any, d: DType, shape: Any = None) -> Any:
    """Return a number as dtype `d` holds it, else refuse it; below zero they wrap in unsigned dtypes, as in PyTorch.

    All of a tensor of one half-precision element may become infinite, as there.
    """
    kind = d.kind
    if isinstance(value, str):
        raise TypeError(f"{name}: expected a number; got {value!r}.")
    if kind == "c":
        return complex(value)
    if not isinstance(value, complex):
        if kind == "f":
            value = float(value)
            if -448.0 <= value <= 448.0 or abs(value) <= finfo(d).max or not isfinite(value):  # every float dtype has 448
                return value
            if d.itemsize == 2 and shape is not None and prod(shape) == 1:
                return rounded(value, d)
        elif kind == "b":
            return bool(value)
        else:
            limits = _LIMITS.get(d) or _LIMITS.setdefault(d, iinfo(d))
            if (-limits.max if kind == "u" else limits.min) <= value <= limits.max:
                value = int(value)
                return value if value >= limits.min else value + limits.max + 1
    elif not value.imag:
        return hold(name, value.real, d, shape)
    raise RuntimeError(f"{name}: value cannot be converted to type {d.name} without overflow; got {value}.")


def as_stored(value: Any, d: DType) -> Any:
    """Return a number as buffers take it for a dtype, which for float8 is its code."""
    return value if d.stored is d else pack([value], d)[0]


def fit_number(op: Op, value: Any, d: DType, position: int = 0) -> Any:
    """Refuse a number that the dtype cannot hold; as a float it is rounded to the dtype, and may overflow."""
    if d.kind == "f" and not isinstance(value, complex):
        return rounded(float(value), d) if d.itemsize == 2 else as_stored(float(value), d)
    return bool(value) if d.kind == "b" else hold(op.name, value, d)


def rounded(value: float, d: DType) -> float:
    """Return the number of a floating dtype that is nearest."""
    return _rounded(value, d) if value else value  # 0 is -0 to a cache


@functools.lru_cache(1024)
def _rounded(value: float, d: DType) -> float:
    return unpack(pack([value], d), d)[0]  # type: ignore[no-any-return]


def held(op: Op, value: Any, d: DType, position: int = 0) -> Any:
    """Refuse a number that the dtype cannot hold, floats that would overflow among them."""
    return hold(op.name, fit_number(op, hold(op.name, value, d), d), d)


def in_full(rule: Callable[..., Any], *positions: int) -> Callable[..., Any]:
    """Let numbers count in full beside 16-bit floats at these positions, as in products and quotients on PyTorch's CPU."""

    def number(op: Op, value: Any, d: DType, position: int = 0) -> Any:
        full = d.kind == "f" and position in positions and not isinstance(value, complex)
        return float(value) if full else rule(op, value, d, position)

    number.positions = positions  # type: ignore[attr-defined]
    return number


_LIMITS: dict[DType, iinfo] = {}


def holds(d: DType, value: Any) -> bool:
    """Tell whether an int is one of an integer dtype's."""
    bits = 8 * d.itemsize - (d.kind == "i")
    return type(value) is int and d.kind in "iu" and -(d.kind == "i") << bits <= value < 1 << bits


def wrap_operand(op: Op, value: Any, d: DType, position: int = 0) -> Any:
    """Wrap a number of at most 64 bits in integer dtypes, as PyTorch does wherever one stands for a tensor."""
    if d.kind not in "ui":
        return fit_number(op, value, d)
    if not -(1 << 63) <= value < 1 << 64:
        raise OverflowError(f"{op.name}: int too big to convert; got {value}, which takes more than 64 bits.")
    value = int(value)
    limits = _LIMITS.get(d) or _LIMITS.setdefault(d, iinfo(d))
    if limits.min <= value <= limits.max:
        return value
    return (value - limits.min) % (1 << limits.bits) + limits.min


def number_of(name: str, argument: str, value: Any) -> Any:
    """Return an argument that is a number, also where it came in a tensor; with dims or a gradient that is refused."""
    if not isinstance(value, TensorBase):
        return value
    if value.shape or value._rg:
        what = f"of shape {tuple(value.shape)}" if value.shape else "that requires grad"
        raise TypeError(f"{name}: expected a number for {argument}; got a Tensor {what}. Use .item() where one is meant.")
    return value.item()  # type: ignore[attr-defined]
