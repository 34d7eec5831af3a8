"""Orthogonal polynomials: Chebyshev's of four kinds, shifted ones too, Hermite's of two, Laguerre's and Legendre's.

They take the point and the degree, numbers or tensors that broadcast; a degree is cut to an integer and is 0 below -1.
None has a gradient, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mortice.backends.kernel_tools import as_buffers, in_float32, is_number
from mortice.op import op
from mortice.rules import floating
from mortice.shape import broadcast

__all__: list[str] = []

# Above this degree Chebyshev's polynomials are computed as cosines and their like.
_BY_STEPS = 8


def _by_steps(k: Any, n: Any, first: Any, step: Callable[[int, Any, Any], Any], top: int) -> Any:
    """Return the polynomial of degree n <= top; step(j, q, p) makes that of degree j + 1 from those of j and j - 1."""
    p, q = k.ones_like(first), first
    total = k.where(k.less(n, 1.0), p, q)
    for j in range(1, top):
        p, q = q, step(j, q, p)
        total = k.where(k.less(n, j + 1.0), total, q)
    return k.where(k.less_equal(n, -1.0), 0.0, total)


def _broadcast(k: Any, x: Any, n: Any) -> tuple[Any, Any]:
    x, n = as_buffers(k, x, n)
    return x, k.where(k.isfinite(n), k.trunc(n), -1.0)  # what is no degree counts as a negative one, as in PyTorch


def _parity(k: Any, n: Any) -> Any:
    """Return 1 of an even degree and -1 of an odd one."""
    return k.subtract(1.0, k.multiply(k.remainder(n, 2.0), 2.0))


# ---- Chebyshev ----


def _cosines(k: Any, n: Any, angle: Any) -> Any:
    return k.cos(k.multiply(n, angle))


def _sines(k: Any, n: Any, angle: Any) -> Any:
    sin = k.sin(angle)
    flat = k.equal(sin, 0.0)
    return k.where(flat, k.add(n, 1.0), k.divide(k.sin(k.multiply(k.add(n, 1.0), angle)), k.where(flat, 1.0, sin)))


def _half_cosines(k: Any, n: Any, angle: Any) -> Any:
    return k.divide(k.cos(k.multiply(k.add(n, 0.5), angle)), k.cos(k.multiply(angle, 0.5)))


def _half_sines(k: Any, n: Any, angle: Any) -> Any:
    sin = k.sin(k.multiply(angle, 0.5))
    flat = k.equal(sin, 0.0)
    twice = k.add(k.multiply(n, 2.0), 1.0)
    return k.where(flat, twice, k.divide(k.sin(k.multiply(k.add(n, 0.5), angle)), k.where(flat, 1.0, sin)))


class _Hyperbolic:
    """The kernels with sinh and cosh for sin and cos: what the angle of a point beyond 1 is put into."""

    def __init__(self, k: Any) -> None:
        self.k, self.sin, self.cos = k, k.sinh, k.cosh

    def __getattr__(self, name: str) -> Any:
        return getattr(self.k, name)


def _chebyshev(form: Any, mirrored: Any, first: tuple[float, float], shifted: bool) -> Callable[..., Any]:
    """Return the body of a kind: its form by angles, that of the kind it turns into at -x, and its degree 1."""

    def body(k: Any, x: Any, n: Any) -> Any:
        x, n = _broadcast(k, x, n)
        if shifted:
            x = k.subtract(k.multiply(x, 2.0), 1.0)
        twice = k.multiply(x, 2.0)
        one = k.add(k.multiply(x, first[0]), first[1])
        low = _by_steps(k, n, one, lambda j, q, p: k.subtract(k.multiply(twice, q), p), _BY_STEPS)
        # Of a point on the left the mirror's: so the angle is small where the form needs care.
        left, a = k.less(x, 0.0), k.abs(x)
        inside, outside = k.minimum(a, 1.0), k.maximum(a, 1.0)
        angle, growth = k.acos(inside), k.acosh(outside)
        beyond = _Hyperbolic(k)
        right = k.where(k.less(1.0, a), form(beyond, n, growth), form(k, n, angle))
        turned = k.where(k.less(1.0, a), mirrored(beyond, n, growth), mirrored(k, n, angle))
        high = k.where(left, k.multiply(turned, _parity(k, n)), right)
        return k.where(k.less(float(_BY_STEPS), n), high, low)

    return body


_KINDS = {
    "t": (_cosines, _cosines, (1.0, 0.0)),
    "u": (_sines, _sines, (2.0, 0.0)),
    "v": (_half_cosines, _half_sines, (2.0, -1.0)),
    "w": (_half_sines, _half_cosines, (2.0, 1.0)),
}

# ---- the others ----


def _stepped(first: Any, step: Any, limit: float = math.inf) -> Callable[..., Any]:
    """Return the body of a family that is computed by steps; of a tensor of degrees it reads the largest on the host.

    Above the degree `limit` the polynomial is nan.
    """

    def body(k: Any, x: Any, n: Any) -> Any:
        if is_number(n):
            top = int(n) if math.isfinite(n) else 0
        else:
            top = int(k.item(k.max(k.where(k.isfinite(n), n, 0.0)))) if k.numel_of(n) else 0
        x, n = _broadcast(k, x, n)
        made = _by_steps(k, n, first(k, x), lambda j, q, p: step(k, x, j, q, p), int(min(top, limit)))
        return k.where(k.less(limit, n), math.nan, made) if limit < top else made

    return body


def _hermite(scale: float) -> Callable[..., Any]:
    return _stepped(
        lambda k, x: k.multiply(x, scale),
        lambda k, x, j, q, p: k.subtract(k.multiply(k.multiply(x, scale), q), k.multiply(p, scale * j)),
        512,  # from half of it on the terms are infinite, and their difference is nan
    )


_laguerre = _stepped(
    lambda k, x: k.subtract(1.0, x),
    lambda k, x, j, q, p: k.divide(
        k.subtract(k.multiply(k.subtract(2.0 * j + 1.0, x), q), k.multiply(p, float(j))), j + 1.0
    ),
)
_legendre = _stepped(
    lambda k, x: x,
    lambda k, x, j, q, p: k.divide(
        k.subtract(k.multiply(k.multiply(x, 2.0 * j + 1.0), q), k.multiply(p, float(j))), j + 1.0
    ),
)


def _family(name: str, what: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the op of a family and return its public function."""

    @in_float32
    def run(k: Any, x: Any, n: Any, /) -> Any:
        return body(k, x, n)

    run.__name__, run.__doc__ = name, f"Return {what} polynomial of degree n at x."
    declared = op(result=floating, shape=broadcast, dtypes="f")(run)
    declared.no_grad("PyTorch defines none")

    def polynomial(x: Any, n: Any, *, out: Any = None) -> Any:
        return declared(x, n, out=out)

    polynomial.__name__ = polynomial.__qualname__ = name
    polynomial.__doc__ = f"Return {what} polynomial of degree n at x; it has no gradient, as in PyTorch."
    return polynomial


def _chebyshevs(shifted: bool) -> list[Callable[..., Any]]:
    prefix, what = ("shifted_", "the shifted Chebyshev") if shifted else ("", "the Chebyshev")
    ordinal = dict(zip(_KINDS, ("first", "second", "third", "fourth")))
    return [
        _family(f"{prefix}chebyshev_polynomial_{kind}", f"{what} ({ordinal[kind]} kind)", _chebyshev(*parts, shifted))
        for kind, parts in _KINDS.items()
    ]


chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w = _chebyshevs(False)
(
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
) = _chebyshevs(True)
hermite_polynomial_h = _family("hermite_polynomial_h", "the physicists' Hermite", _hermite(2.0))
hermite_polynomial_he = _family("hermite_polynomial_he", "the probabilists' Hermite", _hermite(1.0))
laguerre_polynomial_l = _family("laguerre_polynomial_l", "the Laguerre", _laguerre)
legendre_polynomial_p = _family("legendre_polynomial_p", "the Legendre", _legendre)
