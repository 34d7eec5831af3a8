"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from mortice.distributions import constraints
from mortice.distributions.normal import Normal
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The distribution on the simplex of what stick breaking makes of independent normal variables."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale
