"""What libraries take from the helpers of PyTorch's compiler and of its kernels in Triton, of which there are none here."""

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["counters", "get_meta", "has_triton", "has_triton_package", "minimize", "register_decomposition", "update", "warn_once"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)  # nothing is compiled, so nothing counts


@lru_cache(None)
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of `msg`, the first time only."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def has_triton() -> bool:
    """Return False: no kernel is compiled by Triton."""
    return False


has_triton_package = has_triton


def register_decomposition(aten_op: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that returns its function: no compiler takes operators apart."""
    return lambda fn: fn


def get_meta(*args: Any, **kwargs: Any) -> None:
    """Return None, PyTorch's answer where no settings of a kernel are known."""


def minimize(*args: Any, **kwargs: Any) -> Any:
    """Raise NotImplementedError: there is no kernel to tune."""
    raise NotImplementedError("minimize and update: no kernels of Triton are here to tune.")


update = minimize
