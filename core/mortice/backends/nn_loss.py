"""Looking rows up and picking by label: embedding, nll_loss and cross_entropy, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, widen
from mortice.shape import prod


def bags_of(k: Any, indices: Any, offsets: Any) -> tuple[Any, Any]:
    """Return the bag that each of the indices is in, and how many each bag has."""
    (n,), (count,) = k.shape_of(indices), k.shape_of(offsets)
    ends = k.concat([k.getitem(offsets, (slice(1, count),)), k.new_full(offsets, (1,), n)], axis=0)
    counts = k.subtract(ends, offsets)
    return k.spread_indices(counts, total=n), counts


class LookupKernels(KernelMixin):
    """FREE: indices and targets are int64 and in range; a negative `padding_idx` or None names no row."""

    def embedding(self, weight: Any, indices: Any) -> Any:
        """Return the rows of a table (V, *row) at indices of any shape."""
        shape = tuple(self.shape_of(indices))
        rows = self.take(weight, self.reshape(indices, (prod(shape),)), axis=0)
        return self.reshape(rows, (*shape, *self.shape_of(weight)[1:]))

    def embedding_grad(
        self,
        g: Any,
        indices: Any,
        *,
        num_weights: int,
        padding_idx: int | None = None,
        scale_grad_by_freq: bool = False,
    ) -> Any:
        """Add each row's gradient at its index, into a table of zeros."""
        dtype = self.dtype_of(g)
        count = prod(self.shape_of(indices))
        row = tuple(self.shape_of(g)[len(self.shape_of(indices)) :])
        width = prod(row)
        g = self.reshape(widen(self, g), (count, width))
        at = self.reshape(indices, (count,))
        if padding_idx is not None and padding_idx >= 0:
            g = self.where(self.reshape(self.equal(at, padding_idx), (count, 1)), 0, g)
        if scale_grad_by_freq:
            ones = self.new_full(g, (count,), 1)
            often = self.scatter_add(self.new_full(g, (num_weights,), 0), at, ones, axis=0)
            g = self.divide(g, self.reshape(self.take(often, at, axis=0), (count, 1)))
        at = self.broadcast_to(self.reshape(at, (count, 1)), (count, width))
        table = self.scatter_add(self.new_full(g, (num_weights, width), 0), at, g, axis=0)
        return narrow(self, self.reshape(table, (num_weights, *row)), dtype)

    def embedding_bag(self, weight: Any, indices: Any, offsets: Any, *, mean: bool) -> Any:
        """Add up, or average, the rows at a vector of indices from each of the offsets to the next; of none it gives 0.

        Offsets begin at 0, do not decrease, and do not exceed the number of indices.
        """
        bags, counts = bags_of(self, indices, offsets)
        shape = (*self.shape_of(offsets), self.shape_of(weight)[1])
        rows = widen(self, self.take(weight, indices, axis=0))
        out = self.index_add(self.new_full(rows, shape, 0), bags, rows, axis=0)
        if mean:
            counts = self.astype(self.maximum(counts, 1), self.dtype_of(out))
            out = self.divide(out, self.reshape(counts, (shape[0], 1)))
        return narrow(self, out, self.dtype_of(weight))

    def embedding_grad_take(
        self,
        h: Any,
        indices: Any,
        *,
        padding_idx: int | None = None,
        scale_grad_by_freq: bool = False,
    ) -> Any:
        """Read rows of a table as `embedding_grad` writes them: its gradient."""
        rows = self.embedding(h, indices)
        shape = (*self.shape_of(indices), *[1] * (len(self.shape_of(h)) - 1))
        if padding_idx is not None and padding_idx >= 0:
            rows = self.where(self.reshape(self.equal(indices, padding_idx), shape), 0, rows)
        if scale_grad_by_freq:
            at = self.reshape(indices, (prod(self.shape_of(indices)),))
            ones = self.new_full(h, tuple(self.shape_of(at)), 1)
            often = self.scatter_add(self.new_full(h, tuple(self.shape_of(h)[:1]), 0), at, ones, axis=0)
            rows = self.divide(rows, self.reshape(self.take(often, at, axis=0), shape))
        return rows

    def nll_loss(
        self, logp: Any, target: Any, weight: Any = None, *, ignore_index: int = -100
    ) -> tuple[Any, Any]:
        """Return (losses, weights), one of target's shape each: -weight * logp at the target class.

        Classes are axis 1 of `logp` (N, C, *d), the target is (N, *d). Both are 0 where the target is `ignore_index`;
        the mean loss is the sum of the losses over the sum of the weights.
        """
        ignored, safe = _safe_target(self, target, ignore_index)
        shape = tuple(self.shape_of(target))
        picked = self.take_along_axis(logp, self.reshape(safe, (shape[0], 1, *shape[1:])), axis=1)
        picked = self.negative(self.reshape(picked, shape))
        weights = _target_weights(self, logp, ignored, safe, weight)
        if weight is not None:
            picked = self.multiply(picked, weights)
        return self.where(ignored, 0, picked), weights

    def nll_loss_grad(
        self, g: Any, target: Any, weight: Any = None, *, x_shape: Sequence[int], ignore_index: int = -100
    ) -> Any:
        """Put -g * weight at each target class: the gradient of the losses of `nll_loss`, which are linear in `logp`."""
        ignored, safe = _safe_target(self, target, ignore_index)
        shape = tuple(self.shape_of(target))
        g = self.negative(self.multiply(g, _target_weights(self, g, ignored, safe, weight)))
        at = (shape[0], 1, *shape[1:])
        zeros = self.new_full(g, tuple(x_shape), 0)
        return self.scatter_add(zeros, self.reshape(safe, at), self.reshape(g, at), axis=1)

    def cross_entropy(
        self, x: Any, target: Any, weight: Any = None, *, reduction: str, ignore_index: int = -100, smoothing: float = 0.0
    ) -> tuple[Any, Any]:
        """Return (loss, logs): the loss of logits x (N, C, *d) at the classes (N, *d), and what its gradient needs.

        `logs` are two numbers for each label, in float32 at least, shape (2, N, *d): the greatest logit, and the logarithm
        of the sum of exponentials of the logits less that. Of each label's loss, `smoothing` is spread over all classes;
        the mean is over the sum of the labels' weights.
        """
        dtype, shape = self.dtype_of(x), tuple(self.shape_of(target))
        x = widen(self, x)
        top = self.max(x, axis=1, keepdims=True)
        low = self.subtract(x, top)
        below = self.log(self.sum(self.exp(low), axis=1, keepdims=True))
        logp = self.subtract(low, below)
        losses, weights = self.nll_loss(logp, target, weight, ignore_index=ignore_index)
        if smoothing:
            spread = logp if weight is None else self.multiply(logp, _over_classes(self, logp, weight))
            spread = self.where(self.equal(target, ignore_index), 0, self.sum(spread, axis=1))
            spread = self.multiply(spread, smoothing / self.shape_of(x)[1])
            losses = self.subtract(self.multiply(losses, 1 - smoothing), spread)
        if reduction != "none":
            losses = self.sum(losses)
            losses = self.divide(losses, self.sum(weights)) if reduction == "mean" else losses
        logs = self.stack([self.reshape(top, shape), self.reshape(below, shape)], 0)
        return narrow(self, losses, dtype), logs

    def cross_entropy_grad(
        self,
        g: Any,
        x: Any,
        target: Any,
        weight: Any,
        logs: Any,
        *,
        reduction: str,
        ignore_index: int = -100,
        smoothing: float = 0.0,
    ) -> Any:
        """Compute the gradient of `cross_entropy` by x: softmax less one at the label, times its weight."""
        dtype, shape = self.dtype_of(x), tuple(self.shape_of(target))
        classes, apart = self.shape_of(x)[1], (shape[0], 1, *shape[1:])
        x, g = widen(self, x), widen(self, g)
        ignored, safe = _safe_target(self, target, ignore_index)
        weights = _target_weights(self, x, ignored, safe, weight)
        if reduction != "none":
            g = self.divide(g, self.sum(weights)) if reduction == "mean" else g
        g = self.broadcast_to(g, shape)
        at_label = self.reshape(self.where(ignored, 0, self.multiply(self.multiply(g, weights), 1 - smoothing)), apart)
        everywhere = at_label
        if smoothing:
            share = self.reshape(self.where(ignored, 0, self.multiply(g, smoothing / classes)), apart)
            total = classes if weight is None else self.sum(narrow(self, weight, self.dtype_of(x)))
            everywhere = self.add(at_label, self.multiply(share, total))
        top, below = (self.reshape(self.getitem(logs, (i,)), apart) for i in (0, 1))
        out = self.multiply(self.exp(self.subtract(self.subtract(x, top), below)), everywhere)
        if smoothing:
            out = self.subtract(out, share if weight is None else self.multiply(_over_classes(self, x, weight), share))
        out = self.scatter_add(out, self.reshape(safe, apart), self.negative(at_label), axis=1)
        return narrow(self, out, dtype)


def _over_classes(k: Any, like: Any, weight: Any) -> Any:
    shape = tuple(k.shape_of(like))
    return k.reshape(narrow(k, weight, k.dtype_of(like)), (1, shape[1], *[1] * (len(shape) - 2)))


def _safe_target(k: Any, target: Any, ignore_index: int) -> tuple[Any, Any]:
    """Return where the target is to be ignored, and the target with class 0 put there."""
    ignored = k.equal(target, ignore_index)
    return ignored, k.where(ignored, 0, target)


def _target_weights(k: Any, like: Any, ignored: Any, safe: Any, weight: Any) -> Any:
    shape = tuple(k.shape_of(safe))
    if weight is None:
        return k.astype(k.logical_not(ignored), k.dtype_of(like))
    weights = k.take(narrow(k, weight, k.dtype_of(like)), k.reshape(safe, (prod(shape),)), axis=0)
    return k.where(ignored, 0, k.reshape(weights, shape))
