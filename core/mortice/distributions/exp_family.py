"""ExponentialFamily: densities exp(<natural parameters, statistics> - log normaliser), whose entropy follows from them."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import _sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution of an exponential family.

    A subclass that gives its natural parameters, log normaliser and mean carrier measure gets entropy and divergence.
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy, by the gradient of the log normaliser."""
        normalizer, params, gradients = log_normalizer_and_gradients(self)
        result = normalizer - self._mean_carrier_measure
        for p, g in zip(params, gradients):
            result = result - _sum_rightmost(p * g, p.dim() - len(self._batch_shape))
        return result


def log_normalizer_and_gradients(d: Any) -> tuple[Any, list[Any], Any]:
    """Return a distribution's log normaliser, natural parameters and the gradient by them, which is differentiable."""
    params = [p.detach().requires_grad_() for p in d._natural_params]
    with mortice.enable_grad():
        normalizer = d._log_normalizer(*params)
        gradients = mortice.autograd.grad(normalizer.sum(), params, create_graph=True)
    return normalizer, params, gradients
