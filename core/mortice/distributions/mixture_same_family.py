"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.categorical import Categorical
from mortice.distributions.constraints import MixtureSameFamilyConstraint
from mortice.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: a categorical distribution chooses among the components, the last batch dim of another distribution."""

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions.Distribution"
            )
        batch = tuple(component_distribution.batch_shape)[:-1]
        mixed = tuple(mixture_distribution.batch_shape)
        for size1, size2 in zip(reversed(mixed), reversed(batch)):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        km, kc = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if km != kc:
            raise ValueError(
                f"`mixture_distribution component` ({km}) does not equal `component_distribution.batch_shape[-1]` ({kc})"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component = km
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that chooses."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The distributions that are chosen among."""
        return self._component_distribution

    def _weights(self) -> Any:
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    def _averaged(self, value: Any) -> Any:
        return (self._weights() * value).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        centre = self.mean.unsqueeze(-1 - self._event_ndims)
        inside = self._averaged(self._component_distribution.variance)
        return inside + self._averaged((self._component_distribution.mean - centre).pow(2))

    def _pad(self, x: Any) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x: Any) -> Any:
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Any) -> Any:
        self._check(x)
        logs = self._component_distribution.log_prob(self._pad(x))
        return (logs + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with mortice.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = len(chosen.shape)
            index = chosen.reshape((*chosen.shape, *(1,) * (self._event_ndims + 1)))
            index = index.expand((*drawn.shape[:dim], 1, *self._event_shape))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
