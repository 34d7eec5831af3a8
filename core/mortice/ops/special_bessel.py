"""Bessel functions of order 0 and 1, plain, modified and scaled, the spherical one of order 0, and Airy's."""

from __future__ import annotations

from typing import Any

from mortice.op import op
from mortice.rules import floating, same

__all__ = ["i0"]


def _over(k: Any, y: Any, x: Any, at_zero: float) -> Any:
    """Divide y by x, with the limit where x is 0."""
    zero = k.equal(x, 0.0)
    return k.where(zero, at_zero, k.divide(y, k.where(zero, 1.0, x)))


# ---- J and Y ----


@op(result=floating, shape=same, kernel="bessel_j0", dtypes="f")
def bessel_j0(k: Any, x: Any, /) -> Any:
    """Return the Bessel function of the first kind, order 0.

    Differs from torch: it has a gradient, takes half precision, and is 0 at infinity.
    """


@op(result=floating, shape=same, kernel="bessel_j1", dtypes="f")
def bessel_j1(k: Any, x: Any, /) -> Any:
    """Return the Bessel function of the first kind, order 1.

    Differs from torch: it has a gradient, takes half precision, and is 0 at infinity.
    """


@op(result=floating, shape=same, kernel="bessel_y0", dtypes="f")
def bessel_y0(k: Any, x: Any, /) -> Any:
    """Return the Bessel function of the second kind, order 0; nan below 0.

    Differs from torch: it has a gradient, takes half precision, and is 0 at infinity.
    """


@op(result=floating, shape=same, kernel="bessel_y1", dtypes="f")
def bessel_y1(k: Any, x: Any, /) -> Any:
    """Return the Bessel function of the second kind, order 1; nan below 0.

    Differs from torch: it has a gradient, takes half precision, and is 0 at infinity.
    """


bessel_j0.vjp(x=lambda k, g, x: k.negative(k.multiply(g, k.bessel_j1(x))), jvp="elementwise")
bessel_j1.vjp(
    x=lambda k, g, x, out: k.multiply(g, k.subtract(k.bessel_j0(x), _over(k, out, x, 0.5))), jvp="elementwise"
)
bessel_y0.vjp(x=lambda k, g, x: k.negative(k.multiply(g, k.bessel_y1(x))), jvp="elementwise")
bessel_y1.vjp(x=lambda k, g, x, out: k.multiply(g, k.subtract(k.bessel_y0(x), k.divide(out, x))), jvp="elementwise")

# ---- I ----


@op(result=floating, shape=same, kernel="bessel_i0", dtypes="f")
def i0(k: Any, x: Any, /) -> Any:
    """Return the modified Bessel function of the first kind, order 0.

    Differs from torch: it is infinite at infinity, not nan, and the greatest float32 results are not infinite yet.
    """


@op(result=floating, shape=same, kernel="bessel_i0e", dtypes="f", grad_name="SpecialI0EBackward0")
def i0e(k: Any, x: Any, /) -> Any:
    """Return exp(-|x|) * i0(x), which does not overflow."""


@op(result=floating, shape=same, kernel="bessel_i1", dtypes="f", grad_name="SpecialI1Backward0")
def i1(k: Any, x: Any, /) -> Any:
    """Return the modified Bessel function of the first kind, order 1.

    Differs from torch: it is infinite at infinity, not nan, and the greatest float32 results are not infinite yet.
    """


@op(result=floating, shape=same, kernel="bessel_i1e", dtypes="f", grad_name="SpecialI1EBackward0")
def i1e(k: Any, x: Any, /) -> Any:
    """Return exp(-|x|) * i1(x), which does not overflow."""


i0.vjp(x=lambda k, g, x: k.multiply(g, k.bessel_i1(x)), jvp="elementwise")
i0e.vjp(
    x=lambda k, g, x, out: k.multiply(g, k.subtract(k.bessel_i1e(x), k.multiply(k.sign(x), out))), jvp="elementwise"
)
i1.vjp(x=lambda k, g, x, out: k.multiply(g, k.subtract(k.bessel_i0(x), _over(k, out, x, 0.5))), jvp="elementwise")
i1e.vjp(
    x=lambda k, g, x, out: k.multiply(
        g, k.subtract(k.subtract(k.bessel_i0e(x), _over(k, out, x, 0.5)), k.multiply(k.sign(x), out))
    ),
    jvp="elementwise",
)
modified_bessel_i0, modified_bessel_i1 = i0, i1

# ---- K ----


@op(result=floating, shape=same, kernel="bessel_k0", dtypes="f")
def modified_bessel_k0(k: Any, x: Any, /) -> Any:
    """Return the modified Bessel function of the second kind, order 0; nan below 0.

    Differs from torch: it has a gradient and takes half precision.
    """


@op(result=floating, shape=same, kernel="bessel_k1", dtypes="f")
def modified_bessel_k1(k: Any, x: Any, /) -> Any:
    """Return the modified Bessel function of the second kind, order 1; nan below 0.

    Differs from torch: it has a gradient and takes half precision.
    """


@op(result=floating, shape=same, kernel="bessel_k0e", dtypes="f", name="scaled_modified_bessel_k0")
def _scaled_k0(k: Any, x: Any, /) -> Any:
    """Return exp(x) * modified_bessel_k0(x)."""


@op(result=floating, shape=same, kernel="bessel_k1e", dtypes="f", name="scaled_modified_bessel_k1")
def _scaled_k1(k: Any, x: Any, /) -> Any:
    """Return exp(x) * modified_bessel_k1(x)."""


modified_bessel_k0.vjp(x=lambda k, g, x: k.negative(k.multiply(g, k.bessel_k1(x))), jvp="elementwise")
modified_bessel_k1.vjp(
    x=lambda k, g, x, out: k.negative(k.multiply(g, k.add(k.bessel_k0(x), k.divide(out, x)))), jvp="elementwise"
)
_scaled_k0.vjp(x=lambda k, g, x, out: k.multiply(g, k.subtract(out, k.bessel_k1e(x))), jvp="elementwise")
_scaled_k1.vjp(
    x=lambda k, g, x, out: k.multiply(g, k.subtract(k.subtract(out, k.bessel_k0e(x)), k.divide(out, x))),
    jvp="elementwise",
)


def scaled_modified_bessel_k0(x: Any, *, out: Any = None) -> Any:
    """Return exp(x) * modified_bessel_k0(x), which does not underflow.

    Differs from torch: it has a gradient and takes half precision.
    """
    return _scaled_k0(x, out=out)


def scaled_modified_bessel_k1(x: Any, *, out: Any = None) -> Any:
    """Return exp(x) * modified_bessel_k1(x), which does not underflow.

    Differs from torch: it has a gradient and takes half precision.
    """
    return _scaled_k1(x, out=out)


# ---- spherical and Airy ----


@op(result=floating, shape=same, kernel="spherical_bessel_j0", dtypes="f", name="spherical_bessel_j0")
def _spherical_j0(k: Any, x: Any, /) -> Any:
    """Return sin(x) / x, 1 at 0."""


def _spherical_back(k: Any, g: Any, x: Any, out: Any) -> Any:
    # Near 0 the difference cancels: there three terms of the series do.
    z = k.multiply(x, x)
    near = k.multiply(x, k.add(k.multiply(z, k.add(k.multiply(z, -1 / 840), 1 / 30)), -1 / 3))
    close = k.less(k.abs(x), 0.01)
    far = k.divide(k.subtract(k.cos(x), out), k.where(close, 1.0, x))
    return k.multiply(g, k.where(close, near, far))


_spherical_j0.vjp(x=_spherical_back, jvp="elementwise")


def spherical_bessel_j0(x: Any, *, out: Any = None) -> Any:
    """Return sin(x) / x, 1 at 0 and 0 at infinity.

    Differs from torch: it has a gradient and takes half precision.
    """
    return _spherical_j0(x, out=out)


@op(result=floating, shape=same, kernel="airy_ai", dtypes="f", name="airy_ai")
def _airy_ai(k: Any, x: Any, /) -> Any:
    """Return the Airy function that falls on the right."""


_airy_ai.no_grad("PyTorch defines none, and its derivative is a function of its own")


def airy_ai(x: Any, *, out: Any = None) -> Any:
    """Return the Airy function that falls on the right; it has no gradient, as in PyTorch."""
    return _airy_ai(x, out=out)
