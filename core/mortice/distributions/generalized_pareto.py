"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, of what exceeds `loc`; a concentration of 0 makes it exponential."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        bounded = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, mortice.where(self.concentration < 0, bounded, float("inf")))

    def _parts(self) -> tuple[Any, Any]:
        """Return where the concentration is 0, and the concentration with 1 in those places."""
        k = self.concentration
        zero = mortice.isclose(k, mortice.zeros_like(k))
        return zero, mortice.where(zero, 1.0, k)

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = mortice.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        zero, k = self._parts()
        z = self._z(value)
        general = -(1 + 1 / k) * (k * z).log1p() - self.scale.log()
        return mortice.where(zero, -z - self.scale.log(), general)

    def log_survival_function(self, value: Any) -> Any:
        """Return the log of the probability of being above a value."""
        self._check(value)
        zero, k = self._parts()
        z = self._z(value)
        return mortice.where(zero, -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Any) -> Any:
        """Return the log of the probability of being at most a value."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        return self.log_cdf(value).exp()

    def icdf(self, value: Any) -> Any:
        zero, k = self._parts()
        log_left = (-value).log1p()
        return mortice.where(zero, self.loc - self.scale * log_left, self.loc + self.scale * (-k * log_left).expm1() / k)

    @property
    def mean(self) -> Any:
        k = self.concentration
        below = k < 1
        found = self.loc + self.scale / (1 - mortice.where(below, k, 0.5))
        return mortice.where(below, found, float("nan"))

    @property
    def variance(self) -> Any:
        k = self.concentration
        below = k < 0.5
        safe = mortice.where(below, k, 0.25)
        return mortice.where(below, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), float("nan"))

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1

    @property
    def mode(self) -> Any:
        return self.loc
