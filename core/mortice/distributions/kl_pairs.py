"""Divergences of two families: most are -entropy(p) minus the mean of log q under p."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions.bernoulli import Bernoulli
from mortice.distributions.beta import Beta
from mortice.distributions.binomial import Binomial
from mortice.distributions.continuous_bernoulli import ContinuousBernoulli
from mortice.distributions.exponential import Exponential
from mortice.distributions.gamma import Gamma
from mortice.distributions.gumbel import Gumbel
from mortice.distributions.kl import register_kl
from mortice.distributions.laplace import Laplace
from mortice.distributions.normal import Normal
from mortice.distributions.pareto import Pareto
from mortice.distributions.poisson import Poisson
from mortice.distributions.uniform import Uniform
from mortice.distributions.utils import euler_constant

_inf = math.inf
_log_2pi = math.log(2 * math.pi)


def _like(p: Any) -> Any:
    """Return a tensor of p's batch, to fill."""
    return next(v for v in (getattr(p, name) for name in p.arg_constraints) if v is not None)


def _infinite(*pairs: tuple[type, type]) -> None:
    """Register pairs of which p allows what q does not."""
    for pair in pairs:
        register_kl(*pair)(lambda p, q: mortice.full_like(_like(p), _inf))


_infinite(
    *((Beta, q) for q in (Pareto,)),
    *((ContinuousBernoulli, q) for q in (Pareto,)),
    *((Exponential, q) for q in (Beta, ContinuousBernoulli, Pareto, Uniform)),
    *((Gamma, q) for q in (Beta, ContinuousBernoulli, Pareto, Uniform)),
    *((Gumbel, q) for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    *((Laplace, q) for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    *((Normal, q) for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    *((Pareto, q) for q in (Beta, ContinuousBernoulli, Uniform)),
    *((Poisson, q) for q in (Bernoulli, Binomial)),
)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _normal_part(q: Any, mean: Any, variance: Any) -> Any:
    """Return the mean of -log q for a normal q: all that it asks of p is mean and variance."""
    return 0.5 * _log_2pi + q.scale.log() + 0.5 * (variance + (mean - q.loc).pow(2)) / q.scale.pow(2)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _any_normal(p: Any, q: Any) -> Any:
    return -p.entropy() + _normal_part(q, p.mean, p.variance)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    none = p.alpha <= 2  # where p has no variance; what stands for it there must be finite for the gradients' sake
    kl = -p.entropy() + _normal_part(q, p.mean.masked_fill(none, 0), p.variance.masked_fill(none, 0))
    return mortice.where(none, _inf, kl)


def _exponential_part(q: Any, mean: Any) -> Any:
    """Return the mean of -log q for an exponential q, given p's mean."""
    return -q.rate.log() + q.rate * mean


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _any_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() + _exponential_part(q, p.mean)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    none = p.alpha <= 1  # where p has no mean
    return mortice.where(none, _inf, -p.entropy() + _exponential_part(q, p.mean.masked_fill(none, 0)))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    return mortice.where(p.low < 0, _inf, -p.entropy() + _exponential_part(q, p.mean))


def _gamma_part(q: Any, mean: Any, mean_log: Any) -> Any:
    """Return the mean of -log q for a gamma q, given p's means of x and log x."""
    return q.concentration.lgamma() - q.concentration * q.rate.log() + (1 - q.concentration) * mean_log + q.rate * mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + _gamma_part(q, p.mean, mean_log)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    return -p.entropy() + _gamma_part(q, p.mean, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    none = p.alpha <= 1  # where p has no mean
    kl = -p.entropy() + _gamma_part(q, p.mean.masked_fill(none, 0), p.scale.log() + p.alpha.reciprocal())
    return mortice.where(none, _inf, kl)


def _mean_log_uniform(low: Any, high: Any) -> Any:
    """Return the mean of log x over an interval."""
    return (mortice.xlogy(high, high) - mortice.xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    kl = -p.entropy() + _gamma_part(q, p.mean, _mean_log_uniform(p.low, p.high))
    return mortice.where(p.low < 0, _inf, kl)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    log_norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    kl = (
        -p.entropy() + log_norm - (a - 1) * _mean_log_uniform(p.low, p.high)
        - (b - 1) * _mean_log_uniform(1 - p.high, 1 - p.low)
    )  # fmt: skip
    return mortice.where((p.high > 1) | (p.low < 0), _inf, kl)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    kl = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()
    return mortice.where((p.high > 1) | (p.low < 0), _inf, kl)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Any, q: Any) -> Any:
    return mortice.where((q.low > 0) | (q.high < 1), _inf, -p.entropy() + (q.high - q.low).log())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    kl = -p.entropy() - (q.alpha * q.scale.pow(q.alpha)).log() + (q.alpha + 1) * _mean_log_uniform(p.low, p.high)
    return mortice.where(p.low < q.support.lower_bound, _inf, kl)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    scaled, shift = p.rate * q.scale, q.loc / q.scale
    return scaled.log() - 1 + scaled.reciprocal() - shift + shift.exp() * scaled / (scaled + 1)


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    scaled, shift = p.rate * q.scale, q.loc / q.scale
    mean_exp = shift.exp() * (1 + scaled.reciprocal()).pow(-p.concentration)
    return -p.entropy() + q.scale.log() + p.concentration / scaled - shift + mean_exp


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    z, ratio = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    return -p.entropy() + q.scale.log() + z + (-z + 0.5 * ratio).exp()


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    width = (p.high - p.low) / q.scale
    low, high = (q.loc - p.low) / q.scale, (q.loc - p.high) / q.scale
    return -p.entropy() + q.scale.log() - 0.5 * (low + high) + (low.exp() - high.exp()) / width


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    x = p.loc - q.loc
    z = x / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + x * (math.sqrt(0.5) * z).erf()
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale
