"""The random stream: one launch a draw, no temporary memory, the same bits as everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mortice.backends import DType, NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import FLOATS, Program, empty, float32, over_elements, prod

DRAWS = Program(
    "random.cu", *[f"random_{name}<{{T}}>" for name in ("uniform", "normal", "exponential", "bernoulli_each")],
    "random_words", "random_integers", "random_bernoulli", "set_cell",
)  # fmt: skip
_ZERO = np.uint64(0)


class RandomKernels(KernelMixin):
    """Element i of a result takes word offset + i of the stream, whatever the geometry of the launch."""

    def random_cell(self, device: Any) -> Any:
        import cupy

        # Not from the memory of the captured work: an earlier part of it may write there.
        with cupy.cuda.Device(device.index), cupy.cuda.using_allocator(cupy.get_default_memory_pool().malloc):
            return empty((2,), np.dtype(np.uint64))

    def set_random_cell(self, cell: Any, seed: int, offset: int) -> None:
        import cupy

        with cupy.cuda.Device(cell.data.device_id):
            DRAWS.get(float32, "set_cell")((1,), (1,), (cell, np.uint64(seed), np.uint64(offset)))

    def random_bits(self, seed: int, offset: int, n: int, *, device: Any) -> Any:
        return _draw("random_words", (n,), np.dtype(np.uint64), seed, offset)

    def random_uniform(self, seed: int, offset: int, shape: Sequence[int], *, dtype: DType, device: Any) -> Any:
        return _draw("random_uniform<{T}>", shape, self.native(dtype), seed, offset, dtype=dtype)

    def random_normal(self, seed: int, offset: int, shape: Sequence[int], *, dtype: DType, device: Any) -> Any:
        return _draw("random_normal<{T}>", shape, self.native(dtype), seed, offset, dtype=dtype)

    def random_exponential(self, seed: int, offset: int, shape: Sequence[int], *, dtype: DType, device: Any) -> Any:
        return _draw("random_exponential<{T}>", shape, self.native(dtype), seed, offset, dtype=dtype)

    def random_integers(self, seed: int, offset: int, low: int, high: int, shape: Sequence[int], *, device: Any) -> Any:
        span = np.uint64((high - low) & (1 << 64) - 1)
        return _draw("random_integers", shape, np.dtype(np.int64), seed, offset, int(low), span)

    def random_bernoulli(self, seed: int, offset: int, p: Any, shape: Sequence[int], *, device: Any) -> Any:
        if isinstance(p, (bool, int, float)):
            limit = np.uint64(math.ceil(min(p, 1.0) * 2.0**53) if p > 0 else 0)
            return _draw("random_bernoulli", shape, np.dtype(bool), seed, offset, limit)
        dtype = self.dtype_of(p)
        if dtype not in FLOATS:
            return NamespaceBackend.random_bernoulli(self, seed, offset, p, shape, device=device)
        p = contiguous(self.broadcast_to(p, tuple(shape)))
        return _draw("random_bernoulli_each<{T}>", shape, np.dtype(bool), seed, offset, before=(p,), dtype=dtype)


def _draw(
    kernel: str, shape: Sequence[int], native: Any, seed: int, offset: int, *numbers: Any,
    before: tuple[Any, ...] = (), dtype: DType = float32,
) -> Any:  # fmt: skip
    out, n = empty(shape, native), prod(shape)
    if n:
        # Captured work has its seed in a cell.
        where = (
            (np.uint64(seed), np.uint64(offset), None) if isinstance(seed, int) else (_ZERO, np.uint64(offset), seed)
        )
        DRAWS.get(dtype, kernel)(*over_elements(n, 4), (out, *before, n, *where, *numbers))
    return out
