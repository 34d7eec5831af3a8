"""mortice.special: special functions under the names of `torch.special`."""

from mortice.ops.nn_activation import log_softmax, softmax
from mortice.ops.special import (
    digamma,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    polygamma,
    sinc,
    xlog1py,
    xlogy,
    zeta,
)
from mortice.ops.special import (
    digamma as psi,
)
from mortice.ops.special import (
    lgamma as gammaln,
)
from mortice.ops.special import (
    mvlgamma as multigammaln,
)
from mortice.ops.statistics import logsumexp
from mortice.ops.unary import exp2, expm1, log1p, round
from mortice.ops.unary import sigmoid as expit

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "log1p", "log_ndtr",
    "log_softmax",
    "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip
