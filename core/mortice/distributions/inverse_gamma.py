"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from mortice.distributions import constraints
from mortice.distributions.gamma import Gamma
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x for a gamma variable x."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1.0)), validate_args=validate_args)

    @property
    def concentration(self) -> Any:
        """The shape of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """The rate of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        a = self.concentration
        return (self.rate / (a - 1)).masked_fill(a <= 1, math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = self.concentration
        return (self.rate.square() / ((a - 1).square() * (a - 2))).masked_fill(a <= 2, math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
