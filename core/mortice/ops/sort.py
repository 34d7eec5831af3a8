"""Sorting, searching, distinct elements."""

from __future__ import annotations

import operator
from typing import Any

from mortice import call as _call
from mortice import return_types
from mortice.backends.kernel_tools import is_number
from mortice.dtype import CLASS_NAMES, DType, bool_, int32, int64
from mortice.errors import DTypeError, ShapeError
from mortice.interop import is_number as is_numpy_number
from mortice.node import TENSOR_KERNELS, named
from mortice.op import Op, op
from mortice.ops.arguments import numpy_names
from mortice.ops.elementwise import common_dtype, undefined
from mortice.ops.gather import gather, gather_back
from mortice.ops.movement import cast, reshape, unsqueeze
from mortice.ops.reduce import PAIR, _any, flat_axis, selected, write_all
from mortice.ops.views import movedim
from mortice.rules import indices as index_rule
from mortice.rules import same
from mortice.shape import SCALAR, Size, check_dim
from mortice.shape import prod as size_of
from mortice.tensor import TensorBase, make

__all__ = [
    "argsort", "bucketize", "isin", "msort", "searchsorted", "sort", "topk", "unique", "unique_consecutive",
]  # fmt: skip

_FEW_PAIRS = 4096  # `isin` compares so many sooner than it sorts

# ---- sorting ----


@op(result=index_rule, shape=same, kernel="argsort", name="argsort", dtypes="buif")
def _argsort(k: Any, x: Any, /, *, axis: int, descending: bool) -> Any:
    """Return the order that sorts along an axis."""


_argsort.no_grad("its result is positions")
TENSOR_KERNELS.replace(
    "argsort", lambda x, *, axis, descending=False: _argsort(x, axis=axis % len(x.shape), descending=descending)
)


@op(result=selected, shape=same, outputs=PAIR, differentiable=1, name="sort", dtypes="buif")
def _sort(k: Any, x: Any, /, *, axis: int, descending: bool) -> Any:
    """Sort along an axis, stably; nan counts as largest."""
    return k.sort_pairs(x, axis=axis, descending=descending)


_sort.vjp(x=gather_back)


@numpy_names
def sort(
    input: Any, dim: Any = -1, descending: bool = False, *, stable: bool | None = None, out: Any = None
) -> Any:
    """Sort along a dim: (values, indices). Equal elements keep their order; nan counts as largest."""
    x, axis, scalar = flat_axis(input, dim, "sort")
    values, indices = _sort(x, axis=axis, descending=bool(descending))
    if stable is not None:
        named(values, "SortBackward1")
    if scalar:
        values, indices = reshape(values, ()), reshape(indices, ())
    return write_all("sort", out, return_types.sort(values, indices))


@numpy_names
def argsort(
    input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False, out: Any = None
) -> Any:
    """Return the order that sorts along a dim; equal elements keep theirs."""
    x, axis, scalar = flat_axis(input, dim, "argsort")
    order = _argsort(x, axis=axis, descending=bool(descending))
    order = reshape(order, ()) if scalar else order
    return _call.give("argsort", out, order)


def msort(input: Any, *, out: Any = None) -> Any:
    """Sort along the first dim."""
    values = sort(input, 0).values
    return _call.give("msort", out, values)


def _topk_shape(name: str, shape: Size, *, axis: int, count: int, largest: bool) -> Size:
    return Size([count if i == axis else n for i, n in enumerate(shape)])


@op(result=selected, shape=_topk_shape, outputs=PAIR, differentiable=1, name="topk", dtypes="uif")
def _topk(k: Any, x: Any, /, *, axis: int, count: int, largest: bool) -> Any:
    """Return the largest or smallest elements along an axis and where they are, best first."""
    if count == 1 and largest:
        order = k.argmax(x, axis=axis, keepdims=True)
        return k.take_along_axis(x, order, axis=axis), order
    return k.topk(x, count, axis=axis, largest=largest)


_topk.vjp(x=gather_back)


@numpy_names
def topk(
    input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None
) -> Any:
    """Return the k largest (or smallest) elements along a dim and where they are, always in order.

    Differs from torch: of equal elements those with the lowest indices are taken, and come in that order.
    """
    x, axis, scalar = flat_axis(input, dim, "topk")
    k = operator.index(k)
    if not 0 <= k <= x.shape[axis]:
        raise RuntimeError(f"topk: selected index k out of range; got k = {k} for size {x.shape[axis]}.")
    values, indices = _topk(x, axis=axis, count=k, largest=largest)
    if scalar and k:
        values, indices = reshape(values, ()), reshape(indices, ())
    return write_all("topk", out, return_types.topk(values, indices))


