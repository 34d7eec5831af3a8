"""Histograms: counts of integers, of values in equal bins, in bins between given edges, in several dims."""

from __future__ import annotations

import builtins
import math
from typing import Any

from mortice import call as _call
from mortice import return_types
from mortice.dtype import DType, check_kind, float64, int64
from mortice.errors import DTypeError, ShapeError
from mortice.levels import lane_by_lane
from mortice.ops.bounds import where
from mortice.ops.creation import linspace
from mortice.ops.index_advanced import _index_add
from mortice.ops.movement import cast, reshape
from mortice.ops.random import underived
from mortice.ops.reduce import write_all
from mortice.ops.scan import diff
from mortice.ops.sort import searchsorted
from mortice.ops.unary import floor
from mortice.shape import Size
from mortice.shape import prod as size_of
from mortice.tensor import TensorBase, make

__all__ = ["bincount", "histc", "histogram", "histogramdd"]


def _wrap(like: Any, data: Any, d: DType) -> Any:
    return make(data, like._device, d, Size(like._device.backend.shape_of(data)))


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Count each value of a vector of non-negative integers, or add up its weights; reads the largest on the host.

    Differs from torch: `weights` has a gradient.
    """
    check_kind("bincount", input.dtype, "ui")
    if minlength < 0:
        raise RuntimeError(f"bincount: minlength should be >= 0; got {minlength}.")
    k = input._device.backend
    n = size_of(input.shape)
    if n == 0 and len(input.shape) == 1:
        return _wrap(input, k.full((minlength,), 0, dtype=int64, device=input._device), int64)
    low, high = k.index_range(input._buffer) if n else (-1, -1)
    if len(input.shape) != 1 or low < 0:
        got = low if len(input.shape) == 1 else f"shape {list(input.shape)}"
        raise RuntimeError(f"bincount: only supports 1-d non-negative integral inputs; got {got}.")
    if weights is not None and weights.shape != input.shape:
        raise ShapeError(
            f"bincount: weights should be 1-d and have the same length as input; got {list(weights.shape)} for {list(input.shape)}."
        )
    length = max(int(high) + 1, minlength)
    if weights is None:
        d, values = int64, _wrap(input, k.broadcast_to(k.full((1,), 1, dtype=int64, device=input._device), (n,)), int64)
    else:
        d = weights.dtype if weights.dtype.name == "float32" else float64
        values = cast(weights, d)
    zero = _wrap(input, k.full((length,), 0, dtype=d, device=input._device), d)
    return _index_add(zero, cast(input, int64), values, axis=0)


@lane_by_lane
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None) -> Any:
    """Count elements in equal bins between min and max; where both are equal, between the extremes of the data."""
    check_kind("histc", input.dtype, "f")
    if bins <= 0:
        raise RuntimeError(f"histc: bins must be > 0, but got {bins}.")
    k = input._device.backend
    low, high = float(min), float(max)
    if low == high and size_of(input.shape):
        low, high = float(k.item(k.min(input._buffer))), float(k.item(k.max(input._buffer)))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histc: range of [{low}, {high}] is not finite.")
    if low > high:
        raise RuntimeError(f"histc: max must be larger than min; got [{low}, {high}].")
    if low == high:
        low, high = low - 1, high + 1
    x = reshape(input.detach(), -1)
    inside = (x >= low) & (x <= high)
    # nan is what an infinite width gives at its end, and no width anywhere
    place = floor((where(inside, x, low) - low) * bins / (high - low)).nan_to_num(bins - 1).clamp(0, bins - 1)
    zero = k.full((bins,), 0, dtype=int64, device=input._device)
    counts = k.index_add(zero, cast(place, int64)._buffer, cast(inside, int64)._buffer, axis=0)
    result = cast(_wrap(input, counts, int64), input.dtype)
    return _call.give("histc", out, result)


# ---- bins between edges ----


def _range(name: str, low: float, high: float) -> tuple[float, float]:
    """Return the ends of equal bins: those given, or of the data where none are."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range [{low}, {high}] is not finite.")
    if low > high:
        raise RuntimeError(f"{name}: min should not exceed max, but got min {low} max {high}.")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


