"""What a backend author needs: `Backend`, `NamespaceBackend`, `from_namespace`, `BackendInfo`, the hook marker; and `list()`.

The switches of `torch.backends` (cudnn, cuda, mps, ...) are here too, for scripts; see `flags`.
"""

from __future__ import annotations

from mortice.backends.backend import REQUIRED, Backend
from mortice.backends.host import HostBuffer
from mortice.backends.namespace import NamespaceBackend, in_full
from mortice.backends.plugins import API, BackendInfo, hookimpl
from mortice.backends.plugins import list_backends as list
from mortice.dtype import DTYPES, DType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import cuda, cudnn

__all__ = [
    "API", "DTYPES", "REQUIRED", "Backend", "BackendInfo", "DType", "HostBuffer", "NamespaceBackend",
    "from_namespace", "hookimpl", "in_full", "list",
]  # fmt: skip


def flags_frozen() -> bool:
    """Return False: switches can be set at any time."""
    return False


def __getattr__(name: str) -> Any:
    import importlib

    if name == "from_namespace":
        return importlib.import_module("mortice.backends.adopt").from_namespace
    if name in ("cuda", "cudnn"):
        return importlib.import_module(f"mortice.backends.{name}")
    flags = importlib.import_module("mortice.backends.flags")
    if name == "__allow_nonbracketed_mutation":  # they are never frozen
        return flags._accept
    if name not in flags.FLAGS:
        raise AttributeError(f"module 'mortice.backends' has no attribute {name!r}")
    return getattr(flags, name)
