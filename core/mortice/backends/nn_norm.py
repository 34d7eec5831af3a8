"""Normalisation over features, channels, groups and the root mean square, with the gradients.

The forward kernels return their statistics in the precision they were computed in. Gradient kernels take these as an
optional cache: a backend may read it, but the default bodies compute the statistics from `x` again, so that they
differentiate with respect to `x` when they run on Tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends.kernel_tools import KernelMixin, in_float32
from mortice.backends.nn_common import narrow, widen
from mortice.shape import prod


class NormKernels(KernelMixin):
    """FREE: `weight` and `bias` may be None; `ndim` counts the trailing axes that are normalised together."""

    def blend(self, xs: Sequence[Any], share: float, ys: Sequence[Any], others: Sequence[float]) -> list[Any]:
        """Return share * x + other * y for each x, with its y and other; x itself where it was written in place."""
        return [self.add(self.multiply(x, share), self.multiply(y, other)) for x, y, other in zip(xs, ys, others)]

    # ---- layer_norm: each row of the last `ndim` axes ----

    def layer_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> tuple[Any, Any, Any]:
        """Return (out, mean, rstd); the statistics have size 1 along the normalised axes."""
        dtype = self.dtype_of(x)
        x = widen(self, self.contiguous(x))
        mean, centred, rstd = _moments(self, x, _last(self, x, ndim), eps)
        out = _affine(self, self.multiply(centred, rstd), weight, bias)
        return narrow(self, out, dtype), mean, rstd

    @in_float32
    def layer_norm_grad(
        self,
        g: Any,
        x: Any,
        weight: Any = None,
        mean: Any = None,
        rstd: Any = None,
        *,
        ndim: int,
        eps: float = 1e-5,
    ) -> Any:
        """Return the gradient of the input."""
        axes = _last(self, x, ndim)
        _, centred, rstd = _moments(self, x, axes, eps)
        return _pull(self, _affine(self, g, weight, None), centred, rstd, axes)

    @in_float32
    def layer_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, rstd: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> Any:
        """Return the gradient of the weight; the bias's is the sum of `g` over the leading axes."""
        _, centred, rstd = _moments(self, x, _last(self, x, ndim), eps)
        return _sum_leading(self, self.multiply(g, self.multiply(centred, rstd)), ndim)

    def layer_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, *, ndim: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        """Return the gradients of input, weight and bias that `needs` asks for: together they read g and x once."""
        return (
            self.layer_norm_grad(g, x, weight, mean, rstd, ndim=ndim, eps=eps) if needs[0] else None,
            self.layer_norm_weight_grad(g, x, mean, rstd, ndim=ndim, eps=eps) if needs[1] else None,
            _sum_leading(self, g, ndim) if needs[2] else None,
        )

    # ---- rms_norm: the same without the mean ----

    def rms_norm(self, x: Any, weight: Any = None, *, ndim: int, eps: float) -> tuple[Any, Any]:
        """Return (out, rrms): x over its root mean square along the last `ndim` axes."""
        dtype = self.dtype_of(x)
        x = widen(self, x)
        rrms = _inverse_root(self, _mean(self, self.multiply(x, x), _last(self, x, ndim)), eps)
        return narrow(self, _affine(self, self.multiply(x, rrms), weight, None), dtype), rrms

    @in_float32
    def rms_norm_grad(
        self, g: Any, x: Any, weight: Any = None, rrms: Any = None, *, ndim: int, eps: float
    ) -> Any:
        """Return the gradient of the input."""
        axes = _last(self, x, ndim)
        rrms = _inverse_root(self, _mean(self, self.multiply(x, x), axes), eps)
        normal = self.multiply(x, rrms)
        g = _affine(self, g, weight, None)
        along = _mean(self, self.multiply(g, normal), axes)
        return self.multiply(rrms, self.subtract(g, self.multiply(normal, along)))

    @in_float32
    def rms_norm_weight_grad(self, g: Any, x: Any, rrms: Any = None, *, ndim: int, eps: float) -> Any:
        """Return the gradient of the weight."""
        rrms = _inverse_root(self, _mean(self, self.multiply(x, x), _last(self, x, ndim)), eps)
        return _sum_leading(self, self.multiply(g, self.multiply(x, rrms)), ndim)

    def rms_norm_grads(
        self, g: Any, x: Any, weight: Any, rrms: Any, *, ndim: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        """Return the gradients of input and weight that `needs` asks for."""
        return (
            self.rms_norm_grad(g, x, weight, rrms, ndim=ndim, eps=eps) if needs[0] else None,
            self.rms_norm_weight_grad(g, x, rrms, ndim=ndim, eps=eps) if needs[1] else None,
        )

    # ---- batch_norm: each channel (axis 1) over everything else ----

    def batch_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
    ) -> tuple[Any, Any, Any]:
        """Return (out, mean, var) with the batch's own statistics; `var` is the biased one, both have shape (C,)."""
        dtype = self.dtype_of(x)
        x = widen(self, x)
        channels = self.shape_of(x)[1]
        mean, centred, var = _deviation(self, x, _not_channel(self, x))
        out = self.multiply(centred, _scale(self, _inverse_root(self, var, eps), weight))
        out = out if bias is None else self.add(out, _per_channel(self, bias, out))
        return narrow(self, out, dtype), self.reshape(mean, (channels,)), self.reshape(var, (channels,))

    @in_float32
    def batch_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, var: Any = None, *, eps: float = 1e-5
    ) -> Any:
        """Return the gradient of the input of `batch_norm`, through the statistics too."""
        axes = _not_channel(self, x)
        _, centred, rstd = _moments(self, x, axes, eps)
        g = g if weight is None else self.multiply(g, _per_channel(self, weight, g))
        return _pull(self, g, centred, rstd, axes)

    @in_float32
    def batch_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, var: Any = None, *, eps: float = 1e-5
    ) -> Any:
        """Return the gradient of the weight of `batch_norm`; the bias's is the sum of `g` over all but the channels."""
        axes = _not_channel(self, x)
        _, centred, rstd = _moments(self, x, axes, eps)
        return self.sum(self.multiply(g, self.multiply(centred, rstd)), axis=axes)

    def batch_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, var: Any, *, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        """Return the gradients of input, weight and bias of `batch_norm` that `needs` asks for."""
        return (
            self.batch_norm_grad(g, x, weight, mean, var, eps=eps) if needs[0] else None,
            self.batch_norm_weight_grad(g, x, mean, var, eps=eps) if needs[1] else None,
            self.sum(g, axis=_not_channel(self, g)) if needs[2] else None,
        )

    @in_float32
    def batch_norm_eval(
        self, x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
    ) -> Any:
        """Normalise with given statistics. Its gradients are a scale (`batch_norm_eval_grad`) and sums."""
        out = self.subtract(x, _per_channel(self, mean, x))
        out = self.multiply(out, _scale(self, _inverse_root(self, _per_channel(self, var, x), eps), weight))
        return out if bias is None else self.add(out, _per_channel(self, bias, out))

    @in_float32
    def batch_norm_eval_grad(self, g: Any, var: Any, weight: Any = None, *, eps: float = 1e-5) -> Any:
        """Return the gradient of the input of `batch_norm_eval`."""
        return self.multiply(g, _scale(self, _inverse_root(self, _per_channel(self, var, g), eps), weight))

    @in_float32
    def batch_norm_eval_weight_grad(self, g: Any, x: Any, mean: Any, var: Any, *, eps: float = 1e-5) -> Any:
        """Return the gradient of the weight of `batch_norm_eval`."""
        normal = self.subtract(x, _per_channel(self, mean, x))
        normal = self.multiply(normal, _inverse_root(self, _per_channel(self, var, x), eps))
        return self.sum(self.multiply(g, normal), axis=_not_channel(self, x))

    # ---- group_norm: groups of channels of each sample; instance_norm is the case of one channel a group ----

    def group_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float = 1e-5
    ) -> tuple[Any, Any, Any]:
        """Return (out, mean, rstd); the statistics have shape (N, groups)."""
        dtype = self.dtype_of(x)
        shape = tuple(self.shape_of(x))
        parts = _grouped(self, widen(self, x), groups)
        mean, centred, rstd = _moments(self, parts, (2,), eps)
        out = self.reshape(self.multiply(centred, rstd), shape)
        out = out if weight is None else self.multiply(out, _per_channel(self, weight, out))
        out = out if bias is None else self.add(out, _per_channel(self, bias, out))
        stats = (shape[0], groups)
        return narrow(self, out, dtype), self.reshape(mean, stats), self.reshape(rstd, stats)

    @in_float32
    def group_norm_grad(
        self,
        g: Any,
        x: Any,
        weight: Any = None,
        mean: Any = None,
        rstd: Any = None,
        *,
        groups: int,
        eps: float = 1e-5,
    ) -> Any:
        """Return the gradient of the input."""
        shape = tuple(self.shape_of(x))
        g = g if weight is None else self.multiply(g, _per_channel(self, weight, g))
        _, centred, rstd = _moments(self, _grouped(self, x, groups), (2,), eps)
        pulled = _pull(self, _grouped(self, g, groups), centred, rstd, (2,))
        return self.reshape(pulled, shape)

    @in_float32
    def group_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, rstd: Any = None, *, groups: int, eps: float = 1e-5
    ) -> Any:
        """Return the gradient of the weight; the bias's is the sum of `g` over all but the channels."""
        _, centred, rstd = _moments(self, _grouped(self, x, groups), (2,), eps)
        normal = self.reshape(self.multiply(centred, rstd), tuple(self.shape_of(x)))
        return self.sum(self.multiply(g, normal), axis=_not_channel(self, x))

    def group_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, *, groups: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        """Return the gradients of input, weight and bias that `needs` asks for."""
        return (
            self.group_norm_grad(g, x, weight, mean, rstd, groups=groups, eps=eps) if needs[0] else None,
            self.group_norm_weight_grad(g, x, mean, rstd, groups=groups, eps=eps) if needs[1] else None,
            self.sum(g, axis=_not_channel(self, g)) if needs[2] else None,
        )


