"""Samples of arithmetic on two and three operands: sums, products, quotients, powers, bounds, choices."""

from __future__ import annotations

from typing import Any

import numpy as np

import mortice as mt
from mortice_conformance.domain import bools, nonzero, positive, real, small, unit
from mortice_conformance.record import EDGES, sample

_APART = (
    "{op}: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1; got (2, 3) and (4,). "
    "Reshape or expand one of them."
)


def _shapes_differ(op: str, fn: object) -> list[object]:
    return [(lambda: fn(mt.ones(2, 3), mt.ones(4)), _APART.replace("{op}", op))]  # type: ignore[operator]


_THREE = [((2, 3),) * 3, ((2, 3), (3,), ()), ((37,), (37,), (1,)), ((4, 1), (1, 3), (3,))]
_THREE_EDGES = [((), (), ()), ((0,), (1,), ()), ((2, 0), (0,), (1, 1))]


def _floordiv(x: Any, y: Any) -> Any:
    """Floor as the array API standard does, infinite operands included."""
    if x.dtype.kind != "f":
        return np.floor_divide(x, y)
    return np.where(np.isinf(x) | np.isinf(y), x / y, np.floor_divide(x, y))


# ---- arithmetic ----
sample("add", np.add, values=EDGES, kind="arithmetic", zeros=True, misuse=_shapes_differ("add", mt.add))
sample("sub", np.subtract, values=EDGES, kind="arithmetic", zeros=True, misuse=_shapes_differ("sub", mt.sub))
sample("mul", np.multiply, values=EDGES, kind="arithmetic", zeros=True, misuse=_shapes_differ("mul", mt.mul))
sample("div", np.divide, nonzero, values=EDGES, kind="arithmetic", zeros=True, misuse=_shapes_differ("div", mt.div))
sample("rdiv", lambda x, y: x * (1 / y), nonzero)

sample("floor_divide", np.floor_divide, nonzero, kind="exact", grad="torch has none either")
sample("floordiv", _floordiv, nonzero, kind="exact", zeros=True, grad="floor_divide has none either")
sample("div_floor", np.floor_divide, nonzero, kind="exact")
sample(
    "div_trunc",
    lambda x, y: np.trunc(x / y) if x.dtype.kind == "f" else (x - np.fmod(x, y)) // y,
    nonzero,
    kind="exact",
)
sample("remainder", np.remainder, nonzero)
sample("fmod", np.fmod, nonzero, kind="exact",
       given=[(([5.0, -5.0], [float("inf"), float("-inf")]), {}, "f", "Divided by infinity, all of a finite number is left.")])  # fmt: skip
sample("pow", np.power, positive, dtypes="fc", values=(0.0, 0.5, 1.0, 2.0, 3.0, float("inf")),
       given=[(([-2.0, -1.5, -2.0, -8.0], [3.0, 2.0, -1.0, 0.5]), {}, "f",
               "A negative base has whole powers: exp(y * log(x)) is not enough. Others are nan."),
              (([-3 + 4j, -3 - 4j, 3 - 4j], [0.5 + 0j] * 3), {}, "c",
               "The principal value is asked for, in all four quadrants.")])  # fmt: skip
sample(
    "pow",
    lambda x: np.power(x, 3.0),
    real,
    call=lambda x: mt.pow(x, 3.0),
    dtypes="f",
    variant="cube",
    shapes=[(37,), (2, 3)],
)
sample("pow", lambda x: np.power(x, -1.5), positive, call=lambda x: mt.pow(x, -1.5), dtypes="f", variant="number",
       shapes=[(37,), (2, 3)])  # fmt: skip
sample("pow", np.power, small, positive, dtypes="ui", variant="integers")
sample("copysign", np.copysign, nonzero, values=EDGES, kind="exact", zeros=True)
for _name in ("float32", "float64"):
    sample("nextafter", lambda x, y, d=_name: np.nextafter(x.astype(d), y.astype(d)), kind="exact", dtypes=(_name,), variant=_name,
           values=(0.0, -0.0, 1.0, -1.0, float("inf"), float("nan"), "max"))  # fmt: skip
sample("hypot", np.hypot, nonzero, values=(0.0, 3.0, 4.0, float("inf"), float("-inf"), float("nan"), "max", "tiny"))
sample("atan2", np.arctan2, nonzero, values=EDGES, zeros=True)
sample(
    "logaddexp",
    np.logaddexp,
    dtypes="f",
    kind="smooth",
    values=(0.0, 1.0, -1.0, 1000.0, float("inf"), float("-inf"), float("nan")),
)
sample(
    "logaddexp2",
    np.logaddexp2,
    dtypes="f",
    kind="smooth",
    values=(0.0, 1.0, -1.0, 1000.0, float("inf"), float("-inf"), float("nan")),
)
sample("heaviside", lambda x, v: np.where(x == 0, v, x > 0), values=EDGES, kind="exact", grad="torch has none either")

# ---- choices and bounds ----
sample("where", np.where, bools, real, kind="exact", shapes=_THREE, edges=_THREE_EDGES,
       misuse=[(lambda: mt.where(mt.ones(2), mt.ones(2), mt.ones(2)),
                "where: expected condition to be a boolean tensor; got mortice.float32. Use != 0.")])  # fmt: skip
sample("maximum", np.maximum, values=EDGES, kind="exact")
sample("minimum", np.minimum, values=EDGES, kind="exact")
sample("fmax", np.fmax, values=EDGES, kind="exact")
sample("fmin", np.fmin, values=EDGES, kind="exact")


def _clip(x: object, lo: object, hi: object) -> object:
    x = x if lo is None else np.maximum(x, lo)  # type: ignore[call-overload]
    return x if hi is None else np.minimum(x, hi)  # type: ignore[call-overload]


sample("clamp", _clip, real, small, kind="exact", shapes=_THREE, edges=_THREE_EDGES, values=(0.0, 1.0, -2.5, float("inf"), float("nan")),
       misuse=[(lambda: mt.clamp(mt.ones(2)), "clamp: At least one of 'min' or 'max' must not be None.")])  # fmt: skip
sample(
    "clamp", _clip, real, small, kind="exact", variant="one bound", shapes=[((37,), None, (37,)), ((2, 3), (3,), None)]
)

# ---- sums of products ----
sample("addcmul", lambda x, a, b, value: x + a * b * value, kind="reduction", shapes=_THREE, edges=_THREE_EDGES, dtypes="uifc",
       attrs=[{"value": 1}, {"value": 2}], call=lambda x, a, b, value: mt.addcmul(x, a, b, value=value))  # fmt: skip
sample("addcdiv", lambda x, a, b, value: x + a / b * value, nonzero, kind="reduction", shapes=_THREE, edges=_THREE_EDGES, dtypes="fc",
       attrs=[{"value": 1}, {"value": -2}], call=lambda x, a, b, value: mt.addcdiv(x, a, b, value=value))  # fmt: skip
sample("lerp", lambda a, b, w: a + w * (b - a), real, real, unit, kind="reduction", shapes=_THREE, edges=_THREE_EDGES)
