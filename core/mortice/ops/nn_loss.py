"""Looking up rows, and the losses that pick by label."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from mortice.backends.kernels import FreeKernels
from mortice.backends.nn_loss import bags_of
from mortice.dtype import DType, int32, int64, uint8
from mortice.errors import DTypeError, ShapeError
from mortice.graph import Part
from mortice.modes import modes
from mortice.node import TENSOR_KERNELS
from mortice.op import Op, op
from mortice.ops.data import refuse_outside
from mortice.ops.movement import cast, reshape
from mortice.rules import beside_wide
from mortice.shape import SCALAR, Size, prod
from mortice.tensor import TensorBase

__all__ = ["embedding"]

# ---- embedding ----


def _rows(name: str, weight: Size, indices: Size, **attrs: Any) -> Size:
    return Size((*indices, *tuple(weight)[1:]))


@op(shape=_rows, name="embedding", fixed=("indices",), dtypes="buifc", float8="moved")
def _embedding(k: Any, weight: Any, indices: Any, /, *, padding_idx: int | None, scale_grad_by_freq: bool) -> Any:
    """Return the rows of a table at indices of any shape."""
    return k.embedding(weight, indices)


def _embedding_tangent(k: Any, op: Any, primals: Any, tangents: Any, attrs: Any, out: Any) -> Any:
    return k.embedding(tangents[0], primals[1])  # of the padding too, which gradients leave out


_embedding.vjp(
    weight=lambda k, g, indices, weight_shape, padding_idx, scale_grad_by_freq: k.embedding_grad(
        g, indices, num_weights=weight_shape[0], padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
    ),
    jvp=_embedding_tangent,
)


TENSOR_KERNELS.replace(
    "embedding", lambda weight, indices: _embedding(weight, indices, padding_idx=None, scale_grad_by_freq=False)
)


def _table(name: str, y: Size, indices: Size, *, num_weights: int, **attrs: Any) -> Size:
    return Size((num_weights, *tuple(y)[len(indices) :]))


@op(shape=_table, kernel="embedding_grad", name="embedding_grad", fixed=("indices",), dtypes="fc")
def _embedding_grad(
    k: Any, y: Any, indices: Any, /, *, num_weights: int, padding_idx: int | None, scale_grad_by_freq: bool
) -> Any:
    """Add each row at its index, into a table of zeros."""


_embedding_grad.vjp(
    y=lambda k, g, indices, padding_idx, scale_grad_by_freq: k.embedding_grad_take(
        g, indices, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
    )
)


def _bag_rows(name: str, weight: Size, indices: Size, offsets: Size, *, mean: bool) -> Size:
    return Size((*offsets, tuple(weight)[1]))


@op(
    shape=_bag_rows, kernel="embedding_bag", name="embedding_bag", fixed=("indices", "offsets"), dtypes="f",
    grad_name="EmbeddingBagBackward0",
)  # fmt: skip
def embedding_bag(k: Any, weight: Any, indices: Any, offsets: Any, /, *, mean: bool) -> Any:
    """Add up, or average, the rows at a vector of indices in range, from each of the offsets to the next."""


def _bag_back(k: Any, g: Any, indices: Any, offsets: Any, weight_shape: Any, mean: bool) -> Any:
    bags, counts = bags_of(k, indices, offsets)
    if mean:
        g = k.divide(g, k.reshape(k.astype(k.maximum(counts, 1), k.dtype_of(g)), (-1, 1)))
    return k.embedding_grad(
        k.take(g, bags, axis=0), indices, num_weights=weight_shape[0], padding_idx=None, scale_grad_by_freq=False
    )


embedding_bag.vjp(weight=_bag_back, jvp="linear")


def check_rows(name: str, indices: Any, rows: int) -> Any:
    """Refuse indices outside [0, rows); reads them once. Return them as int64."""
    if not isinstance(indices, TensorBase) or indices.dtype not in (int32, int64):
        got = indices.dtype if isinstance(indices, TensorBase) else type(indices).__name__
        raise DTypeError(
            f"{name}: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
            f"got {got}. Use .long()."
        )
    indices = cast(indices, int64)
    if prod(indices.shape):
        refuse_outside(
            indices, 0, rows - 1, lambda bad: IndexError(f"{name}: index out of range in self; got {bad} for {rows} rows.")
        )
    return indices


def embedding(
    weight: Any, indices: Any, padding_idx: int | None = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """Return the rows of a table at indices of any shape.

    With `sparse`, `weight.grad` becomes a sparse tensor.
    Differs from torch: that of a table which is no leaf, and what `autograd.grad` returns, is dense.
    """
    if len(weight.shape) != 2:
        raise ShapeError(f"embedding: 'weight' must be 2-D; got {list(weight.shape)}.")
    at = check_rows("embedding", indices, tuple(weight.shape)[0])
    if sparse and weight._rg and weight._node is None and weight._device.level is None and modes.grad:
        return import_module("mortice.sparse").embedding(weight, at, padding_idx, scale_grad_by_freq)
    return _embedding(weight, at, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)


# ---- nll_loss ----


def _nll_result(op: Op, d: DType) -> tuple[DType, Any]:
    return d, (d, d)


def _nll_shape(name: str, logp: Size, target: Size, *rest: Any, reduction: str, ignore_index: int) -> Any:
    return (target, target) if reduction == "none" else (SCALAR, SCALAR)


def _by_target(node: Any) -> str:
    """Return PyTorch's name: what smooths adds to the loss, and classes for places of an image have a function of their own."""
    if node.attrs.get("smoothing"):
        return "AddBackward0"
    return "NllLoss2DBackward0" if len(node.edges[0].shape) > 2 else "NllLossBackward0"


