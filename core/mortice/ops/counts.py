"""Draws of counts, poisson and binomial: by inversion where few are expected, by rejection where many are.

Both rejections are Hoermann's transformed ones (1993): a round or two, whatever the rate.
"""

from __future__ import annotations

import math
from typing import Any

from mortice.dtype import int64
from mortice.errors import DTypeError
from mortice.levels import drawing, stack
from mortice.ops.data import range_of, tensor
from mortice.ops.index import where
from mortice.ops.movement import cast, contiguous, reshape
from mortice.ops.random import _checked, _kept, _open_uniform, underived
from mortice.ops.views import broadcast_tensors
from mortice.tensor import make

__all__ = ["binomial", "poisson"]
_MANY = 10  # expected counts from which rejection takes fewer rounds
_WORTH = 1 << 12  # elements from which it pays to look for those that are left
_MOST = 64  # what is drawn where fewer are expected is less, but for one in 10^28


def poisson(input: Any, generator: Any = None) -> Any:
    """Draw from Poisson distributions of the given rates."""
    if input.dtype.kind != "f" or input.dtype.itemsize == 1:
        raise DTypeError(f"poisson: not implemented for {input.dtype}; expected rates as floats.")
    least = (range_of(input.detach()) if input.numel() else None) or (0,)
    if least[0] < 0:
        raise RuntimeError("poisson: invalid Poisson rate, expected rate to be non-negative")
    input = contiguous(input)
    if (drawn := _one_by_one("poissons", generator, input)) is not None:
        return drawn
    rate = cast(input.detach(), input._device.widest_float)
    many = rate >= _MANY
    drawn = _inverted(where(many, 0.0, rate), None, generator)
    if _any(many):
        mean = where(many, rate, float(_MANY))
        drawn = where(many, _rejected(generator, _poisson_hat, mean), drawn)
    return _kept(cast(where(rate.isfinite(), drawn, rate), input.dtype), input)


def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """Draw the numbers of successes in `count` trials, each of probability `prob`."""
    if count.dtype.kind != "f" or prob.dtype is not count.dtype:
        raise DTypeError(f"binomial: expected count and prob to be floats of one dtype; got {count.dtype} and {prob.dtype}.")
    n, p = broadcast_tensors(count.detach(), prob.detach())
    if (drawn := _one_by_one("binomials", generator, n, p)) is not None:
        return underived("binomial", drawn, count, prob)
    n, p = (cast(t, count._device.widest_float) for t in (n, p))
    sensible = (n >= 0) & n.isfinite() & (p >= 0) & (p <= 1)
    n, p = where(sensible, n, 0.0), where(sensible, p, 0.0)
    flipped = p > 0.5
    rarer = where(flipped, 1 - p, p)
    many = n * rarer >= _MANY
    drawn = _inverted(where(many, 0.0, n), rarer, generator)
    if _any(many):
        n_many, p_many = where(many, n, 4.0 * _MANY), where(many, rarer, 0.5)
        drawn = where(many, _rejected(generator, _binomial_hat, n_many, p_many), drawn)
    drawn = where(flipped, n - drawn, drawn)
    return underived("binomial", cast(where(sensible, drawn, math.nan), count.dtype), count, prob)


def _one_by_one(draw: str, generator: Any, *given: Any, inside: Any = None) -> Any:
    """Draw with an engine that makes one number after the other, if the generator has one; None elsewhere.

    `inside` are the transforms whose samples still have to be told apart, by default all that run.
    """
    first = given[0]
    engine = _checked(generator).engine_for(first._device.base)
    if engine is None:
        return None
    inside = stack.levels if inside is None else inside
    if inside:
        drawing(first._device, 0)  # refuses where random numbers are an error
        level = inside[-1]
        if level.randomness == "different":
            made = _one_by_one(draw, generator, *[level.leave(t) for t in given], inside=inside[:-1])
            return None if made is None else level.enter(made)
        given = tuple([level.lowered(t) if t._device.level is level else t for t in given])
        return None if any([t is None for t in given]) else _one_by_one(draw, generator, *given, inside=inside[:-1])
    with _checked(generator)._lock:
        values = getattr(engine, draw)(*[t.flatten().tolist() for t in given])
    return _kept(tensor(values, dtype=first.dtype, device=first._device).reshape(first.shape), first)


