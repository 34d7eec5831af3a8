"""The multivariate normal distribution of low rank."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.gaussian_linalg import LOG_2PI, batch_mahalanobis, batch_mv, half_log_det
from mortice.distributions.utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors whose covariance is cov_factor cov_factor^T + diag(cov_diag).

    Its densities cost as much as the rank asks, by the matrix determinant lemma and Woodbury's identity.
    """

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape ({n},)")
        shapes = (tuple(loc.shape), tuple(cov_diag.shape), tuple(cov_factor.shape[:-1]))
        try:
            batch = tuple(mortice.broadcast_shapes(*shapes))[:-1]
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = loc.expand((*batch, n)), cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        super().__init__(batch, (n,), validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag

    @lazy_property
    def _capacitance_tril(self) -> Any:
        """The Cholesky factor of I + W^T D^-1 W."""
        w = self._unbroadcasted_cov_factor
        scaled = w.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        eye = mortice.eye(w.shape[-1], dtype=w.dtype, device=w.device)
        return mortice.linalg.cholesky(scaled @ w + eye)

    def _wide(self, matrix: Any) -> Any:
        n = self._event_shape[0]
        return matrix.expand((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return mortice.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        w = self._unbroadcasted_cov_factor
        return self._wide(w @ w.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        d = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / d.unsqueeze(-2)
        half = mortice.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._wide(d.reciprocal().diag_embed() - half.mT @ half)

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        """The variance of each component."""
        found = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return found.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        w, options = self._unbroadcasted_cov_factor, {"dtype": self.loc.dtype, "device": self.loc.device}
        low = mortice.randn((*shape[:-1], w.shape[-1]), **options)
        return self.loc + batch_mv(w, low) + self._unbroadcasted_cov_diag.sqrt() * mortice.randn(shape, **options)

    def _half_log_det(self) -> Any:
        return half_log_det(self._capacitance_tril) + 0.5 * self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        x = value - self.loc
        scaled = x / self._unbroadcasted_cov_diag
        inner = batch_mv(self._unbroadcasted_cov_factor.mT, scaled)
        distance = (x * scaled).sum(-1) - batch_mahalanobis(self._capacitance_tril, inner)
        return -0.5 * (self._event_shape[0] * LOG_2PI + distance) - self._half_log_det()

    def entropy(self) -> Any:
        return (0.5 * self._event_shape[0] * (1.0 + LOG_2PI) + self._half_log_det()).expand(self._batch_shape)
