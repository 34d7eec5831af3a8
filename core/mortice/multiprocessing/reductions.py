"""How tensors and storages go to another process: their memory is moved to where both see it, and its file goes along."""

from __future__ import annotations

from multiprocessing import reduction
from typing import Any

from mortice import Tensor
from mortice.backends.plugins import resolve
from mortice.layout import strided
from mortice.nn.parameter import Buffer, Parameter
from mortice.ops.reinterpret import view_dtype
from mortice.ops.storage import TypedStorage, UntypedStorage, block_of, in_block, share_memory_
from mortice.ops.strided import as_strided, whole
from mortice.shared import REFUSED, Block
from mortice.strides import storage_offset

_PASSES_FILES = hasattr(reduction, "DupFd")


def init_reductions() -> None:
    """Make multiprocessing hand over tensors in this way."""
    for cls in (Tensor, Parameter, Buffer):
        reduction.ForkingPickler.register(cls, _reduce)
    for storage in (TypedStorage, UntypedStorage):
        reduction.ForkingPickler.register(storage, _reduce_storage)


def _reduce(t: Any) -> Any:
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError(REFUSED)
    if not _PASSES_FILES or t.layout is not strided or t.device.type != "cpu" or not t.numel() or t._device.backend.copies_host:
        return t.__reduce_ex__(4)
    block = block_of(share_memory_(t))
    assert block is not None
    layout = (tuple(t.shape), tuple(t.stride()), storage_offset(t))
    made_of = (len(block), whole(t).dtype, t.dtype, layout, str(t._device), t.requires_grad)
    return _rebuild, (type(t), reduction.DupFd(block.fd), *made_of), t.__dict__ or None


def _rebuild(
    cls: Any, file: Any, size: int, stored: Any, dtype: Any, layout: Any, device: str, requires_grad: bool
) -> Any:
    """Make the tensor over memory that another process has too."""
    memory = in_block(Block(size, file.detach()), (size // stored.itemsize,), stored, resolve(device))
    shape, strides, offset = layout
    t = as_strided(view_dtype(memory, dtype), shape, strides, offset).detach()
    if cls is Tensor:
        return t.requires_grad_(requires_grad)
    return cls(t, requires_grad) if cls is Parameter else cls(t)


def _reduce_storage(storage: Any) -> Any:
    return type(storage)._over, (storage._memory, storage.dtype)
