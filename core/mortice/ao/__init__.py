"""PyTorch's address of quantization."""

from mortice.ao import quantization

__all__ = ["quantization"]
