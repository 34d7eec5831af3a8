"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.chi2 import Chi2
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom, moved and scaled."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Any:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        found = self.scale**2 * self.df / (self.df - 2)
        return found.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        x = mortice.randn(self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * x * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        y = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - self._log_factor()

    def _log_factor(self) -> Any:
        half = 0.5 * self.df
        constant = 0.5 * math.log(math.pi)
        return self.scale.log() + 0.5 * self.df.log() + constant + half.lgamma() - (half + 0.5).lgamma()

    def entropy(self) -> Any:
        half = 0.5 * (self.df + 1)
        return self._log_factor() + half * (half.digamma() - (0.5 * self.df).digamma())
