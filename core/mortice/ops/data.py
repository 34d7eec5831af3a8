"""Tensors from data: numbers, nested lists, and the arrays and buffers of other libraries, whose memory they can share."""

from __future__ import annotations

import sys
from itertools import chain, zip_longest

from mortice import call as _call
from mortice.backends.host import HostBuffer, from_buffer, pack, unpack
from mortice.backends.plugins import default_backend, devices_of, resolve
from mortice.device import Device
from mortice.dtype import (
    DType,
    as_dtype,
    bfloat16,
    dtype_of_all,
    get_default_dtype,
    int64,
    no_float8,
    promote_types,
    scalar_dtype,
)
from mortice.errors import DataError, DTypeError
from mortice.interop import as_ndarray, is_capsule, is_ndarray, is_number
from mortice.modes import modes, special
from mortice.node import TENSOR_KERNELS
from mortice.ops.movement import cast, clone, transfer
from mortice.rules import number_of
from mortice.shape import SCALAR, Size, remembered
from mortice.tensor import INFERENCE, TensorBase, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["as_tensor", "asarray", "from_dlpack", "from_numpy", "frombuffer", "tensor"]


# Devices of this type may lock memory of the host for themselves.
PINNING = "cuda"


def finish(t: Any, requires_grad: bool, pin_memory: bool = False) -> Any:
    """Pin a new tensor and set its requires_grad where that is asked for, and note what is made under inference_mode."""
    if pin_memory:
        t = _pinned(t)
    if special[0] and modes.inference and t._storage is None and t._node is None:
        t._note = INFERENCE
    if requires_grad:
        t.requires_grad = True
    return t


def _pinned(t: Any) -> Any:
    if t._device.type == "cpu" and not devices_of(PINNING):
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this "
            "system. Leave it out."
        )
    return t.pin_memory()


def check_dtype(name: str, dtype: Any, device: Device, computes: bool = False) -> DType:
    """Refuse what is no dtype, and dtypes that the device does not have; of float8, which it only stores, what `computes`."""
    found = dtype if dtype.__class__ is DType else as_dtype(name, dtype)
    if found not in (known := device.backend.dtypes(device)):
        if found.stored in known:
            if computes:
                raise no_float8(name, found)
            return found
        raise DTypeError(f"{name}: {device} of backend {device.backend.name} has no {found.name}. Use another dtype.")
    return found


def from_host(values: list[Any], shape: Any, dtype: DType, device: Device) -> Any:
    """Make a tensor from Python numbers in row-major order."""
    host = HostBuffer(pack(values, dtype), shape, dtype)
    data = device.backend.from_host(host, device)
    return make(data, device, dtype, host.shape)


def range_of(t: Any) -> tuple[Any, Any] | None:
    """Read the least and the greatest element, for a check; None where there are none to read, or none yet: in a capture."""
    if not t._device.backend.has_values or (modes.capture is not None and modes.capture.device is t._device.base):
        return None
    return t._device.backend.index_range(t._buffer)


def refuse_outside(t: Any, low: int, high: int, error: Callable[[int], Exception], allowed: int | None = None) -> Any:
    """Raise error(value) for an element outside [low, high] that is not `allowed`; return the ends, None where they are not read.

    A device that runs behind is not waited for: the backend raises when it next is.
    """
    if not t._device.backend.has_values or (modes.capture is not None and modes.capture.device is t._device.base):
        return None
    return t._device.backend.refuse_outside(t._buffer, low, high, error, allowed)


# ---- numbers and nested lists ----

_NUMBERS = frozenset((bool, int, float, complex))
_LEAVES, _LISTS, _INTS, _FLOATS = _NUMBERS | {list}, {list}, {int}, {float}


