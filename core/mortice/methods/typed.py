"""The old typed classes, such as `FloatTensor`: constructors of a dtype on one kind of device, and what `isinstance` asks for."""

from __future__ import annotations

import functools

from mortice.device import Device
from mortice.dtype import DType, by_name, set_default_dtype
from mortice.methods.conversion import CLASS_NAMES
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "set_default_tensor_type",
]  # fmt: skip


class TypedClass(type):
    """The type of a typed class: calling it makes a plain Tensor of its dtype."""

    dtype: DType
    device_type = "cpu"

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        from mortice.ops import storage

        if device is not None and Device(device).type != cls.device_type:
            raise RuntimeError(f"{cls.__name__}: legacy constructor expects device type: {cls.device_type}; got {device}.")
        return storage.old_style(args, cls.dtype, device or cls.device_type)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, TensorBase) and x.dtype is cls.dtype and x.device.type == cls.device_type and not x.is_sparse  # type: ignore[attr-defined]


def _typed(dtype: str) -> TypedClass:
    doc = f"Tensors of {dtype} on the CPU: `mortice.tensor(..., dtype=mortice.{dtype})` in the old form."
    return TypedClass(
        f"{CLASS_NAMES[dtype]}Tensor", (), {"__doc__": doc, "__module__": "mortice", "dtype": by_name(dtype)}
    )


FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor = map(_typed, ("float32", "float64", "float16", "bfloat16"))
LongTensor, IntTensor, ShortTensor = map(_typed, ("int64", "int32", "int16"))
CharTensor, ByteTensor, BoolTensor = map(_typed, ("int8", "uint8", "bool"))


@functools.cache
def on_cuda(name: str) -> TypedClass:
    """Return the class of this name for CUDA devices, such as `mortice.cuda.FloatTensor`."""
    dtype = globals()[name].dtype
    doc = f"Tensors of {dtype} on a CUDA device: `mortice.tensor(..., dtype={dtype}, device=\"cuda\")` in the old form."
    return TypedClass(name, (), {"__doc__": doc, "__module__": "mortice.cuda", "dtype": dtype, "device_type": "cuda"})


def set_default_tensor_type(t: Any) -> None:
    """Choose the default dtype by a typed class of floats or by its name, such as "mortice.DoubleTensor"."""
    found = globals().get(t.rpartition(".")[2]) if isinstance(t, str) else t
    if not isinstance(found, TypedClass):
        raise TypeError(
            f"set_default_tensor_type: invalid type object; expected a class such as FloatTensor, got {t!r}."
        )
    if not found.dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type: only floating-point types are supported as the default type; got {t!r}."
        )
    set_default_dtype(found.dtype)
