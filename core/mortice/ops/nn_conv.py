"""Convolutions, transposed convolutions, and the sliding blocks (`im2col`, `col2im`) that they are made of.

`conv`, its two gradients and their gradients are three ops that differentiate into each other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mortice.backends.nn_common import narrow, transposed_size, widen, window_count
from mortice.call import no_tensor
from mortice.dtype import check_kind
from mortice.errors import DTypeError, ShapeError, cast_hint
from mortice.modes import autocasting
from mortice.node import named
from mortice.op import op
from mortice.ops.movement import squeeze, unsqueeze
from mortice.ops.nn_resize import _pad_border
from mortice.rules import of_images, promote
from mortice.shape import Size, channels_hint, check_dim
from mortice.tensor import TensorBase

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
]  # fmt: skip

# ---- the ops; attributes are tuples, one int a spatial axis ----


@lru_cache(4096)
def _conv_shape(
    name: str, x: Size, w: Size, b: Any = None, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> Size:
    counts = [window_count(*a) for a in zip(tuple(x)[2:], tuple(w)[2:], stride, padding, dilation)]
    return Size((x[0], w[0], *counts))


@op(result=promote, shape=_conv_shape, dtypes="uifc", grad_name="ConvolutionBackward0", keeps_format=of_images)
def _conv(
    k: Any, x: Any, w: Any, b: Any = None, /, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """Correlate (N, C, *sizes) with filters (O, C / groups, *kernel) and add a bias of shape (O,)."""
    return _biased(k, k.conv, x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)


def _biased(k: Any, kernel: Any, x: Any, w: Any, b: Any, **attrs: Any) -> Any:
    """Return what the kernel makes of x and w, plus b; of halves rounded once where the kernel widens them too."""
    if b is None:
        return kernel(x, w, **attrs)
    dtype = k.dtype_of(x)
    if k.wide_products:
        x, w, b = widen(k, x), widen(k, w), widen(k, b)
    return narrow(k, k.add(kernel(x, w, **attrs), k.reshape(b, (-1, *[1] * len(attrs["stride"])))), dtype)


def bias_grad(k: Any, g: Any) -> Any:
    return k.sum(g, axis=(0, *range(2, len(k.shape_of(g)))))


_conv.vjp(
    x=lambda k, g, w, x_shape, stride, padding, dilation, groups: k.conv_input_grad(
        g, w, x_shape=x_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda k, g, x, w_shape, stride, padding, dilation, groups: k.conv_weight_grad(
        g, x, w_shape=w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=bias_grad,
    jvp="bilinear", keeps_format=True,
)


def _conv_like(
    k: Any, x: Any, w: Any, y_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """Correlate and keep the windows that `y_shape` has: a large output padding makes room for more."""
    out = k.conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)
    if tuple(k.shape_of(out)) != tuple(y_shape):
        out = k.getitem(out, (slice(None), slice(None), *[slice(0, n) for n in y_shape[2:]]))
    return out


def _given_x(name: str, y: Size, w: Size, b: Any = None, *, x_shape: Any, **attrs: Any) -> Size:
    return Size(x_shape)


@op(shape=_given_x, dtypes="uifc", name="conv_input_grad", grad_name="ConvolutionBackward0", keeps_format=of_images)
def _conv_input_grad(
    k: Any, y: Any, w: Any, b: Any = None, /, *, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:  # fmt: skip
    """Spread (N, O, *counts) through filters (O, C / groups, *kernel) into `x_shape`: the transposed convolution."""
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _biased(k, k.conv_input_grad, y, w, b, x_shape=x_shape, **attrs)


_conv_input_grad.vjp(
    y=lambda k, g, w, y_shape, stride, padding, dilation, groups: _conv_like(
        k, g, w, y_shape, stride, padding, dilation, groups
    ),
    w=lambda k, g, y, w_shape, stride, padding, dilation, groups: k.conv_weight_grad(
        y, g, w_shape=w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=bias_grad,
    jvp="bilinear", keeps_format=True,
)


def _given_w(name: str, y: Size, x: Size, *, w_shape: Any, **attrs: Any) -> Size:
    return Size(w_shape)


@op(shape=_given_w, dtypes="uifc", kernel="conv_weight_grad", name="conv_weight_grad", grad_name="ConvolutionBackward0",
    keeps_format=of_images)
def _conv_weight_grad(
    k: Any, y: Any, x: Any, /, *, w_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """Correlate (N, C, *sizes) with (N, O, *counts), summed over the batch, into filters of `w_shape`."""


_conv_weight_grad.vjp(
    y=lambda k, g, x, y_shape, stride, padding, dilation, groups: _conv_like(
        k, x, g, y_shape, stride, padding, dilation, groups
    ),
    x=lambda k, g, y, x_shape, stride, padding, dilation, groups: k.conv_input_grad(
        y, g, x_shape=x_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    jvp="bilinear", keeps_format=True,
)


# ---- checks ----


def expand_ints(name: str, what: str, value: Any, nd: int) -> tuple[int, ...]:
    """Return an argument that is one int for all axes, or one for each."""
    if type(value) is int:
        return (value,) * nd
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return (int(value[0]),) * nd
        if len(value) == nd:
            return tuple([int(v) for v in value])
    elif hasattr(value, "__index__"):
        return (value.__index__(),) * nd
    else:
        raise TypeError(f"{name}: expected {what} to be an int or a tuple of {nd} ints; got {value!r}.")
    raise ShapeError(
        f"{name}: expected {what} to be a single integer value or a list of {nd} values to match the convolution "
        f"dimensions, but got {what}={list(value)}."
    )


def _check(
    name: str, x: Any, w: Any, b: Any, nd: int, stride: Any, padding: Any, dilation: Any, groups: int, transposed: bool,
    uneven: Any = (),
) -> Any:  # fmt: skip
    """Refuse operands that do not fit; return the input with a batch axis."""
    for value, what in ((x, "input"), (w, "weight")):
        if not isinstance(value, TensorBase):
            raise no_tensor(name, what, value)
    if x.dtype is not w.dtype or (b is not None and b.dtype is not x.dtype):
        _check_ranks(name, x.shape, w.shape, nd)
        other, what = (w, "weight") if x.dtype is not w.dtype else (b, "bias")
        raise DTypeError(
            f"{name}: Input type ({x.dtype}) and {what} type ({other.dtype}) should be the same. "
            + cast_hint(x.dtype.name, other.dtype.name, what)
        )
    _check_sizes(
        name, x.shape, w.shape, None if b is None else b.shape, nd, stride, padding, dilation, groups, transposed, uneven
    )
    return x if len(x.shape) == nd + 2 else unsqueeze(x, 0)


def _check_ranks(name: str, shape: Size, ws: Size, nd: int) -> None:
    if len(shape) not in (nd + 1, nd + 2):
        raise ShapeError(
            f"{name}: Expected {nd + 1}D (unbatched) or {nd + 2}D (batched) input to {name}, but got input of size: "
            f"{list(shape)}" + (". The dim of channels is missing; use x.unsqueeze(0)." if len(shape) == nd else "")
        )
    if len(ws) != nd + 2:
        raise ShapeError(
            f"{name}: weight should have at least three dimensions; got weight of size {list(ws)}."
            if len(ws) < 3
            else f"{name}: Expected {len(ws)}-dimensional input for {len(ws)}-dimensional weight{list(ws)}, but got "
            f"{len(shape)}-dimensional input of size {list(shape)} instead"
        )


@lru_cache(4096)  # shapes recur
def _check_sizes(
    name: str, x: Size, w: Size, b: Size | None, nd: int, stride: Any, padding: Any, dilation: Any, groups: int,
    transposed: bool, uneven: Any,
) -> None:  # fmt: skip
    shape, ws = tuple(x), tuple(w)
    _check_ranks(name, x, w, nd)
    if groups <= 0:
        raise ShapeError(f"{name}: non-positive groups is not supported; got groups={groups}.")
    if any(s <= 0 for s in stride):
        raise ShapeError(f"{name}: non-positive stride is not supported; got stride={list(stride)}.")
    if any(p < 0 for p in padding):
        raise ShapeError(f"{name}: negative padding is not supported; got padding={list(padding)}.")
    if any(d <= 0 for d in dilation):
        raise ShapeError(f"{name}: dilation should be greater than zero; got dilation={list(dilation)}.")
    if ws[0] < groups or ws[0] % groups:
        factor = "divisible by" if ws[0] > groups else "at least"
        raise ShapeError(
            f"{name}: Given groups={groups}, expected weight to be {factor} {groups} at dimension 0, but got weight "
            f"of size {list(ws)} instead"
        )
    wanted = ws[0] if transposed else ws[1] * groups
    if shape[-nd - 1] != wanted:
        form = "transposed=1" if transposed else f"groups={groups}"
        raise ShapeError(
            f"{name}: Given {form}, weight of size {list(ws)}, expected input{list(shape)} to have {wanted} "
            f"channels, but got {shape[-nd - 1]} channels instead" + channels_hint(shape, wanted, len(shape) == nd + 2)
        )
    outputs = ws[1] * groups if transposed else ws[0]
    if b is not None and tuple(b) != (outputs,):
        raise ShapeError(
            f"{name}: Given weight of size {list(ws)}, expected bias to be 1-dimensional with {outputs} elements, but "
            f"got bias of size {list(b)} instead"
        )
    if not transposed:
        padded = [n + 2 * p + u for n, p, u in zip(shape[-nd:], padding, uneven or (0,) * nd)]
        reach = [d * (m - 1) + 1 for m, d in zip(ws[2:], dilation)]
        if any(r > n for r, n in zip(reach, padded)):
            raise ShapeError(
                f"{name}: Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
            )


def _drop_batch(out: Any) -> Any:
    return squeeze(out, 0)


# ---- what users call ----


def _convolve(
    nd: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    name = f"conv{nd}d"
    stride = expand_ints(name, "stride", stride, nd)
    dilation = expand_ints(name, "dilation", dilation, nd)
    uneven: Any = ()
    if isinstance(padding, str):
        padding, uneven = _padding_by_name(name, weight, padding, stride, dilation, nd)
    else:
        padding = expand_ints(name, "padding", padding, nd)
    x = _check(name, input, weight, bias, nd, stride, padding, dilation, groups, False, uneven)
    batched = x is input
    if any(uneven):
        x = _pad_border(x, widths=((0, 0), (0, 0), *[(0, u) for u in uneven]), mode="constant", value=0)
    out = _conv(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return out if batched else _drop_batch(out)


def _padding_by_name(
    name: str, w: Any, padding: str, stride: Any, dilation: Any, nd: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding of both sides, and how much more there is at the end of each axis."""
    if padding == "valid":
        return (0,) * nd, (0,) * nd
    if padding != "same":
        raise ShapeError(f"{name}: Invalid padding string: '{padding}', should be one of 'valid', 'same'.")
    if any(s != 1 for s in stride):
        raise ShapeError(f"{name}: padding='same' is not supported for strided convolutions; got stride={list(stride)}.")
    total = [d * (n - 1) for d, n in zip(dilation, tuple(w.shape)[2:])]
    return tuple(t // 2 for t in total), tuple(t % 2 for t in total)


@autocasting
def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Correlate (N, C, L) or (C, L) with filters (O, C / groups, K); padding may be "same" or "valid"."""
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@autocasting
def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Correlate (N, C, H, W) or (C, H, W) with filters (O, C / groups, KH, KW); padding may be "same" or "valid"."""
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@autocasting
def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Correlate (N, C, D, H, W) or (C, D, H, W) with filters (O, C / groups, KD, KH, KW)."""
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def _transpose(
    nd: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> Any:
    name = f"conv_transpose{nd}d"
    stride, padding = expand_ints(name, "stride", stride, nd), expand_ints(name, "padding", padding, nd)
    dilation = expand_ints(name, "dilation", dilation, nd)
    extra = expand_ints(name, "output_padding", output_padding, nd)
    x = _check(name, input, weight, bias, nd, stride, padding, dilation, groups, True)
    if any(e < 0 for e in extra):
        raise ShapeError(f"{name}: negative output_padding is not supported; got output_padding={list(extra)}.")
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation)):
        raise ShapeError(
            f"{name}: output padding must be smaller than either stride or dilation, but got output_padding="
            f"{list(extra)}, stride={list(stride)}, dilation={list(dilation)}"
        )
    counts, kernel = tuple(x.shape)[2:], tuple(weight.shape)[2:]
    sizes = [transposed_size(*a) for a in zip(counts, kernel, stride, padding, dilation, extra)]
    if any(n <= 0 for n in sizes):
        raise ShapeError(
            f"{name}: Given input size per channel: {list(counts)}. Calculated output size per channel: {sizes}. Output "
            "size is too small"
        )
    shape = Size((x.shape[0], weight.shape[1] * groups, *sizes))
    out = _conv_input_grad(
        x, weight, bias, x_shape=shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
    return out if x is input else _drop_batch(out)


@autocasting
def conv_transpose1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """Spread (N, C, L) through filters (C, O / groups, K): the gradient of `conv1d` for its input."""
    return _transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@autocasting
def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """Spread (N, C, H, W) through filters (C, O / groups, KH, KW): the gradient of `conv2d` for its input."""
    return _transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@autocasting
def conv_transpose3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """Spread (N, C, D, H, W) through filters (C, O / groups, KD, KH, KW): the gradient of `conv3d` for its input."""
    return _transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@autocasting
def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Any:  # fmt: skip
    """Convolve, or convolve transposed, over as many axes as the weight has."""
    nd = len(weight.shape) - 2
    if transposed:
        return _transpose(nd, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolve(nd, input, weight, bias, stride, padding, dilation, groups)


# ---- sliding blocks ----


def _columns_shape(name: str, x: Size, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Size:
    taps = windows = 1
    for n, m, s, p, d in zip(x[2:], kernel, stride, padding, dilation):
        taps *= m
        windows *= window_count(n, m, s, p, d)
    return Size((x[0], x[1] * taps, windows))


@op(shape=_columns_shape, kernel="unfold", name="im2col", dtypes="buifc", grad_name="Im2ColBackward0")
def _im2col(k: Any, x: Any, /, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Gather the sliding blocks of (N, C, *sizes) as columns (N, C * taps, windows)."""


_im2col.vjp(
    x=lambda k, g, x_shape, kernel, stride, padding, dilation: k.fold(
        g, output_size=tuple(x_shape)[2:], kernel=kernel, stride=stride, padding=padding, dilation=dilation
    ),
    jvp="linear",
)


def _folded_shape(name: str, x: Size, *, output_size: Any, kernel: Any, **attrs: Any) -> Size:
    taps = 1
    for m in kernel:
        taps *= m
    return Size((x[0], x[1] // taps, *output_size))


@op(shape=_folded_shape, kernel="fold", name="col2im", dtypes="buifc", grad_name="Col2ImBackward0")
def _col2im(
    k: Any, x: Any, /, *, output_size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    """Add columns (N, C * taps, windows) up where their blocks lie."""


_col2im.vjp(
    x=lambda k, g, kernel, stride, padding, dilation: k.unfold(
        g, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    ),
    jvp="linear",
)


def _block_arguments(name: str, *values: Any) -> list[tuple[int, ...]]:
    """Return kernel_size, dilation, padding, stride as pairs, checked."""
    named = zip(("kernel_size", "dilation", "padding", "stride"), values)
    pairs = [expand_ints(name, what, value, 2) for what, value in named]
    for what, pair in zip(("kernel size", "dilation", "padding", "stride"), pairs):
        if min(pair) < (0 if what == "padding" else 1):
            sign = "non-negative" if what == "padding" else "greater than zero"
            raise ShapeError(f"{name}: {what} should be {sign}, but got {list(pair)}.")
    return pairs


def im2col(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Gather the sliding blocks of (N, C, H, W) or (C, H, W) as columns."""
    kernel, dilation, padding, stride = _block_arguments("im2col", kernel_size, dilation, padding, stride)
    shape = tuple(input.shape)
    if len(shape) < 3:
        check_dim("im2col", len(shape), len(shape))
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise ShapeError(
            "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    check_kind("im2col", input.dtype, "bfc")
    counts = [window_count(*a) for a in zip(shape[-2:], kernel, stride, padding, dilation)]
    if min(counts) < 1:
        raise ShapeError(
            f"im2col: Given input with spatial size {shape[-2:]}, kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, stride={stride}, calculated shape of the array of sliding blocks as {tuple(counts)}, "
            "but its components must be at least one."
        )
    x = input if len(shape) == 4 else unsqueeze(input, 0)
    out = _im2col(x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    return out if x is input else named(_drop_batch(out), "Im2ColBackward0")


def col2im(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Add columns (N, C * taps, windows) or (C * taps, windows) up where their blocks lie in `output_size`."""
    kernel, dilation, padding, stride = _block_arguments("col2im", kernel_size, dilation, padding, stride)
    size = expand_ints("col2im", "output_size", output_size, 2)
    shape = tuple(input.shape)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise ShapeError(
            "col2im: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions "
            f"for input, but got: {list(shape)}"
        )
    if any(n <= 0 for n in size):
        raise ShapeError(f"col2im: Expected output spatial size to be positive, but got: output_size={size}.")
    taps = kernel[0] * kernel[1]
    if shape[-2] % taps:
        raise ShapeError(
            "col2im: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2]} and kernel_size={kernel}."
        )
    check_kind("col2im", input.dtype, "bfc")
    counts = [window_count(*a) for a in zip(size, kernel, stride, padding, dilation)]
    told = f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}"
    if min(counts) < 1:
        raise ShapeError(
            f"col2im: {told}, calculated shape of the array of sliding blocks as {tuple(counts)}, which is too small (non-positive)"
        )
    if shape[-1] != counts[0] * counts[1]:
        raise ShapeError(
            f"col2im: {told}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got input.size(2)={shape[-1]}."
        )
    x = input if len(shape) == 3 else unsqueeze(input, 0)
    out = _col2im(x, output_size=size, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    return out if x is input else named(_drop_batch(out), "Col2ImBackward0")