# ---- searching ----


def _as_second(name: str, shape: Size, values: Size, *, side: str) -> Size:
    return values


@op(result=index_rule, shape=_as_second, kernel="searchsorted", name="searchsorted", dtypes="uif")
def _searchsorted(k: Any, x: Any, values: Any, /, *, side: str) -> Any:
    """Find where values go in sorted rows."""


_searchsorted.no_grad("its result is positions")


def _plain(value: Any) -> Any:
    return value.item() if is_numpy_number(value) else value


def _search(name: str, row: Any, input: Any, right: bool, side: str | None, out_int32: bool, out: Any) -> Any:
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"{name}(): side can only be 'left' or 'right' but got {side}")
        if right and side == "left":
            raise RuntimeError(
                f"{name}(): side and right can't be set to opposites, got side of left while right was True"
            )
        right = side == "right"
    input = _plain(input)
    d = common_dtype(row, input)
    if is_number(input):
        device = row._device
        input = make(device.backend.full((), input, dtype=d, device=device), device, d, SCALAR)
    lead = tuple(row.shape)[:-1]
    if len(row.shape) != 1 and lead != tuple(input.shape)[:-1]:
        raise ShapeError(
            f"{name}(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
            f"input value tensor must match, but we got boundaries tensor {list(row.shape)} and input value tensor "
            f"{list(input.shape)}"
        )
    found = _searchsorted(cast(row, d), cast(input, d), side="right" if right else "left")
    if out_int32:
        found = cast(found, int32)
    return _call.give(name, out, found)


