"""Samples of variance, norms, logsumexp, medians and the like."""

from __future__ import annotations

import numpy as np

from mortice_conformance.domain import distinct, nonzero, real, tied
from mortice_conformance.record import REDUCED, sample
from mortice_conformance.references import logsumexp

_ALL = {"axis": None, "keepdims": False}
_AXES = [_ALL, {"axis": (0,), "keepdims": False}, {"axis": (0,), "keepdims": True}]


def _variance(x: object, axis: object, correction: float, keepdims: bool) -> object:
    return np.var(x, axis=axis, ddof=correction, keepdims=keepdims)  # type: ignore[call-overload]


def _deviation(x: object, axis: object, correction: float, keepdims: bool) -> object:
    return np.std(x, axis=axis, ddof=correction, keepdims=keepdims)  # type: ignore[call-overload]


_SQUARES = "The mean square less the squared mean cancels where the mean is large: subtract the mean before squaring."
_SHIFTED = [(([3000.1, 3001.3, 3002.2, 3003.7],), {**_ALL, "correction": 1}, "f", _SQUARES)]
_SPREADS = [(s, {**a, "correction": c}) for s in REDUCED for a in _AXES for c in (1, 0)]
sample("var", _variance, real, kind="reduction", cases=_SPREADS, dtypes="fc", result="real_part", given=_SHIFTED)
sample("std", _deviation, real, kind="reduction", cases=_SPREADS, dtypes="fc", result="real_part", given=_SHIFTED)
_INF = float("inf")
_MAX = "exp overflows on a large operand: subtract the maximum first, but not where it is infinite, as inf - inf is nan."
sample(
    "logsumexp",
    logsumexp,
    real,
    kind="reduction",
    dtypes="f",
    cases=[(s, a) for s in REDUCED for a in _AXES],
    edges=[((), _ALL)],
    given=[((x,), _ALL, "f", _MAX) for x in ([1000.0, 1001.0, -1000.0], [-1000.0, -1001.0], [-_INF, -_INF], [_INF, 0.0])],
)


def _norm(x: object, p: float, axis: object, keepdims: bool) -> object:
    size = np.abs(x)  # type: ignore[call-overload]
    if np.isinf(p):
        return np.max(size, axis=axis, keepdims=keepdims)  # type: ignore[call-overload]
    return np.sum(size**p, axis=axis, keepdims=keepdims) ** (1 / p)  # type: ignore[arg-type]


sample("norm", _norm, nonzero, kind="reduction", grad_domain=distinct, dtypes="fc", result="real_part",
       cases=[((4, 5), {"p": p, **_ALL}) for p in (2, 1, 3.0, float("inf"))] + [((2, 3, 4), {"p": 2, "axis": (1,), "keepdims": True})],
       tolerance={"float16": 8, "bfloat16": 8, "float32": 32, "float64": 32, "complex64": 32, "complex128": 32},
       reason="powers and roots add an error of their own to the sum's")  # fmt: skip


def _middle(x: object, ignore_nan: bool) -> object:
    flat = np.sort(np.ravel(x))  # type: ignore[call-overload]
    # A sort puts nan last.
    return flat[-1] if flat[-1] != flat[-1] else flat[(flat.size - 1) // 2]


sample(
    "median",
    _middle,
    distinct,
    kind="exact",
    cases=[((7,), {"ignore_nan": False}), ((3, 4), {"ignore_nan": False})],
    dtypes="uif",
    given=[(([1.0, float("nan"), 3.0],), {"ignore_nan": False}, "f", "The median of elements of which one is nan is nan.")],
)


def _middle_along(x: object, axis: int, keepdims: bool, ignore_nan: bool) -> object:
    return _nth(x, axis, keepdims, (x.shape[axis] - 1) // 2 + 1)  # type: ignore[attr-defined]


def _nth(x: object, axis: int, keepdims: bool, nth: int) -> object:
    at = np.take(np.argsort(x, axis, kind="stable"), [nth - 1], axis)  # type: ignore[call-overload]
    values = np.take_along_axis(x, at, axis)  # type: ignore[arg-type]
    return (values, at) if keepdims else (np.squeeze(values, axis), np.squeeze(at, axis))


_ALONG = [
    ((7,), {"axis": 0, "keepdims": False}),
    ((3, 4), {"axis": 1, "keepdims": True}),
    ((4, 5), {"axis": 0, "keepdims": False}),
]
sample(
    "median_dim",
    _middle_along,
    distinct,
    kind="exact",
    cases=[(s, {**a, "ignore_nan": False}) for s, a in _ALONG],
    dtypes="uif",
)
sample("kthvalue", _nth, distinct, kind="exact", cases=[(s, {**a, "nth": 2}) for s, a in _ALONG], dtypes="uif")


def _commonest(x: object, axis: int, keepdims: bool) -> object:
    rows = np.moveaxis(np.array(x), axis, -1)
    values, places = np.zeros(rows.shape[:-1], rows.dtype), np.zeros(rows.shape[:-1], np.int64)
    for at in np.ndindex(*rows.shape[:-1]):
        found, counts = np.unique(rows[at], return_counts=True)
        values[at] = found[np.argmax(counts)]
        places[at] = np.nonzero(rows[at] == values[at])[0][-1]
    return tuple(np.expand_dims(a, axis) if keepdims else a for a in (values, places))


sample("mode", _commonest, tied, kind="exact", cases=_ALONG, grad_domain=distinct)
