"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import AffineTransform, ExpTransform
from mortice.distributions.uniform import Uniform
from mortice.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution: of the greatest of many."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = mortice.finfo(self.loc.dtype)
        low, high = mortice.full_like(self.loc, info.tiny), mortice.full_like(self.loc, 1 - info.eps)
        one = mortice.ones_like(self.scale)
        transforms = [
            ExpTransform().inv, AffineTransform(loc=0, scale=-one), ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)
