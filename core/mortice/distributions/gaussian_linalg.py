"""Products, solutions and lengths with batches of triangular matrices, which the normal distributions of vectors share."""

from __future__ import annotations

import math
from typing import Any

import mortice

__all__ = ["batch_mahalanobis", "batch_mv", "half_log_det", "precision_to_scale_tril"]


LOG_2PI = math.log(2 * math.pi)


def batch_mv(matrices: Any, vectors: Any) -> Any:
    """Multiply each matrix with its vector."""
    return (matrices @ vectors.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(factor: Any, x: Any) -> Any:
    """Return the squared length of factor^-1 x for triangular factors, whose batch broadcasts with that of x."""
    solved = mortice.linalg.solve_triangular(
        factor.expand((*mortice.broadcast_shapes(tuple(factor.shape[:-2]), tuple(x.shape[:-1])), *factor.shape[-2:])),
        x.unsqueeze(-1), upper=False,
    )  # fmt: skip
    return solved.squeeze(-1).square().sum(-1)


def half_log_det(factor: Any) -> Any:
    """Return half the log determinant of the matrix whose Cholesky factor is given."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Any) -> Any:
    """Return the Cholesky factor of the inverse, by the factor of the matrix turned round."""
    turned = mortice.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    eye = mortice.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return mortice.linalg.solve_triangular(turned, eye.expand(precision.shape), upper=False)
