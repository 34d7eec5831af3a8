"""Unsigned integers where a namespace keeps them but does not compute in them: by way of int64, whose arithmetic is the same.

Modulo 2**64 the two differ in order, quotients and right shifts only; those of uint64 are derived here.
"""

from __future__ import annotations

from mortice.dtype import DType, int64, uint64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ANY = (
    "negative abs sign floor isnan logical_not add subtract multiply pow equal matmul sum prod cumulative_sum where concat "
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift take take_along_axis scatter_add getitem setitem"
).split()
_ORDERED = "less maximum minimum max min argmax argsort".split()
_INDICES = ("argmax", "argsort")
_TOP = 1 << 63


def emulate(k: Any, dtypes: frozenset[DType]) -> None:
    """Let a namespace's backend compute in `dtypes`: each of its kernels that meets one takes the way by int64."""
    for name in (*_ANY, *_ORDERED, "floor_divide", "remainder", "bitwise_right_shift"):
        setattr(k, name, _bridged(k, name, getattr(k, name), dtypes))


def _bridged(k: Any, name: str, plain: Any, dtypes: frozenset[DType]) -> Any:
    derived: Any = {"floor_divide": _quotient, "remainder": _remainder, "bitwise_right_shift": _shifted, "abs": _same,
               "floor": _same, "sign": _sign}.get(name)  # fmt: skip

    def kernel(*xs: Any, **attrs: Any) -> Any:
        found = next((d for d in map(dtype, xs) if d in dtypes), None)
        if found is None:
            return plain(*xs, **attrs)
        shift = found is uint64 and name in _ORDERED
        signed = [_signed(k, x, found, shift) for x in xs]
        if derived is not None and (found is uint64 or derived in (_same, _sign)):
            out = derived(k, *(k._pair(*signed) if len(signed) == 2 else signed))
        else:
            out = plain(*signed, **attrs)
        if k.dtype_of(out) is not int64 or name in _INDICES:
            return out
        return k.astype(k.bitwise_xor(out, -_TOP) if shift else out, found)

    def dtype(x: Any) -> Any:
        x = x[0] if isinstance(x, list) and x else x
        return k.dtype_of(x) if hasattr(x, "dtype") else None

    return kernel


def _signed(k: Any, x: Any, found: DType, shift: bool) -> Any:
    """Return an operand in int64; with `shift` moved down by 2**63, so that its order is that of the unsigned."""
    if isinstance(x, list):
        return [_signed(k, part, found, shift) for part in x]
    if type(x) is int:
        return x - _TOP if shift else x - 2 * _TOP if x >= _TOP else x
    if not hasattr(x, "dtype") or k.dtype_of(x) is not found:
        return x
    x = k.astype(x, int64)
    return k.bitwise_xor(x, -_TOP) if shift else x


def _same(k: Any, x: Any) -> Any:
    return x


def _sign(k: Any, x: Any) -> Any:
    return k.astype(k.logical_not(k.equal(x, 0)), int64)


def _shifted(k: Any, x: Any, n: Any) -> Any:
    """Shift right and clear what the sign has filled."""
    rest = 63 - n if type(n) is int else k.subtract(63, n)
    ones = k.bitwise_or(k.multiply(x, 0), -1)
    filled = k.bitwise_left_shift(k.bitwise_left_shift(ones, rest), 1)
    return k.bitwise_and(k.bitwise_right_shift(x, n), k.bitwise_xor(filled, -1))


def _reached(k: Any, x: Any, y: Any) -> Any:
    """Return 1 where x is at least y, both unsigned, else 0."""
    return k.astype(k.logical_not(k.less(k.bitwise_xor(x, -_TOP), k.bitwise_xor(y, -_TOP))), int64)


def _quotient(k: Any, x: Any, y: Any) -> Any:
    """Divide the halved dividend, double, and correct by one; a divisor above 2**63 goes in once or not at all."""
    safe = k.where(k.less(y, 0), 1, y)
    half = k.bitwise_left_shift(k.floor_divide(_shifted(k, x, 1), safe), 1)
    once = k.add(half, _reached(k, k.subtract(x, k.multiply(half, safe)), safe))
    return k.where(k.less(y, 0), _reached(k, x, y), once)


def _remainder(k: Any, x: Any, y: Any) -> Any:
    return k.subtract(x, k.multiply(_quotient(k, x, y), y))
