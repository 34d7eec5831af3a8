"""Making tensors: from data, filled, counted. Random tensors are in `ops.random`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from mortice.backends.host import HostBuffer, from_buffer, pack
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import DType, bool_, get_default_dtype, int64, promote_types, scalar_dtype
from mortice.errors import DTypeError, ShapeError
from mortice.modes import modes, special
from mortice.op import TensorBase
from mortice.ops.movement import cast, clone, stack, transfer
from mortice.shape import Size, check_sizes
from mortice.tensor import make

__all__ = [
    "arange", "as_tensor", "asarray", "empty", "empty_like", "eye", "from_numpy", "frombuffer", "full", "full_like",
    "linspace", "logspace", "ones", "ones_like", "scalar_tensor", "tensor", "zeros", "zeros_like",
]  # fmt: skip


def finish(t: Any, requires_grad: bool) -> Any:
    """Set requires_grad on a new tensor, where it is asked for, and note what is made under inference_mode."""
    if special[0] and modes.inference and t._storage is None and t._node is None:
        t.__dict__["_inference"] = True
    if requires_grad:
        t.requires_grad = True
    return t


def filled(shape: Size, value: Any, dtype: DType, device: Device) -> Any:
    """Make a tensor of one number."""
    if value and dtype.kind in "iub":
        value = _fit([value], dtype)[0]
    if isinstance(value, complex) and dtype.kind != "c":
        if value.imag:
            raise RuntimeError(f"full: value cannot be converted to type {dtype.name} without overflow; got {value}.")
        value = value.real
    return make(device.backend.full(shape, value, dtype=check_dtype("full", dtype, device), device=device), device, dtype, shape)


def check_dtype(name: str, dtype: Any, device: Device) -> DType:
    """Refuse what is no dtype, and dtypes that the device does not have."""
    if not isinstance(dtype, DType):
        raise TypeError(f"{name}: expected dtype to be a mortice dtype; got {dtype!r}.")
    if dtype not in device.backend.dtypes(device):
        raise DTypeError(f"{name}: {device} of backend {device.backend.name} has no {dtype.name}. Use another dtype.")
    return dtype


def from_host(values: list[Any], shape: Any, dtype: DType, device: Device) -> Any:
    """Make a tensor from Python numbers in row-major order."""
    host = HostBuffer(pack(values, dtype), shape, dtype)
    data = device.backend.from_host(host, device)
    return make(data, device, dtype, host.shape)


# ---- from data ----


def _walk(data: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Flatten nested sequences; returns the leaves and the shape."""
    if not isinstance(data, (list, tuple, range)):
        return [data], ()
    if not data:
        return [], (0,)
    parts = [_walk(item) for item in data]
    first = parts[0][1]
    for i, (_, shape) in enumerate(parts):
        if shape != first:
            want = f"length {first[0]}" if first else "a number"
            have = f"{shape[0]}" if shape else "a number"
            raise ValueError(f"tensor: expected sequence of {want} at dim {1} (got {have} at position {i})")
    flat = [leaf for leaves, _ in parts for leaf in leaves]
    return flat, (len(data), *first)


