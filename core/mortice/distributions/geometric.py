"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import ProbsOrLogits, broadcast_all, holds

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The distribution of the number of failures before the first success, of probability `probs`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (given,) = broadcast_all(self._take(probs, logits))
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not holds(given > 0):
            raise ValueError(
                f"Expected parameter probs ({type(given).__name__} of shape {tuple(given.shape)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{given}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return mortice.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        with mortice.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(mortice.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        return mortice.special.xlog1py(value, -probs) + self.probs.log()

    def entropy(self) -> Any:
        loss = mortice.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return loss / self.probs
