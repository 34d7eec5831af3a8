"""Samples of Bessel, Airy and incomplete gamma functions, orthogonal polynomials, and numbers taken apart."""

from __future__ import annotations

import numpy as np

from mortice_conformance import references_special as r
from mortice_conformance.domain import Domain, not_negative, positive, real, small
from mortice_conformance.record import sample

_WIDE = Domain("within 20", -20.0, 20.0, (-20, 20))
_RIGHT = Domain("up to 20", 0.1, 20.0, (1, 20))
_ROUGH = {"float16": 2, "bfloat16": 2, "float32": 32, "float64": 64}
_FAR = "the sine of a large number; the reference is good to as many digits as float64 has"

# ---- Bessel and Airy ----

for _name, _reference in (("bessel_j0", r.bessel_j0), ("bessel_j1", r.bessel_j1)):
    sample(_name, _reference, _WIDE, values=(0.0, 1.0, -1.0, 6.0, 5.5, 12.5), kind="smooth")
for _name, _reference in (("bessel_y0", r.bessel_y0), ("bessel_y1", r.bessel_y1)):
    sample(_name, _reference, _RIGHT, values=(0.0, 1.0, -1.0, 6.0, 5.5, 12.5), kind="smooth", tolerance=_ROUGH, reason=_FAR)
sample("i0", r.i0, _WIDE, values=(0.0, 1.0, -1.0, 8.0, 7.5, 8.5), kind="special", grad_domain=real)
sample("i1", r.i1, _WIDE, values=(0.0, 1.0, -1.0, 8.0, 7.5, 8.5), kind="special", grad_domain=real)
sample("i0e", r.i0e, _WIDE, values=(0.0, 1.0, -1.0, 8.0, float("inf")), kind="special")
sample("i1e", r.i1e, _WIDE, values=(0.0, 1.0, -1.0, 8.0, float("inf")), kind="special")
_K = (0.0, 1.0, -1.0, 0.5, 2.0, float("inf"))
sample("modified_bessel_k0", r.k0, _RIGHT, values=_K, kind="special")
sample("modified_bessel_k1", r.k1, _RIGHT, values=_K, kind="special")
sample("scaled_modified_bessel_k0", r.k0e, _RIGHT, values=_K, kind="special")
sample("scaled_modified_bessel_k1", r.k1e, _RIGHT, values=_K, kind="special")
sample("spherical_bessel_j0", r.spherical_j0, _WIDE, values=(0.0, 0.5, 1e-3, float("inf"), float("nan")), kind="smooth")
sample("airy_ai", r.airy_ai, real, values=(0.0, 1.0, -1.0, 2.0, -3.0, 2.5, -3.5), kind="smooth")

# ---- incomplete gamma ----

_GAMMA = (0.0, 1.0, 0.5, 3.0, -1.0, float("nan"))
_BY_Y = {"grad": (1,)}
sample("igamma", r.gammainc, positive, values=_GAMMA, kind="special", **_BY_Y)
sample("igammac", r.gammaincc, positive, values=_GAMMA, kind="special",
       tolerance={"float16": 2, "bfloat16": 2, "float32": 64, "float64": 256},
       reason="the reference subtracts from 1", **_BY_Y)  # fmt: skip

# ---- polynomials ----

_DEGREE = Domain("degree", ints=(0, 12), draw=lambda rng, shape, dtype, case: rng.integers(0, 2 if dtype.kind == "b" else 13, shape))
_POLYNOMIAL = {"float16": 8, "bfloat16": 8, "float32": 512, "float64": 512}
_STEPS = "every step of the recurrence rounds"
for _kind in "tuvw":
    for _shifted in (False, True):
        sample(f"{'shifted_' * _shifted}chebyshev_polynomial_{_kind}", r.polynomial(f"chebyshev_{_kind}", _shifted), small, _DEGREE,
               dtypes="f", kind="smooth", tolerance=_POLYNOMIAL, reason=_STEPS)  # fmt: skip
for _family in ("hermite_h", "hermite_he", "laguerre_l", "legendre_p"):
    _name, _, _kind = _family.rpartition("_")
    sample(f"{_name}_polynomial_{_kind}", r.polynomial(_family), small, _DEGREE, dtypes="f", kind="smooth", tolerance=_POLYNOMIAL,
           transfers=1, reason="the largest degree says how many steps there are; each rounds")  # fmt: skip

# ---- parts of numbers ----

sample("frexp", lambda x: np.frexp(np.asarray(x, np.float64)), real, values=(0.0, 1.0, -0.5, 3.0, 1e-6, 1024.0, "tiny", "max", "-max"),
       kind="exact", result=("promote", "int32"))  # fmt: skip
sample("gcd", np.gcd, not_negative, values=(0, 1, 6, 9), kind="exact")
sample("gcd", np.gcd, real, variant="signs", dtypes="i", values=(0, -6, 9), kind="exact")
sample("lcm", np.lcm, not_negative, values=(0, 1, 6, 9), kind="exact")
sample("lcm", np.lcm, real, variant="signs", dtypes="i", values=(0, -6, 9), kind="exact")
