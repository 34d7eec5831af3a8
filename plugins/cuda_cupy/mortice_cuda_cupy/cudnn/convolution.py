"""The three convolutions by cuDNN: forward, which is also the gradient of the transposed one, and its two gradients.

Row-major operands and those in channels-last order go as they are, others are copied; the result is channels-last where
an operand is. What cuDNN does not take, or has no plan for, goes to the core's bodies: integers, complex numbers, empty
operands, more than three spatial axes, results with more room than the windows need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.cudnn.library import Place, here
from mortice_cuda_cupy.cudnn.plans import (
    ALIGNED,
    NAMES,
    keep,
    launched,
    make,
    new_graph,
    operand,
    result,
    rows,
    setting,
)
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import array_maker

_UNKNOWN = object()


class ConvolutionKernels(KernelMixin):
    """conv, conv_input_grad, conv_weight_grad."""

    def conv(
        self, x: Any, w: Any, *, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int = 1
    ) -> Any:
        out = _convolve("conv", x, w, None, stride, padding, dilation)
        if out is not None:
            return out
        return NamespaceBackend.conv(self, x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)

    def conv_input_grad(
        self, g: Any, w: Any, *, x_shape: Sequence[int], stride: Sequence[int], padding: Sequence[int],
        dilation: Sequence[int], groups: int = 1,
    ) -> Any:  # fmt: skip
        out = _convolve("conv_input_grad", g, w, x_shape, stride, padding, dilation)
        if out is not None:
            return out
        return NamespaceBackend.conv_input_grad(
            self, g, w, x_shape=x_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    def conv_weight_grad(
        self, g: Any, x: Any, *, w_shape: Sequence[int], stride: Sequence[int], padding: Sequence[int],
        dilation: Sequence[int], groups: int = 1,
    ) -> Any:  # fmt: skip
        out = _convolve("conv_weight_grad", g, x, w_shape, stride, padding, dilation)
        if out is not None:
            return out
        return NamespaceBackend.conv_weight_grad(
            self, g, x, w_shape=w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
        )


def _convolve(
    name: str, a: Any, b: Any, shape: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Any:
    """Return the result, None where cuDNN is not to compute it. The groups follow from the shapes."""
    of_a, of_b = a.data, b.data
    place = here(of_a.device_id)
    if place is None:
        return None
    # Strides, of which CuPy makes a tuple each time, only where shapes do not tell.
    key = (
        name, a.dtype, a.shape, None if a._c_contiguous else a.strides, b.dtype, b.shape, None if b._c_contiguous else b.strides,
        (of_a.ptr & ALIGNED, of_b.ptr & ALIGNED), shape, stride, padding, dilation, setting(),
    )  # fmt: skip
    ready = place.plans.get(key, _UNKNOWN)
    if ready is _UNKNOWN:
        ready = _prepare(place, name, a, b, shape, stride, padding, dilation)
        keep(place, key, ready)
    if ready is None:
        return None
    plan, lay_a, lay_b, make_out = ready
    if lay_a is not None:
        a = lay_a(a)
    if lay_b is not None:
        b = lay_b(b)
    out = make_out()
    return out if launched(plan, place, name, key, a.data.ptr, b.data.ptr, out.data.ptr) else None


def _prepare(
    place: Place, name: str, a: Any, b: Any, shape: Any, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int],
) -> Any:  # fmt: skip
    """Return the plan, what lays out the operands, and what makes the result; None for what cuDNN does not compute."""
    if a.dtype not in NAMES or a.dtype != b.dtype or not 3 <= a.ndim <= 5 or not a.size or not b.size:
        return None
    x, w, y = _roles(name, a.shape, b.shape, shape)
    counts = _counts(x, w, stride, padding, dilation)
    y = (x[0], w[0], *counts) if y is None else tuple(y)
    if tuple(y[2:]) != counts or min(counts) < 1:
        return None
    out_shape = {"conv": y, "conv_input_grad": x, "conv_weight_grad": w}[name]
    last = _is_last(a) or _is_last(b)
    lay_a, lay_b = (_layer(operand, last) for operand in (a, b))
    make_out = _maker(out_shape, a.dtype, last)
    dims = [_dims(s) for s in (a.shape, b.shape, out_shape)]
    # The operands as they will be, to measure with and to keep until then.
    operands = [x if lay is None else lay(x) for x, lay in ((a, lay_a), (b, lay_b))]
    operands.append(make_out())

    how = [_spatial(v, fill) for v, fill in ((stride, 1), (padding, 0), (dilation, 1))]

    def graph(place: Place) -> Any:
        return build(place, name, a.dtype, dims, last, *how)

    case = f"{name} {'x'.join(map(str, a.shape))} by {'x'.join(map(str, b.shape))} {a.dtype.name}"
    plan = make(place, case, graph, a.dtype, [x.data.ptr for x in operands])
    return None if plan is None else (plan, lay_a, lay_b, make_out)


def build(
    place: Place, name: str, dtype: Any, dims: Sequence[Sequence[int]], last: bool, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int],
) -> Any:  # fmt: skip
    """Return the graph of one of the convolutions; the operands have uids 1 and 2, the result 3."""
    graph = new_graph(place, dtype)
    strides = [_last_strides(d) if last else rows(d) for d in dims]
    a, b = (operand(graph, uid, dims[uid - 1], strides[uid - 1], dtype) for uid in (1, 2))
    how = {"padding": list(padding), "stride": list(stride), "dilation": list(dilation)}
    if name == "conv":
        out = graph.conv_fprop(image=a, weight=b, **how)
    elif name == "conv_input_grad":
        out = graph.conv_dgrad(loss=a, filter=b, **how)
    else:
        out = graph.conv_wgrad(image=b, loss=a, **how)
    result(out, 3, dims[2], strides[2], dtype)
    return graph


# ---- shapes ----


def _roles(name: str, a: Any, b: Any, shape: Any) -> tuple[Any, Any, Any]:
    """Return the shapes of input, weight and output of the forward convolution; that which it computes may be None."""
    if name == "conv":
        return a, b, None
    return (tuple(shape), b, a) if name == "conv_input_grad" else (b, tuple(shape), a)


def _counts(x: Any, w: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    """Return how many windows there are along each spatial axis."""
    return tuple(
        (n + 2 * p - d * (m - 1) - 1) // s + 1 for n, m, s, p, d in zip(x[2:], w[2:], stride, padding, dilation)
    )


def _dims(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape as cuDNN takes it, which has two spatial axes or three: one is two, the first of size 1."""
    return (*shape[:2], 1, shape[2]) if len(shape) == 3 else tuple(shape)


def _spatial(values: Sequence[int], fill: int) -> tuple[int, ...]:
    return (fill, *values) if len(values) == 1 else tuple(values)


# ---- layouts ----


def _last_strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of channels-last order."""
    inner = rows((dims[0], *dims[2:], dims[1]))
    return (inner[0], inner[-1], *inner[1:-1])


def _is_last(x: Any) -> bool:
    """Tell whether an array is dense in channels-last order and not in row-major order too."""
    return not x.flags.c_contiguous and x.transpose(_to_last(x.ndim)).flags.c_contiguous


def _to_last(ndim: int) -> tuple[int, ...]:
    return (0, *range(2, ndim), 1)


def _from_last(ndim: int) -> tuple[int, ...]:
    return (0, ndim - 1, *range(1, ndim - 1))


def _layer(x: Any, last: bool) -> Callable[[Any], Any] | None:
    """Return what brings an array like this into the order, None where it is."""
    ordered = x.transpose(_to_last(x.ndim)) if last else x
    if ordered.flags.c_contiguous:
        return None if not x.data.ptr & ALIGNED else _copy_last if last else _copy
    return _make_last if last else contiguous  # type: ignore[no-any-return]


def _copy(x: Any) -> Any:
    return x.copy()


def _copy_last(x: Any) -> Any:
    return x.transpose(_to_last(x.ndim)).copy().transpose(_from_last(x.ndim))


def _make_last(x: Any) -> Any:
    return contiguous(x.transpose(_to_last(x.ndim))).transpose(_from_last(x.ndim))


def _maker(shape: tuple[int, ...], dtype: Any, last: bool) -> Callable[[], Any]:
    """Return what makes memory for a result."""
    empty = array_maker()
    if not last:
        return lambda: empty(shape, dtype)
    stored, order = (shape[0], *shape[2:], shape[1]), _from_last(len(shape))
    return lambda: empty(stored, dtype).transpose(order)
