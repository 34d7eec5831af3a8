"""The old typed classes, such as `FloatTensor` and `FloatStorage`: constructors of a dtype, and what `isinstance` asks for."""

from __future__ import annotations

import functools
import sys

from mortice.backends.plugins import get_default_device, set_default_device
from mortice.device import Device
from mortice.dtype import CLASS_NAMES, DType, by_name, set_default_dtype
from mortice.layout import strided
from mortice.notice import warn
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "BFloat16Storage", "BFloat16Tensor", "BoolStorage", "BoolTensor", "ByteStorage", "ByteTensor", "CharStorage",
    "CharTensor", "ComplexDoubleStorage", "ComplexFloatStorage", "DoubleStorage", "DoubleTensor", "FloatStorage",
    "FloatTensor", "HalfStorage", "HalfTensor", "IntStorage", "IntTensor", "LongStorage", "LongTensor", "ShortStorage",
    "ShortTensor", "_cast_Byte", "_cast_Char", "_cast_Double", "_cast_Float", "_cast_Half", "_cast_Int", "_cast_Long",
    "_cast_Short", "set_default_tensor_type",
]  # fmt: skip


class TypedClass(type):
    """The type of a typed class: calling it makes a plain Tensor of its dtype."""

    dtype: DType
    device_type = "cpu"

    def __call__(cls, *args: Any, device: Any = None, **named: Any) -> Any:
        from mortice.ops import storage

        if device is not None and Device(device).type != cls.device_type:
            raise RuntimeError(f"{cls.__name__}: legacy constructor expects device type: {cls.device_type}; got {device}.")
        return storage.old_style(args, cls.dtype, device or cls.device_type, named)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, TensorBase) and x.dtype is cls.dtype and x.device.type == cls.device_type and x.layout is strided


def _typed(dtype: str, device: str = "cpu", module: str = "mortice") -> TypedClass:
    doc = f"Tensors of {dtype} on a {device} device: `mortice.tensor(..., dtype=mortice.{dtype}, device='{device}')` in the old form."
    known = {"__doc__": doc, "__module__": module, "dtype": by_name(dtype), "device_type": device}
    return TypedClass(f"{CLASS_NAMES[dtype]}Tensor", (), known)


FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor = map(_typed, ("float32", "float64", "float16", "bfloat16"))
LongTensor, IntTensor, ShortTensor = map(_typed, ("int64", "int32", "int16"))
CharTensor, ByteTensor, BoolTensor = map(_typed, ("int8", "uint8", "bool"))


def _cast(dtype: str) -> Callable[..., Any]:
    def cast(input: Any, non_blocking: bool = False) -> Any:
        return input.to(by_name(dtype))

    cast.__name__ = cast.__qualname__ = f"_cast_{CLASS_NAMES[dtype]}"
    cast.__doc__ = f"Return a tensor as {dtype}, as `.to` does."
    return cast


_cast_Float, _cast_Double, _cast_Half = map(_cast, ("float32", "float64", "float16"))
_cast_Long, _cast_Int, _cast_Short, _cast_Char, _cast_Byte = map(_cast, ("int64", "int32", "int16", "int8", "uint8"))


class StorageClass(type):
    """The type of a typed class of storages: calling it makes a plain TypedStorage of its dtype."""

    dtype: DType

    def __call__(cls, *args: Any, wrap_storage: Any = None) -> Any:
        from mortice.ops.storage import TypedStorage

        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    def __instancecheck__(cls, x: Any) -> bool:
        from mortice.ops.storage import TypedStorage

        return isinstance(x, TypedStorage) and x.dtype is cls.dtype and x.device.type == "cpu"

    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0) -> Any:
        """Copy elements from a Python buffer, from a byte on; those of more bytes than one lie in `byte_order`."""
        from mortice.ops.data import frombuffer

        wide = cls.dtype.itemsize > 1
        if wide and byte_order not in ("native", "little", "big"):
            raise (RuntimeError if byte_order is None else ValueError)(
                f"{cls.__name__}.from_buffer: expected byte_order 'native', 'little' or 'big'; got {byte_order!r}."
            )
        made = frombuffer(bytearray(buffer), dtype=cls.dtype, count=count, offset=offset).storage()
        if wide and byte_order not in ("native", sys.byteorder):
            made.untyped().byteswap(cls.dtype)
        return made

    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> Any:
        """Make one of a file's first elements: with `shared` writes go to the file."""
        from mortice.ops.storage import from_file

        return from_file(filename, shared, size, dtype=cls.dtype).storage()


def _storage(dtype: str) -> StorageClass:
    doc = f"Memory as elements of {dtype}: `mortice.TypedStorage(..., dtype=mortice.{dtype})` in the old form."
    return StorageClass(
        f"{CLASS_NAMES[dtype]}Storage", (), {"__doc__": doc, "__module__": "mortice", "dtype": by_name(dtype)}
    )


FloatStorage, DoubleStorage, HalfStorage, BFloat16Storage = map(_storage, ("float32", "float64", "float16", "bfloat16"))
LongStorage, IntStorage, ShortStorage, CharStorage = map(_storage, ("int64", "int32", "int16", "int8"))
ByteStorage, BoolStorage = map(_storage, ("uint8", "bool"))
ComplexFloatStorage, ComplexDoubleStorage = map(_storage, ("complex64", "complex128"))


@functools.cache
def on_cuda(name: str) -> TypedClass:
    """Return the class of this name for CUDA devices, such as `mortice.cuda.FloatTensor`."""
    return _typed(globals()[name].dtype.name, "cuda", "mortice.cuda")


def set_default_tensor_type(t: Any) -> None:
    """Choose the default dtype, with a class for CUDA the device too, by a class of floats or its name, "mortice.DoubleTensor"."""
    found = t
    if isinstance(t, str):
        head, _, name = t.rpartition(".")
        found = on_cuda(name) if head.endswith("cuda") and name in globals() else globals().get(name)
    if not isinstance(found, TypedClass):
        raise TypeError(f"set_default_tensor_type: invalid type object; expected a class such as FloatTensor, got {t!r}.")
    if not found.dtype.is_floating_point:
        raise TypeError(f"set_default_tensor_type: only floating-point types are supported as the default type; got {t!r}.")
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        once=True,
    )
    if "cuda" in (found.device_type, get_default_device().type):
        set_default_device(found.device_type)
    set_default_dtype(found.dtype)
