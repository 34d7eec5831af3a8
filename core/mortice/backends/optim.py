"""FREE kernels of optimiser steps: one call updates all parameters of a group, so a backend can do it in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Buffers = Sequence[Any]


class OptimKernels:
    """Steps over lists of buffers. Each returns its changed lists; a mutable backend may write them in place."""

    def sgd_step(
        self: Any, params: Buffers, grads: Buffers, momenta: Buffers, *, lr: float, momentum: float, dampening: float,
        weight_decay: float, nesterov: bool, maximize: bool, first: bool,
    ) -> tuple[list[Any], list[Any]]:  # fmt: skip
        """Step down the gradient, with momentum if its buffers are given; `first` starts them with the gradient."""
        new_params, new_momenta = [], []
        for i, (p, g) in enumerate(zip(params, grads)):
            if maximize:
                g = self.negative(g)
            if weight_decay:
                g = self.add(g, self.multiply(p, weight_decay))
            if momentum:
                m = g if first else self.add(self.multiply(momenta[i], momentum), self.multiply(g, 1 - dampening))
                new_momenta.append(self.copy(m) if first else m)
                g = self.add(g, self.multiply(m, momentum)) if nesterov else m
            new_params.append(self.subtract(p, self.multiply(g, lr)))
        return new_params, new_momenta

    def adam_step(
        self: Any, params: Buffers, grads: Buffers, means: Buffers, squares: Buffers, maxima: Buffers, *, lr: float,
        beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float,
    ) -> tuple[list[Any], list[Any], list[Any], list[Any]]:  # fmt: skip
        """Take step number `step` of Adam, or of AdamW when decay is decoupled; `maxima` is empty unless amsgrad."""
        scale, root = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
        new: tuple[list[Any], list[Any], list[Any], list[Any]] = ([], [], [], [])
        for i, (p, g, m, v) in enumerate(zip(params, grads, means, squares)):
            if maximize:
                g = self.negative(g)
            if weight_decay and decoupled:
                p = self.multiply(p, 1 - lr * weight_decay)
            elif weight_decay:
                g = self.add(g, self.multiply(p, weight_decay))
            m = self.add(m, self.multiply(self.subtract(g, m), 1 - beta1))
            squared = self.multiply(g, self.conj(g)) if self.dtype_of(g).is_complex else self.multiply(g, g)
            v = self.add(self.multiply(v, beta2), self.multiply(squared, 1 - beta2))
            top = v
            if maxima:
                top = self.maximum(maxima[i], v)
                new[3].append(top)
            bottom = self.add(self.divide(self.sqrt(top), root), eps)
            new[0].append(self.subtract(p, self.multiply(self.divide(m, bottom), scale)))
            new[1].append(m)
            new[2].append(v)
        return new
