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
    Plans,
    Program,
    empty,
    float32,
    launcher,
    over_elements,
    over_rows,
    prod,
)  # fmt: skip

LOSS = Program(
    "loss.cu", *[f"{name}<{{T}}>" for name in
                 ("cross_entropy", "sum_losses", "sum_weights", "cross_entropy_grad", "embedding_grad")],
)  # fmt: skip
_FEW = 512  # labels whose weights each block adds up itself
_MANY = 1 << 15  # labels that one block adds up; of more, as pictures have them, each block a part


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
        x, target, wide = contiguous(x), contiguous(target), _wide(self, x)
        plan = _plans[self.dtype_of(x), x.shape, ignore_index, smoothing, reduction]
        parts, logs = empty((2, *target.shape), wide), empty((2, *target.shape), wide)
        plan[0](x, target, _cast(weight, wide), parts, logs)
        if reduction == "none":
            return parts[0].astype(x.dtype), logs
        loss = empty((), x.dtype)
        plan[1](parts if target.size <= _MANY else self.sum(parts.reshape(2, -1), axis=1), loss)
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
        wide = _wide(self, x)
        weight, total, out = _cast(weight, wide), None, empty(x.shape, x.dtype)
        _, _, add_up, back = _plans[self.dtype_of(x), x.shape, ignore_index, smoothing, reduction]
        if reduction == "mean" and target.size > _FEW:
            count = _blocks(target.size)
            total = empty((count,), wide)
            add_up(target, weight, total)
            total = total if count == 1 else self.sum(total)
        weights = self.sum(weight) if smoothing and weight is not None else None
        back(g, x, target, weight, logs, total, weights, out)
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
                (contiguous(g), at, order, table, count, width, num_weights, padding, across, np.bool_(scale_grad_by_freq)),
            )  # fmt: skip
        return table


def _wide(k: Any, x: Any) -> Any:
    return x.dtype if x.itemsize > 2 else k.native(float32)


def _cast(x: Any, native: Any) -> Any:
    return x if x is None else contiguous(x if x.dtype == native else x.astype(native))


def _blocks(labels: int) -> int:
    """Return how many blocks add up the labels' weights."""
    return 1 if labels <= _MANY else min(-(-labels // 8192), 528)


def _plan(dtype: Any, shape: tuple[int, ...], ignored: int, smoothing: float, reduction: str) -> tuple[Any, ...]:
    """Return the launches for scores of a shape: losses, their sum or mean, the sum of the labels' weights, the gradient."""
    samples, classes, *rest = shape
    inner = prod(rest)
    labels, smoothing = samples * inner, float(smoothing)
    geometry = over_elements(labels) if inner > 1 else over_rows(labels, classes)
    get = lambda name: LOSS.get(dtype, f"{name}<{{T}}>")
    sizes = labels, classes, inner, ignored
    each, alone, mean = np.bool_(reduction == "none"), np.bool_(inner > 1), np.bool_(reduction == "mean")
    return (
        launcher(get("cross_entropy"), *geometry, "xxoxx=======", *sizes, smoothing, smoothing / classes, alone),
        launcher(get("sum_losses"), (1,), (1024,), "xx==", labels if labels <= _MANY else 1, mean),
        launcher(get("sum_weights"), (_blocks(labels),), (1024,), "xox===", labels, classes, ignored),
        launcher(get("cross_entropy_grad"), *geometry, "xxxoxoox========", *sizes, smoothing, each, alone, mean),
    )


_plans = Plans(_plan)