def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None, out: Any = None,
) -> Any:  # fmt: skip
    """Find where values go in a sorted row (one for all, or one for each leading index), before or after equal ones."""
    if not sorted_sequence.shape:
        raise ShapeError("searchsorted(): boundaries tensor should have at least 1 dimension; got a 0-d tensor.")
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise ShapeError(
                "searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sorted_sequence.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype is not int64:
            raise DTypeError(f"searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")
        sorted_sequence = gather(sorted_sequence, -1, sorter)
    return _search("searchsorted", sorted_sequence, input, right, side, out_int32, out)


def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Any:
    """Find between which boundaries (sorted, 1-D) each value lies."""
    if len(boundaries.shape) != 1:
        raise ShapeError(f"bucketize: boundaries tensor must be 1 dimension, but got dim({len(boundaries.shape)})")
    return _search("bucketize", boundaries, input, right, None, out_int32, out)


def isin(
    elements: Any = None, test_elements: Any = None, *, assume_unique: bool = False, invert: bool = False,
    out: Any = None, element: Any = None, test_element: Any = None,
) -> Any:  # fmt: skip
    """Tell which elements are among `test_elements`; one of both may be a number, then named in the singular too."""
    elements = _plain(element if elements is None else elements)
    test_elements = _plain(test_element if test_elements is None else test_elements)
    if not isinstance(elements, TensorBase) and not isinstance(test_elements, TensorBase):
        got = f"{type(elements).__name__} and {type(test_elements).__name__}"
        raise TypeError(f"isin: expected elements or test_elements to be a Tensor; got {got}.")
    d = common_dtype(elements, test_elements)
    for x in (elements, test_elements):
        own = x.dtype if isinstance(x, TensorBase) else bool_ if isinstance(x, bool) else d
        if own is bool_ or own.is_complex:
            raise DTypeError(f"isin: Unsupported input type encountered for isin(): {CLASS_NAMES[own.name]}. Use integers or floats.")
    device = (elements if isinstance(elements, TensorBase) else test_elements)._device

    def ready(x: Any) -> Any:
        if is_number(x):
            return make(device.backend.full((), x, dtype=d, device=device), device, d, SCALAR)
        return cast(x.detach(), d)

    x, row = ready(elements), reshape(ready(test_elements), -1)
    n = size_of(row.shape)
    if n == 1:
        found = x == reshape(row, ())
    elif not n or n * size_of(x.shape) <= _FEW_PAIRS:
        found = _any(unsqueeze(x, -1) == row, axis=len(x.shape), keepdims=False)
    else:
        row = sort(row).values
        place = _searchsorted(row, x, side="left").clamp(max=n - 1)
        found = reshape(row[reshape(place, -1)], x.shape) == x
    found = ~found if invert else found
    return _call.give("isin", out, found)


# ---- distinct elements ----


def _with_positions(op: Op, d: DType) -> tuple[DType, Any]:
    return d, (d, int64, int64, int64)


@op(result=_with_positions, shape=None, outputs=("values", "first", "inverse", "counts"), differentiable=1,
    kernel="unique_all", name="unique_all", dtypes="buif")  # fmt: skip
def _unique_all(k: Any, x: Any, /) -> Any:
    """Return the distinct values sorted, their first positions, each element's place among them, and counts."""


@op(result=_with_positions, shape=None, outputs=("values", "first", "inverse", "counts"), differentiable=1,
    name="unique_rows", dtypes="buif")  # fmt: skip
def _unique_rows(k: Any, x: Any, /, *, ordered: bool, placed: bool = True) -> Any:
    """Return the distinct rows of a matrix, sorted, or runs of equal rows, or elements, as they come; as `unique_all`.

    Without `placed` nothing of use stands for the places.
    """
    n, *row = k.shape_of(x)
    rows = x
    if not ordered:
        (m,) = row
        order = k.new_arange(x, 0, n)
        # The last column decides least, so it is sorted by first.
        for column in range(m - 1, -1, -1):
            order = k.take(order, k.argsort(k.take(k.getitem(x, (slice(None), column)), order, axis=0), axis=0), axis=0)
        rows = k.take(x, order, axis=0)
    if n == 0:
        none = k.new_full(x, (0,), 0, int64)
        return k.copy(x), none, none, none
    changed = k.not_equal(k.getitem(rows, (slice(1, None),)), k.getitem(rows, (slice(None, -1),)))
    changed = k.any(changed, axis=1) if row else changed
    starts = k.concat([k.new_full(x, (1,), True, bool_), changed], axis=0)
    start = k.flat_nonzero(starts)
    place = k.subtract(k.cumulative_sum(k.astype(starts, int64), axis=0), 1) if placed else start
    ends = k.concat([k.getitem(start, (slice(1, None),)), k.new_full(x, (1,), n, int64)], axis=0)
    values, counts = k.take(rows, start, axis=0), k.subtract(ends, start)
    if ordered:
        return values, start, place, counts
    return values, k.take(order, start, axis=0), k.scatter_add(k.new_full(x, (n,), 0, int64), order, place, axis=0), counts


_unique_all.vjp(x=lambda k, g: undefined("_unique2"))
_unique_rows.vjp(x=lambda k, g, ordered: undefined("unique_consecutive" if ordered else "unique_dim"))


def _rows_of(name: str, x: Any, dim: int) -> tuple[Any, Any]:
    """Return x as a matrix of what is compared, and its shape with that dim in front."""
    axis = check_dim(name, dim, len(x.shape))
    if not x.shape:
        return reshape(x, (1, 1)), (axis, ())
    front = movedim(x, axis, 0)
    n = front.shape[0]
    rest = size_of(tuple(front.shape)[1:])
    if rest == 0 and n:
        raise ShapeError(
            f"{name}: There are 0 sized dimensions, and they aren't selected, so unique cannot be applied; got {list(x.shape)}."
        )
    return reshape(front, (n, rest)), (axis, tuple(front.shape)[1:])


def _choose(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    chosen = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return chosen[0] if len(chosen) == 1 else chosen


def _unrow(values: Any, where: Any) -> Any:
    axis, rest = where
    if not rest:
        return reshape(values, -1)
    return movedim(reshape(values, (values.shape[0], *rest)), 0, axis)


def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the distinct elements (or slices along a dim), always sorted, and as asked each one's place and counts."""
    if dim is None:
        values, _, inverse, counts = _unique_all(input)
    else:
        rows, where = _rows_of("unique", input, dim)
        values, _, inverse, counts = _unique_rows(rows, ordered=False)
        values = _unrow(values, where)
    return _choose(values, inverse, counts, return_inverse, return_counts)


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the first of each run of equal elements (or slices along a dim), as asked each one's run and lengths."""
    if dim is None:
        flat = input if len(input.shape) == 1 else reshape(input, -1)
        values, _, inverse, counts = _unique_rows(flat, ordered=True, placed=return_inverse)
        inverse = inverse if flat is input or not return_inverse else reshape(inverse, input.shape)
    else:
        rows, where = _rows_of("unique_consecutive", input, dim)
        values, _, inverse, counts = _unique_rows(rows, ordered=True, placed=return_inverse)
        values = _unrow(values, where)
    return _choose(values, inverse, counts, return_inverse, return_counts)