def _walk(data: Any, dim: int = 1) -> tuple[list[Any], tuple[int, ...]]:
    """Flatten nested sequences; returns the leaves and the shape. `dim` is that of what the items hold."""
    if type(data) is list and set(map(type, data)) == _LISTS and len(set(map(len, data))) == 1:  # a matrix, usually
        leaves = list(chain.from_iterable(data))
        if _NUMBERS.issuperset(map(type, leaves)):
            return leaves, (len(data), len(data[0]))
    if type(data) in _NUMBERS or isinstance(data, TensorBase):
        return [data], ()
    if type(data) is not list and is_array(data):
        shape = tuple(getattr(data, "shape", ()))
        return (list(data.reshape(-1)), shape) if shape else ([data], ())
    if not is_sequence(data):
        return [data], ()
    try:
        items = list(data)
    except (TypeError, KeyError) as error:
        raise DataError(f"tensor: could not determine the shape of object type {type(data).__name__}: {error}") from None
    if _NUMBERS.issuperset(map(type, items)):
        return items, (len(items),)
    parts = [_walk(item, dim + 1) for item in items]
    if not parts:
        return [], (0,)
    _check_alike([shape for _, shape in parts], dim)
    flat = [leaf for leaves, _ in parts for leaf in leaves]
    return flat, (len(parts), *parts[0][1])


def _check_alike(shapes: list[Any], dim: int) -> None:
    for i, shape in enumerate(shapes):
        if shape == shapes[0]:
            continue
        for want, have in zip_longest(shapes[0], shape):
            if want != have:
                want, have = "a number" if want is None else f"length {want}", "a number" if have is None else have
                raise DataError(f"tensor: expected sequence of {want} at dim {dim} (got {have} at position {i})")
            dim += 1


def is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return True
    return hasattr(value, "__getitem__") and hasattr(value, "__len__") and not isinstance(value, (dict, str, bytes))


def number(value: Any, name: str = "", argument: str = "") -> Any:
    """Return a number, such as a leaf of nested data, as Python has it; for a function's argument a tensor may have no gradient."""
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, TensorBase):
        if name and value.numel() == 1:
            return number_of(name, argument, value)
        if value.numel() != 1:
            what = "integer tensors of a single element can be converted to an index"
            if value.dtype.kind not in "ui":
                what = "one element tensors can be converted to Python scalars"
            raise DataError(
                f"tensor: only {what}; got a tensor of shape {list(value.shape)} inside a list. Use mortice.stack(list) to join tensors."
            )
        return value.item()
    if hasattr(value, "item"):
        return value.item()
    for method in ("__index__", "__float__", "__complex__"):
        if hasattr(type(value), method):
            return getattr(value, method)()
    raise DataError(f"tensor: Could not infer dtype of {type(value).__name__}, an invalid data type. Pass numbers, lists, or arrays.")


def fit(values: list[Any], dtype: DType) -> list[Any]:
    """Convert Python numbers to what `dtype` holds."""
    kind = dtype.kind
    if (kind == "f" or dtype is int64) and {float if kind == "f" else int}.issuperset(map(type, values)):
        if kind == "f" or not values or -(1 << 63) <= min(values) <= max(values) < 1 << 63:
            return values
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
                if kind == "i" or isinstance(v, float) or not -mask <= n <= high:
                    raise OverflowError(f"got {v!r}")
                n &= mask  # PyTorch lets negative numbers wrap in unsigned types
            out.append(n)
        return out
    except TypeError as error:
        raise DataError(f"tensor: expected numbers that {dtype.name} can hold; got {error}.") from None
    except (OverflowError, ValueError) as error:
        raise DataError(f"tensor: value cannot be converted to type {dtype.name} without overflow; {error}.") from None


def _inferred(leaves: list[Any]) -> DType:
    """Infer a dtype; tensors and array scalars among the leaves have their own."""
    if not leaves:
        return get_default_dtype()
    kinds = dict(zip(map(type, leaves), leaves))
    if not _NUMBERS.issuperset(kinds):
        kinds = {v.dtype if isinstance(v, TensorBase) else type(v): v for v in leaves}
    found = None
    for kind, value in kinds.items():
        d = scalar_dtype(value) if kind in _NUMBERS else _own_dtype(value)
        found = d if found is None else promote_types(found, d)
    assert found is not None
    return found


