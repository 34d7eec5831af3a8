"""Error, gamma and zeta functions and their relatives; `mortice.special` names them as PyTorch does."""

from __future__ import annotations

import math
from typing import Any

from mortice.backends.kernel_tools import as_buffers, horner, in_float32, like, single
from mortice.node import TENSOR_KERNELS, node_name
from mortice.op import op
from mortice.ops import reduce
from mortice.ops.creation import arange
from mortice.ops.data import number
from mortice.ops.elementwise import add, mul, undefined
from mortice.ops.movement import unsqueeze
from mortice.rules import floating, promote, same
from mortice.shape import broadcast
from mortice.tensor import TensorBase

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "igamma", "igammac", "lgamma", "logit", "mvlgamma", "polygamma", "sinc", "xlogy",
]  # fmt: skip

# ---- error functions ----


def _bell(k: Any, g: Any, x: Any, scale: float) -> Any:
    return k.multiply(g, k.multiply(k.exp(k.negative(k.multiply(x, x))), scale))


@op(result=floating, shape=same, kernel="erf", dtypes="f")
def erf(k: Any, x: Any, /) -> Any:
    """Return the error function."""


erf.vjp(x=lambda k, g, x: _bell(k, g, x, 2 / math.sqrt(math.pi)), jvp="elementwise")


@op(result=floating, shape=same, kernel="erfc", dtypes="f")
def erfc(k: Any, x: Any, /) -> Any:
    """Return 1 - erf(x), accurate where it is small."""


erfc.vjp(x=lambda k, g, x: _bell(k, g, x, -2 / math.sqrt(math.pi)), jvp="elementwise")


@op(result=floating, shape=same, kernel="erfcx", dtypes="f", grad_name="SpecialErfcxBackward0")
def erfcx(k: Any, x: Any, /) -> Any:
    """Return exp(x**2) * erfc(x), which does not underflow."""


erfcx.vjp(
    x=lambda k, g, x, out: k.multiply(g, k.subtract(k.multiply(k.multiply(x, out), 2.0), 2 / math.sqrt(math.pi))),
    jvp="elementwise",
)


@op(result=floating, shape=same, kernel="erfinv", dtypes="f")
def erfinv(k: Any, x: Any, /) -> Any:
    """Invert the error function; infinite at -1 and 1, nan beyond."""


# By x rather than the result, which may be written in place afterwards, as in PyTorch.
erfinv.vjp(
    x=lambda k, g, x: k.multiply(g, k.multiply(k.exp(k.square(k.erfinv(x))), math.sqrt(math.pi) / 2)),
    jvp="elementwise",
)


def ndtr(input: Any, *, out: Any = None) -> Any:
    """Return the area under the standard normal density below each element."""
    tail = erfc(input * -math.sqrt(0.5))
    return mul(tail, 0.5, out=out)


@op(result=floating, shape=same, dtypes="f", grad_name="SpecialNdtriBackward0")
@in_float32
def ndtri(k: Any, x: Any, /) -> Any:
    """Invert `ndtr`, accurate where it is small."""
    low = k.less(x, 0.5)
    tail = k.where(low, x, k.subtract(1.0, x))
    central = k.less(0.1, tail)
    near = k.multiply(k.erfinv(k.subtract(k.multiply(k.where(central, x, 0.5), 2.0), 1.0)), math.sqrt(2.0))
    # Three digits by a rational function (Hastings'), which Newton's steps on the logarithm of the tail double.
    safe = k.where(k.logical_or(central, k.less_equal(tail, 0.0)), 0.1, tail)
    log = k.log(safe)
    s = k.sqrt(k.multiply(log, -2.0))
    far = k.subtract(
        s, k.divide(horner(k, (2.515517, 0.802853, 0.010328), s), horner(k, (1.0, 1.432788, 0.189269, 0.001308), s))
    )
    for _ in range(3 - single(k, x)):
        scaled = k.multiply(far, math.sqrt(0.5))
        rest = k.erfcx(scaled)
        miss = k.subtract(k.subtract(k.log(k.multiply(rest, 0.5)), k.multiply(scaled, scaled)), log)
        far = k.add(far, k.multiply(miss, k.multiply(rest, math.sqrt(math.pi / 2))))
    far = k.where(k.equal(tail, 0.0), math.inf, k.where(k.less(tail, 0.0), math.nan, far))
    return k.where(central, near, k.where(k.isnan(x), x, k.where(low, k.negative(far), far)))


ndtri.vjp(
    x=lambda k, g, out: k.multiply(g, k.multiply(k.exp(k.multiply(k.square(out), 0.5)), math.sqrt(2 * math.pi))),
    jvp="elementwise",
)


