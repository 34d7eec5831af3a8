"""Normalisation and its gradients on the emulator, against the core's default bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import DTYPES, agree, draw
from kernels_on_numpy import backends

K, LAW = backends()
ALL = (True, True, True)


def parameters(n: Any, dtype: Any) -> list[tuple[Any, Any]]:
    """Return weights and biases: none, of x's dtype, and of single precision."""
    w, b = draw(n, dtype, seed=11), draw(n, dtype, seed=12)
    return [(None, None), (w, b), (w.astype(np.float32), None)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "ndim"),
    [((5, 7), 1), ((1, 1), 1), ((3, 4, 16), 2), ((2, 1100), 1), ((70, 33), 1), ((0, 4), 1), ((37, 256), 1), ((3, 11, 500), 1),
     ((40, 1000), 1)],
)
def test_rows(dtype: Any, shape: Any, ndim: int) -> None:
    x, g = draw(shape, dtype, seed=1) + np.ones((), dtype), draw(shape, dtype, seed=2)
    row = shape[len(shape) - ndim :]
    for weight, bias in parameters(row, dtype):
        made = K.layer_norm(x, weight, bias, ndim=ndim)
        agree(made, LAW.layer_norm(x, weight, bias, ndim=ndim), dtype, 4)
        case: dict[str, Any] = {"ndim": ndim, "eps": 1e-5, "needs": ALL}
        wanted = wide_grads(LAW.layer_norm_grads, g, x, weight, *made[1:], **case)
        agree(K.layer_norm_grads(g, x, weight, *made[1:], **case), wanted, dtype, 8)
        out, rrms = K.rms_norm(x, weight, ndim=ndim, eps=1e-5)
        agree((out, rrms), LAW.rms_norm(x, weight, ndim=ndim, eps=1e-5), dtype, 4)
        agree(K.rms_norm_grads(g, x, weight, rrms, **case), wide_grads(LAW.rms_norm_grads, g, x, weight, rrms, **case), dtype, 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "groups"), [((2, 6, 5), 3), ((1, 2), 2), ((3, 4, 9, 8), 2), ((2, 4, 1030), 4), ((0, 4, 3), 2)]
)
def test_groups(dtype: Any, shape: Any, groups: int) -> None:
    x, g = draw(shape, dtype, seed=3), draw(shape, dtype, seed=4)
    for weight, bias in parameters(shape[1:2], dtype):
        made = K.group_norm(x, weight, bias, groups=groups)
        agree(made, LAW.group_norm(x, weight, bias, groups=groups), dtype, 4)
        if prod(shape[1:]) == groups:
            continue  # a group of one element has no direction
        case: dict[str, Any] = {"groups": groups, "eps": 1e-5, "needs": ALL}
        wanted = wide_grads(LAW.group_norm_grads, g, x, weight, *made[1:], **case)
        agree(K.group_norm_grads(g, x, weight, *made[1:], **case), wanted, dtype, 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "last"),
    [((6, 3, 5), False), ((5, 2), False), ((3, 4, 9, 8), False), ((5, 2, 700), False), ((2, 1, 16), False), ((4, 2, 33, 33), False),
     ((2, 2, 4100), False), ((3000, 2), False), ((100, 300), False), ((3, 8, 9, 7), True), ((2, 5, 4, 3, 3), True), ((4, 520, 3, 3), True),
     ((2, 16, 20, 30), True)],
)  # fmt: skip
def test_channels(dtype: Any, shape: Any, last: bool) -> None:
    x, g = draw(shape, dtype, seed=5) + np.ones((), dtype), draw(shape, dtype, seed=6)
    if last:  # in memory; g is brought into the order of x
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    for weight, bias in parameters(shape[1:2], dtype):
        made = K.batch_norm(x, weight, bias)
        assert not last or made[0].strides == x.strides
        agree(made, LAW.batch_norm(x, weight, bias), dtype, 4)
        case: dict[str, Any] = {"eps": 1e-5, "needs": ALL}
        wanted = wide_grads(LAW.batch_norm_grads, g, x, weight, *made[1:], **case)
        agree(K.batch_norm_grads(g, x, weight, *made[1:], **case), wanted, dtype, 8)
        agree(K.batch_norm_grad(g, x, weight, *made[1:]), wanted[0], dtype, 8)
        mean, var = made[1].astype(dtype), made[2].astype(dtype)
        out = K.batch_norm_eval(x, mean, var, weight, bias)
        agree(out, LAW.batch_norm_eval(x, mean, var, weight, bias), dtype, 4)
        agree(
            K.batch_norm_eval_weight_grad(g, x, mean, var), LAW.batch_norm_eval_weight_grad(g, x, mean, var), dtype, 8
        )


def test_strided_inputs_and_gradients_that_nobody_needs() -> None:
    x, g = draw((4, 6, 8), np.float32, seed=7), draw((4, 6, 8), np.float32, seed=8)
    x, g = x.transpose(0, 2, 1), g[::-1].transpose(0, 2, 1)
    _, mean, rstd = K.layer_norm(x, ndim=1)
    agree(K.layer_norm(x, ndim=1), LAW.layer_norm(x, ndim=1), np.float32)
    made = K.layer_norm_grads(g, x, None, mean, rstd, ndim=1, eps=1e-5, needs=(False, True, False))
    agree(made, LAW.layer_norm_grads(g, x, None, mean, rstd, ndim=1, eps=1e-5, needs=(False, True, False)), np.float32)


def prod(shape: Any) -> int:
    return int(np.prod(shape))


def wide_grads(law: Any, g: Any, x: Any, weight: Any, *rest: Any, **case: Any) -> tuple[Any, ...]:
    """Return the default body's gradients; those of parameters of single precision in that, and not rounded before."""
    wide = law(g.astype(np.float32), x.astype(np.float32), weight, *rest, **case) if g.itemsize == 2 else ()
    if wide and weight is not None and weight.dtype != x.dtype:
        return wide[0].astype(g.dtype), *wide[1:]
    found = law(g, x, weight, *rest, **case)
    # The bias's is a sum, which the core adds up in half precision.
    return *found[:2], *[bias.astype(g.dtype) for bias in wide[2:] or found[2:]]
