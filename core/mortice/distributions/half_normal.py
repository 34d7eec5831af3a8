"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.normal import Normal
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import AbsTransform

__all__ = ["HalfNormal"]


class Half(TransformedDistribution):
    """What the distributions of the absolute value of a variable about 0 have in common."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True  # type: ignore[assignment]

    @property
    def scale(self) -> Any:
        """The scale of the variable; of a normal one its standard deviation."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return mortice.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return mortice.where(value >= 0, found, -math.inf)

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """The distribution of the absolute value of a normal variable of mean 0."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)