def _number(value: Any) -> Any:
    """Return a leaf of nested data as a Python number."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, TensorBase):
        if value.numel() != 1:
            kind = ValueError if value.dtype.kind in "fc" else TypeError
            raise kind(
                "tensor: only one element tensors can be converted to Python scalars; got a tensor of shape "
                f"{list(value.shape)} inside a list. Use mortice.stack(list) to join tensors."
            )
        return value.item()
    if hasattr(value, "item"):
        return value.item()
    for method in ("__index__", "__float__", "__complex__"):
        if hasattr(type(value), method):
            return getattr(value, method)()
    raise TypeError(f"tensor: could not infer dtype of {type(value).__name__}. Pass numbers, lists of them, or arrays.")


def _infer(values: list[Any]) -> DType:
    result = bool_ if values else get_default_dtype()
    for kind in {type(v): v for v in values}.values():
        d = scalar_dtype(kind)
        result = d if result is bool_ else promote_types(result, d)
    return result


def _fit(values: list[Any], dtype: DType) -> list[Any]:
    """Convert Python numbers to what `dtype` holds."""
    kind = dtype.kind
    try:
        if kind == "b":
            return [bool(v) for v in values]
        if kind == "f":
            return [float(v) for v in values]
        if kind == "c":
            return [complex(v) for v in values]
        top, mask = 1 << (8 * dtype.itemsize), (1 << (8 * dtype.itemsize)) - 1
        out = []
        for v in values:
            n = int(v)
            low, high = (-(top >> 1), (top >> 1) - 1) if kind == "i" else (0, mask)
            if not low <= n <= high:
                if isinstance(v, float) or not -(top >> 1) <= n <= high:
                    raise RuntimeError(f"tensor: value cannot be converted to type {dtype.name} without overflow; got {v!r}.")
                n &= mask  # PyTorch lets negative numbers wrap in unsigned types
            out.append(n)
        return out
    except TypeError as error:
        raise TypeError(f"tensor: expected numbers that {dtype.name} can hold; got {error}.") from None
    except (OverflowError, ValueError) as error:
        raise RuntimeError(f"tensor: value cannot be converted to type {dtype.name} without overflow ({error}).") from None


def is_array(value: Any) -> bool:
    """Tell whether an object of another library holds an array."""
    return not isinstance(value, (bytes, str)) and (
        hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__") or isinstance(value, (memoryview, bytearray))
        or hasattr(value, "__array__")
    )  # fmt: skip


def host_view(value: Any) -> HostBuffer:
    """Return an array of another library as a host buffer, without a copy where it offers one."""
    try:
        return from_buffer(value)
    except (TypeError, BufferError, ValueError, DTypeError):
        pass
    name = str(getattr(value, "dtype", ""))
    if name == "bfloat16" and hasattr(value, "tobytes"):
        from mortice.dtype import bfloat16

        return HostBuffer(bytearray(value.tobytes()), value.shape, bfloat16)
    if hasattr(value, "__array__") and not hasattr(value, "__array_interface__"):
        return from_buffer(value.__array__())
    if hasattr(value, "copy"):
        try:
            return from_buffer(value.copy())
        except (TypeError, ValueError, BufferError):
            pass
    raise TypeError(
        f"tensor: can't convert {type(value).__name__} of type {name or 'unknown'}. The supported types are: float64, "
        "float32, float16, bfloat16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool."
    )


def tensor(
    data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Any:
    """Make a tensor from numbers, nested lists or an array; always copies. The dtype is inferred when not given."""
    if isinstance(data, TensorBase):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than mortice.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        where = data._device if device is None else resolve(device)
        copied = clone(transfer(data.detach(), where))
        return finish(copied if dtype is None else cast(copied, dtype), requires_grad)
    where = resolve(device)
    if dtype is not None:
        check_dtype("tensor", dtype, where)
    if is_array(data):
        host = host_view(data)
        if dtype is None or dtype is host.dtype:
            check_dtype("tensor", host.dtype, where)
            return finish(make(where.backend.from_host(host, where), where, host.dtype, host.shape), requires_grad)
        values, shape = _flat_list(host), host.shape
        return finish(from_host(_fit(values, dtype), shape, dtype, where), requires_grad) if host.dtype not in (
            where.backend.dtypes(where)
        ) else finish(
            cast(make(where.backend.from_host(host, where), where, host.dtype, host.shape), dtype), requires_grad
        )
    if isinstance(data, (list, tuple)) and data and is_array(data[0]) and not isinstance(data[0], TensorBase) and getattr(data[0], "shape", ()):  # noqa: E501
        parts = [tensor(item, device=where) for item in data]
        joined = stack(parts)
        return finish(joined if dtype is None else cast(joined, dtype), requires_grad)
    if isinstance(data, (str, bytes)) or data is None:
        raise TypeError(f"tensor: could not infer dtype of {type(data).__name__}. Pass numbers, lists of them, or arrays.")
    leaves, shape = _walk(data)
    if leaves and isinstance(leaves[0], TensorBase) and leaves[0].shape:
        _number(leaves[0])
    values = [v if type(v) in (int, float, bool) else _number(v) for v in leaves]
    found = dtype or _inferred(leaves, values)
    return finish(from_host(_fit(values, found), shape, found, where), requires_grad)


def _inferred(leaves: list[Any], values: list[Any]) -> DType:
    """Infer a dtype; tensors and array scalars among the leaves keep their own."""
    own = [v.dtype for v in leaves if isinstance(v, TensorBase)]
    if own and len(own) == len(leaves):
        found = own[0]
        for d in own[1:]:
            found = promote_types(found, d)
        return found
    if leaves and all(type(v).__module__ == "numpy" for v in leaves):
        return from_buffer(leaves[0].reshape(1)).dtype
    return _infer(values)


def _flat_list(host: HostBuffer) -> list[Any]:
    from mortice.backends.host import unpack

    return unpack(host.tobytes(), host.dtype)


def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Any:
    """Make a tensor, sharing the data's memory where dtype and device allow."""
    if isinstance(data, TensorBase):
        moved = data if device is None else transfer(data, resolve(device))
        return moved if dtype is None else cast(moved, dtype)
    if is_array(data):
        shared = share(host_view(data), resolve(device))
        return shared if dtype is None else cast(shared, dtype)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Any:
    """Make a tensor from any object; `copy` True always copies, False never."""
    made = as_tensor(obj, dtype, device)
    if copy and (isinstance(obj, TensorBase) or is_array(obj)):
        made = clone(made.detach())
    if copy is False and made is not obj and not is_array(obj):
        raise ValueError(f"asarray: can't alias the memory of {type(obj).__name__}; pass copy=None or copy=True.")
    return finish(made, requires_grad) if requires_grad else made


