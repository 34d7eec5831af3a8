"""Pooling: maximum (with positions), average, and both with windows fitted to an output size."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice.backends.nn_common import pool_count
from mortice.call import no_tensor
from mortice.dtype import DType, float64, int64
from mortice.errors import ShapeError
from mortice.layout import channels_last_3d
from mortice.modes import autocasting, modes
from mortice.node import named
from mortice.op import Op, op
from mortice.ops.movement import (
    cast,
    contiguous,
    in_format,
    is_contiguous,
    is_row_major,
    squeeze,
    suggested_format,
    unsqueeze,
)
from mortice.ops.reduce import mean
from mortice.rules import of_flat_windows, of_windows
from mortice.shape import Size
from mortice.tensor import TensorBase

__all__ = [
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "avg_pool1d", "max_pool1d", "max_pool1d_with_indices",
    "max_pool2d", "max_pool3d",
]  # fmt: skip

# ---- the ops; attributes are tuples, one int a spatial axis; the spatial axes are the last ones ----


def _values_and_places(op: Op, d: DType) -> tuple[DType, Any]:
    return d, (d, int64)


@lru_cache(4096)  # shapes recur
def _counted(x: Size, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Size:
    nd = len(kernel)
    shape = tuple(x)
    sizes = zip(shape[len(shape) - nd :], kernel, stride, padding, dilation)
    return Size((*shape[: len(shape) - nd], *[pool_count(*a, ceil_mode) for a in sizes]))


def _max_shape(name: str, x: Size, **attrs: Any) -> Size:
    return _counted(x, **attrs)


def _by_dims(name: str, rest: str = "") -> Callable[[Any], str]:
    """Return the rule of functions that PyTorch has for each number of spatial dims; over one, it squeezes the 2D one."""

    def rule(node: Any) -> str:
        attrs = node.attrs
        n = len(attrs["output_size"] if "output_size" in attrs else attrs["kernel"])
        return "SqueezeBackward1" if n == 1 else f"{name}{n}D{rest}Backward0"

    return rule


@op(
    result=_values_and_places, shape=_max_shape, kernel="max_pool", name="max_pool", dtypes="uif",
    outputs=("out", "indices"), differentiable=1, grad_name_of=_by_dims("MaxPool", "WithIndices"), keeps_format=of_windows,
)  # fmt: skip
def _max_pool(k: Any, x: Any, /, *, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """Return each window's maximum and its flat position among the spatial elements."""


_max_pool.vjp(
    x=lambda k, g, x_shape, indices, kernel, stride, padding, dilation: k.max_pool_window_grad(
        g, indices, x_shape=x_shape, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    ),
    zero_again=True, keeps_format=True,
)


