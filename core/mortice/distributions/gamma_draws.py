"""Draws from the gamma and Dirichlet distributions, in logs so that small shapes do not underflow, with gradients by them.

The gradient is implicit: at a draw z, d log z / d a = -(dF/da) / (z p(z)), where F is the distribution function and p the
density. With t = z exp(-u), or z exp(u) above the shape, the integral that this is becomes one over u in (0, inf) of a
smooth function that decays, for which the double exponential rule gives nearly all digits from a few dozen points.
A share of a Dirichlet draw is beta distributed, and its log odds take the place of log z; the other shares shrink alike.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import mortice
from mortice.distributions.utils import holds
from mortice.levels import absent, drawing, here, raise_to
from mortice.utils._wide import wide

# Chosen for a relative error below 1e-7, and 1e-6 for shapes of 1e-3.
_POINTS = 64
_WORTH = 1 << 12  # elements from which it pays to look for those that are left
_CHUNK = 1 << 12  # draws integrated at a time, for the caches' sake
_FIRST, _LAST = -3.2, 3.8
_LEAST = math.log(sys.float_info.min)


def _standard_gamma(concentration: Any) -> Any:
    """Draw from the gamma distribution of rate 1, with gradients by the shape."""
    return log_standard_gamma(concentration).exp().to(concentration.dtype).clamp(min=mortice.finfo(concentration.dtype).tiny)


def _sample_dirichlet(concentration: Any) -> Any:
    """Draw from the Dirichlet distribution over the last dim, with gradients by the concentration."""
    a = concentration.to(wide(concentration.device))
    info = mortice.finfo(concentration.dtype)
    return _Shares.apply(a, _draw(here(a.detach()))).exp().to(concentration.dtype).clamp(info.tiny, 1 - info.eps / 2)


def log_standard_gamma(concentration: Any) -> Any:
    """Draw the log of a gamma variable of rate 1, with gradients by the shape; in float64 where the device has it."""
    a = concentration.to(wide(concentration.device))
    return _Draw.apply(a, _draw(here(a.detach())))


class _Draw(mortice.autograd.Function):
    """A draw as a function of its shape parameter."""

    @staticmethod
    def forward(concentration: Any, drawn: Any) -> Any:
        return drawn.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        # The result, not the draw: it depends on the shape, which second gradients need.
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        concentration, log_z = ctx.saved_tensors
        return g * log_gamma_slope(concentration, log_z), None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        concentration, log_z = ctx.saved_tensors
        return t * log_gamma_slope(concentration, log_z)


class _Shares(_Draw):
    """The logs of a Dirichlet draw, from logs of gamma variables, as a function of the concentrations.

    Through the gammas its gradient would be right on average; this one is a function of the draw, and varies less.
    """

    @staticmethod
    def forward(concentration: Any, drawn: Any) -> Any:
        return drawn.log_softmax(-1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        concentration, log_x = ctx.saved_tensors
        return _share_slope(concentration, log_x) * (g - log_x.exp() * g.sum(-1, keepdim=True)), None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        concentration, log_x = ctx.saved_tensors
        t = t * _share_slope(concentration, log_x)
        return t - (log_x.exp() * t).sum(-1, keepdim=True)


def _share_slope(a: Any, log_x: Any) -> Any:
    """Return how the log odds of each share grow with its own concentration."""
    largest = mortice.nn.functional.one_hot(log_x.argmax(-1), log_x.shape[-1]).to(mortice.bool)
    rest = log_x.masked_fill(largest, float("-inf")).logsumexp(-1, keepdim=True)  # 1 - the largest share loses digits
    odds = log_x - mortice.where(largest, rest, (-log_x.masked_fill(largest, -1.0).exp()).log1p())
    return log_odds_slope(a, a.sum(-1, keepdim=True) - a, odds)


def log_gamma_slope(a: Any, log_z: Any) -> Any:
    """Return d log z / d a along the quantiles of the gamma distribution."""
    return _in_parts(_gamma_slope, a, log_z)


def log_odds_slope(a: Any, b: Any, odds: Any) -> Any:
    """Return d odds / d a along the quantiles of the log odds log(x / (1 - x)) of the beta distribution of a at 1, b at 0."""
    return _in_parts(_odds_slope, a, b, odds)


def _in_parts(slope: Any, *values: Any) -> Any:
    if values[0].numel() <= _CHUNK:
        return slope(*values)
    parts = zip(*[value.reshape(-1).split(_CHUNK) for value in values])
    return mortice.cat([slope(*part) for part in parts]).reshape(values[0].shape)


def _nodes(like: Any) -> tuple[Any, Any]:
    """Return points in (0, inf) and their weights."""
    step = (_LAST - _FIRST) / _POINTS
    s = mortice.arange(_POINTS + 1, dtype=like.dtype, device=like.device) * step + _FIRST
    inner = (-s).exp()
    return (s - inner).exp(), (s - inner).exp() * (1 + inner) * step


def _odds_slope(a: Any, b: Any, odds: Any) -> Any:
    x, total = odds.sigmoid(), a + b
    below = odds <= (a.clamp(min=1) / b.clamp(min=1)).log()
    # The scale on which the integrand decays: by its slope at 0 and its curvature, or its slope far away.
    steep = (a * b / total).sqrt()
    low = 1 / ((a - total * x).clamp(min=0) + a.minimum(steep))
    high = 1 / ((total * x - a).clamp(min=0) + b.minimum(steep))
    sign = mortice.where(below, -1.0, 1.0).to(a.dtype)
    scale = mortice.where(below, low, high).detach().unsqueeze(-1)
    nodes, weights = _nodes(a)
    a, b, odds, sign = [t.unsqueeze(-1) for t in (a, b, odds, sign)]
    there = odds + nodes * scale * sign
    log_t, log_odds = mortice.nn.functional.logsigmoid(there), mortice.nn.functional.logsigmoid(odds)
    # The log of the density there over that here.
    grown = a * (log_t - log_odds) + b * ((log_t - there) - (log_odds - odds))
    centred = log_t - (a.digamma() - (a + b).digamma())
    return (grown.exp() * centred * weights * sign * scale).sum(-1)


def _gamma_slope(a: Any, log_z: Any) -> Any:
    z = log_z.exp()
    below = z <= a.clamp(min=1)
    # The scale on which the integrand decays: by its slope at 0 and its curvature.
    low = 1 / ((a - z).clamp(min=0) + a.minimum(a.sqrt()))
    high = 1 / ((z - a).clamp(min=0) + z.sqrt())
    sign = mortice.where(below, -1.0, 1.0).to(a.dtype)
    scale = mortice.where(below, low, high).detach().unsqueeze(-1)
    nodes, weights = _nodes(a)
    u = nodes * scale * sign.unsqueeze(-1)
    # The log of t p(t) / (z p(z)) with t = z exp(u); and log t - digamma(a).
    grown = u * a.unsqueeze(-1) - z.unsqueeze(-1) * u.expm1()
    centred = (log_z - a.digamma()).unsqueeze(-1) + u
    total = (grown.exp() * centred * weights).sum(-1) * scale.squeeze(-1)
    return total * sign


def _draw(a: Any) -> Any:
    """Draw logs of gamma variables by Marsaglia and Tsang's method; shapes below 1 by a power of a uniform."""
    level = a._device.level
    if level is not None:
        drawing(a._device, 0)  # refuses where random numbers are an error
        if level.randomness == "different":
            with absent(level):  # in which numbers would be drawn for each sample once more
                made = _draw(level.leave(a))
            return level.enter(made)
        if (below := level.lowered(a)) is not None:
            return raise_to(_draw(below), a._device)
    engine = mortice.default_generator.engine_for(a.device) if level is None else None
    if engine is not None:
        made = engine.log_gammas(a.device.backend, a.flatten().tolist())
        # PyTorch's are no logs: where they would underflow they are all the least normal number, and equal shares.
        return mortice.tensor(made, dtype=a.dtype, device=a.device).reshape(a.shape).clamp(min=_LEAST)
    small = a < 1
    d = mortice.where(small, a + 1, a) - 1 / 3
    c = 1 / (9 * d).sqrt()
    result, places = mortice.full_like(a, float("nan")), None
    # A try succeeds with a probability above 0.95, whatever the shape. What is no shape never does, and stays nan. Numbers are
    # drawn for all in each round, but what has succeeded is not computed again.
    pending = (a >= 0) & a.isfinite()
    while not holds(~pending):
        x, u = mortice.randn_like(a), open_uniform(a)
        if places is not None:
            x, u = x.flatten()[places], u.flatten()[places]
        v = (1 + c * x) ** 3
        log_v = v.clamp(min=1e-300 if a.dtype == mortice.float64 else 1e-37).log()
        accepted = pending & (v > 0) & (u.log() < 0.5 * x * x + d * (1 - v + log_v))
        made, pending = d.log() + log_v, pending & ~accepted
        if places is None:
            result = mortice.where(accepted, made, result)
            if pending._device.level is not None or a.numel() < _WORTH:
                continue  # how many are left differs from lane to lane
            result, places = result.flatten(), pending.flatten().nonzero()[:, 0]
            c, d = c.flatten()[places], d.flatten()[places]
        else:
            result[places[accepted]] = made[accepted]
            c, d, places = c[pending], d[pending], places[pending]
        pending = places >= 0
    result = result.reshape(a.shape)
    power = mortice.where(small, open_uniform(a).log() / a, 0.0)
    return result + power


def open_uniform(like: Any) -> Any:
    """Draw uniforms that are never 0."""
    return mortice.rand_like(like) + 2.0 ** (-54 if like.dtype == mortice.float64 else -25)
