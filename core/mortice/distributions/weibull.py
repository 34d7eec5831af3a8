"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.exponential import Exponential
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import AffineTransform, PowerTransform
from mortice.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution of a scale and a shape, `concentration`."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        transforms = [PowerTransform(self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        base = Exponential(mortice.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def concentration_reciprocal(self) -> Any:
        """1 / the shape."""
        return self.concentration.reciprocal()

    @property
    def mean(self) -> Any:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Any:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0) ** k.reciprocal()

    @property
    def variance(self) -> Any:
        first, second = (1 + self.concentration_reciprocal).lgamma(), (1 + 2 * self.concentration_reciprocal).lgamma()
        return self.scale.pow(2) * (second.exp() - (2 * first).exp())

    def entropy(self) -> Any:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1