def _own_dtype(value: Any) -> DType:
    if isinstance(value, TensorBase):
        return value.dtype
    if type(value) not in _NUMBERS and hasattr(value, "dtype"):
        return host_view(value).dtype
    return scalar_dtype(number(value))


def copying(name: str) -> None:
    """Warn of a tensor that is given for numbers."""
    from mortice.notice import warn

    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor)."
    )


def tensor(
    data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Any:
    """Make a tensor from numbers, nested lists or an array; always copies. The dtype is inferred when not given."""
    if isinstance(data, TensorBase):
        copying("mortice.tensor")
        return finish(converted(data, dtype, device), requires_grad, pin_memory)
    where = resolve(device)
    if dtype is not None:
        dtype = check_dtype("tensor", dtype, where)
    if type(data) is list and data:
        numbers, shape, kinds = data, (len(data),), set(map(type, data))
        if kinds == _LISTS and len(set(map(len, data))) == 1:
            numbers, shape = list(chain.from_iterable(data)), (len(data), len(data[0]))
            kinds = set(map(type, numbers))
        if kinds == _INTS or kinds == _FLOATS:
            found = dtype or (int64 if kinds == _INTS else get_default_dtype())
            return finish(from_host(fit(numbers, found), shape, found, where), requires_grad, pin_memory)
    if type(data) in _NUMBERS:
        found = dtype or scalar_dtype(data)
        if _is_simple(data, found):
            made = make(where.backend.full(SCALAR, fit([data], found)[0], dtype=found, device=where), where, found, SCALAR)
            return finish(made, requires_grad, pin_memory)
    if type(data) is not list and (is_ndarray(data) or is_array(data)):
        return finish(_of_array("tensor", data, dtype, where, True), requires_grad, pin_memory)
    if type(data) is not list and hasattr(data, "elements_as"):  # a storage
        return finish(converted(data.elements_as(dtype), None, device), requires_grad, pin_memory)
    if isinstance(data, (list, tuple)) and data and type(data[0]) not in _LEAVES and _is_part(data[0]):
        joined = _joined(data, where)
        if joined is not None:
            return finish(joined if dtype is None else cast(joined, dtype), requires_grad, pin_memory)
        parts = [_of_array("tensor", p, None, where, True) if _is_part(p) else tensor(p, device=where) for p in data]
        _check_alike([part.shape for part in parts], 1)
        found = dtype or dtype_of_all(parts)
        return finish(TENSOR_KERNELS.stack([cast(part, found) for part in parts], 0), requires_grad, pin_memory)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"tensor: new(): invalid data type '{type(data).__name__}'. Pass numbers, lists of them, or arrays.")
    try:
        leaves, shape = _walk(data)
    except RecursionError:
        raise TypeError("tensor: the lists lie too deep in each other, or one is inside itself.") from None
    if leaves and isinstance(leaves[0], str):
        raise ValueError("tensor: too many dimensions 'str'; expected numbers.")
    if leaves and isinstance(leaves[0], TensorBase) and leaves[0].shape:
        number(leaves[0])
    found = dtype or _inferred(leaves)
    if not _NUMBERS.issuperset(map(type, leaves)):
        leaves = [number(v) for v in leaves]
    return finish(from_host(fit(leaves, found), shape, found, where), requires_grad, pin_memory)


def _is_simple(value: Any, d: DType) -> bool:
    """Tell whether every backend converts a number to a dtype alike: it is not rounded twice, nor beyond what there is."""
    if type(value) is complex or d.kind == "c":
        return False
    return d.kind != "f" or (d.itemsize >= 4 and -3e38 < value < 3e38)


_call.FROM_NUMBER = tensor


def _is_part(value: Any) -> bool:
    """Tell whether an item of a list is an array of several elements, better joined with the others than taken apart."""
    return not isinstance(value, TensorBase) and is_array(value) and bool(getattr(value, "shape", ()))


