"""Bridges to other libraries that users call by name: NumPy arrays out of tensors."""

from __future__ import annotations

import importlib
from typing import Any


def to_numpy(t: Any) -> Any:
    """Return a NumPy array over the tensor's host memory. The only place above plugins that asks for NumPy, at call."""
    try:
        np = importlib.import_module("numpy")
    except ModuleNotFoundError as error:
        raise RuntimeError("numpy: NumPy is not installed (pip install numpy). Use .tolist() instead.") from error
    host = t._host()
    if not host.raw:
        return np.asarray(host.view)
    name = host.dtype.name
    dtype = importlib.import_module("ml_dtypes").bfloat16 if name == "bfloat16" else name
    return np.frombuffer(host.view, dtype=dtype).reshape(host.shape)