@op(
    shape=_max_shape, kernel="max_pool_values", name="max_pool_values", dtypes="uif",
    grad_name_of=_by_dims("MaxPool", "WithIndices"),
    keeps_format=lambda ndim, attrs: ndim > 3 and of_windows(ndim, attrs),  # of rows PyTorch keeps none where it records nothing
)  # fmt: skip
def _max_pool_values(
    k: Any, x: Any, /, *, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    """Return each window's maximum alone."""


_max_pool_values.no_grad("it is used where nobody asks for a gradient; `max_pool` is the other one")


def _given_x(name: str, y: Size, *rest: Any, x_shape: Any, **attrs: Any) -> Size:
    return Size(x_shape)


@op(shape=_given_x, kernel="max_pool_grad", name="max_pool_grad", dtypes="f", fixed=("indices",))
def _max_pool_grad(k: Any, y: Any, indices: Any, /, *, x_shape: Any, ndim: int) -> Any:
    """Add each element at its flat position over the last `ndim` axes of zeros."""


_max_pool_grad.vjp(y=lambda k, g, indices, ndim: k.max_pool_take(g, indices, ndim=ndim), jvp="linear")


def _places(name: str, x: Size, indices: Size, **attrs: Any) -> Size:
    return indices


@op(shape=_places, kernel="max_pool_take", name="max_pool_take", dtypes="f", fixed=("indices",))
def _max_pool_take(k: Any, x: Any, indices: Any, /, *, ndim: int) -> Any:
    """Read the elements at flat positions over the last `ndim` axes."""


_max_pool_take.vjp(
    x=lambda k, g, x_shape, indices, ndim: k.max_pool_grad(g, indices, x_shape=x_shape, ndim=ndim), jvp="linear"
)


def _avg_shape(name: str, x: Size, *, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, **attrs: Any) -> Size:
    return _counted(x, kernel, stride, padding, (1,) * len(kernel), ceil_mode)


@op(
    shape=_avg_shape, kernel="avg_pool", name="avg_pool", dtypes="f", grad_name_of=_by_dims("AvgPool"), keeps_format=of_flat_windows
)
def _avg_pool(
    k: Any, x: Any, /, *, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: Any,
) -> Any:  # fmt: skip
    """Return each window's mean."""


_avg_pool.vjp(
    x=lambda k, g, x_shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: k.avg_pool_grad(
        g, x_shape=x_shape, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, divisor_override=divisor_override,
    ),
    jvp="linear",
    zero_again=True, keeps_format=True,
)  # fmt: skip


@op(shape=_given_x, kernel="avg_pool_grad", name="avg_pool_grad", dtypes="f")
def _avg_pool_grad(
    k: Any, y: Any, /, *, x_shape: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: Any,
) -> Any:  # fmt: skip
    """Spread each element evenly over its window."""


_avg_pool_grad.vjp(
    y=lambda k, g, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: k.avg_pool(
        g, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    ),
    jvp="linear",
)  # fmt: skip


def _fitted(name: str, x: Size, *, output_size: Any) -> Size:
    return Size((*tuple(x)[: len(x) - len(output_size)], *output_size))


@op(
    shape=_fitted, kernel="adaptive_avg_pool", name="adaptive_avg_pool", dtypes="f", keeps_format=of_flat_windows,
    grad_name_of=_by_dims("AdaptiveAvgPool"),
)  # fmt: skip
def _adaptive_avg_pool(k: Any, x: Any, /, *, output_size: Any) -> Any:
    """Return the means of windows that cut the last axes into `output_size` parts."""


def _filled(k: Any, g: Any, kind: str, nd: int) -> Any:
    """Refuse the gradient of a result without elements: no window tells where it came from."""
    shape = list(k.shape_of(g))
    if nd == 1:  # PyTorch's has a dim more
        shape.insert(-1, 1)
    if 0 in shape[1:]:
        raise ShapeError(
            f"adaptive_{kind}_pool{max(nd, 2)}d_backward(): Expected grad_output to have non-zero size for non-batch dimensions, "
            f"but grad_output has sizes {shape} with dimension {shape.index(0, 1)} being empty"
        )
    return g


_adaptive_avg_pool.vjp(
    x=lambda k, g, x_shape, output_size: k.adaptive_avg_pool_grad(
        _filled(k, g, "avg", len(output_size)), x_shape=x_shape, output_size=output_size
    ),
    jvp="linear", zero_again=True, keeps_format=True,
)


@op(shape=_given_x, kernel="adaptive_avg_pool_grad", name="adaptive_avg_pool_grad", dtypes="f")
def _adaptive_avg_pool_grad(k: Any, y: Any, /, *, x_shape: Any, output_size: Any) -> Any:
    """Spread each element evenly over its part."""


_adaptive_avg_pool_grad.vjp(
    y=lambda k, g, output_size: k.adaptive_avg_pool(g, output_size=output_size), jvp="linear"
)


@op(
    result=_values_and_places, shape=_fitted, kernel="adaptive_max_pool", name="adaptive_max_pool", dtypes="f",
    outputs=("out", "indices"), differentiable=1, keeps_format=of_flat_windows, grad_name_of=_by_dims("AdaptiveMaxPool"),
)  # fmt: skip
def _adaptive_max_pool(k: Any, x: Any, /, *, output_size: Any) -> Any:
    """Return the maxima of windows that cut the last axes into `output_size` parts, and their flat positions."""


_adaptive_max_pool.vjp(
    x=lambda k, g, x_shape, indices, output_size: k.max_pool_grad(
        _filled(k, g, "max", len(output_size)), indices, x_shape=x_shape, ndim=len(output_size)
    ),
    zero_again=True, keeps_format=True,
)


# ---- checks ----


def _ints(name: str, what: str, value: Any, nd: int) -> tuple[int, ...]:
    if value.__class__ is int:
        return (value,) * nd
    if isinstance(value, (tuple, list)):
        if len(value) not in (1, nd):
            raise ShapeError(f"{name}: {what} must either be a single int, or a tuple of {nd} ints; got {value!r}.")
        ints = tuple([v.__index__() for v in value])
        return ints * nd if len(ints) == 1 else ints
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {what} must either be a single int, or a tuple of {nd} ints; got {value!r}.")
    return (value.__index__(),) * nd


def _window(
    name: str, x: Any, nd: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Any, ...]:
    """Return checked (kernel, stride, padding, dilation); refuse inputs that no window fits."""
    kernel = _ints(name, "kernel_size", kernel, nd)
    stride = kernel if stride is None or isinstance(stride, (list, tuple)) and not stride else _ints(name, "stride", stride, nd)
    padding, dilation = _ints(name, "padding", padding, nd), _ints(name, "dilation", dilation, nd)
    if not isinstance(x, TensorBase):
        check_pool_input(name, x, nd)
    _check_window(name, x.shape, nd, kernel, stride, padding, dilation, ceil_mode)
    return kernel, stride, padding, dilation


@lru_cache(4096)
def _check_window(
    name: str, x: Size, nd: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> None:
    if min(kernel) <= 0:
        raise ShapeError(f"{name}: kernel size should be greater than zero, but got {list(kernel)}.")
    if min(stride) <= 0:
        raise ShapeError(f"{name}: stride should not be zero; got {list(stride)}.")
    if min(dilation) <= 0:
        raise ShapeError(f"{name}: dilation should be greater than zero, but got {list(dilation)}.")
    for p, m, d in zip(padding, kernel, dilation):
        if p < 0:
            raise ShapeError(f"{name}: pad must be non-negative, but got pad: {p}.")
        if p > ((m - 1) * d + 1) // 2:
            raise ShapeError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={p}, kernel_size={m} and dilation={d}"
            )
    _check_sizes(name, x, nd)
    out = _counted(x, kernel, stride, padding, dilation, ceil_mode)
    if min(tuple(out)[-nd:]) < 1:
        given = "x".join(map(str, tuple(x)[-nd - 1 :]))
        made = "x".join(map(str, tuple(out)[-nd - 1 :]))
        raise ShapeError(
            f"{name}: Given input size: ({given}). Calculated output size: ({made}). Output size is too small"
        )


def check_pool_input(name: str, x: Any, nd: int, full: int | None = None) -> None:
    """Refuse inputs that are not (N, C, *sizes) or (C, *sizes) with something in them.

    `full` says from which dim on none may be empty, where that is not the channels'.
    """
    if not isinstance(x, TensorBase):
        raise no_tensor(name, "input", x)
    _check_sizes(name, tuple(x.shape), nd, full)


def _check_sizes(name: str, shape: Any, nd: int, full: int | None = None) -> None:
    if len(shape) not in (nd + 1, nd + 2):
        least = f"Input dimension should be at least {nd + 1}. " if len(shape) <= nd and "adaptive" in name else ""
        raise ShapeError(
            f"{name}: {least}non-empty {nd + 1}D or {nd + 2}D (batch mode) tensor expected for input; got {list(shape)}."
        )
    if 0 in shape[-nd - 1 if full is None else full :]:
        raise ShapeError(
            f"{name}: Expected {nd + 1}D or {nd + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got: {list(shape)}"
        )


# ---- maximum ----


def max_pool(
    name: str, nd: int, input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool
) -> Any:
    """Pool the last `nd` axes; with `indices` return (values, positions)."""
    kernel, stride, padding, dilation = _window(name, input, nd, kernel, stride, padding, dilation, ceil_mode)
    attrs = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": bool(ceil_mode)}
    places = None
    if indices or (input._rg and modes.grad) or input._device.level is not None:  # a level may carry tangents
        values, places = _max_pool(input, **attrs)
    else:
        values = _max_pool_values(input, **attrs)
    if len(input.shape) == nd + 1 == 4 and not is_contiguous(input) and is_contiguous(unsqueeze(input, 0), channels_last_3d):
        # A volume of a batch whose channels are last; of a single image PyTorch keeps no format.
        values, places = [t if t is None else squeeze(contiguous(unsqueeze(t, 0), channels_last_3d), 0) for t in (values, places)]
        named(values, "MaxPool3DWithIndicesBackward0")
    return (values, places) if indices else values


def max_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Return the maxima of windows over the last axis of (N, C, L) or (C, L)."""
    return max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, False)


def max_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Return the maxima of windows over the last two axes of (N, C, H, W) or (C, H, W)."""
    return max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, False)