def _any(x: Any) -> bool:
    """Tell whether anything is true, in any lane of a vmap."""
    found = range_of(cast(x, int64)) if x.numel() else (0, 0)
    return bool(x.any().item() if found is None else found[1])


def _inverted(rate: Any, p: Any, generator: Any) -> Any:
    """Count the terms of a distribution that a uniform number passes: of Poisson's, or with `p` of a binomial of `rate` trials."""
    rest = cast(_open_uniform("poisson" if p is None else "binomial", rate, generator), rate.dtype)
    term = (-rate if p is None else rate * (-p).log1p()).exp()
    odds = rate if p is None else p / (1 - p)
    count = rest._device.backend.count_terms
    if count is not None and term._device is odds._device is rest._device:
        data = count(rest._buffer, term._buffer, odds._buffer, None if p is None else rate._buffer)
        return make(data, rate._device, rate.dtype, rate.shape)
    drawn = rate.new_zeros(rate.shape)
    for k in range(1, _MOST):
        rest = rest - term
        more = rest > 0
        if k % 4 == 1 and not _any(more):
            break
        drawn = drawn + cast(more, rate.dtype)
        term = term * (odds * (1 / k) if p is None else odds * ((rate - (k - 1)).clamp(min=0) * (1 / k)))
    return drawn


def _rejected(generator: Any, hat: Any, *given: Any) -> Any:
    """Draw by a table mountain over the density, which `hat` says of the parameters: the last is its log, up to what is in `scale`.

    A point under the flat part of the mountain, as `quick` says, is taken without looking at the density. Points are drawn for
    all in each round, but what has been taken is not computed again.
    """
    like = given[0]
    pending, places = (given[0] * given[-1]).isfinite(), None
    a, b, centre, quick, scale, log_ratio = hat(*given)
    result = like.new_zeros(like.shape)
    while _any(pending):
        u, v = _open_uniform("poisson", like, generator) - 0.5, _open_uniform("poisson", like, generator)
        u, v = cast(u, like.dtype), cast(v, like.dtype)
        if places is not None:
            u, v = reshape(u, -1)[places], reshape(v, -1)[places]
        us = (0.5 - u.abs()).clamp(min=1e-30)
        k = ((2 * a / us + b) * u + centre).floor()
        held = k.clamp(min=0)
        taken = ((us >= 0.07) & (v <= quick)) | ((v * scale / (a / us.square() + b)).log() <= log_ratio(held))
        accepted = pending & taken & (k >= 0)
        pending = pending & ~accepted
        if places is None:
            result = where(accepted, held, result)
            if pending._device.level is not None or like.numel() < _WORTH:
                continue  # how many are left differs from lane to lane
            result, places = reshape(result, -1), reshape(pending, -1).nonzero()[:, 0]
            given = tuple([reshape(t, -1)[places] for t in given])
        else:
            result[places[accepted]] = held[accepted]
            places, given = places[pending], tuple([t[pending] for t in given])
        a, b, centre, quick, scale, log_ratio = hat(*given)
        pending = places >= 0
    return reshape(result, like.shape)


def _poisson_hat(mean: Any) -> tuple[Any, ...]:
    b = 0.931 + 2.53 * mean.sqrt()
    log_mean = mean.log()
    log_ratio = lambda k: k * log_mean - mean - (k + 1).lgamma()
    return -0.059 + 0.02483 * b, b, mean + 0.43, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4), log_ratio


def _binomial_hat(n: Any, p: Any) -> tuple[Any, ...]:
    spread = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * spread
    mode = ((n + 1) * p).floor()
    log_odds = p.log() - (-p).log1p()
    at_mode = (mode + 1).lgamma() + (n - mode + 1).lgamma()

    def log_ratio(k: Any) -> Any:
        inside = k.minimum(n)
        found = at_mode - (inside + 1).lgamma() - (n - inside + 1).lgamma() + (inside - mode) * log_odds
        return where(k <= n, found, -math.inf)

    # The flat part lies inside 0 to n where ten or more are expected.
    return -0.0873 + 0.0248 * b + 0.01 * p, b, n * p + 0.5, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread, log_ratio
