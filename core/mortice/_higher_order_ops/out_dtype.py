"""The function that names the dtype in which an operator's result is accumulated."""

from typing import Any

from mortice import Tensor

__all__ = ["out_dtype"]


def out_dtype(op: Any, output_dtype: Any, *args: Any) -> Any:
    """Return `op(*args)` in `output_dtype`, to which tensors are converted first, so that int8 does not overflow."""
    return op(*[x.to(output_dtype) if isinstance(x, Tensor) else x for x in args]).to(output_dtype)
