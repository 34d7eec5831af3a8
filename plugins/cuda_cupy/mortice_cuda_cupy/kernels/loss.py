"""cross_entropy with its gradient, and the gradient of an embedding, which adds in a fixed order without atomics."""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    MAX_BLOCKS,
    THREADS,
    Program,
    empty,
    float32,
    over_elements,
    over_rows,
    prod,
)  # fmt: skip

LOSS = Program(
    "loss.cu", *[f"{name}<{{T}}>" for name in
                 ("cross_entropy", "sum_losses", "sum_weights", "cross_entropy_grad", "embedding_grad")],
)  # fmt: skip
_FEW = 512  # labels whose weights each block adds up itself


class LossKernels(KernelMixin):
    """Half precision is summed in float32; every sum has a fixed order."""

    def cross_entropy(
        self,
        x: Any,
        target: Any,
        weight: Any = None,
        *,
        reduction: str,
        ignore_index: int = -100,
        smoothing: float = 0.0,
    ) -> tuple[Any, Any]:
        if self.dtype_of(x) not in FLOATS or not x.size:
            numbers: dict[str, Any] = {"reduction": reduction, "ignore_index": ignore_index, "smoothing": smoothing}
            return NamespaceBackend.cross_entropy(self, x, target, weight, **numbers)  # type: ignore[no-any-return]
        x, target = contiguous(x), contiguous(target)
        dtype, wide = self.dtype_of(x), _wide(self, x)
        labels, classes, inner = target.size, x.shape[1], prod(x.shape[2:])
        parts, logs = empty((2, *target.shape), wide), empty((2, *target.shape), wide)
        alone = inner > 1
        grid, block = over_elements(labels) if alone else over_rows(labels, classes)
        LOSS.get(dtype, "cross_entropy<{T}>")(
            grid, block,
            (x, target, _cast(weight, wide), parts, logs, *_ints(labels, classes, inner, ignore_index),
             float(smoothing), float(smoothing / classes), np.bool_(alone)),
        )  # fmt: skip
        if reduction == "none":
            return parts[0].astype(x.dtype), logs
        loss = empty((), x.dtype)
        LOSS.get(dtype, "sum_losses<{T}>")(
            (1,), (1024,), (parts, loss, int(labels), np.bool_(reduction == "mean"))
        )
        return loss, logs

    def cross_entropy_grad(
        self, g: Any, x: Any, target: Any, weight: Any, logs: Any, *, reduction: str, ignore_index: int = -100,
        smoothing: float = 0.0,
    ) -> Any:  # fmt: skip
        each = reduction == "none"
        if self.dtype_of(x) not in FLOATS or not x.size or g.dtype != x.dtype or (each and g.shape != target.shape):
            numbers: dict[str, Any] = {"reduction": reduction, "ignore_index": ignore_index, "smoothing": smoothing}
            return NamespaceBackend.cross_entropy_grad(self, g, x, target, weight, logs, **numbers)
        g, x, target, logs = contiguous(g), contiguous(x), contiguous(target), contiguous(logs)
        dtype, wide = self.dtype_of(x), _wide(self, x)
        labels, classes, inner = target.size, x.shape[1], prod(x.shape[2:])
        weight = _cast(weight, wide)
        total, out = None, empty(x.shape, x.dtype)
        mean = reduction == "mean"
        if mean and labels > _FEW:
            total = empty((), wide)
            LOSS.get(dtype, "sum_weights<{T}>")((1,), (1024,), (target, weight, total, *_ints(labels, classes, ignore_index)))
        weights = self.sum(weight) if smoothing and weight is not None else None
        alone = inner > 1
        grid, block = over_elements(labels) if alone else over_rows(labels, classes)
        LOSS.get(dtype, "cross_entropy_grad<{T}>")(
            grid, block,
            (g, x, target, weight, logs, total, weights, out, *_ints(labels, classes, inner, ignore_index),
             float(smoothing), np.bool_(each), np.bool_(alone), np.bool_(mean)),
        )  # fmt: skip
        return out

    def embedding_grad(
        self,
        g: Any,
        indices: Any,
        *,
        num_weights: int,
        padding_idx: int | None = None,
        scale_grad_by_freq: bool = False,
    ) -> Any:
        if self.dtype_of(g) not in FLOATS:
            numbers: dict[str, Any] = {"padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq}
            return NamespaceBackend.embedding_grad(self, g, indices, num_weights=num_weights, **numbers)
        row = g.shape[indices.ndim :]
        width, count = prod(row), indices.size
        table = self.new_full(g, (num_weights, *row), 0)
        if g.size:
            at = contiguous(indices).reshape(-1)
            order = self.argsort(at, axis=0)
            padding = -1 if padding_idx is None else padding_idx
            across = min(-(-width // 32) * 32, THREADS)
            LOSS.get(self.dtype_of(g), "embedding_grad<{T}>")(
                (min(count, MAX_BLOCKS),), (THREADS,),
                (contiguous(g), at, order, table, *_ints(count, width, num_weights, padding, across), np.bool_(scale_grad_by_freq)),
            )  # fmt: skip
        return table


def _wide(k: Any, x: Any) -> Any:
    return x.dtype if x.itemsize > 2 else k.native(float32)


def _cast(x: Any, native: Any) -> Any:
    return x if x is None else contiguous(x if x.dtype == native else x.astype(native))


def _ints(*sizes: int) -> tuple[Any, ...]:
    return sizes
