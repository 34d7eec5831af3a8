"""The F distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.gamma import Gamma
from mortice.distributions.utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution of two degrees of freedom: of the ratio of two scaled chi-squared variables."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Any:
        return (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, float("nan"))

    @property
    def mode(self) -> Any:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return found.masked_fill(self.df1 <= 2, float("nan"))

    @property
    def variance(self) -> Any:
        df1, df2 = self.df1, self.df2
        found = 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))
        return found.masked_fill(df2 <= 4, float("nan"))

    def rsample(self, sample_shape: Any = ()) -> Any:
        tiny = mortice.finfo(self.df1.dtype).tiny
        ratio = self._gamma1.rsample(sample_shape) / self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return ratio.clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        return (
            (a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log() + (a - 1) * value.log()
            - (a + b) * (ratio * value).log1p()
        )  # fmt: skip
