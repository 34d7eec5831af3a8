"""Normalisation: over a batch, the last axes, groups of channels, and by the root mean square."""

from __future__ import annotations

from typing import Any

from mortice.backends.nn_common import narrow, widen
from mortice.call import no_tensor
from mortice.dtype import DType, bfloat16, finfo, float16, float32
from mortice.errors import DTypeError, ShapeError
from mortice.levels import into_level
from mortice.modes import no_grad
from mortice.mutation import check_writable, written
from mortice.node import TENSOR_KERNELS
from mortice.op import Op, op
from mortice.ops.movement import cast, clone, contiguous, expand, in_format, reshape, suggested_format
from mortice.ops.nn_conv import bias_grad
from mortice.rules import beside_wide, number_of, of_images
from mortice.shape import Size, channels_hint, prod, remembered
from mortice.tensor import TensorBase

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "native_batch_norm", "native_group_norm", "native_layer_norm", "rms_norm",
]  # fmt: skip

_LOW = (float16, bfloat16)


def _wide(d: DType) -> DType:
    return float32 if d in _LOW else d


def _with_two(op: Op, d: DType) -> tuple[DType, Any]:
    """The operand's dtype; statistics in the dtype that they are computed in."""
    return d, (d, _wide(d), _wide(d))


# ---- the ops ----


def _as_wide_as(k: Any, g: Any, x: Any, parameter: Any) -> tuple[Any, Any]:
    """Return `g` and `x` in the dtype of `parameter`, whose gradient would else be rounded to the narrow one of x."""
    if parameter is None or k.dtype_of(parameter) is k.dtype_of(x):
        return g, x
    wide = k.dtype_of(parameter)
    return k.astype(g, wide), k.astype(x, wide)


def _grads(k: Any, kernel: Any, g: Any, x: Any, weight: Any, *stats: Any, **numbers: Any) -> tuple[Any, ...]:
    """Return the gradients of x, in its dtype, and of its parameters, by the kernel of a norm."""
    d_x, *rest = kernel(*((g, x) if k.mixed_norms else _as_wide_as(k, g, x, weight)), weight, *stats, **numbers)
    if d_x is not None and k.dtype_of(d_x) is not k.dtype_of(x):
        d_x = k.astype(d_x, k.dtype_of(x))
    return (d_x, *rest)


def _batch_shapes(name: str, x: Size, *rest: Any, **attrs: Any) -> Any:
    of_channel = remembered((tuple.__getitem__(x, 1),))
    return (x, of_channel, of_channel)


@op(
    result=_with_two, shape=_batch_shapes, kernel="batch_norm", name="batch_norm", dtypes="f", fixed=("weight", "bias"),
    outputs=("out", "mean", "var"), differentiable=1, grad_name="NativeBatchNormBackward0", keeps_format=of_images,
)  # fmt: skip
def _batch_norm(k: Any, x: Any, weight: Any = None, bias: Any = None, /, *, eps: float) -> Any:
    """Normalise each channel by the batch's own statistics; also return these."""


_batch_norm.vjp(
    lambda k, g, x, weight, mean, var, eps, needs: _grads(k, k.batch_norm_grads, g, x, weight, mean, var, eps=eps, needs=needs),
    keeps_format=True,
)


def _first(name: str, x: Size, *rest: Any, **attrs: Any) -> Size:
    return x


@op(
    shape=_first, kernel="batch_norm_eval", name="batch_norm_eval", dtypes="f", fixed=("mean", "var", "weight", "bias"),
    grad_name="NativeBatchNormBackward0", keeps_format=of_images,
)  # fmt: skip
def _batch_norm_eval(
    k: Any, x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, /, *, eps: float
) -> Any:
    """Normalise each channel by given statistics."""


_batch_norm_eval.vjp(
    x=lambda k, g, var, weight, eps: k.batch_norm_eval_grad(g, var, weight, eps=eps),
    weight=lambda k, g, x, mean, var, eps: k.batch_norm_eval_weight_grad(*_as_wide_as(k, g, x, mean), mean, var, eps=eps),
    bias=lambda k, g, mean: bias_grad(k, _as_wide_as(k, g, g, mean)[0]), keeps_format=True,
)


def _row_shapes(name: str, x: Size, *rest: Any, ndim: int, **attrs: Any) -> Any:
    stats = remembered((*tuple(x)[: len(x) - ndim], *[1] * ndim))
    return (x, stats, stats) if name == "layer_norm" else (x, stats)


@op(
    result=_with_two, shape=_row_shapes, kernel="layer_norm", name="layer_norm", dtypes="f", fixed=("weight", "bias"),
    outputs=("out", "mean", "rstd"), differentiable=1, grad_name="NativeLayerNormBackward0",
)  # fmt: skip
def _layer_norm(k: Any, x: Any, weight: Any = None, bias: Any = None, /, *, ndim: int, eps: float) -> Any:
    """Normalise each row of the last `ndim` axes; also return its statistics."""