# ---- helpers ----


def _last(k: Any, x: Any, ndim: int) -> tuple[int, ...]:
    total = len(k.shape_of(x))
    return tuple(range(total - ndim, total))


def _not_channel(k: Any, x: Any) -> tuple[int, ...]:
    return (0, *range(2, len(k.shape_of(x))))


def _grouped(k: Any, x: Any, groups: int) -> Any:
    n, channels, *sizes = k.shape_of(x)
    return k.reshape(x, (n, groups, channels // max(groups, 1) * prod(sizes)))


def _mean(k: Any, x: Any, axes: Sequence[int]) -> Any:
    shape = k.shape_of(x)
    return k.divide(k.sum(x, axis=tuple(axes), keepdims=True), max(1, prod(shape[a] for a in axes)))


def _inverse_root(k: Any, var: Any, eps: float) -> Any:
    return k.divide(1, k.sqrt(k.add(var, eps)))


def _deviation(k: Any, x: Any, axes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Return (mean, x - mean, biased variance): two passes, as one would cancel digits."""
    mean = _mean(k, x, axes)
    centred = k.subtract(x, mean)
    return mean, centred, _mean(k, k.multiply(centred, centred), axes)


def _moments(k: Any, x: Any, axes: Sequence[int], eps: float) -> tuple[Any, Any, Any]:
    mean, centred, var = _deviation(k, x, axes)
    return mean, centred, _inverse_root(k, var, eps)


def _pull(k: Any, g: Any, centred: Any, rstd: Any, axes: Sequence[int]) -> Any:
    """Take a gradient back through (x - mean) * rstd."""
    normal = k.multiply(centred, rstd)
    along = _mean(k, k.multiply(g, normal), axes)
    return k.multiply(rstd, k.subtract(k.subtract(g, _mean(k, g, axes)), k.multiply(normal, along)))


def _affine(k: Any, x: Any, weight: Any, bias: Any) -> Any:
    """Scale and shift along the trailing axes."""
    x = x if weight is None else k.multiply(x, _like(k, weight, x))
    return x if bias is None else k.add(x, _like(k, bias, x))


def _like(k: Any, x: Any, like: Any) -> Any:
    """Return x in the dtype of `like`: parameters may be narrower or wider than what they act on."""
    return narrow(k, x, k.dtype_of(like))


def _per_channel(k: Any, x: Any, like: Any) -> Any:
    """Return a vector over the channels, shaped to broadcast along axis 1."""
    return k.reshape(_like(k, x, like), (k.shape_of(x)[0], *[1] * (len(k.shape_of(like)) - 2)))


def _scale(k: Any, rstd: Any, weight: Any) -> Any:
    return (
        rstd
        if weight is None
        else k.multiply(rstd, k.reshape(_like(k, weight, rstd), tuple(k.shape_of(rstd))))
    )


def _sum_leading(k: Any, x: Any, ndim: int) -> Any:
    lead = tuple(range(len(k.shape_of(x)) - ndim))
    return k.sum(x, axis=lead) if lead else x
