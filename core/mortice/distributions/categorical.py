"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import ProbsOrLogits

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """The distribution of indices into the last dim, by probabilities up to a factor or by their logs up to a constant."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = self._take(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return mortice.full(self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        rows = self.probs.detach().reshape(-1, self._num_events)
        count = math.prod(sample_shape)
        if count * rows.shape[0] == 0:
            return mortice.zeros(self._extended_shape(sample_shape), dtype=mortice.int64, device=rows.device)
        return mortice.multinomial(rows, count, True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value, logs = mortice.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        # 0 log 0 is 0.
        return -(self.logits.clamp(min=mortice.finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = mortice.arange(self._num_events, device=self._param.device)
        values = values.reshape((-1, *(1 for _ in self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OnCategorical(Distribution):
    """What the distributions over vectors, an element a category, have in common: `_categorical` holds their parameters."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The logs of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape
