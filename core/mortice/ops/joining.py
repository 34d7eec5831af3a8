"""Joining tensors: cat along a dim, stack along a new one, and both by NumPy's names."""

from __future__ import annotations

from mortice import call as _call
from mortice.backends.backend import channels_last as channels_lie_last
from mortice.dtype import dtype_of_all
from mortice.errors import ShapeError
from mortice.node import TENSOR_KERNELS
from mortice.op import op
from mortice.ops.movement import cast, reshape
from mortice.ops.views import atleast_2d, atleast_3d
from mortice.shape import Size, check_dim, prod, remembered
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["cat", "column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack", "stack", "vstack"]


def _joined(name: str, *shapes: Size, axis: int) -> Size:
    like = shapes[0]
    first = list(like)
    if shapes.count(like) == len(shapes):
        first[axis] *= len(shapes)
        return remembered(tuple(first))
    before, after, total = tuple(first[:axis]), tuple(first[axis + 1 :]), 0
    for i, shape in enumerate(map(tuple, shapes)):
        if shape[:axis] == before and shape[axis + 1 :] == after and len(shape) == len(first):
            total += shape[axis]
            continue
        if len(shape) != len(first):
            raise ShapeError(
                f"{name}: Tensors must have same number of dimensions: got {len(first)} and {len(shape)} (tensor {i})."
            )
        for d, n in enumerate(shape):
            if d != axis and n != first[d]:
                raise ShapeError(
                    f"{name}: Sizes of tensors must match except in dimension {axis}. Expected size {first[d]} but got "
                    f"size {n} for tensor number {i} in the list."
                )
    first[axis] = total
    return Size(first)


@op(shape=_joined, name="cat", grad_name="CatBackward0", float8="moved")
def _cat(k: Any, /, *tensors: Any, axis: int) -> Any:
    """Join along an existing dim; where channels are last in the memory of all, they are in the result's."""
    if (
        not k.is_contiguous(tensors[0])
        and (ndim := len(k.shape_of(tensors[0]))) in (4, 5)
        and all([not k.is_contiguous(x) and channels_lie_last(k.shape_of(x), k.strides_of(x)) for x in tensors])
    ):
        order = (0, *range(2, ndim), 1)
        out = k.concat([k.permute_dims(x, order) for x in tensors], axis=order.index(axis))
        return k.permute_dims(out, (0, ndim - 1, *range(1, ndim - 1)))
    return k.concat(tensors, axis=axis)


def _cat_back(k: Any, g: Any, tensors_shape: Any, axis: int, needs: Any) -> list[Any]:
    out, start = [], 0
    for shape, need in zip(tensors_shape, needs):
        key = (*(slice(None),) * axis, slice(start, start + shape[axis]))
        out.append(k.getitem(g, key) if need else None)
        start += shape[axis]
    return out


_cat.vjp(_cat_back, jvp="linear")


def _tensors(name: str, tensors: Any) -> Any:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{name}: argument 'tensors' must be tuple of Tensors, not {type(tensors).__name__}. Put them into a list.")
    if not all([isinstance(x, TensorBase) for x in tensors]):
        i = next(i for i, x in enumerate(tensors) if not isinstance(x, TensorBase))
        raise TypeError(f"{name}: expected Tensor as element {i}; got {type(tensors[i]).__name__}.")
    return tensors


def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Any:
    """Join tensors along an existing dim; dtypes promote."""
    kept, dim = tensors, dim if axis is None else axis
    for x in tensors if isinstance(tensors, (tuple, list)) else (None,):
        if not isinstance(x, TensorBase) or x.dtype is not tensors[0].dtype or x.shape == (0,):
            parts = _tensors("cat", tensors)
            d = dtype_of_all(parts)
            # What has shape (0,) joins with anything, as in PyTorch, and has a gradient.
            sizes = next((list(x.shape) for x in parts if x.shape != (0,)), [0])
            kept = [cast(x, d) for x in parts if x.shape != (0,) or (sizes and (x._rg or sizes == [0]))]
            if sizes == [0]:
                dim = 0
            elif sizes:
                sizes[check_dim("cat", dim, len(sizes))] = 0
                kept = [x if x.shape != (0,) else reshape(x, Size(sizes)) for x in kept]
            break
    if not kept:
        raise ShapeError("cat: expected a non-empty list of Tensors.")
    ndim = len(kept[0].shape)
    if ndim == 0:
        raise RuntimeError("cat: zero-dimensional tensor (at position 0) cannot be concatenated. Use stack.")
    joined = _cat(*kept, axis=check_dim("cat", dim, ndim))
    return joined if out is None else _call.WRITE_OUT("cat", out, joined, reads=kept)


