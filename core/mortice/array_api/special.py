"""Special functions in SciPy's names and order of arguments.

No part of the standard yet (https://github.com/data-apis/array-api/issues/725), but SciPy's `special` looks for them here
before it converts a tensor to NumPy: so its functions run on any backend, and gradients flow through them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import mortice as mt
from mortice.special import bessel_j0 as j0
from mortice.special import bessel_j1 as j1
from mortice.special import bessel_y0 as y0
from mortice.special import bessel_y1 as y1
from mortice.special import (
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    exp2,
    expit,
    gammaln,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    logit,
    multigammaln,
    ndtr,
    ndtri,
    psi,
    sinc,
)
from mortice.special import modified_bessel_k0 as k0
from mortice.special import modified_bessel_k1 as k1
from mortice.special import scaled_modified_bessel_k0 as k0e
from mortice.special import scaled_modified_bessel_k1 as k1e

__all__ = [
    "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e",
    "j0", "j1", "k0", "k0e", "k1", "k1e", "log_ndtr", "logit", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "sinc",
    "xlog1py", "xlogy", "y0", "y1", "zeta",
]  # fmt: skip


def _of_two(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let a number stand for either operand, as in SciPy."""

    @wraps(f)
    def call(x: Any, y: Any, /) -> Any:
        like = x if isinstance(x, mt.Tensor) else y
        return f(*[v if isinstance(v, mt.Tensor) else mt.full_like(like, v) for v in (x, y)])

    return call


gammainc = _of_two(mt.special.gammainc)
gammaincc = _of_two(mt.special.gammaincc)
xlog1py = _of_two(mt.special.xlog1py)
xlogy = _of_two(mt.special.xlogy)
zeta = _of_two(mt.special.zeta)


def polygamma(n: Any, x: Any, /) -> Any:
    """Return the nth derivative of the digamma function; `n` broadcasts against x where it is no number."""
    if not isinstance(n, mt.Tensor):
        return mt.special.polygamma(n, x)
    above = n.to(x.dtype) + 1
    return mt.where(n == 0, psi(x), (1 - 2 * (above % 2)) * mt.exp(gammaln(above)) * zeta(above, x))
