"""Draws of binomial counts: by waiting times where few are expected, by rejection where many are."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions.gamma_draws import open_uniform, work_dtype

_MANY = 10  # expected successes from which rejection is the shorter way


def binomial(count: Any, prob: Any) -> Any:
    """Draw the number of successes in `count` trials of probability `prob`, of the same shape and dtype."""
    dtype, work = prob.dtype, work_dtype(prob)
    n, p = count.to(work), prob.to(work)
    flipped = p > 0.5
    q = mortice.where(flipped, 1 - p, p)  # nan stays nan
    many = n * q >= _MANY
    few = _by_waiting(n, mortice.where(many, 0.0, q))
    drawn = mortice.where(many, _by_rejection(mortice.where(many, n, 100.0), mortice.where(many, q, 0.5)), few)
    return mortice.where(flipped, n - drawn, drawn).masked_fill(p != p, math.nan).to(dtype)


def _by_waiting(n: Any, p: Any) -> Any:
    """Count successes by the trials that each takes, until the trials are used up."""
    rate = -(-p).log1p()
    drawn, used = mortice.zeros_like(n), mortice.zeros_like(n)
    while True:
        used = used + (-open_uniform(n).log() / rate).floor() + 1
        more = used <= n
        if not bool(more.any()):
            return drawn
        drawn = drawn + more.to(n.dtype)


def _by_rejection(n: Any, p: Any) -> Any:
    """Draw by Hoermann's transformed rejection, for p up to 1/2 and at least 10 expected successes."""
    spread = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c, v_limit = n * p + 0.5, 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    mode = ((n + 1) * p).floor()
    log_odds = p.log() - (-p).log1p()
    at_mode = (mode + 1).lgamma() + (n - mode + 1).lgamma()
    result, pending = mortice.zeros_like(n), n == n
    while bool(pending.any()):
        u, v = open_uniform(n) - 0.5, open_uniform(n)
        us = 0.5 - u.abs()
        found = ((2 * a / us + b) * u + c).floor()
        inside = (found >= 0) & (found <= n)
        k = found.clamp(min=0).minimum(n)
        bound = at_mode - (k + 1).lgamma() - (n - k + 1).lgamma() + (k - mode) * log_odds
        quick = (us >= 0.07) & (v <= v_limit)
        accepted = inside & (quick | ((v * alpha / (a / us.square() + b)).log() <= bound))
        result = mortice.where(pending & accepted, k, result)
        pending = pending & ~accepted
    return result