def share(host: HostBuffer, device: Device) -> Any:
    """Make a tensor over host memory where the backend can."""
    check_dtype("from_numpy", host.dtype, device)
    t = make(device.backend.share_host(host, device), device, host.dtype, host.shape)
    t.own_storage().pinned = True
    return t


def from_numpy(ndarray: Any) -> Any:
    """Make a tensor that shares the memory of a NumPy array."""
    if not hasattr(ndarray, "__array_interface__") or not hasattr(ndarray, "strides"):
        raise TypeError(f"from_numpy: expected np.ndarray; got {type(ndarray).__name__}.")
    return share(host_view(ndarray), resolve())


def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """Make a 1-D tensor that shares the memory of a PEP 3118 buffer."""
    view = memoryview(buffer).cast("B")
    if offset < 0 or offset >= max(len(view), 1):
        raise ValueError(f"frombuffer: offset must be inside the buffer of {len(view)} bytes; got {offset}.")
    if count < 0:
        if (len(view) - offset) % dtype.itemsize:
            raise ValueError(
                f"frombuffer: {len(view) - offset} bytes after the offset are no whole number of {dtype.name} elements."
            )
        count = (len(view) - offset) // dtype.itemsize
    if count == 0 or offset + count * dtype.itemsize > len(view):
        raise ValueError(
            f"frombuffer: {count} elements of {dtype.name} from {offset} do not fit; got a buffer of {len(view)} bytes."
        )
    part = view[offset : offset + count * dtype.itemsize]
    return finish(share(HostBuffer(part, (count,), dtype), resolve()), requires_grad)


# ---- filled ----