def _kernel_concat(arrays: Any, axis: int) -> Any:
    return _cat(*arrays, axis=axis % len(arrays[0].shape))


TENSOR_KERNELS.replace("concat", _kernel_concat)


def _stacked(name: str, *shapes: Size, axis: int) -> Size:
    sizes = list(shapes[0])
    sizes.insert(axis, len(shapes))
    return remembered(tuple(sizes))


@op(shape=_stacked, name="stack", grad_name="StackBackward0", float8="moved")
def _stack(k: Any, /, *tensors: Any, axis: int) -> Any:
    """Join along a new dim."""
    return k.stack(tensors, axis)


def _stack_back(k: Any, g: Any, axis: int, needs: Any) -> list[Any]:
    lead = (slice(None),) * axis
    return [k.getitem(g, (*lead, i)) if need else None for i, need in enumerate(needs)]


_stack.vjp(_stack_back, jvp="linear")
TENSOR_KERNELS.replace("stack", lambda arrays, axis: _stack(*arrays, axis=axis % (len(arrays[0].shape) + 1)))


def stack(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Any:
    """Join tensors of equal shape along a new dim."""
    parts = tensors
    for x in tensors if isinstance(tensors, (tuple, list)) else (None,):
        if not isinstance(x, TensorBase) or x.dtype is not tensors[0].dtype or x.shape != tensors[0].shape:
            parts = _tensors("stack", tensors)
            first = parts[0].shape
            for i, x in enumerate(parts):
                if x.shape != first:
                    raise ShapeError(
                        f"stack: stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                        f"{list(x.shape)} at entry {i}."
                    )
            d = dtype_of_all(parts)
            parts = [cast(x, d) for x in parts]
            break
    if not parts:
        raise RuntimeError("stack expects a non-empty TensorList.")
    made = _stack(*parts, axis=check_dim("stack", dim if axis is None else axis, len(parts[0].shape) + 1))
    return made if out is None else _call.WRITE_OUT("stack", out, made, reads=parts)


# ---- by NumPy's names ----


def _some(name: str, tensors: Any) -> Any:
    parts = _tensors(name, tensors)
    if not parts:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return parts


def hstack(tensors: Any, *, out: Any = None) -> Any:
    """Join along dim 1, vectors along dim 0."""
    parts = [x if x.shape else reshape(x, 1) for x in _some("hstack", tensors)]
    return cat(parts, 0 if len(parts[0].shape) == 1 else 1, out=out)


def vstack(tensors: Any, *, out: Any = None) -> Any:
    """Join along dim 0; vectors count as rows."""
    parts = [x if len(x.shape) > 1 else atleast_2d(x) for x in _some("vstack", tensors)]
    return cat(parts, 0, out=out)


def row_stack(tensors: Any, *, out: Any = None) -> Any:
    """Join along dim 0: another name of vstack."""
    return vstack(tensors, out=out)


def dstack(tensors: Any, *, out: Any = None) -> Any:
    """Join along dim 2."""
    parts = [atleast_3d(x) for x in _some("dstack", tensors)]
    return cat(parts, 2, out=out)


def column_stack(tensors: Any, *, out: Any = None) -> Any:
    """Join along dim 1; vectors count as columns."""
    parts = _some("column_stack", tensors)
    return cat([reshape(x, (prod(x.shape), 1)) if len(x.shape) <= 1 else x for x in parts], 1, out=out)


def concat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Any:
    """Join along an existing dim: another name of cat."""
    return cat(tensors, dim, axis=axis, out=out)


def concatenate(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Any:
    """Join along an existing dim: another name of cat."""
    return cat(tensors, dim if axis is None else axis, out=out)
