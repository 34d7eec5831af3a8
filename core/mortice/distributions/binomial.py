"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import ProbsOrLogits, broadcast_all

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """The distribution of the number of successes in `total_count` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count, given = broadcast_all(total_count, self._take(probs, logits))
        self.total_count = self.total_count.to(given.dtype)
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with mortice.no_grad():
            return mortice.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        n, logits = self.total_count, self.logits
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return value * logits + ways + n * mortice.nn.functional.logsigmoid(-logits)

    def entropy(self) -> Any:
        if not (self.total_count == self.total_count.max()).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = int(self.total_count.max())
        if not (self.total_count.min() == count).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = mortice.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1, *(1 for _ in self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