@op(
    result=_nll_result, shape=_nll_shape, name="nll_loss", dtypes="f", fixed=("target", "weight"),
    outputs=("out", "total"), differentiable=1, grad_name_of=_by_target,
)  # fmt: skip
def _nll_loss(
    k: Any, logp: Any, target: Any, weight: Any = None, /, *, reduction: str, ignore_index: int
) -> Any:
    """Return the weighted negative of (N, C, *) at the classes (N, *), reduced; and the sum of the weights."""
    losses, weights = k.nll_loss(logp, target, weight, ignore_index=ignore_index)
    if reduction == "none":
        return losses, weights
    total = k.sum(weights)
    loss = k.sum(losses)
    return (k.divide(loss, total) if reduction == "mean" else loss), total


def _nll_back(
    k: Any, g: Any, target: Any, weight: Any, total: Any, logp_shape: Any, target_shape: Any, reduction: str,
    ignore_index: int,
) -> Any:  # fmt: skip
    if reduction != "none":
        g = k.broadcast_to(k.divide(g, total) if reduction == "mean" else g, target_shape)
    return k.nll_loss_grad(g, target, weight, x_shape=logp_shape, ignore_index=ignore_index)


_nll_loss.vjp(logp=_nll_back, zero_again=True)


def nll_loss(input: Any, target: Any, weight: Any, reduction: str, ignore_index: int) -> Any:
    """Return -weight * input at the target classes; classes are dim 1 of (N, C, *) or the only dim."""
    return _labelled("nll_loss", _nll_loss, input, target, weight, reduction, ignore_index=ignore_index)


def _labelled(name: str, fn: Any, input: Any, target: Any, weight: Any, reduction: str, **attrs: Any) -> Any:
    """Check the labels and the weights of a loss over classes, and call it on (N, C, *)."""
    shape, at = tuple(input.shape), tuple(target.shape)
    if not shape:
        raise ShapeError(f"{name}: input tensor should be 1D or more; got a 0-d tensor.")
    classes = shape[0] if len(shape) == 1 else shape[1]
    wanted = () if len(shape) == 1 else (shape[0], *shape[2:])
    if at != wanted and (len(shape) > 1 or at != (1,)):
        batch = at[0] if at else 0
        if len(shape) > 1 and batch != shape[0]:
            raise ValueError(
                f"{name}: Expected input batch_size ({shape[0]}) to match target batch_size ({batch}); got input "
                f"{list(shape)} and target {list(at)}."
            )
        if at == shape and name == "cross_entropy":
            raise DTypeError(
                f"{name}: Expected floating point type for target with class probabilities, got {target.dtype.name}. Of labels "
                f"that are one-hot, use target.argmax({min(len(shape) - 1, 1)})."
            )
        theirs = hint = ""
        if len(shape) < 3 and len(at) > 1:
            theirs = "0D or 1D target tensor expected, multi-target not supported. "
        elif len(shape) == 4 and len(at) != 3:
            theirs = f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(at)}. "
        if wanted and at in ((shape[0], 1, *wanted[1:]), (*wanted, 1)):
            hint = f". Class indices have no dim of their own; use target.squeeze({1 if at[1] == 1 else -1})."
        elif at == shape:
            hint = ". Of labels that are one-hot, use target.argmax(1)."
        raise ShapeError(f"{name}: {theirs}Expected target size {list(wanted)}, got {list(at)}{hint}")
    if target.dtype not in (int64, uint8) or (target.dtype is uint8 and len(shape) > 2):  # of places of an image, Long only
        kinds = "Long or Byte" if len(shape) < 3 else "Long"
        raise DTypeError(f"{name}: expected target dtype to be {kinds}, but got {target.dtype.name}. Use target.long().")
    if weight is not None:
        if tuple(weight.shape) != (classes,):
            raise ShapeError(
                f"{name}: weight tensor should be defined either for all {classes} classes or no classes but got weight "
                f"tensor of shape: {list(weight.shape)}"
            )
        if weight.dtype is not input.dtype:
            raise DTypeError(f"{name}: expected scalar type {input.dtype.name} but found {weight.dtype.name} in weight.")
    target = cast(target, int64)
    check_classes(name, target, classes, attrs["ignore_index"])
    if len(shape) == 1:
        input, target = reshape(input, (1, classes)), reshape(target, (1,))
    loss = fn(input, target, weight, reduction=reduction, **attrs)[0]
    return reshape(loss, ()) if len(shape) == 1 and reduction == "none" else loss