def _joined(arrays: Any, device: Device) -> Any:
    """Join NumPy arrays of one shape and dtype by the bytes that they hold; None where they are not such, or lie otherwise."""
    if not all(map(is_ndarray, arrays)) or len({(a.dtype, a.shape) for a in arrays}) > 1:
        return None
    try:
        whole = b"".join(arrays)
    except (TypeError, BufferError, ValueError):
        return None
    one = host_view(arrays[0])
    host = HostBuffer(whole, (len(arrays), *one.shape), check_dtype("tensor", one.dtype, device))
    return make(device.backend.from_host(host, device), device, host.dtype, host.shape)


def converted(x: Any, dtype: Any, device: Any) -> Any:
    """Copy a tensor out of the graph, to another dtype and device where they are given."""
    copied = clone(transfer(x.detach(), x._device if device is None else resolve(device)))
    return copied if dtype is None else cast(copied, as_dtype("tensor", dtype))


# ---- arrays of other libraries ----


_WAYS = ("__dlpack__", "__array__", "__array_interface__", "__cuda_array_interface__")


def is_array(value: Any) -> bool:
    """Tell whether an object of another library holds an array."""
    return any([hasattr(value, way) for way in _WAYS])


def _lends(value: Any) -> bool:
    """Tell whether an object holds memory that a tensor may share: an array, and not a number of NumPy's."""
    return type(value) not in _NUMBERS and is_array(value) and not is_number(value)


def _view_of(value: Any) -> memoryview | None:
    try:
        return memoryview(value)
    except (TypeError, BufferError, ValueError):  # no buffer, or of a dtype that PEP 3118 has no code for
        return None


def host_view(value: Any) -> HostBuffer:
    """Return an array of another library as a host buffer, without a copy where it offers one."""
    view = _view_of(value)
    try:
        if view is not None and not (view.ndim and is_number(value)):  # NumPy lends the bytes of a date or a text
            if view.format[:1] == (">" if sys.byteorder == "little" else "<") and view.itemsize > 1:
                raise ValueError(
                    "given numpy array has byte order different from the native byte order. Convert it first, with "
                    "array.astype(array.dtype.newbyteorder('='))."
                )
            return from_buffer(view)
        if str(getattr(value, "dtype", "")) == "bfloat16" and is_ndarray(value):
            words = value.view("uint16")
            view = memoryview(words if words.flags["C_CONTIGUOUS"] else words.copy())
            return HostBuffer(view.cast("B") if view.nbytes else b"", value.shape, bfloat16)
        if not is_ndarray(value) and is_array(value):
            return host_view(as_ndarray(value))
    except DTypeError:
        pass
    raise TypeError(
        f"tensor: can't convert {type(value).__name__} of type {getattr(value, 'dtype', 'unknown')}. The supported types are: "
        "float64, float32, float16, bfloat16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
        "bool."
    )


def _of_array(name: str, value: Any, dtype: DType | None, device: Device, copy: bool) -> Any:
    """Make a tensor of an array, over its memory where that is possible and no copy is asked for."""
    plain = is_ndarray(value)
    if plain and not copy:
        _tell_of_fixed(value)
    if not plain and hasattr(value, "__dlpack__") and _view_of(value) is None:
        # What needs no NumPy may live on any device.
        t = from_dlpack(value, device=None if resolve() is device else device, copy=copy or None)
        return t if dtype is None else cast(t, dtype)
    places = devices_of("cuda") if not plain and hasattr(value, "__cuda_array_interface__") and not hasattr(value, "__dlpack__") else []
    if places:
        t = _over(places[0].backend.from_cuda_array(value), places[0].backend)
        t = clone(t) if copy else t
        t = t if resolve() is device else transfer(t, device)
        return t if dtype is None else cast(t, dtype)
    ready = _lent(value, device, copy)
    if ready is not None:
        return ready if dtype is None else cast(ready, dtype)
    host = host_view(value)
    if dtype is not None and host.dtype is not dtype and host.dtype not in device.backend.dtypes(device):
        return from_host(fit(unpack(host.tobytes(), host.dtype), dtype), host.shape, dtype, device)
    check_dtype(name, host.dtype, device)
    if copy and host.view.c_contiguous:
        t = make(device.backend.from_host(host, device), device, host.dtype, host.shape)
    else:
        t = share(host, device)
        t = clone(t) if copy else t  # in the order of memory
    return t if dtype is None else cast(t, dtype)


