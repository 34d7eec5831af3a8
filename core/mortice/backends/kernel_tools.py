"""What the default bodies of FREE kernels share: half precision by way of float32, polynomials, splitting a number.

No kernel lives here. Functions take the kernel namespace `k` first and are as pure as the kernels are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mortice.dtype import bfloat16, float16, float32, float64

Buffer = Any
F = TypeVar("F", bound=Callable[..., Any])
# Coefficients by precision; the index of a real dtype's row is `single(k, x)`.
Table = tuple[Sequence[float], Sequence[float]]


class KernelMixin:
    """A family of kernels. Each calls the others by name on self, and which class brings them is not its business."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def is_number(x: Any) -> bool:
    """Tell whether an operand is a (weak) Python number and not a buffer."""
    return isinstance(x, int | float | complex)


def _is_plain(x: Any) -> bool:
    """Whether an argument is an attribute, or nothing, and no operand."""
    return x is None or x.__class__ is str or is_number(x)


def in_float32(body: F) -> F:
    """Compute float16 and bfloat16 operands in float32 and round the result once."""

    @functools.wraps(body)
    def wrapped(k: Any, *args: Any, **attributes: Any) -> Any:
        for x in args:
            if not _is_plain(x):
                d = k.dtype_of(x)
                if d is not float16 and d is not bfloat16:
                    return body(k, *args, **attributes)
                wide = (y if _is_plain(y) else k.astype(y, float32) for y in args)
                return k.astype(body(k, *wide, **attributes), d)
        return body(k, *args, **attributes)

    return wrapped  # type: ignore[return-value]


def single(k: Any, x: Buffer) -> int:
    """Return 0 for double precision and 1 for single: the column of a constant that depends on it."""
    return 0 if k.dtype_of(x).to_real() is float64 else 1


def horner(k: Any, coefficients: Sequence[float], x: Buffer) -> Buffer:
    """Evaluate a polynomial, lowest coefficient first (at least two of them)."""
    total = k.add(k.multiply(x, coefficients[-1]), coefficients[-2])
    for c in coefficients[-3::-1]:
        total = k.add(k.multiply(total, x), c)
    return total


def is_minus(k: Any, x: Buffer) -> Buffer:
    """Tell where floats are below zero or -0.0, without `signbit`, whose default body asks nan too and goes to the host."""
    # A zero shows its sign in its reciprocal.
    return k.less(k.where(k.equal(x, 0.0), k.divide(1.0, x), x), 0.0)


def like(k: Any, x: Buffer, y: Any) -> Buffer:
    """Return y as a buffer: a number becomes one element beside x."""
    return k.new_full(x, (), y) if is_number(y) else y


def as_buffers(k: Any, x: Any, y: Any) -> tuple[Buffer, Buffer]:
    """Return both operands as buffers: a number becomes one element beside the other."""
    return (like(k, y, x), y) if is_number(x) else (x, like(k, x, y))
