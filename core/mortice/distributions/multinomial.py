"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.binomial import Binomial
from mortice.distributions.categorical import OnCategorical
from mortice.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OnCategorical):
    """The distribution of the counts of each category in `total_count` draws."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        counts = mortice.nn.functional.one_hot(drawn, self._event_shape[0]).sum(0)
        return counts.to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        impossible = (value == 0) & (logits == -math.inf)
        powers = (logits.masked_fill(impossible, 0) * value).sum(-1)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + powers

    def entropy(self) -> Any:
        n = mortice.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        # The expected log of the factorials of the counts, over each count's binomial distribution.
        values = self._binomial.enumerate_support(expand=False)[1:]
        logs = self._binomial.log_prob(values)
        return n * self._categorical.entropy() - (n + 1).lgamma() + (logs.exp() * (values + 1).lgamma()).sum((0, -1))
