"""Numbers taken apart: mantissa and exponent, common divisors and multiples."""

from __future__ import annotations

from typing import Any

from mortice import return_types
from mortice.dtype import int32
from mortice.op import op
from mortice.ops.reduce import write_all
from mortice.rules import promote, same
from mortice.shape import broadcast

__all__ = ["frexp", "gcd", "lcm"]


@op(
    result=lambda op, d: (d, (d, int32)), shape=same, kernel="frexp", dtypes="f", outputs=("mantissa", "exponent"),
    differentiable=1, name="frexp",
)  # fmt: skip
def _frexp(k: Any, x: Any, /) -> Any:
    """Take floats apart into mantissa and exponent."""


def _frexp_back(k: Any, g: Any, exponent: Any) -> Any:
    return k.multiply(g, k.pow(2.0, k.astype(k.negative(exponent), k.dtype_of(g))))


_frexp.vjp(x=_frexp_back)


def frexp(input: Any, *, out: Any = None) -> Any:
    """Take floats apart: (mantissa, exponent) with input = mantissa * 2**exponent and 1/2 <= |mantissa| < 1."""
    return write_all("frexp", out, return_types.frexp(*_frexp(input)))


@op(result=promote, shape=broadcast, kernel="gcd", dtypes="ui")
def gcd(k: Any, x: Any, y: Any, /) -> Any:
    """Return the greatest common divisor, not negative; of two zeros 0."""


@op(result=promote, shape=broadcast, kernel="lcm", dtypes="ui")
def lcm(k: Any, x: Any, y: Any, /) -> Any:
    """Return the least common multiple, not negative; 0 beside a zero."""


for _fn in (gcd, lcm):
    _fn.no_grad("it counts")
