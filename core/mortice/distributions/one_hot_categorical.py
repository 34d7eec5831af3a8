"""The categorical distribution over one-hot vectors, and the one with a straight-through gradient."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.categorical import OnCategorical

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OnCategorical):
    """The categorical distribution over one-hot vectors."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self._event_shape[0]
        values = mortice.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((n, *(1 for _ in self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values

    def _one_hot(self, index: Any) -> Any:
        return mortice.nn.functional.one_hot(index, self._event_shape[0]).to(self._param.dtype)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = self.sample(sample_shape)
        return drawn + (self.probs - self.probs.detach())
