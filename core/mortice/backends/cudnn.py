"""Switches of `torch.backends.cudnn`: accepted and kept; a backend that calls such a library may read them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
CUDNN_TENSOR_DTYPES: set[Any] = set()


def is_available() -> bool:
    """Tell whether the core itself comes with the library: it does not; a backend's own does not count."""
    return False


def version() -> int | None:
    """Return None: the core comes without the library."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Return False: the core comes without the library."""
    return False


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None,
    _deterministic: bool | None = None, _allow_tf32: bool | None = None, _fp32_precision: str = "none",
) -> tuple[Any, ...]:  # fmt: skip
    """Set those switches that are not None, and return what all were before."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = tuple(globals()[name] for name in names)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    globals().update({name: value for name, value in zip(names, given) if value is not None})
    return (*before, _fp32_precision)


@contextlib.contextmanager
def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False,
    allow_tf32: bool = True, fp32_precision: str = "none",
) -> Iterator[None]:  # fmt: skip
    """Set the switches for a block."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        globals()["benchmark_limit"] = before[2]
        set_flags(*before)
