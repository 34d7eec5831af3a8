"""Fractional max pooling: windows of one size at irregular steps, drawn at random."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import mortice
from mortice import _autocasting as autocasting
from mortice import _node_name as node_name

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]  # fmt: skip


def _tuple(name: str, what: str, value: Any, nd: int, error: type[Exception] = RuntimeError) -> tuple[Any, ...]:
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * nd
    if len(given) != nd:
        must, three = (" requires {} to", "") if error is ValueError else (": {} must", "three " if nd == 3 else "")
        raise error(f"{name}{must.format(what)} either be a single Int or tuple of {three}Ints; got {value!r} for {nd} dims")
    return given


def _starts(size: int, count: int, window: int, draw: Any) -> Any:
    """Return where the windows along an axis start, (..., count) for draws (...): the last one ends at the end."""
    last = mortice.full((*draw.shape, 1), size - window, dtype=mortice.int64, device=draw.device)
    if count < 2:
        return last[..., :count]
    step = (size - window) / (count - 1)
    draw = draw.unsqueeze(-1)
    ahead = mortice.arange(count - 1, dtype=draw.dtype, device=draw.device) + draw
    return mortice.cat([(ahead * step).to(mortice.int64) - (draw * step).to(mortice.int64), last], -1)


def _pool(nd: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any) -> tuple[Any, Any]:
    """Return the maxima and their flat positions."""
    name = f"fractional_max_pool{nd}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input.ndim not in (nd + 1, nd + 2):
        raise IndexError(f"{name}: expected {nd + 1}D or {nd + 2}D input; got {input.ndim} dimensions.")
    *lead, channels = tuple(input.shape)[:-nd]
    sizes = tuple(input.shape)[-nd:]
    if 0 in (channels, *sizes):
        raise RuntimeError(f"{name}: Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}")
    kernel = _tuple(name, "kernel_size", kernel_size, nd)
    if output_size is None:
        ratios = _tuple(name, "output_ratio", output_ratio, nd, ValueError)
        output_size = [int(n * r) for n, r in zip(sizes, ratios)]
    counts = _tuple(name, "output_size", output_size, nd)
    for axis, size, window, count in zip(("time", "height", "width")[-nd:], sizes, kernel, counts):
        if window < 1 or count < 0 or count + window - 1 > size:
            raise RuntimeError(
                f"{name}: output_size + kernel_size - 1 is too large relative to input {axis}, or one of them is negative; got "
                f"output {list(counts)}, kernel {list(kernel)} and input {list(sizes)}."
            )
    batch = lead[0] if lead else 1
    if samples is None:
        samples = mortice.rand(batch, channels, nd, dtype=input.dtype, device=input.device)
    elif samples.dtype is not input.dtype:
        raise RuntimeError(f"{name}: expected _random_samples to be of dtype {input.dtype}; got {samples.dtype}.")
    elif samples.ndim != 3 or samples.shape[0] < batch or tuple(samples.shape)[1:] != (channels, nd):
        raise RuntimeError(f"{name}: Expect _random_samples to be ({batch}, {channels}, {nd}); got {list(samples.shape)}.")
    return _maxima(input, sizes, kernel, counts, samples[:batch].reshape(*lead, channels, nd))


def _maxima(
    input: Any, sizes: tuple[int, ...], kernel: tuple[int, ...], counts: tuple[int, ...], samples: Any
) -> tuple[Any, Any]:
    nd = len(sizes)
    flat = input.reshape(*input.shape[:-nd], math.prod(sizes))
    with mortice.no_grad():
        corner: Any = 0
        for d, (size, count, window) in enumerate(zip(sizes, counts, kernel)):
            # Two axes draw in the order (x, y), three in the order (t, y, x): as PyTorch reads `_random_samples`.
            start = _starts(size, count, window, samples[..., d if nd == 3 else nd - 1 - d])
            start = start.reshape(*start.shape[:-1], *[count if i == d else 1 for i in range(nd)])
            corner = corner + start * math.prod(sizes[d + 1 :])
        corner = corner.reshape(*corner.shape[:-nd], math.prod(counts))
        best = places = None
        for tap in product(*map(range, kernel)):
            at = corner + sum(t * math.prod(sizes[d + 1 :]) for d, t in enumerate(tap))
            seen = flat.gather(-1, at)
            if best is None:
                best, places = seen, at
            else:
                better = (seen > best) | seen.isnan()
                best, places = mortice.where(better, seen, best), mortice.where(better, at, places)
    shape = (*input.shape[:-nd], *counts)
    return flat.gather(-1, places).reshape(shape), places.reshape(shape)


@autocasting
@node_name("FractionalMaxPool2DBackward0")
def fractional_max_pool2d_with_indices(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Return `fractional_max_pool2d` and the flat position of each maximum."""
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


@autocasting
@node_name("FractionalMaxPool3DBackward0")
def fractional_max_pool3d_with_indices(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Return `fractional_max_pool3d` and the flat position of each maximum."""
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Return the maxima of windows over the last two dims, at random steps that give `output_size`."""
    pair = fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return pair if return_indices else pair[0]


def fractional_max_pool3d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Return the maxima of windows over the last three dims, at random steps that give `output_size`."""
    pair = fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return pair if return_indices else pair[0]