@autocasting
def max_pool3d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Return the maxima of windows over the last three axes of (N, C, D, H, W) or (C, D, H, W)."""
    return max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, False)


def max_pool1d_with_indices(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Return `max_pool1d` and the position of each maximum."""
    return max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Return `max_pool2d` and the flat position of each maximum."""
    return max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@autocasting
def max_pool3d_with_indices(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Return `max_pool3d` and the flat position of each maximum."""
    return max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


# ---- average ----


def _average(
    nd: int, input: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool, divisor: Any,
    out: Any = None,
) -> Any:  # fmt: skip
    name = f"avg_pool{nd}d"
    kernel, stride, padding, _ = _window(name, input, nd, kernel, stride, padding, 1, ceil_mode)
    if divisor == 0:
        raise ShapeError(f"{name}: divisor must be not zero; got divisor_override=0.")
    # Integers are averaged exactly in float64 and cut off, as PyTorch's integer division does.
    x = cast(input, float64) if input.dtype is int64 else input
    means = _avg_pool(
        x, kernel=kernel, stride=stride, padding=padding, ceil_mode=bool(ceil_mode), count_include_pad=bool(include),
        divisor_override=divisor,
    )  # fmt: skip
    means = means if x is input else cast(means, int64)
    return _call.give(name, out, means)


