"""Functions that are not in the standard and that libraries ask of a namespace all the same, as NumPy has them.

Each is here because a client in `core/tests/clients` calls it.
"""

from __future__ import annotations

from typing import Any

import mortice as mt

__all__ = ["diag"]


def diag(v: Any, k: int = 0) -> Any:
    """Make a matrix with a vector on its k-th diagonal, or return that diagonal of a matrix."""
    return mt.diag(v, k)