def _lent(value: Any, device: Device, copy: bool | None) -> Any:
    """Make a tensor of an array that the backend reads by itself, over its memory or not; None for any other."""
    k = device.backend
    data = k.share_buffer(value)
    if data is None:
        return None
    if copy and k.is_contiguous(data):
        data, copy = k.contiguous(data), None
    t = make(data, device, k.dtype_of(data), remembered(k.shape_of(data)))
    if copy is False:
        t.own_storage().aliases.pinned = True
    return clone(t) if copy else t  # a copy in the order of memory


def share(host: HostBuffer, device: Device) -> Any:
    """Make a tensor over host memory where the backend can."""
    check_dtype("from_numpy", host.dtype, device)
    if not host.view.contiguous and not host.raw and any(s % host.dtype.itemsize for s in host.view.strides or ()):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    t = make(device.backend.share_host(host, device), device, host.dtype, host.shape)
    t.own_storage().pinned = True
    return t


def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Any:
    """Make a tensor, sharing the data's memory where dtype and device allow."""
    if isinstance(data, TensorBase):
        moved = data if device is None else transfer(data, resolve(device))
        return moved if dtype is None else cast(moved, as_dtype("as_tensor", dtype))
    if type(data) is not list and (is_ndarray(data) or _lends(data)):
        where = resolve(device)
        return _of_array("as_tensor", data, None if dtype is None else check_dtype("as_tensor", dtype, where), where, False)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Any:
    """Make a tensor from any object; `copy` True always copies, False never. A tensor stays in the graph by default."""
    if isinstance(obj, TensorBase):
        source = obj
    elif is_ndarray(obj):
        source = as_tensor(obj)
    elif is_capsule(obj):
        source = from_dlpack(obj)
    elif _is_loose_buffer(obj):
        source = frombuffer(obj, dtype=get_default_dtype() if dtype is None else dtype)
    elif _lends(obj):
        source = as_tensor(obj)
    elif copy is False:
        what = f"arbitrary sequence, the memory of {type(obj).__name__}" if is_sequence(obj) else "NumPy scalars and numbers"
        raise DataError(f"asarray: can't alias {what}; pass copy=None or copy=True.")
    else:
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    made = as_tensor(source, dtype, device)
    if copy is False and made is not source:
        raise ValueError(
            f"asarray: can't alias tensor with dtype '{source.dtype}' into dtype '{made.dtype}', "
            f"from device '{source.device}' to '{made.device}'; pass copy=None or copy=True."
        )
    if copy and made is source:
        made = clone(made)
    if requires_grad is None or (requires_grad and made.requires_grad):
        return made
    return finish(made.detach(), requires_grad)


def _is_loose_buffer(value: Any) -> bool:
    """Tell whether an object is memory and nothing more, such as bytes."""
    return not is_array(value) and _view_of(value) is not None


def _tell_of_fixed(ndarray: Any) -> None:
    """Warn once of a NumPy array that must not be written: where its memory is shared writes raise."""
    if not ndarray.flags.writeable:
        from mortice.notice import warn

        warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. Writing to this tensor raises "
            "where it shares that memory. You may want to copy the array, or make it writable, before converting it to a tensor.",
            once=True,
        )


