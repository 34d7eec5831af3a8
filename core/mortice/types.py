"""PyTorch's names for kinds of arguments, for annotations and isinstance."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from mortice import Size, Tensor, device, dtype, layout
from mortice.storage import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage: TypeAlias = TypedStorage | UntypedStorage

_Number = (int, float, bool)
_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str
_device, _dtype, _layout = device, dtype, layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool
