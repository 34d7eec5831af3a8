"""The bytes of a tensor seen as another dtype."""

from __future__ import annotations

from typing import Any

from mortice.call import run
from mortice.dtype import CLASS_NAMES, DType, bool_, uint8
from mortice.errors import DTypeError
from mortice.node import TENSOR_KERNELS
from mortice.op import op
from mortice.shape import Size
from mortice.strides import layout
from mortice.tensor import make


def _scaled(n: int, source: DType, dtype: DType) -> int:
    return n * source.itemsize // dtype.itemsize


def _reinterpreted_strides(shape: Any, strides: Any, dtype: DType, source: DType) -> tuple[int, ...]:
    if dtype.itemsize == source.itemsize:
        return tuple(strides)
    return (*(_scaled(s, source, dtype) for s in strides[:-1]), 1)


@op(
    shape=lambda name, old, *, dtype, source: Size((*old[:-1], *(_scaled(n, source, dtype) for n in old[-1:]))),
    name="reinterpret",
    view=True,
    holomorphic=False,
    scatter=lambda k, x, part, dtype, source: _reinterpret.op.body(k, part, dtype=source, source=dtype),
    strides=_reinterpreted_strides,
)
def _reinterpret(k: Any, x: Any, /, *, dtype: DType, source: DType) -> Any:
    """Show the same bytes as another dtype."""
    return x if dtype.stored is source.stored else k.reinterpret(x, dtype.stored)


_reinterpret.no_grad("it reads bits")


def view_dtype(x: Any, dtype: DType) -> Any:
    """Show the same bytes as another dtype, of which the last dim holds more or fewer; a copy where a backend cannot.

    The result is outside the graph, since bits have no gradient; it is x itself where that is its dtype.
    """
    if dtype is x.dtype:
        return x
    if x._rg:
        x = x.detach()
    backend, shape = x._device.backend, tuple(x.shape)
    if dtype.stored not in backend.dtypes(x._device):
        raise DTypeError(f"view: {x._device} of backend {backend.name} has no {dtype.name}.")
    if dtype.itemsize != x.dtype.itemsize and not (shape and 0 in shape):
        kinds, strides = f"to view {CLASS_NAMES[x.dtype.name]} as {CLASS_NAMES[dtype.name]} (different element sizes)", layout(x)
        if not shape:
            raise RuntimeError(f"view: self.dim() cannot be 0 {kinds}")
        if strides[-1] != 1 and shape[-1] != 1:
            raise RuntimeError(f"view: self.stride(-1) must be 1 {kinds}, but got {strides[-1]}. Use .contiguous() first.")
        ratio = dtype.itemsize // x.dtype.itemsize
        if ratio > 1:
            found = [("size(-1)", shape[-1]), ("storage_offset()", x.storage_offset())]
            found += [(f"stride({d})", s) for d, (s, n) in enumerate(zip(strides[:-1], shape)) if n > 1]
            for what, n in found:
                if n % ratio:
                    raise RuntimeError(f"view: self.{what} must be divisible by {ratio} {kinds}, but got {n}")
    attrs = {"dtype": dtype, "source": x.dtype}
    if backend.mutable and not backend.does("reinterpret") and dtype.stored is not x.dtype.stored:
        data = _reinterpret.op.body(backend, x._buffer, **attrs)
        return make(data, x._device, dtype, Size(backend.shape_of(data)))
    return run(_reinterpret.op, (x,), attrs, dtype)


TENSOR_KERNELS.replace("reinterpret", view_dtype)


def view_as_bool(x: Any, dtype: DType = bool_) -> Any:
    """Show bytes as bools: kernels take those to be 0 or 1, so where there are others the result has memory of its own."""
    if x.dtype is not bool_:
        k, x = TENSOR_KERNELS, view_dtype(x, uint8)
        if x.numel() and x._device.backend.has_values and k.any(k.greater(x, 1)).item():
            return k.not_equal(x, 0)
    return view_dtype(x, dtype)
