"""Making tensors: filled, counted. Tensors from data are in `ops.data`, random ones in `ops.random`."""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import DType, get_default_dtype, int64, scalar_dtype
from mortice.errors import ShapeError
from mortice.op import TensorBase
from mortice.ops.data import check_dtype, converted, finish, fit, number, tensor
from mortice.ops.movement import in_format
from mortice.shape import Size, check_sizes
from mortice.tensor import make

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "logspace", "ones", "ones_like", "scalar_tensor",
    "zeros", "zeros_like",
]  # fmt: skip


def filled(shape: Size, value: Any, dtype: DType, device: Device) -> Any:
    """Make a tensor of one number."""
    dtype = check_dtype("full", dtype, device)
    if value and dtype.kind in "iub":
        value = fit([value], dtype)[0]
    if isinstance(value, complex) and dtype.kind != "c":
        if value.imag:
            raise RuntimeError(f"full: value cannot be converted to type {dtype.name} without overflow; got {value}.")
        value = value.real
    return make(device.backend.full(shape, value, dtype=dtype, device=device), device, dtype, shape)


# ---- filled ----


def full(
    size: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make a tensor of one number; its dtype is the number's unless given."""
    shape = check_sizes("full", (size,) if not isinstance(size, (tuple, list)) else tuple(size))
    fill_value, where = number(fill_value), resolve(device)
    return _into(out, finish(filled(shape, fill_value, dtype or scalar_dtype(fill_value), where), requires_grad, pin_memory))


def _into(out: Any, made: Any) -> Any:
    if out is None:
        return made
    from mortice.mutation import write_out

    return write_out("out", out, made)


def _sized(name: str, size: tuple[Any, ...], kwargs_size: Any) -> Size:
    if kwargs_size is not None:
        size = (kwargs_size,)
    if not size and kwargs_size is None:
        return Size()
    return check_sizes(name, size)


def zeros(
    *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool = False, **named: Any,
) -> Any:  # fmt: skip
    """Make zeros, in the default float dtype unless given."""
    shape = _sized("zeros", size, named.pop("size", None))
    return _into(out, finish(filled(shape, 0, dtype or get_default_dtype(), resolve(device)), requires_grad, pin_memory))


def ones(
    *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool = False, **named: Any,
) -> Any:  # fmt: skip
    """Make ones, in the default float dtype unless given."""
    shape = _sized("ones", size, named.pop("size", None))
    return _into(out, finish(filled(shape, 1, dtype or get_default_dtype(), resolve(device)), requires_grad, pin_memory))


def empty(
    *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool = False, memory_format: Any = None, **named: Any,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, in the default float dtype unless given."""
    shape = _sized("empty", size, named.pop("size", None))
    made = in_format(filled(shape, 0, dtype or get_default_dtype(), resolve(device)), memory_format)
    return _into(out, finish(made, requires_grad, pin_memory))


def scalar_tensor(
    s: Any, *, dtype: DType | None = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make a 0-d tensor, in the default float dtype unless given."""
    dtype = dtype or get_default_dtype()
    return full((), s, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)


def _like(
    input: Any, value: Any, dtype: Any, device: Any, requires_grad: bool, pin_memory: bool, size: Any = None,
    memory_format: Any = None,
) -> Any:  # fmt: skip
    where = input._device if device is None else resolve(device)
    shape = input.shape if size is None else size
    return finish(in_format(filled(shape, value, dtype or input.dtype, where), memory_format), requires_grad, pin_memory)


def zeros_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make zeros of the same shape, dtype and device."""
    return _like(input, 0, dtype, device, requires_grad, pin_memory, memory_format=memory_format)


def ones_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make ones of the same shape, dtype and device."""
    return _like(input, 1, dtype, device, requires_grad, pin_memory, memory_format=memory_format)


def empty_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, of the same shape, dtype and device."""
    return _like(input, 0, dtype, device, requires_grad, pin_memory, memory_format=memory_format)


def full_like(
    input: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Fill the same shape, dtype and device with one number."""
    return _like(input, number(fill_value), dtype, device, requires_grad, pin_memory, memory_format=memory_format)


def new_zeros(
    self: Any, *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make zeros of the given size, in this tensor's dtype and on its device."""
    return _like(self, 0, dtype, device, requires_grad, pin_memory, _needed("new_zeros", sizes if size is None else (size,)))


def new_ones(
    self: Any, *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make ones of the given size, in this tensor's dtype and on its device."""
    return _like(self, 1, dtype, device, requires_grad, pin_memory, _needed("new_ones", sizes if size is None else (size,)))


def new_empty(
    self: Any, *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, in this tensor's dtype and on its device."""
    return _like(self, 0, dtype, device, requires_grad, pin_memory, _needed("new_empty", sizes if size is None else (size,)))


def new_full(
    self: Any, size: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Fill the given size with one number, in this tensor's dtype and on its device."""
    return _like(self, number(fill_value), dtype, device, requires_grad, pin_memory, check_sizes("new_full", (size,)))


def new_tensor(
    self: Any, data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Make a tensor from data, in this tensor's dtype and on its device."""
    if isinstance(data, TensorBase):
        return finish(converted(data, dtype or self.dtype, device or self._device), requires_grad)
    return tensor(data, dtype=dtype or self.dtype, device=device or self._device, requires_grad=requires_grad)


def _needed(name: str, size: tuple[Any, ...]) -> Size:
    if not size:
        raise TypeError(f"{name}: missing 1 required positional argument: 'size'.")
    return check_sizes(name, size)


# ---- counted ----


def arange(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: DType | None = None, device: Any = None,
    requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Count from start to end, end excluded; int64 when all arguments are ints, else the default float dtype."""
    if end is None:
        start, end = 0, start
    start, end, step = map(number, (start, end, step))
    for v in (start, end, step):
        if isinstance(v, complex) or not (math.isfinite(v) if isinstance(v, float) else True):
            raise RuntimeError(f"arange: unsupported range: {start} -> {end} with step {step}.")
    if dtype is None:
        dtype = get_default_dtype() if any(isinstance(v, float) for v in (start, end, step)) else int64
    if step == 0:
        raise RuntimeError("arange: step must be nonzero.")
    if (step > 0) != (end >= start) and end != start:
        raise RuntimeError(f"arange: upper bound and lower bound inconsistent with step sign: {start} -> {end}, step {step}.")
    where = resolve(device)
    dtype = check_dtype("arange", dtype, where)
    whole = all(isinstance(v, int) for v in (start, end, step))
    count = max(-((start - end) // step), 0) if whole else math.ceil((end - start) / step)
    k = where.backend
    if dtype.kind in "iu":
        # As in PyTorch: the values come from the numbers as integers, and so does int64's count; the other counts do not.
        if dtype is int64 and int(step):
            count = max(-((int(start) - int(end)) // int(step)), 0)
        start, step = int(start), int(step)
        if step:
            data = k.arange(start, start + count * step, step, dtype=dtype, device=where)
        else:
            data = k.full((count,), start, dtype=dtype, device=where)
    else:
        # start + i * step in the widest float, so that the count and the last value do not drift.
        data = k.astype(k.arange(0, count, 1, dtype=int64, device=where), _wide(k, where, dtype))
        data = k.astype(k.add(k.multiply(data, step), start), dtype)
    t = make(data, where, dtype, Size((count,)))
    return _into(out, finish(t, requires_grad, pin_memory))


def _wide(k: Any, device: Device, dtype: DType) -> DType:
    from mortice.dtype import complex128, float32, float64

    if dtype.is_complex:
        return complex128 if complex128 in k.dtypes(device) else dtype
    return float64 if float64 in k.dtypes(device) else float32


def range_(start: Any = 0, end: Any = None, step: Any = 1, **kwargs: Any) -> Any:
    """Count from start to end, end included. Deprecated: use arange."""
    warnings.warn(
        "mortice.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use mortice.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    kwargs.setdefault("dtype", get_default_dtype())
    count = math.floor((end - start) / step) + 1
    return arange(start, start + count * step - step / 2, step, **kwargs)


def linspace(
    start: Any, end: Any, steps: int, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Return `steps` values from start to end, both included."""
    start, end = number(start), number(end)
    try:
        steps = operator.index(steps)
    except TypeError:
        raise TypeError(f"linspace: expected steps to be an int; got {type(steps).__name__}.") from None
    if steps < 0:
        raise RuntimeError(f"linspace: number of steps must be non-negative; got {steps}.")
    if dtype is None:
        dtype = get_default_dtype()
        if isinstance(start, complex) or isinstance(end, complex):
            dtype = dtype.to_complex()
    where = resolve(device)
    dtype = check_dtype("linspace", dtype, where)
    if dtype.kind in "iu":
        start, end = int(start), int(end)
    k = where.backend
    wide = _wide(k, where, dtype)
    i = k.astype(k.arange(0, steps, 1, dtype=int64, device=where), wide)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    # The second half counts back from the end, so that the end is exact.
    up = k.add(k.multiply(i, step), start)
    down = k.subtract(end, k.multiply(k.subtract(steps - 1, i), step))
    half = k.less(k.arange(0, steps, 1, dtype=int64, device=where), max((steps + 1) // 2, 1))
    data = k.astype(k.where(half, up, down), dtype)
    return _into(out, finish(make(data, where, dtype, Size((steps,))), requires_grad, pin_memory))


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: DType | None = None, device: Any = None,
    requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Return base to the power of `linspace(start, end, steps)`."""
    where = resolve(device)
    dtype = check_dtype("logspace", dtype or get_default_dtype(), where)
    if dtype.kind in "iu":
        start, end = int(number(start)), int(number(end))
    powers = linspace(start, end, steps, dtype=_wide(where.backend, where, dtype), device=where)
    k = where.backend
    data = k.astype(k.pow(k.new_full(powers._data, powers.shape, base), powers._data), dtype)
    return _into(out, finish(make(data, where, dtype, powers.shape), requires_grad, pin_memory))


def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make an identity matrix, or n by m with ones on the diagonal."""
    n, m = operator.index(n), operator.index(n if m is None else m)
    for size in (n, m):
        if size < 0:
            raise ShapeError(f"eye: sizes must be greater or equal to 0; got {n}, {m}.")
    where = resolve(device)
    dtype = check_dtype("eye", dtype or get_default_dtype(), where)
    k = where.backend
    rows = k.reshape(k.arange(0, n, 1, dtype=int64, device=where), (n, 1))
    columns = k.reshape(k.arange(0, m, 1, dtype=int64, device=where), (1, m))
    data = k.astype(k.equal(rows, columns), dtype)
    return _into(out, finish(make(data, where, dtype, Size((n, m))), requires_grad, pin_memory))
