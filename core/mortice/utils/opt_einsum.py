"""opt_einsum on tensors: `opt_einsum.contract` just works, since mortice registers this when opt_einsum is imported.

It looks for `einsum`, `tensordot` and `transpose` as NumPy spells them in the module that serves an array's library.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from opt_einsum.backends import dispatch

import mortice


def promoted(*operands: Any) -> list[Any]:
    """Give operands their common dtype, as NumPy does and PyTorch's products do not."""
    dtypes = {x.dtype for x in operands}
    return list(operands) if len(dtypes) == 1 else [x.to(reduce(mortice.promote_types, dtypes)) for x in operands]


def einsum(equation: str, *operands: Any, out: Any = None) -> Any:
    """Sum products of operands' elements as an equation says."""
    result = mortice.einsum(equation, *promoted(*operands))
    return result if out is None else out.copy_(result)


def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    """Contract axes of two tensors."""
    return mortice.tensordot(*promoted(x, y), dims=axes)


def transpose(x: Any, axes: Any) -> Any:
    """Return the tensor with its axes in another order."""
    return x.permute(axes)


dispatch._aliases["mortice"] = __name__
