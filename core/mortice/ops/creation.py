"""Making tensors: filled, counted. Tensors from data are in `ops.data`, random ones in `ops.random`."""

from __future__ import annotations

import functools
import math
import operator
import sys
from importlib import import_module
from typing import Any

from mortice.backends.host import HostBuffer, pack
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import (
    DType,
    as_dtype,
    bfloat16,
    complex128,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int64,
    scalar_dtype,
)
from mortice.errors import DTypeError, ShapeError
from mortice.layout import strided
from mortice.levels import lane_by_lane
from mortice.modes import special
from mortice.notice import warn
from mortice.ops.data import check_dtype, converted, copying, finish, fit, number, tensor
from mortice.ops.movement import dense_order, in_format, in_order, keeps, reshape
from mortice.rules import as_stored, hold, rounded
from mortice.settings import settings
from mortice.shape import Size, check_sizes, missing, out_of_memory, remembered
from mortice.tensor import TensorBase, make

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "logspace", "ones", "ones_like", "scalar_tensor",
    "zeros", "zeros_like",
]  # fmt: skip


def filled(name: str, shape: Size, value: Any, dtype: DType, device: Device) -> Any:
    """Make a tensor of one number, for the function `name`."""
    if device.base is not device:
        device = device.of_values
    dtype = check_dtype(name, dtype, device)
    if isinstance(value, complex) and dtype.kind not in "bc" or dtype.kind == "f" and not -448 < value < 448:
        value = hold(name, value, dtype, shape)
    elif value and dtype.kind in "iub":
        value = fit([value], dtype)[0]
    try:
        stored = dtype.stored
        if stored is not dtype:
            value = as_stored(value, dtype)
        return make(device.backend.full(shape, value, dtype=stored, device=device), device, dtype, shape)
    except (MemoryError, ValueError, OverflowError) as error:
        raise out_of_memory(name, shape, dtype, error) from None


# ---- filled ----


def full(
    size: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make a tensor of one number; its dtype is the number's unless given."""
    shape = check_sizes("full", (size,) if not isinstance(size, (tuple, list)) else tuple(size))
    if out is not None:
        dtype, device = kind_of("full", out, dtype, device, layout)
    value = number(fill_value, "full", "fill_value")
    if dtype is None:  # an array library's own bool is, to PyTorch, just some number
        odd = type(value) is bool and fill_value is not value and not isinstance(fill_value, TensorBase)
        dtype = get_default_dtype() if odd else scalar_dtype(value)
    made = filled("full", shape, value, dtype, resolve(device))
    return given("full", made, out, requires_grad, pin_memory)


def kind_of(name: str, out: Any, dtype: Any, device: Any, layout: Any = None) -> tuple[Any, Any]:
    """Return the dtype and the device to make a tensor in: those of `out=`, which others that are asked for must equal."""
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}: expected out to be a Tensor; got {type(out).__name__}.")
    if dtype is not None and as_dtype(name, dtype) is not out.dtype:
        raise RuntimeError(f"{name}: dtype {dtype} does not match dtype of out parameter ({out.dtype}). Leave it out.")
    if device is not None and resolve(device).base is not out._device.base:
        raise RuntimeError(f"{name}: device {device} does not match device of out parameter ({out.device}). Leave it out.")
    if layout is not None and layout is not out.layout:
        raise RuntimeError(f"{name}: layout {layout} does not match layout of out parameter ({out.layout}). Leave it out.")
    return out.dtype, out._device


def given(name: str, made: Any, out: Any, requires_grad: bool = False, pin_memory: bool | None = False) -> Any:
    """Return what a function has made as it was asked for: a tensor of its own, or in the memory of `out=`."""
    if out is None:
        return finish(made, requires_grad, pin_memory) if requires_grad or pin_memory or special[0] else made
    from mortice.mutation import write_out

    write_out(name, out, made, aloud=name == "arange")
    return out.requires_grad_() if requires_grad else out


def _in_order(out: Any, made: Any) -> Any:
    """Return a vector in the shape of `out=`, which keeps it where it has as many elements."""
    return reshape(made, out.shape) if out is not None and out.numel() == made.numel() else made


def sized(name: str, sizes: tuple[Any, ...], size: Any) -> Size:
    """Return the sizes that are given by position or as `size=`."""
    if size is not None:
        if sizes:
            raise TypeError(f"{name}() got multiple values for argument 'size'")
        sizes = (size,)
    return check_sizes(name, sizes) if sizes else missing(name)


