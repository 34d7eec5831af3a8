"""Divergences of a family from itself."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions.bernoulli import Bernoulli
from mortice.distributions.beta import Beta
from mortice.distributions.binomial import Binomial
from mortice.distributions.categorical import Categorical
from mortice.distributions.cauchy import Cauchy
from mortice.distributions.continuous_bernoulli import ContinuousBernoulli
from mortice.distributions.dirichlet import Dirichlet
from mortice.distributions.exp_family import ExponentialFamily, log_normalizer_and_gradients
from mortice.distributions.exponential import Exponential
from mortice.distributions.gamma import Gamma
from mortice.distributions.gaussian_linalg import batch_mahalanobis, half_log_det
from mortice.distributions.geometric import Geometric
from mortice.distributions.gumbel import Gumbel
from mortice.distributions.half_normal import HalfNormal
from mortice.distributions.independent import Independent
from mortice.distributions.kl import kl_divergence, register_kl
from mortice.distributions.laplace import Laplace
from mortice.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from mortice.distributions.multivariate_normal import MultivariateNormal
from mortice.distributions.normal import Normal
from mortice.distributions.one_hot_categorical import OneHotCategorical
from mortice.distributions.pareto import Pareto
from mortice.distributions.poisson import Poisson
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.uniform import Uniform
from mortice.distributions.utils import _sum_rightmost, euler_constant

# Where the value is infinite a formula is replaced, so that what it gives there does no harm.
_inf = math.inf


@register_kl(ExponentialFamily, ExponentialFamily)
def _expfamily(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
            f"; got {type(p).__name__} and {type(q).__name__}."
        )
    normalizer, params, gradients = log_normalizer_and_gradients(p)
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for mine, other, g in zip(params, others, gradients):
        result = result - _sum_rightmost((other - mine) * g, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = mortice.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1 = t1.masked_fill(q.probs == 0, _inf).masked_fill(p.probs == 0, 0)
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return t1 + t2.masked_fill(q.probs == 1, _inf).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    t1 = c.lgamma() + d.lgamma() + (a + b).lgamma()
    t2 = a.lgamma() + b.lgamma() + (c + d).lgamma()
    spread = (a - c) * a.digamma() + (b - d) * b.digamma() + (c + d - a - b) * (a + b).digamma()
    return t1 - t2 + spread


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return mortice.where(p.total_count > q.total_count, _inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    t = p.probs * (p.logits - q.logits)
    t = mortice.where((q.probs == 0).expand(t.shape), _inf, t)
    return mortice.where((p.probs == 0).expand(t.shape), 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    t1 = p.mean * (p.logits - q.logits)
    return t1 + p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    t1 = total.lgamma() - b.sum(-1).lgamma()
    t2 = (a.lgamma() - b.lgamma()).sum(-1)
    return t1 - t2 + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    t1 = b * (p.rate / q.rate).log()
    return t1 + b.lgamma() - a.lgamma() + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, shift = p.scale / q.scale, q.loc / q.scale
    centre = p.loc / q.scale
    t3 = (shift + (1 + ratio).lgamma() - centre).exp()
    return -ratio.log() - shift + centre + ratio * euler_constant + t3 - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    scale, alpha = p.scale / q.scale, q.alpha / p.alpha
    kl = q.alpha * scale.log() - alpha.log() + alpha - 1
    return mortice.where(p.support.lower_bound < q.support.lower_bound, _inf, kl)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return mortice.where((q.low > p.low) | (q.high < p.high), _inf, kl)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: expected as many reinterpreted dims in both Independent distributions; got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}."
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: expected the same transforms and events in both distributions.")
    return kl_divergence(p.base_dist, q.base_dist)


# ---- normal distributions of vectors ----


def _check_events(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )


def _trace_of(factor: Any, x: Any) -> Any:
    """Return the trace of (L L^T)^-1 x x^T for a triangular L."""
    batch = tuple(mortice.broadcast_shapes(tuple(factor.shape[:-2]), tuple(x.shape[:-2])))
    solved = mortice.linalg.solve_triangular(
        factor.expand((*batch, *factor.shape[-2:])), x.expand((*batch, *x.shape[-2:])), upper=False
    )
    return solved.pow(2).sum((-2, -1))


@register_kl(MultivariateNormal, MultivariateNormal)
def _mvn(p: Any, q: Any) -> Any:
    _check_events(p, q)
    l, m = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    t2 = _trace_of(m, l) + batch_mahalanobis(m, q.loc - p.loc)
    return half_log_det(m) - half_log_det(l) + 0.5 * (t2 - p.event_shape[0])


def _low_rank_terms(p: Any, q: Any, columns: Any) -> Any:
    """Return (trace of q's precision times the sum of the columns' products) + the distance of the means by it."""
    w, d = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    scaled = w.mT / d.unsqueeze(-2)
    x = q.loc - p.loc
    inner = (scaled @ x.unsqueeze(-1)).squeeze(-1)
    distance = (x.square() / d).sum(-1) - batch_mahalanobis(q._capacitance_tril, inner)
    whole = (columns / d.sqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
    return distance + whole - _trace_of(q._capacitance_tril, scaled @ columns)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    columns = mortice.cat([p.cov_factor, p.cov_diag.sqrt().diag_embed()], -1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (_low_rank_terms(p, q, columns) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _mvn_low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    terms = _low_rank_terms(p, q, p._unbroadcasted_scale_tril)
    return q._half_log_det() - half_log_det(p._unbroadcasted_scale_tril) + 0.5 * (terms - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_mvn(p: Any, q: Any) -> Any:
    _check_events(p, q)
    m = q._unbroadcasted_scale_tril
    columns = mortice.cat([p.cov_factor, p.cov_diag.sqrt().diag_embed()], -1)
    t2 = _trace_of(m, columns) + batch_mahalanobis(m, q.loc - p.loc)
    return half_log_det(m) - p._half_log_det() + 0.5 * (t2 - p.event_shape[0])
