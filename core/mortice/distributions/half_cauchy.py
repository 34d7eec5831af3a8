"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions.cauchy import Cauchy
from mortice.distributions.half_normal import Half
from mortice.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The distribution of the absolute value of a Cauchy variable about 0."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return mortice.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return super().log_prob(mortice.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
