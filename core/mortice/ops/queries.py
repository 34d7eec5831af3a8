"""Questions about tensors as functions: how many elements, which dtype, which result type."""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import is_number
from mortice.dtype import DType
from mortice.ops.elementwise import common_dtype
from mortice.ops.storage import TypedStorage, UntypedStorage
from mortice.shape import prod
from mortice.strides import layout, storage_offset
from mortice.tensor import TensorBase

__all__ = [
    "get_device", "is_complex", "is_conj", "is_floating_point", "is_inference", "is_neg", "is_nonzero",
    "is_same_size", "is_signed", "is_storage", "is_tensor", "numel", "result_type", "typename",
]  # fmt: skip


def is_tensor(obj: Any) -> bool:
    """Tell whether an object is a Tensor."""
    return isinstance(obj, TensorBase)


def is_storage(obj: Any) -> bool:
    """Tell whether an object is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def numel(input: Any) -> int:
    """Return the number of elements."""
    if not isinstance(input, TensorBase):
        raise TypeError(f"numel: expected a Tensor; got {type(input).__name__}.")
    return prod(input.shape)


def is_floating_point(input: Any) -> bool:
    """Tell whether the dtype is a float."""
    return input.dtype.is_floating_point


def is_complex(input: Any) -> bool:
    """Tell whether the dtype is complex."""
    return input.dtype.is_complex


def is_signed(input: Any) -> bool:
    """Tell whether the dtype has negative numbers."""
    return input.dtype.is_signed


def is_conj(input: Any) -> bool:
    """Tell whether conjugation is pending; it never is."""
    return False


def is_neg(input: Any) -> bool:
    """Tell whether negation is pending; it never is."""
    return False


def is_inference(input: Any) -> bool:
    """Tell whether a tensor was made under `inference_mode`."""
    return input.is_inference()


def is_same_size(input: Any, other: Any) -> bool:
    """Tell whether two tensors have the same shape."""
    return input.shape == other.shape


def is_nonzero(input: Any) -> bool:
    """Tell whether a tensor of one element is not zero."""
    n = prod(input.shape)
    if n != 1:
        raise RuntimeError(
            "Boolean value of Tensor with " + ("no values" if n == 0 else "more than one value") + " is ambiguous"
        )
    return bool(input.item())


def result_type(tensor: Any, other: Any) -> DType:
    """Return the dtype of an operation on two tensors or numbers.

    Differs from torch: a 0-d tensor counts like any other, unless `set_type_promotion("pytorch")` was called.
    """
    for x in (tensor, other):
        if not isinstance(x, TensorBase) and not is_number(x):
            raise TypeError(f"result_type: expected Tensors or numbers; got {type(x).__name__}.")
    return common_dtype(tensor, other)


def is_set_to(self: Any, tensor: Any) -> bool:
    """Tell whether two tensors are the same view of the same memory."""
    same = self.own_storage().aliases is tensor.own_storage().aliases and self.shape == tensor.shape
    return same and layout(self) == layout(tensor) and storage_offset(self) == storage_offset(tensor)


def get_device(input: Any) -> int:
    """Return the index of the device, -1 for the CPU."""
    return input.get_device()


def typename(obj: Any) -> str:
    """Return the name of a class or function, or of an object's class; of a tensor, PyTorch's class for its dtype."""
    if isinstance(obj, TensorBase):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    place = getattr(named, "__module__", None)
    return str(named.__qualname__) if place in (None, "", "builtins") else f"{place}.{named.__qualname__}"
