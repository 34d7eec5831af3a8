"""The relaxed Bernoulli distribution, and that of its log odds."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import SigmoidTransform
from mortice.distributions.utils import ProbsOrLogits, broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The distribution of the log odds of a relaxed Bernoulli variable."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        (given,) = broadcast_all(self._take(probs, logits))
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(mortice.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        log_temperature = mortice.as_tensor(self.temperature, dtype=logits.dtype, device=logits.device).log()
        return log_temperature + difference - 2 * difference.exp().log1p()


class Relaxed(TransformedDistribution):
    """What is made continuous by a temperature: its parameters are those of the distribution of its logs, or log odds."""

    has_rsample = True  # type: ignore[assignment]

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logs of the probabilities, or the log odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(Relaxed):
    """A Bernoulli distribution made continuous: the lower the temperature, the nearer to 0 and 1."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)