_layer_norm.vjp(
    lambda k, g, x, weight, mean, rstd, ndim, eps, needs: _grads(
        k, k.layer_norm_grads, g, x, weight, mean, rstd, ndim=ndim, eps=eps, needs=needs
    )
)


@op(
    result=beside_wide, shape=_row_shapes, kernel="rms_norm", name="rms_norm", dtypes="f", fixed=("weight",), grad_name="MulBackward0",
    outputs=("out", "rrms"), differentiable=1, keeps_format=of_images,
)  # fmt: skip
def _rms_norm(k: Any, x: Any, weight: Any = None, /, *, ndim: int, eps: float) -> Any:
    """Divide each row of the last `ndim` axes by its root mean square; also return its inverse."""


_rms_norm.vjp(
    lambda k, g, x, weight, rrms, ndim, eps, needs: _grads(k, k.rms_norm_grads, g, x, weight, rrms, ndim=ndim, eps=eps, needs=needs),
    keeps_format=True,
)


def _group_shapes(name: str, x: Size, *rest: Any, groups: int, **attrs: Any) -> Any:
    return (x, Size((x[0], groups)), Size((x[0], groups)))


@op(
    result=_with_two, shape=_group_shapes, kernel="group_norm", name="group_norm", dtypes="f", fixed=("weight", "bias"),
    outputs=("out", "mean", "rstd"), differentiable=1, grad_name="NativeGroupNormBackward0", keeps_format=of_images,
)  # fmt: skip
def _group_norm(k: Any, x: Any, weight: Any = None, bias: Any = None, /, *, groups: int, eps: float) -> Any:
    """Normalise groups of channels of each sample; also return their statistics."""


_group_norm.vjp(
    lambda k, g, x, weight, mean, rstd, groups, eps, needs: _grads(
        k, k.group_norm_grads, g, x, weight, mean, rstd, groups=groups, eps=eps, needs=needs
    ),
    keeps_format=True,
)


# ---- checks ----


def _check_parameter(name: str, what: str, x: Any, p: Any, shape: tuple[int, ...]) -> None:
    if p is None:
        return
    if tuple(p.shape) != shape:
        wrong = f"expected {what} to have shape {list(shape)}"
        if name.endswith(("layer_norm", "rms_norm")):
            wrong = (
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape {list(p.shape)} and "
                f"normalized_shape = {list(shape)}"
            )
        if p.ndim == len(shape) == 1:  # in PyTorch's words
            wrong = f"{what} should contain {shape[0]} elements not {p.shape[0]}"
        raise ShapeError(
            f"{name}: {wrong}; got {list(p.shape)} for input {list(x.shape)}"
            + ((p.ndim == 1 and channels_hint(x.shape, p.shape[0])) or ".")
        )
    if p.dtype is not x.dtype and not (x.dtype in _LOW and p.dtype is float32):
        raise DTypeError(
            f"{name}: mixed dtype: expected {what} of {x.dtype}{' or float32' if x.dtype in _LOW else ''}; got {p.dtype}."
        )


def _check_input(name: str, x: Any) -> None:
    if not isinstance(x, TensorBase):
        raise no_tensor(name, "input", x)


def _normalized(name: str, x: Any, normalized_shape: Any, weight: Any, bias: Any) -> int:
    """Return how many axes are normalised together."""
    _check_input(name, x)
    wanted = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not wanted:
        raise ShapeError(
            f"{name}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
            "got normalized_shape = []"
        )
    shape = tuple(x.shape)
    if shape[len(shape) - len(wanted) :] != wanted or len(wanted) > len(shape):
        raise ShapeError(
            f"{name}: Given normalized_shape={list(wanted)}, expected input with shape [*, "
            f"{', '.join(map(str, wanted))}], but got input of size{list(shape)}"
        )
    _check_parameter(name, "weight", x, weight, wanted)
    _check_parameter(name, "bias", x, bias, wanted)
    return len(wanted)


# ---- what users call ----


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enable: bool = True
) -> Any:
    """Normalise over the last axes, which have `normalized_shape`."""
    ndim = _normalized("layer_norm", input, normalized_shape, weight, bias)
    return _layer_norm(input, weight, bias, ndim=ndim, eps=eps)[0]


