"""What a backend author needs: `Backend`, `NamespaceBackend`, `BackendInfo`, and the hook marker; and `list()`."""

from mortice.backends.backend import REQUIRED, Backend
from mortice.backends.host import HostBuffer
from mortice.backends.namespace import NamespaceBackend
from mortice.backends.plugins import API, BackendInfo, hookimpl
from mortice.backends.plugins import list_backends as list
from mortice.dtype import DTYPES, DType

__all__ = [
    "API", "DTYPES", "REQUIRED", "Backend", "BackendInfo", "DType", "HostBuffer", "NamespaceBackend", "hookimpl", "list",
]  # fmt: skip
