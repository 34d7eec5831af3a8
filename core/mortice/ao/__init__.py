"""PyTorch's address of quantization."""

from typing import Any

from mortice.addresses import attribute
from mortice.lazy import load


def __getattr__(name: str) -> Any:
    return load("mortice.ao.", name) if name == "quantization" else attribute(__name__, name)