def full(
    size: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make a tensor of one number; its dtype is the number's unless given."""
    shape = check_sizes("full", (size,) if not isinstance(size, (tuple, list)) else tuple(size))
    if isinstance(fill_value, TensorBase):
        fill_value = fill_value.item()
    where = resolve(device)
    return _into(out, finish(filled(shape, fill_value, dtype or scalar_dtype(fill_value), where), requires_grad))


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
    return _into(out, finish(filled(shape, 0, dtype or get_default_dtype(), resolve(device)), requires_grad))


def ones(
    *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool = False, **named: Any,
) -> Any:  # fmt: skip
    """Make ones, in the default float dtype unless given."""
    shape = _sized("ones", size, named.pop("size", None))
    return _into(out, finish(filled(shape, 1, dtype or get_default_dtype(), resolve(device)), requires_grad))


def empty(
    *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, out: Any = None,
    layout: Any = None, pin_memory: bool = False, memory_format: Any = None, **named: Any,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, in the default float dtype unless given."""
    shape = _sized("empty", size, named.pop("size", None))
    return _into(out, finish(filled(shape, 0, dtype or get_default_dtype(), resolve(device)), requires_grad))


def scalar_tensor(s: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Make a 0-d tensor, in the default float dtype unless given."""
    return full((), s, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


def _like(input: Any, value: Any, dtype: Any, device: Any, requires_grad: bool, size: Any = None) -> Any:
    where = input._device if device is None else resolve(device)
    shape = input.shape if size is None else size
    return finish(filled(shape, value, dtype or input.dtype, where), requires_grad)


def zeros_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make zeros of the same shape, dtype and device."""
    return _like(input, 0, dtype, device, requires_grad)


def ones_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make ones of the same shape, dtype and device."""
    return _like(input, 1, dtype, device, requires_grad)


def empty_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, of the same shape, dtype and device."""
    return _like(input, 0, dtype, device, requires_grad)


def full_like(
    input: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, memory_format: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Fill the same shape, dtype and device with one number."""
    value = fill_value.item() if isinstance(fill_value, TensorBase) else fill_value
    return _like(input, value, dtype, device, requires_grad)


def new_zeros(
    self: Any, *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make zeros of the given size, in this tensor's dtype and on its device."""
    return _like(self, 0, dtype, device, requires_grad, _needed("new_zeros", size))


def new_ones(
    self: Any, *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make ones of the given size, in this tensor's dtype and on its device."""
    return _like(self, 1, dtype, device, requires_grad, _needed("new_ones", size))


def new_empty(
    self: Any, *size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make a tensor of unspecified contents, in this tensor's dtype and on its device."""
    return _like(self, 0, dtype, device, requires_grad, _needed("new_empty", size))


def new_full(
    self: Any, size: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Fill the given size with one number, in this tensor's dtype and on its device."""
    return _like(self, fill_value, dtype, device, requires_grad, check_sizes("new_full", (size,)))


def new_tensor(
    self: Any, data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Make a tensor from data, in this tensor's dtype and on its device."""
    if isinstance(data, TensorBase):
        return finish(cast(clone(data.detach()), dtype or data.dtype), requires_grad)
    return tensor(data, dtype=dtype or self.dtype, device=device or self._device, requires_grad=requires_grad)


def _needed(name: str, size: tuple[Any, ...]) -> Size:
    if not size:
        raise TypeError(f"{name}: missing 1 required positional argument: 'size'.")
    return check_sizes(name, size)


# ---- counted ----


def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: DType | None = None, device: Any = None,
    requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Count from start to end, end excluded; int64 when all arguments are ints, else the default float dtype."""
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, TensorBase) else v for v in (start, end, step))
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
    check_dtype("arange", dtype, where)
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
    return _into(out, finish(t, requires_grad))


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
    start, end = (v.item() if isinstance(v, TensorBase) else v for v in (start, end))
    if not isinstance(steps, int):
        raise TypeError(f"linspace: expected steps to be an int; got {type(steps).__name__}.")
    if steps < 0:
        raise RuntimeError(f"linspace: number of steps must be non-negative; got {steps}.")
    if dtype is None:
        dtype = get_default_dtype()
        if isinstance(start, complex) or isinstance(end, complex):
            dtype = dtype.to_complex()
    where = resolve(device)
    check_dtype("linspace", dtype, where)
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
    return _into(out, finish(make(data, where, dtype, Size((steps,))), requires_grad))


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: DType | None = None, device: Any = None,
    requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Return base to the power of `linspace(start, end, steps)`."""
    dtype = dtype or get_default_dtype()
    if dtype.kind in "iu":
        start, end = (int(v.item() if isinstance(v, TensorBase) else v) for v in (start, end))
    where = resolve(device)
    powers = linspace(start, end, steps, dtype=_wide(where.backend, where, dtype), device=where)
    k = where.backend
    data = k.astype(k.pow(k.new_full(powers._data, powers.shape, base), powers._data), check_dtype("logspace", dtype, where))
    return _into(out, finish(make(data, where, dtype, powers.shape), requires_grad))


def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make an identity matrix, or n by m with ones on the diagonal."""
    m = n if m is None else m
    for size in (n, m):
        if size < 0:
            raise ShapeError(f"eye: sizes must be greater or equal to 0; got {n}, {m}.")
    where, dtype = resolve(device), dtype or get_default_dtype()
    k = where.backend
    rows = k.reshape(k.arange(0, n, 1, dtype=int64, device=where), (n, 1))
    columns = k.reshape(k.arange(0, m, 1, dtype=int64, device=where), (1, m))
    data = k.astype(k.equal(rows, columns), check_dtype("eye", dtype, where))
    return _into(out, finish(make(data, where, dtype, Size((n, m))), requires_grad))
