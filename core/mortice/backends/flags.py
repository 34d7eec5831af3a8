"""Switches of PyTorch's smaller `torch.backends` modules, for scripts that ask: mps, mkl, mkldnn, openmp, cpu and others.

Each holds what is listed below and nothing else. `cudnn` and `cuda`, which scripts import by name and write to, are files
beside this one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def _no() -> bool:
    """Return False: the core comes without it."""
    return False


@contextlib.contextmanager
def _accept(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Accept the switches for a block, without effect."""
    yield


def _capability() -> str:
    """Return "DEFAULT": which instructions are used is the backend's affair."""
    return "DEFAULT"


class _Fastpath:
    enabled = True


def _get_fastpath_enabled() -> bool:
    """Tell whether attention in inference may take a shorter way; there is one way only."""
    return _Fastpath.enabled


def _set_fastpath_enabled(value: bool) -> None:
    """Note whether attention in inference may take a shorter way."""
    _Fastpath.enabled = bool(value)


FLAGS: dict[str, dict[str, Any]] = {
    "mps": {"is_available": _no, "is_built": _no, "is_macos13_or_newer": lambda minor=0: False},
    "mkl": {"is_available": _no, "verbose": _accept, "VERBOSE_OFF": 0, "VERBOSE_ON": 1},
    "mkldnn": {
        "is_available": _no, "enabled": True, "deterministic": False, "allow_tf32": True, "flags": _accept,
        "verbose": _accept, "VERBOSE_OFF": 0, "VERBOSE_ON": 1,
    },
    "openmp": {"is_available": _no},
    "opt_einsum": {"is_available": _no, "enabled": False, "strategy": None, "flags": _accept},
    "cpu": {"get_cpu_capability": _capability},
    "mha": {"get_fastpath_enabled": _get_fastpath_enabled, "set_fastpath_enabled": _set_fastpath_enabled},
    "nnpack": {"is_available": _no, "flags": _accept},
    "xnnpack": {"enabled": False},
    "quantized": {"engine": "none", "supported_engines": []},
}  # fmt: skip

for _name, _members in FLAGS.items():
    _module = ModuleType(f"mortice.backends.{_name}", "Switches that are accepted and have no effect.")
    vars(_module).update(_members)
    globals()[_name] = _module
