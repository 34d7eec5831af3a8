"""Samples of sorting, searching, distinct elements, and running sums and extremes."""

from __future__ import annotations

import numpy as np

from mortice_conformance.domain import Domain, distinct, nonzero, real, tied
from mortice_conformance.record import EDGES, REDUCED, sample
from mortice_conformance.references import LONG


def order(x: object, axis: int, descending: bool = False) -> object:
    """Return the stable order; descending keeps equal elements in their order too, and puts nan first."""
    if not descending:
        return np.argsort(x, axis, kind="stable")  # type: ignore[call-overload]
    back = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)  # type: ignore[call-overload]
    return x.shape[axis] - 1 - back  # type: ignore[attr-defined]


def _sorted(x: object, axis: int, descending: bool) -> object:
    at = order(x, axis, descending)
    return np.take_along_axis(x, at, axis), at  # type: ignore[arg-type]


_WAYS = [{"axis": 0, "descending": False}, {"axis": 0, "descending": True}]
_ORDERS = [(s, a) for s in REDUCED for a in _WAYS] + [((2, 3, 4), {"axis": 2, "descending": False})]
_ENDS = [((0,), _WAYS[0]), ((2, 0), {"axis": 1, "descending": False}), ((1,), _WAYS[0])]
sample("argsort", order, tied, kind="exact", cases=_ORDERS, edges=_ENDS, values=EDGES)
_EXACT = "Integers beyond 2**53 differ by less than float64 shows: compare them as integers."
_LARGE = ("int64", "uint64")
sample("sort", _sorted, tied, kind="exact", cases=_ORDERS, edges=_ENDS, values=EDGES, grad_domain=distinct,
       given=[(([2**53 + 1, 2**53, 5],), _WAYS[0], _LARGE, _EXACT)])  # fmt: skip


def _top(x: object, axis: int, count: int, largest: bool) -> object:
    at = order(x, axis, largest)
    at = np.take(at, np.arange(count), axis)  # type: ignore[arg-type]
    return np.take_along_axis(x, at, axis), at  # type: ignore[arg-type]


sample("topk", _top, distinct, kind="exact", values=EDGES,
       cases=[((7,), {"axis": 0, "count": 3, "largest": True}), ((3, 6), {"axis": 1, "count": 2, "largest": False})])  # fmt: skip


def _search(row: object, values: object, side: str) -> object:
    return np.searchsorted(row, values, side)  # type: ignore[call-overload]


_ascending = Domain("ascending", draw=lambda rng, shape, dtype, case: np.sort(rng.integers(0, 9, shape), -1))
sample("searchsorted", _search, _ascending, real, kind="exact",
       cases=[(((9,), (5,)), {"side": "left"}), (((9,), (2, 3)), {"side": "right"})],
       given=[(([2**53, 2**53 + 1, 2**53 + 2], [2**53 + 1]), {"side": "left"}, _LARGE, _EXACT)])  # fmt: skip

# ---- scans ----
_SCANS = [((4, 5), {"axis": 0}), ((4, 5), {"axis": 1}), ((37,), {"axis": 0}), ((2, 3, 4), {"axis": 1})]
_EMPTY = [((0,), {"axis": 0}), ((2, 0), {"axis": 0}), ((1,), {"axis": 0})]
sample("cumsum", lambda x, axis: np.cumsum(x, axis), kind="reduction", cases=_SCANS, edges=_EMPTY)
sample("cumprod", lambda x, axis: np.cumprod(x, axis), nonzero, kind="reduction", cases=[((4, 3), {"axis": 0}), ((5,), {"axis": 0})],
       edges=_EMPTY)  # fmt: skip


def _log_running(x: object, axis: int) -> object:
    if x.dtype.kind == "c":  # type: ignore[attr-defined]
        return np.log(np.cumsum(np.exp(x), axis))  # type: ignore[call-overload]
    top = np.max(x, initial=0)  # type: ignore[call-overload]
    return np.asarray(np.log(np.cumsum(np.exp(np.asarray(x, LONG) - top), axis)) + top, np.float64)


sample("logcumsumexp", _log_running, kind="smooth", dtypes="f", cases=_SCANS, edges=_EMPTY[:1],
       given=[(([1000.0, 1001.0, -1000.0],), {"axis": 0}, "f", "exp overflows on a large operand: subtract the largest so far first.")])



def _running(reaches: object) -> object:
    def scan(x: object, axis: int) -> object:
        rows = np.moveaxis(np.array(x), axis, 0)
        values, places = np.array(rows), np.zeros(rows.shape, np.int64)
        for i in range(1, rows.shape[0]):
            later = reaches(rows[i], values[i - 1]) | np.isnan(rows[i].astype(np.float64))  # type: ignore[operator]
            values[i] = np.where(later, rows[i], values[i - 1])
            places[i] = np.where(later, i, places[i - 1])
        return np.moveaxis(values, 0, axis), np.moveaxis(places, 0, axis)

    return scan


sample("cummax", _running(np.greater_equal), tied, kind="exact", cases=_SCANS, values=EDGES, edges=_EMPTY[2:], grad_domain=distinct)
sample("cummin", _running(np.less_equal), tied, kind="exact", cases=_SCANS, values=EDGES, edges=_EMPTY[2:], grad_domain=distinct)


# ---- distinct elements: how many there are depends on the data ----
def _unique(x: object) -> object:
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)  # type: ignore[call-overload]
    return values, first, inverse.reshape(x.shape), counts  # type: ignore[attr-defined]


sample("unique_all", _unique, tied, kind="exact", shapes=[(9,), (3, 4)], result=("promote", "int64", "int64", "int64"), transfers=1,
       grad="torch has none either", reason="the number of distinct elements depends on the data")  # fmt: skip


def _unique_rows(x: object, ordered: bool) -> object:
    if not ordered:
        found = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=0)  # type: ignore[call-overload]
        return found[0], found[1], found[2].reshape(-1), found[3]
    n = len(x)  # type: ignore[arg-type]
    starts = [i for i in range(n) if i == 0 or np.any(x[i] != x[i - 1])]  # type: ignore[index]
    inverse = np.cumsum([i in starts for i in range(n)]) - 1
    return x[starts], np.array(starts), inverse, np.diff([*starts, n])  # type: ignore[index]


sample("unique_rows", _unique_rows, tied, kind="exact", cases=[((9, 1), {"ordered": o}) for o in (True,
       False)] + [((12, 2), {"ordered": False})],
       result=("promote", "int64", "int64", "int64"), transfers=1,
       grad="torch has none either", reason="the number of distinct rows depends on the data")  # fmt: skip
