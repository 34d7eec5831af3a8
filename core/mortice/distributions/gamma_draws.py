"""Draws from the gamma distribution, in logs so that small shapes do not underflow, with gradients by the shape.

The gradient is implicit: at a draw z, d log z / d a = -(dF/da) / (z p(z)), where F is the distribution function and p the
density. With t = z exp(-u), or z exp(u) above the shape, the integral that this is becomes one over u in (0, inf) of a
smooth function that decays, for which the double exponential rule gives nearly all digits from a few dozen points.
"""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Tensor

# Chosen for a relative error below 1e-7, and 1e-6 for shapes of 1e-3.
_POINTS = 64
_CHUNK = 1 << 12  # draws integrated at a time, for the caches' sake
_FIRST, _LAST = -3.2, 3.8


def _standard_gamma(concentration: Any) -> Any:
    """Draw from the gamma distribution of rate 1, with gradients by the shape."""
    return log_standard_gamma(concentration).exp().to(concentration.dtype)


def _sample_dirichlet(concentration: Any) -> Any:
    """Draw from the Dirichlet distribution over the last dim, with gradients by the concentration."""
    return log_standard_gamma(concentration).softmax(-1).to(concentration.dtype)


def log_standard_gamma(concentration: Any) -> Any:
    """Draw the log of a gamma variable of rate 1, with gradients by the shape; in float64 where the device has it."""
    a = concentration.to(work_dtype(concentration))
    return _Draw.apply(a, _draw(a.detach()))


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


def log_gamma_slope(a: Any, log_z: Any) -> Any:
    """Return d log z / d a along the quantiles of the gamma distribution."""
    if a.numel() <= _CHUNK:
        return _slope(a, log_z)
    parts = zip(a.reshape(-1).split(_CHUNK), log_z.reshape(-1).split(_CHUNK))
    return mortice.cat([_slope(*part) for part in parts]).reshape(a.shape)


def _slope(a: Any, log_z: Any) -> Any:
    z = log_z.exp()
    below = z <= a.clamp(min=1)
    # The scale on which the integrand decays: by its slope at 0 and its curvature.
    low = 1 / ((a - z).clamp(min=0) + a.minimum(a.sqrt()))
    high = 1 / ((z - a).clamp(min=0) + z.sqrt())
    sign = mortice.where(below, -1.0, 1.0).to(a.dtype)
    scale = mortice.where(below, low, high).detach().unsqueeze(-1)
    step = (_LAST - _FIRST) / _POINTS
    s = mortice.arange(_POINTS + 1, dtype=a.dtype, device=a.device) * step + _FIRST
    inner = (-s).exp()
    nodes, weights = (s - inner).exp(), (s - inner).exp() * (1 + inner) * step
    u = nodes * scale * sign.unsqueeze(-1)
    # The log of t p(t) / (z p(z)) with t = z exp(u); and log t - digamma(a).
    grown = u * a.unsqueeze(-1) - z.unsqueeze(-1) * u.expm1()
    centred = (log_z - a.digamma()).unsqueeze(-1) + u
    total = (grown.exp() * centred * weights).sum(-1) * scale.squeeze(-1)
    return total * sign


def _draw(a: Any) -> Any:
    """Draw logs of gamma variables by Marsaglia and Tsang's method; shapes below 1 by a power of a uniform."""
    small = a < 1
    d = mortice.where(small, a + 1, a) - 1 / 3
    c = 1 / (9 * d).sqrt()
    result = mortice.full_like(a, float("nan"))
    # A try succeeds with a probability above 0.95, whatever the shape. What is no shape never does, and stays nan.
    pending = (a >= 0) & a.isfinite()
    while bool(pending.any()):
        x, u = mortice.randn_like(a), open_uniform(a)
        v = (1 + c * x) ** 3
        log_v = v.clamp(min=1e-300 if a.dtype == mortice.float64 else 1e-37).log()
        accepted = (v > 0) & (u.log() < 0.5 * x * x + d * (1 - v + log_v))
        result = mortice.where(pending & accepted, d.log() + log_v, result)
        pending = pending & ~accepted
    power = mortice.where(small, open_uniform(a).log() / a, 0.0)
    return result + power


def open_uniform(like: Any) -> Any:
    """Draw uniforms that are never 0."""
    return mortice.rand_like(like) + 2.0 ** (-54 if like.dtype == mortice.float64 else -25)


def work_dtype(t: Tensor) -> Any:
    """Return float64 where the device has it."""
    try:
        mortice.empty(0, dtype=mortice.float64, device=t.device)
    except RuntimeError:
        return mortice.float32
    return mortice.float64
