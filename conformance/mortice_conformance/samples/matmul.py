"""Samples of matrix products and distances."""

from __future__ import annotations

import numpy as np

import mortice as mt
from mortice_conformance.record import sample

_PRODUCTS = [((3, 4), (4, 5)), ((7,), (7,)), ((3, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
             ((33, 17), (17, 9))]  # fmt: skip
_ENDS = [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((0, 2, 3), (3, 2)), ((1, 1), (1, 1))]
sample("matmul", np.matmul, kind="matmul", shapes=_PRODUCTS, edges=_ENDS)
sample("mv", np.matmul, call=lambda x, y: mt.mv(x, y), dtypes="uifc", kind="matmul", shapes=[((3, 4), (4,))])
sample("outer", np.outer, call=lambda x, y: mt.outer(x, y), dtypes="uifc", kind="arithmetic", shapes=[((3,), (4,))])
sample("cross", lambda x, y, axis: np.cross(x, y, axis=axis), kind="matmul", dtypes="uifc",
       cases=[(((4, 3), (4, 3)), {"axis": 1}), (((3, 2, 2), (3, 2, 2)), {"axis": 0})])  # fmt: skip


def _distance(x: object, y: object) -> object:
    return np.sqrt(np.sum((x[..., :, None, :] - y[..., None, :, :]) ** 2, -1))  # type: ignore[index]


sample("euclidean_distance", _distance, kind="smooth", shapes=[((4, 3), (5, 3)), ((2, 4, 3), (2, 2, 3))],
       tolerance={"float16": 64, "bfloat16": 64, "float32": 256, "float64": 256},
       reason="by the expanded square, which cancels; exact distances are a composite")  # fmt: skip
sample("row_distance", lambda x, y, p: np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, -1), kind="matmul", dtypes="f",
       cases=[(((7, 3), (35, 3)), {"p": p}) for p in (0.0, 1.0, 1.5, 2.0, 3.0, np.inf)]
       + [(((2, 4, 70), (2, 5, 70)), {"p": 2.0}), (((2, 4, 3), (5, 3)), {"p": 1.0})])  # fmt: skip
sample("own_distance", lambda x, p: np.linalg.norm(x[..., :, None, :] - x[..., None, :, :], p, -1), kind="matmul", dtypes="f",
       cases=[(((7, 3),), {"p": p}) for p in (1.0, 2.0, 3.0)])  # fmt: skip
sample("einsum", lambda x, y: np.einsum("bij,bjk->bik", x, y), call=lambda x, y: mt.einsum("bij,bjk->bik", x, y), dtypes="fc",
       kind="matmul", shapes=[((2, 3, 4), (2, 4, 5))])  # fmt: skip
