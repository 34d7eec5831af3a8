"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.gamma_draws import log_standard_gamma
from mortice.distributions.utils import ProbsOrLogits, broadcast_all

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The distribution of the number of successes, of probability `probs`, before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count, given = broadcast_all(total_count, self._take(probs, logits))
        self.total_count = self.total_count.to(given.dtype)
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Any:
        with mortice.no_grad():
            shape = self._extended_shape(sample_shape)
            rate = (log_standard_gamma(self.total_count.expand(shape)) + self.logits).exp()
            return mortice.poisson(rate.to(self.logits.dtype))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        n = self.total_count
        unnormalized = n * mortice.nn.functional.logsigmoid(-self.logits)
        unnormalized = unnormalized + value * mortice.nn.functional.logsigmoid(self.logits)
        normalization = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return unnormalized - normalization.masked_fill(n + value == 0.0, 0.0)
