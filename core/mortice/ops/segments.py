"""Reductions of stretches of a dim, whose lengths a tensor tells."""

from __future__ import annotations

import math
from typing import Any

from mortice.call import check_device
from mortice.dtype import int64
from mortice.errors import DTypeError, ShapeError
from mortice.levels import lane_by_lane
from mortice.node import named
from mortice.ops import elementwise
from mortice.ops.bounds import where
from mortice.ops.data import range_of
from mortice.ops.gather import _reduced
from mortice.ops.movement import cast, expand, reshape
from mortice.ops.nn_resize import pad
from mortice.ops.scan import cumsum
from mortice.shape import Size, check_dim, prod
from mortice.tensor import TensorBase, make

__all__ = ["segment_reduce"]

_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_HOW = {"sum": "sum", "mean": "sum", "prod": "prod nan", "max": "max nan", "min": "min nan"}


@lane_by_lane
def segment_reduce(
    data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
    unsafe: bool = False, initial: float | None = None,
) -> Any:  # fmt: skip
    """Combine the elements of each stretch of a dim: "sum", "mean", "max" ("amax"), "min" ("amin") or "prod", begun with `initial`.

    `lengths` (..., S) tells how long the stretches are along `axis`, its last dim, for each index of the dims before that;
    `offsets` (..., S + 1) where they begin and the last one ends. An empty one gives `initial`, or else 0, nan, an infinity
    or 1. With `unsafe` lengths that do not add up to the size of the dim are not refused.
    """
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _START:
        raise RuntimeError(f"segment_reduce: expected reduce to be one of {', '.join(_START)}; got {reduce!r}.")
    if indices is not None or (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce: expected either lengths or offsets, and no indices.")
    if not data.dtype.is_floating_point:
        raise DTypeError(f"segment_reduce: not implemented for {data.dtype}. Convert to float.")
    given = lengths if offsets is None else offsets
    if not isinstance(given, TensorBase) or given.dtype.kind not in "iu":
        raise TypeError("segment_reduce: expected lengths or offsets to be a Tensor of integers.")
    check_device(elementwise.add.op, data, given)
    axis = check_dim("segment_reduce", axis, len(data.shape))
    if axis != len(given.shape) - 1 or given.shape[:axis] != data.shape[:axis]:
        raise ShapeError(
            f"segment_reduce: expected lengths or offsets with the sizes of data before dim {axis}, and one dim for the stretches; "
            f"got {list(given.shape)} for data of {list(data.shape)}."
        )
    n = data.shape[axis]
    # How many elements lie before all stretches, in each and after them: together they are all of the dim.
    if lengths is not None and not unsafe:
        counts = pad(cast(lengths, int64), (1, 1))
    else:
        ends = cast(offsets, int64) if lengths is None else pad(cumsum(lengths, -1), (1, 0))
        counts = pad(pad(ends.clamp(0, n) if unsafe else ends, (1, 0)), (0, 1), value=n).diff()
    if not unsafe and counts.numel():
        low, high = range_of(counts) or (0, 0)
        if low < 0 and bool((counts[..., 1:-1] < 0).any()):
            raise RuntimeError("segment_reduce: expected lengths of at least 0.")
        if low < 0 or high > n or bool((counts.sum(-1) != n).any()):
            wanted = "offsets from 0 to" if lengths is None else "all rows of lengths along axis to add up to"
            raise RuntimeError(f"segment_reduce: Expected {wanted} {n}, the size of dim {axis} of data.")
    size, rest = counts.shape[-1], (1,) * (len(data.shape) - axis - 1)
    device, total = counts._device, prod(data.shape[: axis + 1])
    spread = device.backend.spread_indices(reshape(counts, -1)._buffer, total=total)
    which = make(spread, device, int64, Size((total,)))
    which = which % size if axis else which
    begun = _START[reduce] if initial is None else float(initial)
    # What an extreme began with has no share in its gradient, also where an element equals it.
    apart = reduce in ("max", "min") and initial is not None and not math.isnan(begun)
    out = data.new_full((*data.shape[:axis], size, *data.shape[axis + 1 :]), _START[reduce] if apart else begun)
    index = expand(reshape(which, (*data.shape[: axis + 1], *rest)), data.shape)
    made = _reduced(out, axis, index, data, _HOW[reduce], True).narrow(axis, 1, size - 2)
    if apart:
        made = where(made < begun if reduce == "max" else made > begun, begun, made)
    if reduce == "mean":
        count = cast(reshape(counts[..., 1:-1], (*counts.shape[:-1], size - 2, *rest)), data.dtype)
        made = made / (count if initial is None else count.clamp(min=1))
    return named(made, "SegmentReduceBackward0")