def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Do `layer_norm`; also return the mean and the inverse deviation of each row."""
    return _layer_norm(input, weight, bias, ndim=_normalized("layer_norm", input, normalized_shape, weight, bias), eps=eps)


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Divide by the root mean square of the last axes; `eps` defaults to the dtype's own. The result has the input's dtype."""
    _check_input("rms_norm", input)
    if weight is not None and weight.dtype is not input.dtype and not (input.dtype in _LOW and weight.dtype is float32):
        _normalized("rms_norm", input, normalized_shape, cast(weight, input.dtype), None)
        return cast(rms_norm(cast(input, _wide(input.dtype)), normalized_shape, None, eps) * weight, input.dtype)
    ndim = _normalized("rms_norm", input, normalized_shape, weight, None)
    if input.dtype.is_complex:
        k = TENSOR_KERNELS
        eps = finfo(input.dtype).eps if eps is None else eps
        square = k.mean(input * input, axis=tuple(range(len(input.shape) - ndim, len(input.shape))), keepdims=True)
        out = k.divide(input, k.sqrt(k.add(square, eps)))
        return out if weight is None else out * weight
    if eps is None:  # the op refuses whole numbers, by its own name
        eps = finfo(_wide(input.dtype)).eps if input.dtype.is_floating_point else 0.0
    out = _rms_norm(input, weight, ndim=ndim, eps=eps)[0]
    return in_format(out, suggested_format(input))


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Any:
    """Normalise groups of channels of each sample of (N, C, *)."""
    _check_input("group_norm", input)
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise ShapeError(f"group_norm: Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if num_groups <= 0 or shape[1] % num_groups:
        raise ShapeError(
            "group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    _check_parameter("group_norm", "weight", input, weight, (shape[1],))
    _check_parameter("group_norm", "bias", input, bias, (shape[1],))
    return _group_norm(input, weight, bias, groups=num_groups, eps=eps)[0]


def native_group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    """Do `group_norm`; also return the mean and the inverse deviation of each group."""
    return _group_norm(input, weight, bias, groups=group, eps=eps)


def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float,
    cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """Normalise each channel of (N, C, *); in training by the batch, whose statistics move the running ones."""
    _check_input("batch_norm", input)
    shape = tuple(input.shape)
    if shape == (0,):
        return clone(input)
    if len(shape) < 2:
        raise ShapeError(f"batch_norm: expected input with a batch and channels; got shape {list(shape)}.")
    for what, p in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        _check_parameter("batch_norm", what, input, p, (shape[1],))
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("batch_norm: Expected running_mean and running_var to be defined when training=False")
        return _batch_norm_eval(input, running_mean, running_var, weight, bias, eps=eps)
    out, mean, var = _batch_norm(input, weight, bias, eps=eps)
    _move(running_mean, mean, running_var, var, momentum, prod(shape) // max(shape[1], 1))
    return out


def native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> Any:
    """Do `batch_norm`; also return the mean and the inverse deviation of each channel, in evaluation two tensors of no values."""
    out = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        return out, input.new_empty(0), input.new_empty(0)
    _, mean, var = _batch_norm(input.detach(), eps=eps)
    return out, mean, (var + eps).rsqrt()


def _move(running_mean: Any, mean: Any, running_var: Any, var: Any, momentum: float, count: int) -> None:
    """Move running statistics in place by those of `count` values a channel: (1 - momentum) * running + momentum * new.

    The variance counts as that of a sample: count / (count - 1) times as much. No values move nothing.
    """
    momentum = number_of("batch_norm", "momentum", momentum)
    unbiased = count / (count - 1) if count > 1 else float("nan")
    moved: list[Any] = []
    for running, value, scale in ((running_mean, mean, 1.0), (running_var, var, unbiased)):
        if running is None or value.numel() == 0 or count == 0:
            continue
        if running.is_inference():
            with no_grad():
                check_writable("batch_norm", running)
        device = running._device
        k = device.backend
        if value._device is not device or device.level is not None:
            value = into_level(running, value.detach())
        old = widen(k, running._buffer)
        part = narrow(k, value._buffer, k.dtype_of(old))
        if k.shape_of(part) != k.shape_of(old):
            # instance_norm: the statistics of each sample's channels
            part = k.mean(k.reshape(part, (-1, *k.shape_of(old))), axis=0)
        moved.append((running, old, part, momentum * scale))
    # Both at once, unless on devices or levels of their own: devices of two levels are equal.
    together = [moved] if len({id(running._device) for running, *_ in moved}) == 1 else [[each] for each in moved]
    for rows in together:
        into, old, parts, others = zip(*rows)
        k = into[0]._device.backend
        written(into, [narrow(k, new, t.dtype) for t, new in zip(into, k.blend(old, 1 - momentum, parts, others))])


def instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """Normalise each channel of each sample of (N, C, *)."""
    _check_input("instance_norm", input)
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "instance_norm: Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, channels, *sizes = tuple(input.shape)
    if not use_input_stats:
        return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is None and running_var is None:
        return group_norm(contiguous(input), channels, weight, bias, eps)  # row by row in memory, as in PyTorch
    for running in (running_mean, running_var):
        if running is not None and tuple(running.shape) != (channels,):
            raise ShapeError(f"instance_norm: running statistics should contain {channels} elements; got {list(running.shape)}.")
    # One batch_norm over (1, N * C, *): every sample's channel is a channel; the running ones move by their mean.
    flat = reshape(input, (1, n * channels, *sizes))
    out, mean, var = _batch_norm(flat, _repeat(weight, n), _repeat(bias, n), eps=eps)
    _move(running_mean, mean, running_var, var, momentum, prod(sizes))
    return reshape(out, (n, channels, *sizes))


def _repeat(p: Any, n: int) -> Any:
    return None if p is None else reshape(expand(p, n, p.shape[0]), -1)
