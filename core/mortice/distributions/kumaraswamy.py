"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import AffineTransform, PowerTransform
from mortice.distributions.uniform import Uniform
from mortice.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution on (0, 1): like the beta distribution, with a closed distribution function."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            mortice.zeros_like(self.concentration0), mortice.ones_like(self.concentration0), validate_args=validate_args
        )
        transforms = [
            PowerTransform(self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        """Return the mean of the nth power: b B(1 + n / a, b)."""
        b, shifted = self.concentration0, 1 + n / self.concentration1
        return (b.log() + shifted.lgamma() + b.lgamma() - (shifted + b).lgamma()).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        found = (((1 - a) / (1 - a * b)).log() / a).exp()
        return found.masked_fill((a < 1) | (b < 1), math.nan)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
