"""Names of PyTorch's `torch.cuda` that mean something where there is a CUDA device: `mortice.cuda` asks for them here."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def find(name: str) -> Any:
    """Return what there is by a name, or None."""
    if name in ("comm", "nccl"):
        return import_module(f"{__name__}.{name}")
    memory = import_module(f"{__name__}.memory")
    return getattr(memory, name) if name in memory.__all__ else None