def check_classes(name: str, target: Any, classes: int, ignore_index: int = 0) -> None:
    """Refuse labels outside [0, classes) that are not to be ignored; reads them once, where none is ignored."""
    if prod(target.shape):
        wrong = lambda bad: IndexError(f"{name}: Target {bad} is out of bounds for {classes} classes.")
        refuse_outside(target, 0, classes - 1, wrong, ignore_index)


# ---- cross_entropy ----


@lru_cache(4096)  # shapes recur
def _cross_entropy_shape(name: str, x: Size, target: Size, *rest: Any, reduction: str, **attrs: Any) -> Any:
    return target if reduction == "none" else SCALAR, Size((2, *target))


# One op instead of log_softmax and nll_loss: no logarithms of all probabilities are made, nor kept; backward is one pass.
@op(
    result=beside_wide, shape=_cross_entropy_shape, kernel="cross_entropy", name="cross_entropy", dtypes="f",
    fixed=("target", "weight"), outputs=("out", "logs"), differentiable=1, grad_name="NllLossBackward0", grad_name_of=_by_target,
)  # fmt: skip
def _cross_entropy(
    k: Any, x: Any, target: Any, weight: Any = None, /, *, reduction: str, ignore_index: int, smoothing: float
) -> Any:
    """Return the cross entropy of logits (N, C, *) with the classes (N, *), reduced; and what its gradient needs."""


_cross_entropy.op.parts = lambda node, x, *rest: ((x if x[0] is None else (Part("LogSoftmaxBackward0", x), 0)),)
_cross_entropy.vjp(
    x=lambda k, g, x, target, weight, logs, reduction, ignore_index, smoothing: k.cross_entropy_grad(
        g, x, target, weight, logs, reduction=reduction, ignore_index=ignore_index, smoothing=smoothing
    ),
)


def _cross_entropy_grad(g: Any, x: Any, target: Any, weight: Any, logs: Any, **attrs: Any) -> Any:
    """Differentiate on: as kept, `logs` are numbers that do not know of x, so they are made anew."""
    k = TENSOR_KERNELS
    x = cast(x, logs.dtype)
    top = TensorBase.detach(k.max(x, axis=1, keepdims=True))
    below = k.log(k.sum(k.exp(k.subtract(x, top)), axis=1, keepdims=False))
    logs = k.stack([reshape(top, below.shape), below], 0)
    return cast(FreeKernels.cross_entropy_grad(k, g, x, target, weight, logs, **attrs), g.dtype)


TENSOR_KERNELS.replace("cross_entropy_grad", _cross_entropy_grad)


def cross_entropy(
    input: Any, target: Any, weight: Any, reduction: str, ignore_index: int, label_smoothing: float
) -> Any:
    """Return the cross entropy of logits with class indices; classes are dim 1 of (N, C, *) or the only dim."""
    if modes.dispatch and not label_smoothing:  # which are told of the two
        from mortice.ops.nn_activation import log_softmax

        return nll_loss(log_softmax(input, min(1, input.ndim - 1)), target, weight, reduction, ignore_index)
    return _labelled(
        "cross_entropy", _cross_entropy, input, target, weight, reduction, ignore_index=ignore_index,
        smoothing=label_smoothing,
    )  # fmt: skip