def zeros(
    *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make zeros, in the default float dtype unless given."""
    shape = sized("zeros", sizes, size)
    if layout is not None and layout is not strided and out is None:
        return import_module("mortice.sparse").nothing("zeros", shape, dtype, device, requires_grad, layout=layout)
    if out is not None:
        dtype, device = kind_of("zeros", out, dtype, device, layout)
    return given("zeros", filled("zeros", shape, 0, dtype or get_default_dtype(), resolve(device)), out, requires_grad, pin_memory)


def ones(
    *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make ones, in the default float dtype unless given."""
    shape = sized("ones", sizes, size)
    if out is not None:
        dtype, device = kind_of("ones", out, dtype, device, layout)
    return given("ones", filled("ones", shape, 1, dtype or get_default_dtype(), resolve(device)), out, requires_grad, pin_memory)


def _leftover(dtype: DType) -> Any:
    """Return what memory holds that was not written: 0, and what is easily noticed while deterministic kernels are asked for."""
    switch = sys.modules.get("mortice.utils.deterministic")
    if not settings.deterministic or not getattr(switch, "fill_uninitialized_memory", True):
        return 0
    return math.nan if dtype.kind in "fc" else dtype.kind == "b" or iinfo(dtype).max


def empty(
    *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool | None = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, in the default float dtype unless given."""
    shape = sized("empty", sizes, size)
    if layout is not None and layout is not strided and out is None:
        return import_module("mortice.sparse").nothing("empty", shape, dtype, device, requires_grad, layout=layout)
    if out is not None:
        dtype, device = kind_of("empty", out, dtype, device, layout)
    dtype = dtype or get_default_dtype()
    made = filled("empty", shape, _leftover(dtype), dtype, resolve(device))
    if memory_format is not None:
        made = in_format(made, memory_format)
    return given("empty", made, out, requires_grad, pin_memory)


def scalar_tensor(
    s: Any, *, dtype: DType | None = None, layout: Any = None, device: Any = None, pin_memory: bool | None = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make a 0-d tensor, in the default float dtype unless given."""
    dtype = dtype or get_default_dtype()
    return full((), s, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)


def _like(
    name: str, input: Any, value: Any, dtype: Any, device: Any, requires_grad: bool, pin_memory: bool, size: Any = None,
    memory_format: Any = None, layout: Any = None,
) -> Any:  # fmt: skip
    where = input._device if device is None else resolve(device)
    shape, order = size, None
    if size is not None:
        if not value and input.layout is not strided:
            made = import_module("mortice.sparse").nothing
            return made(name, size, dtype or input.dtype, device or input.device, requires_grad, layout=input.layout)
    else:
        if layout is not None or input._device.level is not None:
            layout = input.layout if layout is None else layout
            if layout is not strided or input.layout is not strided:
                made = import_module("mortice.sparse").like
                return made(input, value, dtype or input.dtype, device, layout).requires_grad_(requires_grad)
        shape = input.shape
        if keeps(memory_format) and (order := dense_order(input)) is not None:
            shape = Size([shape[d] for d in order])
    made = filled(name, shape, value, dtype or input.dtype, where)
    if order is not None:
        made = in_order(made, order)
    elif memory_format is not None:
        made = in_format(made, memory_format)
    return finish(made, requires_grad, pin_memory) if requires_grad or pin_memory or special[0] else made


def zeros_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make zeros of the same shape, dtype and device."""
    return _like("zeros_like", input, 0, dtype, device, requires_grad, pin_memory, memory_format=memory_format, layout=layout)


def ones_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make ones of the same shape, dtype and device."""
    return _like("ones_like", input, 1, dtype, device, requires_grad, pin_memory, memory_format=memory_format, layout=layout)


def empty_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, of the same shape, dtype and device."""
    value = _leftover(dtype or input.dtype)
    return _like("empty_like", input, value, dtype, device, requires_grad, pin_memory, memory_format=memory_format, layout=layout)


def full_like(
    input: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, memory_format: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Fill the same shape, dtype and device with one number."""
    value = number(fill_value, "full_like", "fill_value")
    return _like("full_like", input, value, dtype, device, requires_grad, pin_memory, memory_format=memory_format, layout=layout)


def new_zeros(
    self: Any, *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make zeros of the given size, in this tensor's dtype and on its device."""
    return _like("new_zeros", self, 0, dtype, device, requires_grad, pin_memory, sized("new_zeros", sizes, size))


def new_ones(
    self: Any, *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make ones of the given size, in this tensor's dtype and on its device."""
    return _like("new_ones", self, 1, dtype, device, requires_grad, pin_memory, sized("new_ones", sizes, size))


def new_empty(
    self: Any, *sizes: Any, size: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, in this tensor's dtype and on its device."""
    wanted = sized("new_empty", sizes, size)
    return _like("new_empty", self, _leftover(dtype or self.dtype), dtype, device, requires_grad, pin_memory, wanted)


def new_full(
    self: Any, size: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Fill the given size with one number, in this tensor's dtype and on its device."""
    value = number(fill_value, "new_full", "fill_value")
    return _like("new_full", self, value, dtype, device, requires_grad, pin_memory, check_sizes("new_full", (size,)))


def new_tensor(
    self: Any, data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Make a tensor from data, in this tensor's dtype and on its device."""
    device = device or (self._device.of_values if self.layout is strided else self._device.inner)
    if isinstance(data, TensorBase):
        copying("tensor.new_tensor")
        return finish(converted(data, dtype or self.dtype, device), requires_grad)
    return tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


# ---- counted ----


def _countable(name: str, dtype: DType, kinds: str) -> None:
    if dtype.kind not in kinds:
        raise DTypeError(f"{name}: not implemented for {dtype}; expected a dtype that counts.")


def _ends(name: str, start: Any, end: Any) -> tuple[Any, Any]:
    """Return where to count from and to: one number is the end, and without a start it is 0."""
    if end is None:
        return 0, missing(name, "end") if start is None else start
    return 0 if start is None else start, end


_LANES = {float64: 4, float32: 8, float16: 16, bfloat16: 16}


def arange(
    first: Any = None, /, end: Any = None, step: Any = None, *, start: Any = None, dtype: DType | None = None, device: Any = None,
    requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Count from start (0) to end, end excluded; int64 when all arguments are ints, else the default float dtype."""
    if start is not None or first is None:  # by name
        if first is not None or (start is None and step is not None):
            raise TypeError("arange() received an invalid combination of arguments: expected start once, and before step.")
        first = start if end is not None else None
    return _arange(first, end, 1 if step is None else step, dtype, device, requires_grad, out, pin_memory)


def _arange(
    start: Any, end: Any, step: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, pin_memory: bool | None = False, fused: bool = True,
) -> Any:  # fmt: skip
    start, end = _ends("arange", start, end)
    whole = start.__class__ is end.__class__ is step.__class__ is int
    if not whole:
        start, end, step = [number(v, "arange", n) for v, n in zip((start, end, step), ("start", "end", "step"))]
        whole = all([isinstance(v, int) for v in (start, end, step)])
    if out is not None:
        dtype, device = kind_of("arange", out, dtype, device)
    for v in () if whole else (start, end, step):
        if isinstance(v, complex) or not (math.isfinite(v) if isinstance(v, float) else True):
            raise RuntimeError(f"arange: unsupported range: {start} -> {end} with step {step}.")
    if dtype is None:
        dtype = int64 if whole else get_default_dtype()
    if step == 0:
        raise ShapeError("arange: step must be nonzero.")
    if (step > 0) != (end >= start) and end != start:
        raise RuntimeError(f"arange: upper bound and lower bound inconsistent with step sign: {start} -> {end}, step {step}.")
    where = resolve(device)
    dtype = check_dtype("arange", dtype, where, computes=True)
    _countable("arange", dtype, "iuf")
    count: Any = max(-((start - end) // step), 0) if whole else (end - start) / step
    if count * dtype.itemsize >= 1 << 63:
        raise RuntimeError(f"arange: Storage size calculation overflowed: {start} -> {end} with step {step}.")
    count = math.ceil(count)
    k = where.backend
    try:
        if dtype.kind in "iu":
            # As in PyTorch: the values come from the numbers as integers, and so does int64's count; the other counts do not.
            if dtype is int64 and not (whole and abs(start) < 2**53 > abs(step)):
                if not int(step):
                    raise ShapeError(f"arange: step must be nonzero; got {step}, which is 0 as int64. Use a float dtype.")
                count = max(-((int(start) - int(end)) // int(step)), 0)
                start, step = hold("arange", int(start), dtype), hold("arange", int(step), dtype)
            start, step = int(start), int(step)
            if step:
                data = k.arange(start, start + count * step, step, dtype=dtype, device=where)
            else:
                data = k.full((count,), start, dtype=dtype, device=where)
        elif fused:  # PyTorch counts in the vectors of its CPU kernels, and small numbers show their roundings
            data = k.ramp(float(start), float(step), count, _LANES.get(dtype, 0), dtype=dtype, device=where)
        else:
            index = k.astype(k.arange(0, count, 1, dtype=int64, device=where), _wide(k, where, dtype))
            data = k.astype(k.add(k.multiply(index, step), start), dtype)
    except MemoryError as error:
        raise out_of_memory("arange", Size((count,)), dtype, error) from None
    t = make(data, where, dtype, remembered((count,)))
    return given("arange", _in_order(out, t), out, requires_grad, pin_memory)


def _wide(k: Any, device: Device, dtype: DType) -> DType:
    if dtype.is_complex:
        return complex128 if complex128 in k.dtypes(device) else dtype
    return device.widest_float


def range_(start: Any = None, end: Any = None, step: Any = 1, **kwargs: Any) -> Any:
    """Count from start to end, end included. Deprecated: use arange."""
    warn(
        "mortice.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use mortice.arange, which produces values in [start, end)."
    )
    start, end = (missing("range", name) if v is None else v for name, v in (("start", start), ("end", end)))
    out, dtype = kwargs.get("out"), kwargs.get("dtype")
    kwargs["dtype"] = dtype = as_dtype("range", dtype or (get_default_dtype() if out is None else out.dtype))
    if whole := dtype.kind in "iu":
        start, end, step = int(start), int(end), int(step)
    count = math.floor((end - start) / step) + 1 if step else 0
    if count < 1:
        raise RuntimeError(f"range: step must be nonzero and lead from start to end; got {start} -> {end} with step {step}.")
    kwargs.pop("layout", None)
    return _arange(start, start + count * step - (0 if whole else step / 2), step, fused=False, **kwargs)


def _spaced(name: str, start: Any, end: Any, dtype: Any) -> Any:
    """Return the dtype of values between two numbers: the one asked for, which must hold them."""
    found = get_default_dtype()
    if isinstance(start, complex) or isinstance(end, complex):
        found = found.to_complex()
        if dtype is not None and not as_dtype(name, dtype).is_complex:
            raise RuntimeError(f"torch.{name}(): inferred dtype {found} can't be safely cast to passed dtype {dtype}; got {start}, {end}.")
    found = as_dtype(name, dtype or found)
    _countable(name, found, "iufc")
    return found


_PLAIN = (int, float)  # most ends of lines


def _unchanged(value: Any) -> Any:
    return value


def _line(name: str, start: Any, end: Any, steps: Any) -> tuple[Any, Any, int]:
    """Return both ends as numbers, and how many steps there are."""
    if not (steps.__class__ is int and start.__class__ in _PLAIN and end.__class__ in _PLAIN):
        dims = [x.ndim if isinstance(x, TensorBase) else 0 for x in (start, end)]
        if any(dims):
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got start with {dims[0]} dimension(s) and end "
                f"with {dims[1]} dimension(s)."
            )
        try:
            start, end, steps = number(start), number(end), operator.index(steps)
        except TypeError:
            kinds = ", ".join([type(x).__name__ for x in (start, end, steps)])
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got ({kinds}), but expected numbers and an int"
            ) from None
    if steps < 0:
        raise RuntimeError(f"{name}: number of steps must be non-negative; got {steps}.")
    return start, end, steps


@lane_by_lane
def linspace(
    start: Any, end: Any, steps: int, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Return `steps` values from start to end, both included."""
    start, end, steps = _line("linspace", start, end, steps)
    if out is not None:
        dtype, device = kind_of("linspace", out, dtype, device)
    where = resolve(device)
    dtype = check_dtype("linspace", _spaced("linspace", start, end, dtype), where, computes=True)
    if dtype.kind in "iuf":
        start, end = hold("linspace", start, dtype), hold("linspace", end, dtype)
    k = where.backend
    short = dtype.kind == "f" and dtype.itemsize == 2
    wide = dtype if short else _wide(k, where, dtype)
    # As in PyTorch start, end and step are numbers of the dtype, and 16 bits are rounded at each operation.
    fine = functools.partial(rounded, d=dtype) if dtype.kind == "f" and dtype is not float64 else _unchanged
    start, end = fine(start), fine(end)
    step = fine(fine(end - start) / (steps - 1)) if steps > 1 else 0.0

    def line(base: Any, step: Any, count: int) -> Any:
        return k.add(k.multiply(k.astype(k.arange(0, count, 1, dtype=int64, device=where), wide), step), base)

    try:
        # The second half counts back from the end, so that the end is exact.
        if short or wide.is_complex:
            half = steps // 2 or steps
            up, down = line(start, step, half), line(end, -step, steps - half)
            data = k.concat([up, k.flip(down, axis=0)], axis=0)
        else:
            kind = dtype if dtype.kind == "f" else wide
            data = k.ramp(float(start), float(step), steps, 0, dtype=kind, device=where, end=float(end))
        data = data if k.dtype_of(data) is dtype else k.astype(data, dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        raise out_of_memory("linspace", Size((steps,)), dtype, error) from None
    made = _in_order(out, make(data, where, dtype, remembered((steps,))))
    return given("linspace", made, out, requires_grad, pin_memory)


def _power(base: float, p: float) -> float:
    try:
        return math.pow(base, p)
    except OverflowError:
        return -math.inf if base < 0 and p % 2 else math.inf
    except ValueError:
        return math.nan if base else math.inf


@lane_by_lane
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: DType | None = None, device: Any = None,
    requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Return base to the power of `linspace(start, end, steps)`."""
    start, end, steps = _line("logspace", start, end, steps)
    if out is not None:
        dtype, device = kind_of("logspace", out, dtype, device)
    where = resolve(device)
    dtype = check_dtype("logspace", _spaced("logspace", start, end, dtype), where, computes=True)
    if steps >> 40:  # it would count them one by one
        raise out_of_memory("logspace", Size((steps,)), dtype, MemoryError())
    if dtype.kind in "iu" and steps != 1:
        start, end = int(start), int(end)
    base = float(number(base, "logspace", "base"))
    k, wide = where.backend, _wide(where.backend, where, dtype)
    if dtype.is_complex:
        powers = linspace(start, end, steps, dtype=wide, device=where)._buffer
        made = k.pow(k.new_full(powers, (steps,), base), powers)
    else:  # as in PyTorch: the two ends and their distance are numbers of the dtype, all else is doubles
        narrow = dtype.kind == "f" and dtype is not float64 and steps != 1
        fine = functools.partial(rounded, d=dtype) if narrow else _unchanged
        start, end = fine(start), fine(end)
        step = fine(end - start) / (steps - 1) if steps > 1 else 0.0
        half = steps // 2 or steps
        if dtype is float32 and wide is float64 and base > 0:  # rounded to float32, powers are those of the C library
            count = k.arange(0, steps, 1, dtype=wide, device=where)
            up = k.add(k.multiply(count, step), float(start))
            back = k.subtract(float(end), k.multiply(k.subtract(steps - 1, count), step))
            made = k.pow(base, k.concat([k.getitem(up, (slice(0, half),)), k.getitem(back, (slice(half, steps),))], axis=0))
        else:
            powers = [start + step * i if i < half else end - step * (steps - i - 1) for i in range(steps)]
            made = k.from_host(HostBuffer(pack([_power(base, p) for p in powers], wide), (steps,), wide), where)
    return given("logspace", _in_order(out, make(k.astype(made, dtype), where, dtype, Size((steps,)))), out, requires_grad, pin_memory)


def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Make an identity matrix, or n by m with ones on the diagonal."""
    n, m = operator.index(n), operator.index(n if m is None else m)
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise ShapeError(f"eye: {name} must be greater or equal to 0, got {size}")
    if out is not None:
        dtype, device = kind_of("eye", out, dtype, device)
    where = resolve(device)
    dtype = check_dtype("eye", dtype or get_default_dtype(), where)
    k = where.backend
    try:
        data = k.full((n * m,), 0, dtype=dtype.stored, device=where)
        if count := min(n, m):
            data = k.setitem(data, (slice(0, (count - 1) * (m + 1) + 1, m + 1),), as_stored(hold("eye", 1, dtype), dtype))
        data = k.reshape(data, (n, m))
    except (MemoryError, ValueError, OverflowError) as error:
        raise out_of_memory("eye", Size((n, m)), dtype, error) from None
    return given("eye", make(data, where, dtype, Size((n, m))), out, requires_grad, pin_memory)
