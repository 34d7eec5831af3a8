"""PyTorch's names for the types of arguments, for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TypeAlias

import mortice
from mortice import Size, Tensor, TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage", "SymBool", "SymFloat", "SymInt"]

_device, _dtype, _layout = mortice.device, mortice.dtype, mortice.layout
_int, _float, _bool, _complex, _str, _bytes = int, float, bool, complex, str, bytes
Number: TypeAlias = int | float | bool
_Number = (int, float, bool)
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage: TypeAlias = UntypedStorage | TypedStorage
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool


class SymInt:
    """A size that a compiler does not know yet, for annotations and `isinstance`: every size here is an int."""


class SymFloat:
    """A number that a compiler does not know yet, for annotations and `isinstance`."""


class SymBool:
    """A truth that a compiler does not know yet, for annotations and `isinstance`."""
