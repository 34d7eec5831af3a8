"""Switches of `torch.backends.cudnn`: kept here, and read by a backend that calls such a library.

Whether it is there, the backend that offers devices of type "cuda" says (`Backend.libraries`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from mortice.dtype import float16, float32, float64

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
CUDNN_TENSOR_DTYPES = {float16, float32, float64}


def is_available() -> bool:
    """Tell whether a backend calls the library here."""
    return version() is not None


def version() -> int | None:
    """Return the version of the library that a backend calls, such as 91002; None where there is none."""
    from mortice.backends.plugins import devices_of

    for device in devices_of("cuda"):
        return device.backend.libraries().get("cudnn", (0, ""))[0] or None
    return None


def is_acceptable(tensor: Any) -> bool:
    """Tell whether the library takes a tensor: of a CUDA device, and of a float dtype that PyTorch names here."""
    return bool(enabled and tensor.is_cuda and tensor.dtype in CUDNN_TENSOR_DTYPES and is_available())


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
