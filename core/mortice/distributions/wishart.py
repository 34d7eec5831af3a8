"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import Tensor
from mortice.distributions import constraints
from mortice.distributions.exp_family import ExponentialFamily
from mortice.distributions.gamma import Gamma
from mortice.distributions.gaussian_linalg import half_log_det
from mortice.distributions.multivariate_normal import ByScale
from mortice.distributions.utils import holds
from mortice.notice import warn

__all__ = ["Wishart"]


def _multidigamma(x: Any, p: int) -> Any:
    """Return the derivative of the log of the multivariate gamma function."""
    steps = mortice.arange(p, dtype=x.dtype, device=x.device)
    return (x.unsqueeze(-1) - 0.5 * steps).digamma().sum(-1)


class Wishart(ByScale, ExponentialFamily):
    """The Wishart distribution of positive definite matrices, by its scale in one of three forms."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = self._given(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = df if isinstance(df, Tensor) else matrix.new_tensor(float(df))
        batch = tuple(mortice.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape)))
        n = matrix.shape[-1]
        if not holds(~(df <= n - 1)):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}."
            )
        self.df = df.expand(batch)
        self.__dict__[name] = matrix.expand((*batch, n, n))
        super().__init__(batch, (n, n), validate_args=validate_args)
        if not holds(~(self.df < n)):
            warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        self._factorise(name, matrix)
        self._gamma = self._squares()

    @property
    def arg_constraints(self) -> Any:
        """What the parameters satisfy: `df` is above the size less one."""
        return {
            "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self._event_shape[-1] - 1),
        }  # fmt: skip

    def _squares(self) -> Gamma:
        """Return the distribution of half the squares on the diagonal of the standard factor: chi-squared, halved."""
        factor = self._unbroadcasted_scale_tril
        steps = mortice.arange(self._event_shape[0], dtype=factor.dtype, device=factor.device)
        return Gamma(0.5 * (self.df.unsqueeze(-1) - steps), 0.5)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._gamma = new._squares()
        return new

    @property
    def mean(self) -> Any:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return factor.masked_fill(factor <= 0, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Draw; as PyTorch does, again what came out well at first, and then what is singular."""
        made = self._bartlett(sample_shape)
        again = self._of_sample(self.support.check(made))
        for _ in range(10 if max_try_correction is None else max_try_correction):
            if not again.any():
                break
            made[again] = anew = self._bartlett(again[again].shape)
            again[again.clone()] = self._of_sample(~self.support.check(anew))
        return made

    def _of_sample(self, truths: Any) -> Any:
        return truths.flatten(-len(self._batch_shape)).any(-1) if self._batch_shape else truths

    def _bartlett(self, sample_shape: Any) -> Any:
        """Draw by Bartlett's decomposition: the factor of a draw is that of the scale times a standard one."""
        scale = self._unbroadcasted_scale_tril
        size = self._event_shape[-1]
        diagonal = self._gamma.rsample(sample_shape).sqrt().clamp(min=mortice.finfo(scale.dtype).eps)
        standard = diagonal.diag_embed()
        shape = (*sample_shape, *self._batch_shape, size * (size - 1) // 2)
        below = mortice.randn(shape, dtype=scale.dtype, device=scale.device)
        standard[(..., *mortice.tril_indices(size, size, -1))] = below
        factor = scale @ standard
        return factor @ factor.mT

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        nu, p = self.df, self._event_shape[0]
        solved = mortice.cholesky_solve(value, self._unbroadcasted_scale_tril.expand(value.shape))
        return (
            -nu * (p * math.log(2.0) / 2 + half_log_det(self._unbroadcasted_scale_tril)) - mortice.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * mortice.linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )  # fmt: skip

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[0]
        return (
            (p + 1) * (p * math.log(2.0) / 2 + half_log_det(self._unbroadcasted_scale_tril)) + mortice.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * _multidigamma(nu / 2, p) + nu * p / 2
        )  # fmt: skip

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[0] - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[0]
        z = y + (p + 1) / 2
        return z * (-mortice.linalg.slogdet(-2 * x).logabsdet + p * math.log(4.0)) - z * p * math.log(2.0) + mortice.mvlgamma(z, p)
