"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.exp_family import ExponentialFamily
from mortice.distributions.utils import ProbsOrLogits, broadcast_all, clamp_probs, holds, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The distribution on [0, 1] whose density is proportional to probs ** x (1 - probs) ** (1 - x).

    Between `lims`, about 1/2, its formulas lose their digits, and Taylor's series stand for them.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._lims = lims
        (given,) = broadcast_all(self._take(probs, logits))
        if probs is not None:
            if validate_args is not None and not holds(self.arg_constraints["probs"].check(given)):
                raise ValueError("The parameter probs has invalid values")
            given = clamp_probs(given)
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities, off 0 and 1, where the density has no finite factor."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _cut(self) -> tuple[Any, Any]:
        """Return where the formulas hold, and the probabilities with the lower limit elsewhere."""
        outside = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return outside, mortice.where(outside, self.probs, self._lims[0])

    def _log_norm(self) -> Any:
        """Return the log of the density's factor."""
        outside, p = self._cut()
        below, above = mortice.where(p <= 0.5, p, 0.0), mortice.where(p >= 0.5, p, 1.0)
        log_norm = ((-p).log1p() - p.log()).abs().log() - mortice.where(
            p <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log()
        )
        x = (self.probs - 0.5).pow(2)
        return mortice.where(outside, log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        outside, p = self._cut()
        found = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return mortice.where(outside, found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    @property
    def variance(self) -> Any:
        outside, p = self._cut()
        found = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return mortice.where(outside, found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(mortice.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        loss = mortice.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -loss + self._log_norm()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        outside, p = self._cut()
        found = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        found = mortice.where(outside, found, value)
        return mortice.where(value <= 0.0, 0.0, mortice.where(value >= 1.0, 1.0, found))

    def icdf(self, value: Any) -> Any:
        outside, p = self._cut()
        found = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return mortice.where(outside, found, value)

    def entropy(self) -> Any:
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._log_norm() - log0

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = mortice.where(outside, x, (self._lims[0] - 0.5) * mortice.ones_like(x))
        found = (safe.exp() - 1.0).abs().log() - safe.abs().log()
        return mortice.where(outside, found, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