@op(result=floating, shape=same, dtypes="f", grad_name="SpecialLogNdtrBackward0")
@in_float32
def log_ndtr(k: Any, x: Any, /) -> Any:
    """Return the logarithm of `ndtr`, accurate where it is small."""
    scaled = k.multiply(x, math.sqrt(0.5))
    far = k.subtract(k.log(k.multiply(k.erfcx(k.negative(k.minimum(scaled, 0.0))), 0.5)), k.multiply(scaled, scaled))
    near = k.log1p(k.multiply(k.erfc(k.maximum(scaled, -1.0)), -0.5))
    return k.where(k.less(x, -1.0), far, near)


log_ndtr.vjp(
    # The density over the area below: both vanish far left, their quotient, by way of erfcx, does not.
    x=lambda k, g, x: k.multiply(g, k.divide(math.sqrt(2 / math.pi), k.erfcx(k.multiply(x, -math.sqrt(0.5))))),
    jvp="elementwise",
)


# ---- gamma functions ----


@op(result=floating, shape=same, kernel="lgamma", dtypes="f")
def lgamma(k: Any, x: Any, /) -> Any:
    """Return the logarithm of |gamma(x)|."""


lgamma.vjp(x=lambda k, g, x: k.multiply(g, k.digamma(x)), jvp="elementwise")


@op(result=floating, shape=same, kernel="digamma", dtypes="f")
def digamma(k: Any, x: Any, /) -> Any:
    """Return the derivative of lgamma."""


digamma.vjp(x=lambda k, g, x: k.multiply(g, k.polygamma(1, x)), jvp="elementwise")


@op(result=floating, shape=same, name="polygamma", dtypes="f")
def _polygamma(k: Any, x: Any, /, *, n: int) -> Any:
    """Return the nth derivative of digamma."""
    return k.polygamma(n, x)


_polygamma.vjp(x=lambda k, g, x, n: k.multiply(g, k.polygamma(n + 1, x)), jvp="elementwise")
TENSOR_KERNELS.replace("polygamma", lambda n, x: digamma(x) if n == 0 else _polygamma(x, n=n))


def polygamma(n: int, input: Any, *, out: Any = None) -> Any:
    """Return the nth derivative of digamma."""
    if isinstance(n, TensorBase):
        if n.shape or n.dtype.kind not in "ui":
            raise TypeError("polygamma(): argument 'n' (position 1) must be int, not Tensor")
        n = int(n)
    if n < 0:
        raise RuntimeError(f"polygamma: polygamma(n, x) does not support negative n. It is {n}.")
    return digamma(input, out=out) if n == 0 else _polygamma(input, n=n, out=out)


def polygamma_of(input: Any, n: int) -> Any:
    """Return the nth derivative of digamma."""
    return polygamma(n, input)


polygamma_of.__name__ = polygamma_of.__qualname__ = "polygamma"  # as the method is called


