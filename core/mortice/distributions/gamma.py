"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.exp_family import ExponentialFamily
from mortice.distributions.gamma_draws import log_standard_gamma
from mortice.distributions.utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution of a shape, `concentration`, and a rate."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        a = self.concentration.expand(self._extended_shape(sample_shape))
        # Draws too small for the dtype become its smallest normal number: their log must stay finite.
        drawn = log_standard_gamma(a).exp().to(a.dtype) / self.rate
        return drawn.clamp(min=mortice.finfo(a.dtype).tiny)

    def log_prob(self, value: Any) -> Any:
        value = mortice.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        a, rate = self.concentration, self.rate
        return mortice.xlogy(a, rate) + mortice.xlogy(a - 1, value) - rate * value - a.lgamma()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return mortice.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()
