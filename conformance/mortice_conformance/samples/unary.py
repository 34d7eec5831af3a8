"""Samples of functions of one operand: signs, roots, exponentials, circles, rounding; and complex parts."""

from __future__ import annotations

import numpy as np

import mortice as mt
from mortice_conformance.domain import above_one, nonzero, positive, real, small, unit
from mortice_conformance.record import EDGES, sample

_NO_BOOL = (
    "neg: Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead."
)

# ---- signs ----
sample(
    "neg",
    np.negative,
    values=EDGES,
    kind="exact",
    zeros=True,
    misuse=[(lambda: mt.neg(mt.ones(2, dtype=mt.bool)), _NO_BOOL)],
)
sample("abs", np.abs, nonzero, values=EDGES, zeros=True, kind="elementwise")
sample("sign", lambda x: x if x.dtype.kind == "b" else np.sign(x), nonzero, values=EDGES, kind="exact")
sample("sgn", lambda x: x if x.dtype.kind == "b" else np.sign(x), nonzero, values=EDGES)
sample("positive", lambda x: x, call=lambda x: mt.positive(x) * 1, dtypes="uifc", kind="exact")

# ---- roots and powers ----
sample("sqrt", np.sqrt, positive, values=EDGES, kind="arithmetic", zeros=True)
sample("rsqrt", lambda x: 1 / np.sqrt(x), positive, values=(*EDGES, 1e-40, 1e-310))
sample("square", lambda x: x if x.dtype.kind == "b" else x * x, values=EDGES, kind="arithmetic")
sample("reciprocal", lambda x: 1 / x, nonzero, values=EDGES, zeros=True)

# ---- exponentials and logarithms ----
sample("exp", np.exp, values=EDGES)
sample("exp2", np.exp2, dtypes="buif", values=EDGES)
sample("exp2", lambda x: np.exp(x * np.log(2)), dtypes="c", variant="complex")
sample("expm1", np.expm1, small, values=EDGES, zeros=True)
sample("log", np.log, positive, values=EDGES)
sample("log2", np.log2, positive, values=EDGES)
sample("log10", np.log10, positive, values=EDGES)
sample("log1p", np.log1p, positive, values=EDGES, zeros=True)
sample("sigmoid", lambda x: 1 / (1 + np.exp(-x)), values=EDGES)

# ---- circular and hyperbolic functions ----
_FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"), float("-inf"), float("nan"), "tiny", 100.0, -1e4)
sample("sin", np.sin, values=_FINITE, zeros=True)
sample("cos", np.cos, values=_FINITE)
sample("tan", np.tan, values=_FINITE, zeros=True)
sample("asin", np.arcsin, unit, values=EDGES, zeros=True)
sample("acos", np.arccos, unit, values=EDGES)
sample("atan", np.arctan, values=EDGES, zeros=True)
sample("sinh", np.sinh, values=EDGES, zeros=True)
sample("cosh", np.cosh, values=EDGES)
sample("tanh", np.tanh, values=EDGES, zeros=True)
sample("asinh", np.arcsinh, values=EDGES, zeros=True)
sample("acosh", np.arccosh, above_one, values=EDGES)
sample("atanh", np.arctanh, unit, values=EDGES, zeros=True)

# ---- rounding ----
_HALVES = (*EDGES, 1.5, 2.5, -1.5, -0.5, 1e6, 0.49999997, 8388609.0)
sample("floor", np.floor, dtypes="uif", values=_HALVES, kind="exact", zeros=True)
sample("ceil", np.ceil, dtypes="uif", values=_HALVES, kind="exact", zeros=True)
sample("trunc", np.trunc, dtypes="uif", values=_HALVES, kind="exact", zeros=True)
sample(
    "round",
    lambda x, decimals: np.round(x),
    dtypes="uif",
    attrs=[{"decimals": 0}],
    values=_HALVES,
    kind="exact",
    zeros=True,
)
sample("round", lambda x, decimals: np.round(x, decimals), dtypes="f", variant="decimals", shapes=[(37,)],
       attrs=[{"decimals": 2}, {"decimals": -1}], tolerance={"float16": 4, "bfloat16": 4},
       reason="scaling by a power of ten rounds before and after")  # fmt: skip
sample("frac", lambda x: x - np.trunc(x), kind="exact")
sample("deg2rad", np.deg2rad)
sample("rad2deg", np.rad2deg)


def _to_num(x: object, nan: float, posinf: object, neginf: object) -> object:
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)  # type: ignore[call-overload]


sample("nan_to_num", _to_num, dtypes="buif", values=(0.0, 1.5, float("inf"), float("-inf"), float("nan")), kind="exact",
       attrs=[{"nan": 0.5, "posinf": 100.0, "neginf": -100.0}])  # fmt: skip

# ---- complex numbers ----
sample("complex", lambda x, y: x + 1j * y, kind="exact")
sample("real", np.real, kind="exact")
sample("imag", np.imag, kind="exact")
sample("conj", np.conj, dtypes="c", kind="exact")
sample("angle", np.angle, nonzero, values=(1.0, -1.0, 0.5, float("inf"), float("-inf"), float("nan")))
_PAIRS = [(3, 2), (2, 5, 2)]
for _name in ("view_as_real", "copy_as_real"):
    sample(_name, lambda x: np.stack([x.real, x.imag], -1), real, kind="exact", shares=True)
for _name in ("view_as_complex", "copy_as_complex"):
    sample(_name, lambda x: x[..., 0] + 1j * x[..., 1], kind="exact", shapes=_PAIRS, edges=[(2,), (0, 2)], shares=True,
           layouts=False, reason="as in torch, pairs must lie side by side")  # fmt: skip
