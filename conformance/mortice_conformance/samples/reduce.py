"""Samples of reductions: sums, averages, extremes, truth."""

from __future__ import annotations

import numpy as np

import mortice as mt
from mortice_conformance.domain import distinct, nonzero, tied
from mortice_conformance.record import EDGES, REDUCED, sample
from mortice_conformance.references import over, picked

_ALL = {"axis": None, "keepdims": False}
AXES = [_ALL, {"axis": (0,), "keepdims": False}, {"axis": (0,), "keepdims": True}, {"axis": None, "keepdims": True}]
_MORE = [
    ((2, 3, 4), {"axis": (0, 2), "keepdims": False}),
    ((2, 3, 4), {"axis": (2,), "keepdims": True}),
    ((70, 9), _ALL),
]
CASES = [(s, a) for s in REDUCED for a in AXES] + _MORE
EMPTY = [
    ((), _ALL),
    ((0,), _ALL),
    ((2, 0), {"axis": (1,), "keepdims": False}),
    ((2, 0), {"axis": (0,), "keepdims": True}),
]
FULL = [((), _ALL), ((1,), {"axis": (0,), "keepdims": False}), ((0, 2), {"axis": (1,), "keepdims": False})]
ONE = [{"axis": None, "keepdims": False}, {"axis": 0, "keepdims": False}, {"axis": 0, "keepdims": True}]
ALONG = [(s, a) for s in REDUCED for a in ONE[1:]] + [((2, 3, 4), {"axis": 2, "keepdims": False})]

sample("sum", over(np.sum), cases=CASES, edges=EMPTY, kind="reduction",
       misuse=[(lambda: mt.ones(2, 3).sum(2),
                "sum: Dimension out of range (expected to be in range of [-2, 1], but got 2)."),
               (lambda: mt.ones(2, 3).sum((0, 0)), "sum: dim 0 appears multiple times in the list of dims; got (0, 0).")])  # fmt: skip
sample("sum_all", np.sum, kind="reduction", edges=[(), (0,)])
sample("prod", over(np.prod), nonzero, kind="reduction", edges=EMPTY[:3],
       cases=[((4, 2), _ALL), ((7,), _ALL), ((3, 4), {"axis": (1,), "keepdims": True}),
       ((2, 3), {"axis": (0,), "keepdims": False})])  # fmt: skip
_HALVES = ("float16", "bfloat16")
sample("mean", over(np.mean), cases=CASES, edges=EMPTY, kind="reduction", dtypes="fc",
       given=[(([60000.0] * 4,), _ALL, _HALVES, "The sum of float16 overflows where the mean does not: add up in float32."),
              (([1.0] * 4100,), _ALL, _HALVES,
               "A sum in 16 bits stops where 1 is less than half an ulp of it: add up in float32.")])  # fmt: skip
_NAN = float("nan")
_TRUTH = "Whatever is not equal to 0 is true: nan, a fraction, a small number, an imaginary one."
_TRUTHS = [(x, "f") for x in ([_NAN, 0.0], [_NAN, 1.0], [0.25, 0.0], [-0.0, 0.0])] + [([1j, 0j], "c")]
_TRUTHS_GIVEN = [((x,), _ALL, kind, _TRUTH) for x, kind in _TRUTHS]
sample("nansum", over(np.nansum), cases=CASES, edges=EMPTY, kind="reduction", dtypes="f",
       given=[(([1.5, _NAN, 2.0],), _ALL, "f", "A nan counts as 0."), (([_NAN, _NAN],), _ALL, "f", "Nothing else is left: 0."),
              (([1.0] * 4100,), _ALL, _HALVES,
               "A sum in 16 bits stops where 1 is less than half an ulp of it: add up in float32.")])  # fmt: skip
sample("any", over(np.any), tied, cases=CASES, edges=EMPTY, kind="exact", given=_TRUTHS_GIVEN)
sample("all", over(np.all), tied, cases=CASES, edges=EMPTY, kind="exact", given=_TRUTHS_GIVEN)
sample("count_nonzero", over(np.count_nonzero), tied, cases=CASES, edges=EMPTY, kind="exact", result="int64", given=_TRUTHS_GIVEN)
sample("amax", over(np.max), tied, cases=CASES, edges=FULL, kind="exact", values=EDGES, grad_domain=distinct)
sample("amin", over(np.min), tied, cases=CASES, edges=FULL, kind="exact", values=EDGES, grad_domain=distinct)


def _position(fn: object) -> object:
    return lambda x, axis=None, keepdims=False: fn(x, axis=axis, keepdims=keepdims)  # type: ignore[operator]


sample("argmax", _position(np.argmax), tied, cases=[(s, a) for s in REDUCED for a in ONE], edges=[((), ONE[0])], kind="exact",
       values=EDGES, result="int64")  # fmt: skip
sample("argmin", _position(np.argmin), tied, cases=[(s, a) for s in REDUCED for a in ONE], edges=[((), ONE[0])], kind="exact",
       values=EDGES, result="int64")  # fmt: skip
sample(
    "max_dim",
    picked(np.argmax),
    tied,
    cases=ALONG,
    edges=[((1,), ONE[1])],
    kind="exact",
    values=EDGES,
    grad_domain=distinct,
)
sample(
    "min_dim",
    picked(np.argmin),
    tied,
    cases=ALONG,
    edges=[((1,), ONE[1])],
    kind="exact",
    values=EDGES,
    grad_domain=distinct,
)


def _vector_norm(x: object, p: float, axis: object, keepdims: bool) -> object:
    size = np.abs(x)  # type: ignore[call-overload]
    if p == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdims).astype(size.dtype)  # type: ignore[arg-type]
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(size, axis=axis, keepdims=keepdims)  # type: ignore[operator]
    return np.sum(size**p, axis=axis, keepdims=keepdims) ** (1 / p)  # type: ignore[arg-type]


_NORMS = [{"p": p, "axis": None, "keepdims": False} for p in (2, 1, 3.5, float("inf"), float("-inf"), 0)]
sample("linalg_vector_norm", _vector_norm, nonzero, kind="reduction", grad_domain=distinct,
       cases=[((4, 5), a) for a in _NORMS] + [((2, 3, 4), {"p": 2, "axis": (1,), "keepdims": True})],
       tolerance={"float16": 8, "bfloat16": 8, "float32": 32, "float64": 32, "complex64": 32, "complex128": 32},
       reason="powers and roots add an error of their own to the sum's")  # fmt: skip
