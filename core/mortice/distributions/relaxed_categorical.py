"""The relaxed one-hot categorical distribution, and that of its logs."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.categorical import OnCategorical
from mortice.distributions.relaxed_bernoulli import Relaxed
from mortice.distributions.transforms import ExpTransform
from mortice.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OnCategorical):
    """The distribution of the logs of a relaxed one-hot variable."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(mortice.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        n = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        t = mortice.as_tensor(self.temperature, dtype=logits.dtype, device=logits.device)
        log_scale = t.new_full(tuple(t.shape), float(n)).lgamma() - t.log() * -(n - 1)
        score = logits - value * t
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(Relaxed):
    """A one-hot distribution made continuous on the simplex: the lower the temperature, the nearer to its corners."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
