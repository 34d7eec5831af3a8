"""Switches of `torch.backends.cuda`: accepted and kept; a backend for CUDA devices may read them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from mortice.errors import switch
from mortice.notice import warn
from mortice.settings import settings


class _Matmul:
    """How products may be computed; `allow_tf32` is another view of `set_float32_matmul_precision`."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 products may be rounded to fewer digits inside."""
        return settings.matmul_precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        settings.matmul_precision = "high" if value else "highest"


class _PlanCache:
    """The cache of plans for Fourier transforms, of which there is none."""

    size = 0
    max_size = 0

    def clear(self) -> None:
        """Do nothing: the cache is empty."""

    def __getitem__(self, device: Any) -> _PlanCache:
        return self


matmul = _Matmul()
cufft_plan_cache = _PlanCache()
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}
_preferred = {"linalg": "default", "blas": "default"}


def is_built() -> bool:
    """Return False: the core is built without CUDA; a backend may still offer it, see `mortice.cuda.is_available`."""
    return False


def _switch(kind: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    def enable(enabled: bool) -> None:
        """Allow or forbid this way of computing attention."""
        _sdp[kind] = switch(f"enable_{kind}_sdp", "enabled", enabled)

    def is_enabled() -> bool:
        """Tell whether this way of computing attention is allowed."""
        return _sdp[kind]

    enable.__name__ = enable.__qualname__ = f"enable_{kind}_sdp"
    is_enabled.__name__ = is_enabled.__qualname__ = f"{kind}_sdp_enabled"
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Choose the ways of computing attention for a block: the old form of `nn.attention.sdpa_kernel`."""
    warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager.",
        FutureWarning,
    )
    with chosen(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn):
        yield


@contextlib.contextmanager
def chosen(**ways: bool) -> Iterator[None]:
    """Choose the ways of computing attention for a block; a backend that has several keeps to it."""
    before = dict(_sdp)
    _sdp.update(ways)
    try:
        yield
    finally:
        _sdp.update(before)


def is_flash_attention_available() -> bool:
    """Return False: attention is what the backend makes it."""
    return False


def preferred_linalg_library(backend: str | None = None) -> str:
    """Note which library linear algebra should use, and return it."""
    return _prefer("linalg", backend)


def preferred_blas_library(backend: str | None = None) -> str:
    """Note which library products should use, and return it."""
    return _prefer("blas", backend)


def _prefer(kind: str, backend: str | None) -> str:
    if backend is not None:
        _preferred[kind] = backend
    return _preferred[kind]