@lane_by_lane
def _edges(name: str, x: Any, bins: Any, ends: Any) -> Any:
    """Return the edges of the bins of a vector; without edges or ends given its extremes are read on the host."""
    if isinstance(bins, TensorBase):
        if bins.dtype is not x.dtype:
            raise DTypeError(
                f"{name}: input tensor and bins tensors should have the same dtype; got {x.dtype} and {bins.dtype}."
            )
        if len(bins.shape) != 1 or not size_of(bins.shape):
            raise ShapeError(
                f"{name}: bins tensor should have one dimension and an edge at least; got {list(bins.shape)}."
            )
        return bins.detach()
    if bins <= 0:
        raise RuntimeError(f"{name}: bins must be > 0, but got {bins}.")
    if ends is None:
        ends = (x.amin().item(), x.amax().item()) if size_of(x.shape) else (0.0, 1.0)
    low, high = _range(name, float(ends[0]), float(ends[1]))
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x._device)


def _counted(
    name: str, input: Any, columns: list[Any], edges: list[Any], weight: Any, shape: Any, density: bool
) -> Any:
    """Add up the weights of points, given by their coordinates, in the bins of each dim."""
    if weight is not None and (weight.dtype is not input.dtype or tuple(weight.shape) != tuple(shape)):
        raise ShapeError(
            f"{name}: if weight tensor is provided it should have the same dtype and shape as input (without its innermost "
            f"dimension, in several dims); got {weight.dtype} {list(weight.shape)}."
        )
    flat, inside = None, None
    for x, e in zip(columns, edges):
        bins = e.shape[0] - 1
        here = (x >= e[0]) & (x <= e[-1])
        # The last bin holds its right edge.
        place = (searchsorted(e, x, right=True) - 1).clamp(0, builtins.max(bins - 1, 0))
        flat = place if flat is None else flat * bins + place
        inside = here if inside is None else inside & here
    sizes = [e.shape[0] - 1 for e in edges]
    counts = input.new_zeros(size_of(sizes))
    if columns and size_of(sizes):
        weights = cast(inside, input.dtype) if weight is None else where(inside, reshape(weight.detach(), -1), 0)
        counts = counts.index_add(0, flat, weights)
    counts = reshape(counts, sizes)
    if density:
        counts = counts / counts.sum()
        for d, e in enumerate(edges):
            counts = counts / reshape(diff(e), [-1 if i == d else 1 for i in range(len(edges))])
    return counts


def histogram(
    input: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False, out: Any = None
) -> Any:
    """Count elements in bins: (hist, bin_edges). `bins` is their number, or a vector of edges."""
    check_kind("histogram", input.dtype, "f")
    if range is not None and isinstance(bins, TensorBase):
        raise TypeError(f"histogram: expected a number of bins beside range; got edges and {range}. Leave range out.")
    x = reshape(input.detach(), -1)
    edges = _edges("histogram", x, bins, range)
    counts = _counted("histogram", x, [x], [edges], weight, input.shape, density)
    edges = edges.clone() if isinstance(bins, TensorBase) else edges
    counts, edges = write_all("histogram", out, return_types.histogram(counts, edges))
    sources = input, weight, bins if isinstance(bins, TensorBase) else None
    return return_types.histogram(*[underived("histogram", t, *sources) for t in (counts, edges)])


def histogramdd(input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Count points, whose coordinates are along the last dim, in a grid of bins: (hist, bin_edges)."""
    check_kind("histogramdd", input.dtype, "f")
    if len(input.shape) < 2:
        raise ShapeError(f"histogramdd: input tensor should have at least 2 dimensions; got {list(input.shape)}.")
    *lead, n = tuple(input.shape)
    each = [bins] * n if isinstance(bins, int) else list(bins)
    if len(each) != n:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input; "
                           f"got {len(each)} for {n}.")
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(f"histogramdd: range should have {2 * n} elements; got {len(range)}.")
    points = reshape(input.detach(), (size_of(lead), n))
    columns = [points[:, d] for d in builtins.range(n)]
    ends = [None if range is None else (range[2 * d], range[2 * d + 1]) for d in builtins.range(n)]
    edges = [_edges("histogramdd", x, b, e) for x, b, e in zip(columns, each, ends)]
    name = f"_histogramdd_from_bin_{'tensors' if any([isinstance(b, TensorBase) for b in each]) else 'cts'}"
    counts = _counted("histogramdd", points, columns, edges, weight, lead, density)
    return return_types.histogramdd(underived(name, counts, input, weight), tuple([underived(name, e, input) for e in edges]))