def avg_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Return the means of windows over the last axis of (N, C, L) or (C, L)."""
    return _average(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None, *, out: Any = None,
) -> Any:  # fmt: skip
    """Return the means of windows over the last two axes of (N, C, H, W) or (C, H, W)."""
    return _average(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out)


@autocasting
def avg_pool3d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None, *, out: Any = None,
) -> Any:  # fmt: skip
    """Return the means of windows over the last three axes of (N, C, D, H, W) or (C, D, H, W)."""
    return _average(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out)


# ---- windows fitted to an output size ----


def _output_size(name: str, x: Any, nd: int, output_size: Any, full: int) -> tuple[int, ...]:
    """Return the output size as ints; None keeps an axis."""
    check_pool_input(name, x, nd, full)
    sizes = tuple(x.shape)[-nd:]
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * nd
    if len(given) != nd:
        told = "'output_size' should contain one int" if nd == 1 else f"output_size must be {nd}"
        raise ShapeError(f"{name}: internal error: {told} (got {len(given)})")
    wanted = tuple([n if o is None else o.__index__() for n, o in zip(sizes, given)])
    if min(wanted) < 0:
        size = list(x.shape[:-nd]) + list(wanted)
        raise ShapeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {wanted}: Trying to create "
            f"tensor with negative dimension {min(wanted)}: {size}"
        )
    return wanted


def adaptive_avg(nd: int, input: Any, output_size: Any) -> Any:
    """Average the last `nd` axes down to `output_size`."""
    wanted = _output_size(f"adaptive_avg_pool{nd}d", input, nd, output_size, -nd)
    if wanted == (1,) * nd and input.dtype.kind == "f":  # what most networks end with is a plain mean
        out = mean(input, tuple(range(-nd, 0)), True)
        return out if is_row_major(input) else in_format(out, suggested_format(input))
    return _adaptive_avg_pool(input, output_size=wanted)


def adaptive_max(nd: int, input: Any, output_size: Any) -> Any:
    """Return the maxima of the last `nd` axes cut to `output_size`, and their positions."""
    return _adaptive_max_pool(input, output_size=_output_size(f"adaptive_max_pool{nd}d", input, nd, output_size, 1))


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """Average the last axis down to `output_size` elements."""
    return adaptive_avg(1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Average the last two axes down to `output_size`; None keeps an axis."""
    return adaptive_avg(2, input, output_size)


@autocasting
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Average the last three axes down to `output_size`; None keeps an axis."""
    return adaptive_avg(3, input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any) -> Any:
    """Return the maxima of the last axis cut into `output_size` parts, and their positions."""
    return adaptive_max(1, input, output_size)


def adaptive_max_pool2d(input: Any, output_size: Any) -> Any:
    """Return the maxima of the last two axes cut to `output_size`, and their flat positions."""
    return adaptive_max(2, input, output_size)


@autocasting
def adaptive_max_pool3d(input: Any, output_size: Any) -> Any:
    """Return the maxima of the last three axes cut to `output_size`, and their flat positions."""
    return adaptive_max(3, input, output_size)