@node_name("MvlgammaBackward0")
def mvlgamma(input: Any, p: int, *, out: Any = None) -> Any:
    """Return the logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1; got {p}.")
    steps = arange(p, dtype=lgamma.op.rule(input.dtype)[0], device=input.device) / 2
    return add(reduce.sum(lgamma(unsqueeze(input, -1) - steps), -1), p * (p - 1) / 4 * math.log(math.pi), out=out)


@op(result=floating, shape=broadcast, kernel="zeta", dtypes="f", grad_name="SpecialZetaBackward0")
def zeta(k: Any, x: Any, q: Any, /) -> Any:
    """Return the Hurwitz zeta function of x > 1 and q; its gradient reaches q alone."""


zeta.vjp(
    x=lambda k, g: undefined("zeta"),
    q=lambda k, g, x, q: k.negative(k.multiply(g, k.multiply(x, k.zeta(k.add(x, 1.0), q)))), jvp="elementwise"
)

# The derivative by the first argument is no elementary function; PyTorch has none either.
def _gamma_density(k: Any, g: Any, x: Any, y: Any) -> Any:
    """Return g times the derivative of P by y."""
    x, y = as_buffers(k, x, y)
    power = k.subtract(x, 1.0)
    power = k.where(k.equal(power, 0.0), 0.0, k.multiply(power, k.log(y)))
    return k.multiply(g, k.exp(k.subtract(k.subtract(power, y), k.lgamma(x))))


@op(result=promote, shape=broadcast, kernel="gammainc", dtypes="f")
def igamma(k: Any, x: Any, y: Any, /) -> Any:
    """Return the regularised lower incomplete gamma function P(input, other); its gradient reaches `other` alone."""


@op(result=promote, shape=broadcast, kernel="gammaincc", dtypes="f")
def igammac(k: Any, x: Any, y: Any, /) -> Any:
    """Return the regularised upper incomplete gamma function Q(input, other); its gradient reaches `other` alone."""


igamma.vjp(x=lambda k, g: undefined("igamma: input"), y=_gamma_density, jvp="elementwise")
igammac.vjp(x=lambda k, g: undefined("igammac: input"), y=lambda k, g, x, y: k.negative(_gamma_density(k, g, x, y)), jvp="elementwise")

# ---- logarithms that meet zeros ----


@op(result=floating, shape=same, name="logit", dtypes="f")
def _logit(k: Any, x: Any, /, *, eps: float | None) -> Any:
    """Return log(x / (1 - x)), of x limited to [eps, 1 - eps]."""
    if eps is not None:
        x = k.clip(x, eps, 1 - eps)
    return k.log(k.divide(x, k.subtract(1.0, x)))


def _logit_back(k: Any, g: Any, x: Any, eps: float | None) -> Any:
    low = 0.0 if eps is None else eps
    inside = k.logical_and(k.less_equal(low, x), k.less_equal(x, 1.0 - low))
    slope = k.divide(g, k.multiply(x, k.subtract(1.0, x)))
    return k.where(inside, slope, math.nan if eps is None else 0.0)


_logit.vjp(x=_logit_back, jvp="elementwise")


def logit(input: Any, eps: float | None = None, *, out: Any = None) -> Any:
    """Return log(x / (1 - x)), of x limited to [eps, 1 - eps] where eps is given."""
    return _logit(input, eps=None if eps is None else number(eps, "logit", "eps"), out=out)


def _log_times(k: Any, x: Any, y: Any, log: Any) -> Any:
    x, y = as_buffers(k, x, y)
    product = k.where(k.equal(x, 0.0), 0.0, k.multiply(x, log(y)))
    return k.where(k.isnan(y), y, product)


def _log_where(k: Any, g: Any, x: Any, y: Any, log: Any, floor: float) -> Any:
    y = like(k, g, y)
    return k.where(k.logical_and(k.equal(x, 0.0), k.less_equal(y, floor)), 0.0, k.multiply(g, log(y)))


@op(result=floating, shape=broadcast, dtypes="f")
def xlogy(k: Any, x: Any, y: Any, /) -> Any:
    """Return x * log(y), 0 where x is 0 unless y is nan."""
    return _log_times(k, x, y, k.log)


xlogy.vjp(
    x=lambda k, g, x, y: _log_where(k, g, x, y, k.log, 0.0),
    y=lambda k, g, x, y: k.divide(k.multiply(g, x), y),
    jvp="elementwise",
)


@op(result=floating, shape=broadcast, dtypes="f", grad_name="SpecialXlog1PyBackward0")
def xlog1py(k: Any, x: Any, y: Any, /) -> Any:
    """Return x * log1p(y), 0 where x is 0 unless y is nan."""
    return _log_times(k, x, y, k.log1p)


xlog1py.vjp(
    x=lambda k, g, x, y: _log_where(k, g, x, y, k.log1p, -1.0),
    y=lambda k, g, x, y: k.divide(k.multiply(g, x), k.add(y, 1.0)),
    jvp="elementwise",
)


@op(result=floating, shape=same, dtypes="f", grad_name="SpecialEntrBackward0")
def entr(k: Any, x: Any, /) -> Any:
    """Return -x * log(x), 0 at 0 and minus infinity below."""
    inner = k.where(k.equal(x, 0.0), 0.0, k.negative(k.multiply(x, k.log(x))))
    return k.where(k.less(x, 0.0), -math.inf, inner)


entr.vjp(x=lambda k, g, x: k.multiply(g, k.subtract(-1.0, k.log(x))), jvp="elementwise")


@op(result=floating, shape=same)
@in_float32
def sinc(k: Any, x: Any, /) -> Any:
    """Return sin(pi * x) / (pi * x), 1 at 0."""
    zero = k.equal(x, 0.0)
    turn = k.multiply(k.where(zero, 1.0, x), math.pi)
    return k.where(zero, 1.0, k.divide(k.sin(turn), turn))


@in_float32
def _sinc_back(k: Any, g: Any, x: Any) -> Any:
    zero = k.equal(x, 0.0)
    safe = k.where(zero, 1.0, x)
    turn = k.multiply(safe, math.pi)
    slope = k.divide(k.subtract(k.cos(turn), k.divide(k.sin(turn), turn)), safe)
    return k.multiply(g, k.where(zero, 0.0, slope))


sinc.vjp(x=_sinc_back, jvp="elementwise")