def from_numpy(ndarray: Any) -> Any:
    """Make a tensor that shares the memory of a NumPy array."""
    if not is_ndarray(ndarray):
        raise TypeError(f"from_numpy: expected np.ndarray; got {type(ndarray).__name__}. mortice.tensor(...) takes it and copies.")
    where = resolve(backend=default_backend())  # the memory is where it is, whatever the default device
    found = _lent(ndarray, where, False)
    if found is not None:
        return found
    _tell_of_fixed(ndarray)
    return share(host_view(ndarray), where)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """Make a tensor over the memory of another library's array, given as the array or as its DLPack capsule.

    It lives on the array's device unless another is given, which takes a copy.

    Raises:
        BufferError: when the array cannot be lent, such as a tensor that requires grad.
        ValueError: when `copy` is False and a copy would be needed.
    """
    from mortice.backends.dlpack import Held, device_name

    source = ext_tensor if hasattr(ext_tensor, "__dlpack__") else Held(ext_tensor)
    if isinstance(source, TensorBase):
        check_lendable(source)
        here, made = source._device, source.detach()
    else:
        here = resolve(device_name(source.__dlpack_device__()))
        wanted = here if device is None else resolve(device)
        # Any backend can read the host's memory; from elsewhere only the backend that serves it can.
        here = wanted if here.type in ("cpu", wanted.type) else here
        if copy is False and here.backend.copies_host:
            raise ValueError(f"from_dlpack: backend '{here.backend.name}' copies what it is given. Set copy=None or copy=True.")
        made = _borrowed(source, here)
    moved = made if device is None else transfer(made, resolve(device))
    if copy is False and moved is not made:
        raise ValueError(f"from_dlpack: cannot move from {here} to {moved.device} without a copy. Set copy=None or copy=True.")
    return clone(moved) if copy and moved is made else moved


def _borrowed(source: Any, device: Device) -> Any:
    return _over(device.backend.from_dlpack(source, device), device.backend)


def _over(data: Any, backend: Any) -> Any:
    """Make a tensor over memory that somebody else sees too."""
    t = make(data, backend.device_of(data), backend.dtype_of(data), Size(backend.shape_of(data)))
    t.own_storage().pinned = True
    return t


def check_lendable(x: Any) -> None:
    """Refuse to show another library memory whose changes the graph would not see."""
    if x._rg:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if x._device.level is not None:
        raise BufferError(str(x._device.level.no_memory("__dlpack__")))
    if x.dtype.stored is not x.dtype:
        raise BufferError(f"__dlpack__: expected a dtype that is exchanged; got {x.dtype}. Lend .view(mortice.uint8).")


def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Any:
    """Make a 1-D tensor that shares the memory of a PEP 3118 buffer."""
    where = resolve(backend=default_backend())  # the memory is where it is, whatever the default device
    dtype = check_dtype("frombuffer", dtype, where)
    try:
        view = memoryview(buffer).cast("B")
    except (TypeError, BufferError, ValueError) as error:
        raise ValueError(f"frombuffer: object does not implement Python buffer protocol. It is not contiguous, or: {error}") from None
    size, wrong, left = dtype.itemsize, "", len(view) - offset
    if not len(view) or not count:
        wrong = f"both buffer length ({len(view)}) and count ({count}) must not be 0"
    elif not 0 <= offset < len(view):
        wrong = f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({len(view)} bytes) minus 1"
    elif count < 0 and left % size:
        wrong = f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})"
    elif count * size > left:
        wrong = (
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual "
            f"buffer length ({len(view)} bytes)"
        )
    if wrong:
        raise ValueError(f"frombuffer: {wrong}")
    count = left // size if count < 0 else count
    part = view[offset : offset + count * dtype.itemsize]
    if part.readonly:
        from mortice.notice import warn

        warn(
            "The given buffer is not writable, and the tensor shares its memory where the backend can: writing to "
            "the tensor may then change the buffer. Use mortice.tensor(bytearray(...)) or .clone() for memory of its own.",
            once=True,
        )
    return finish(share(HostBuffer(part, (count,), dtype), where).view(dtype), requires_grad)
