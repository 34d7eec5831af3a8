"""The multivariate normal distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.gaussian_linalg import LOG_2PI, half_log_det
from mortice.distributions.gaussian_linalg import batch_mahalanobis as _batch_mahalanobis  # libraries name these three
from mortice.distributions.gaussian_linalg import batch_mv as _batch_mv
from mortice.distributions.gaussian_linalg import precision_to_scale_tril as _precision_to_scale_tril
from mortice.distributions.utils import lazy_property

__all__ = ["MultivariateNormal"]


class ByScale(Distribution):
    """What is given by a covariance, or a scale like one, by its inverse, or by its Cholesky factor: the others follow."""

    @staticmethod
    def _given(**matrices: Any) -> tuple[str, Any]:
        """Return the one that was given, and its name."""
        given = {name: value for name, value in matrices.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        return name, matrix

    def _factorise(self, name: str, matrix: Any) -> None:
        """Keep the Cholesky factor of the matrix given."""
        of = {"covariance_matrix": mortice.linalg.cholesky, "precision_matrix": _precision_to_scale_tril}
        self._unbroadcasted_scale_tril = matrix if name == "scale_tril" else of[name](matrix)

    def _wide(self, matrix: Any) -> Any:
        n = self._event_shape[-1]
        return matrix.expand((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance, or scale."""
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance, or scale."""
        factor = self._unbroadcasted_scale_tril
        return self._wide(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, or scale."""
        return self._wide(mortice.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(ByScale):
    """The normal distribution of vectors, by its covariance, its precision or the Cholesky factor of its covariance."""

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._given(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = tuple(mortice.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1])))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        self._factorise(name, matrix)

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        z = mortice.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, z)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * LOG_2PI + distance) - half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Any:
        found = 0.5 * self._event_shape[0] * (1.0 + LOG_2PI) + half_log_det(self._unbroadcasted_scale_tril)
        return found.expand(self._batch_shape)
