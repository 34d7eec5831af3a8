"""Transforms whose results are vectors or matrices: onto the simplex, and onto Cholesky factors and the matrices of them."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Size
from mortice.distributions import constraints
from mortice.distributions.transform_base import Transform
from mortice.distributions.utils import inside_unit, tril_matrix_to_vec, vec_to_tril_matrix

_pad = mortice.nn.functional.pad


def _longer(shape: Any, by: int) -> Any:
    """Return a shape with its last size changed."""
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return Size((*shape[:-1], shape[-1] + by))


class SoftmaxTransform(Transform):
    """From unconstrained vectors onto the simplex by softmax; the inverse is the log."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _longer(shape, 0)

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """From n unconstrained numbers onto the simplex of n + 1: each takes its share of what the ones before have left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = Transform.__hash__

    @staticmethod
    def _left(like: Any) -> Any:
        """Return the logs of how many numbers are left at each step: 0 stands for equal shares."""
        n = like.shape[-1]
        return mortice.arange(n, 0, -1, dtype=like.dtype, device=like.device).log()

    def _call(self, x: Any) -> Any:
        z = inside_unit((x - self._left(x)).sigmoid())
        return _pad(z, [0, 1], value=1) * _pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        kept = y[..., :-1]
        left = (1 - kept.cumsum(-1)).clamp(min=mortice.finfo(y.dtype).tiny)
        return kept.log() - left.log() + self._left(kept)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._left(x)
        return (-x + mortice.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _longer(shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return _longer(shape, -1)


class LowerCholeskyTransform(Transform):
    """From square matrices onto lower triangular ones of positive diagonal: exp on the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """From square matrices onto positive definite ones, by way of their Cholesky factor."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(mortice.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """From vectors of n (n - 1) / 2 numbers onto Cholesky factors of n x n correlation matrices, row by row.

    In each row tanh of a number is its share of the length, 1, that the ones before have left.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = mortice.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + mortice.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * _pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = 1 - (y * y).cumsum(-1)
        shares = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(_pad(left[..., :-1], [1, 0], value=1), diag=-1).sqrt()
        return mortice.atanh(shares)

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        # The squares of what each row has left, and log(1 - tanh(x)^2).
        left = 1 - (y * y).cumsum(-1)
        scales = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        slopes = -2 * (x + mortice.nn.functional.softplus(-2 * x) - 0.6931471805599453).sum(-1)
        return scales + slopes

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        m = shape[-1]
        n = round((0.25 + 2 * m) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != m:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))
