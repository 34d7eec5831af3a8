"""TransformedDistribution: a distribution seen through transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice
from mortice import Size
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.independent import Independent
from mortice.distributions.transforms import ComposeTransform, Transform
from mortice.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of what transforms make of draws from a base distribution."""

    arg_constraints: Any = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list) or not all(isinstance(t, Transform) for t in transforms):
            raise ValueError(f"transforms must be a Transform or a list, but was {transforms}")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        shape = Size((*base_distribution.batch_shape, *base_distribution.event_shape))
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        forward = tuple(whole.forward_shape(shape))
        # The base is expanded to what broadcasting inside the transforms asks for.
        batch = tuple(whole.inverse_shape(forward))
        if batch != tuple(shape):
            base_distribution = base_distribution.expand(batch[: len(batch) - len(base_distribution.event_shape)])
        extra = whole.domain.event_dim - len(base_distribution.event_shape)
        if extra > 0:
            base_distribution = Independent(base_distribution, extra)
        self.base_dist = base_distribution
        event_dim = self._event_dim_of(whole)
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def _event_dim_of(self, whole: Any) -> int:
        return max(
            whole.codomain.event_dim, len(self.base_dist.event_shape) + whole.codomain.event_dim - whole.domain.event_dim
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self._event_shape))
        new.base_dist = self.base_dist.expand(tuple(shape)[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support, extra = self.transforms[-1].codomain, len(self._event_shape) - self.transforms[-1].codomain.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether gradients flow through draws."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Any:
        with mortice.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        event_dim, result, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = _sum_rightmost(transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim)
            result, y = result - term, x
        return result + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _turned(self, value: Any) -> Any:
        """Turn a probability round where the transforms together are decreasing."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:  # against the base's support: the ends of an open support have a cdf
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._turned(value)))
