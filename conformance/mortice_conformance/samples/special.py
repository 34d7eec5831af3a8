"""Samples of error, gamma and zeta functions and their relatives."""

from __future__ import annotations

import numpy as np

from mortice_conformance import references as r
from mortice_conformance.domain import above_one, above_two, nonzero, positive, probability, real, unit
from mortice_conformance.record import EDGES, sample

sample("erf", r.erf, values=EDGES, zeros=True)
sample("erfc", r.erfc, values=EDGES)
sample("erfcx", r.erfcx, values=(0.0, 1.0, -1.0, 3.0, 30.0, 1e4, 1.7e38, float("inf")), kind="special")
sample(
    "erfinv", r.erfinv, unit, values=(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, float("nan"), 0.999, 1e-6), kind="special"
)
# Far below zero there still are fractions, down to half a unit at 2**22 (float32) and at 2**51 (float64).
_BELOW = (-1.5, -2097153.25, -3000000.5, -8388607.5, -2886358191869878.5)
sample("lgamma", r.lgamma, above_two, values=(0.0, 0.5, 1.0, 2.0, 3.0, 1e4, float("inf"), float("nan"), *_BELOW), kind="special")
sample("digamma", r.digamma, above_two, values=(0.5, 1.0, 2.0, 3.0, 1e4, float("inf"), float("nan"), *_BELOW), kind="special")
sample("polygamma", r.polygamma, positive, attrs=[{"n": 1}, {"n": 2}], kind="special")
sample("zeta", r.zeta, above_one, positive, kind="special", grad=(1,))
sample("logit", lambda x, eps: np.log(x / (1 - x)), probability, attrs=[{"eps": None}], values=(0.0, 0.5, 1.0), kind="smooth",
       dtypes="f")  # fmt: skip
sample("logit", lambda x, eps: (lambda c: np.log(c / (1 - c)))(np.clip(x, eps, 1 - eps)), probability, variant="eps",
       attrs=[{"eps": 0.25}], kind="smooth", dtypes="f", tolerance={"float16": 64, "bfloat16": 64},
       reason="1 - eps is rounded to the dtype first")  # fmt: skip
sample("log_ndtr", r.log_normal_cdf, real, values=(0.0, 1.0, -1.0, 8.0, -20.0, float("nan")), kind="special",
       tolerance={"float16": 8, "bfloat16": 8, "float32": 64, "float64": 64},
       reason="far out it is a tiny area, of which one ulp of the operand changes many; half precision rounds on the way")  # fmt: skip
sample("ndtri", r.normal_quantile, probability, values=(0.0, 1.0, 0.5, 0.02, 1e-3, 0.999, 2.0, -1.0, float("nan")), kind="special")
_LOGS = (0.0, 1.0, 0.5, 3.0, float("nan"))
sample(
    "xlogy",
    lambda x, y: np.where(np.isnan(y), np.nan, np.where(x == 0, 0, x * np.log(y))),
    nonzero,
    positive,
    values=_LOGS,
    kind="special",
)
sample(
    "xlog1py",
    lambda x, y: np.where(np.isnan(y), np.nan, np.where(x == 0, 0, x * np.log1p(y))),
    nonzero,
    positive,
    values=_LOGS,
    kind="special",
)
sample("entr", lambda x: np.where(x < 0, -np.inf, np.where(x == 0, 0, -x * np.log(x))), positive,
       values=(0.0, 1.0, -1.0, 0.5, float("nan")), dtypes="buif")  # fmt: skip
sample("sinc", np.sinc, real, values=(0.0, 0.5, 1.5, float("nan")), kind="smooth")
