"""visdom on tensors: its windows take them as they take PyTorch's, since mortice connects to it when visdom is imported.

Its client computes with NumPy's methods and unwraps PyTorch's tensors alone: one function does it, for every argument.
"""

from __future__ import annotations

from typing import Any

import visdom

from mortice import Tensor


def unwrapped(value: Any) -> Any:
    """Return NumPy's array of a tensor, with gradients and devices left behind; a single number becomes a vector of it."""
    if isinstance(value, Tensor):
        array = value.detach().cpu().numpy()
        return array.reshape(1) if array.ndim == 0 else array
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return _others([v.detach().cpu().numpy() if isinstance(v, Tensor) else v for v in value])
    return _others(value)


_others = visdom._to_numpy
visdom._to_numpy = unwrapped
