"""mortice.special: special functions under the names of `torch.special`."""

from mortice.ops.special import (
    digamma,
    digamma as psi,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    lgamma as gammaln,
    log_ndtr,
    logit,
    mvlgamma as multigammaln,
    ndtr,
    ndtri,
    polygamma,
    sinc,
    xlog1py,
    xlogy,
    zeta,
)
from mortice.ops.statistics import logsumexp
from mortice.ops.unary import exp2, expm1, log1p, round, sigmoid as expit

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "log1p", "log_ndtr",
    "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "xlog1py", "xlogy", "zeta",
]  # fmt: skip
