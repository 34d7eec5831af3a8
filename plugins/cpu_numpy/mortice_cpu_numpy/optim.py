"""Optimiser steps in place: NumPy would make a temporary for each arithmetic operation."""

from __future__ import annotations

from typing import Any

import numpy as np

add, subtract, multiply, divide, sqrt, maximum = np.add, np.subtract, np.multiply, np.divide, np.sqrt, np.maximum


class NumPyOptim:
    """The steps of `mortice.backends.optim.OptimKernels`, writing into parameters and state."""

    def sgd_step(
        self, params: Any, grads: Any, momenta: Any, *, lr: float, momentum: float, dampening: float,
        weight_decay: float, nesterov: bool, maximize: bool, first: bool,
    ) -> Any:  # fmt: skip
        new_momenta = []
        for i, (p, g) in enumerate(zip(params, grads)):
            if maximize:
                g = -g
            if weight_decay:
                g = g + p * weight_decay
            if momentum:
                if first:
                    m = np.array(g)
                else:
                    m = momenta[i]
                    multiply(m, momentum, out=m)
                    add(m, g * (1 - dampening) if dampening else g, out=m)
                new_momenta.append(m)
                g = g + m * momentum if nesterov else m
            subtract(p, g * lr, out=p)
        return params, new_momenta

    def adam_step(
        self, params: Any, grads: Any, means: Any, squares: Any, maxima: Any, *, lr: float, beta1: float, beta2: float,
        eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float,
    ) -> Any:  # fmt: skip
        scale, root = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
        with np.errstate(all="ignore"):
            for i, (p, g, m, v) in enumerate(zip(params, grads, means, squares)):
                if maximize:
                    g = -g
                if weight_decay and decoupled:
                    multiply(p, 1 - lr * weight_decay, out=p)
                elif weight_decay:
                    g = g + p * weight_decay
                work = np.asarray(subtract(g, m))
                add(m, multiply(work, 1 - beta1, out=work), out=m)
                multiply(v, beta2, out=v)
                work = np.asarray(multiply(g, np.conj(g) if g.dtype.kind == "c" else g))
                add(v, multiply(work, 1 - beta2, out=work), out=v)
                top = v if not maxima else maximum(maxima[i], v, out=maxima[i])
                work = np.asarray(sqrt(top))
                divide(work, root, out=work)
                add(work, eps, out=work)
                divide(m, work, out=work)
                subtract(p, multiply(work, scale, out=work), out=p)
        return params, means, squares, maxima
