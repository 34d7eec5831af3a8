"""cross_entropy and the gradient of an embedding on the emulator, against the core's default bodies."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from checks import DTYPES, agree, draw
from kernels_on_numpy import backends

K, LAW = backends()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 1100), (2, 5, 3, 4), (300, 3, 2), (2, 2, 160, 128)])
def test_cross_entropy(dtype: Any, shape: Any) -> None:
    x = draw(shape, dtype, seed=1, scale=3)
    target = np.random.default_rng(2).integers(0, shape[1], (shape[0], *shape[2:]))
    target.reshape(-1)[1::4] = -100
    weight = np.abs(draw(shape[1:2], dtype, seed=3)) + dtype.type(0.5)
    for reduction, smoothing, w in product(("mean", "sum", "none"), (0.0, 0.1), (None, weight)):
        case: dict[str, Any] = {"reduction": reduction, "smoothing": smoothing}
        found = K.cross_entropy(x, target, w, **case)
        agree(found, LAW.cross_entropy(x, target, w, **case), dtype, 4)
        g = draw(target.shape if reduction == "none" else (), dtype, seed=4)
        made = K.cross_entropy_grad(g, x, target, w, found[1], **case)
        agree(made, LAW.cross_entropy_grad(g, x, target, w, found[1], **case), dtype, 4)


def test_cross_entropy_of_strided_logits_and_another_index_to_ignore() -> None:
    x = draw((7, 6), np.float32, seed=5).T
    target = np.array([0, 3, 6, 3, 1, 3])
    case: dict[str, Any] = {"reduction": "mean", "ignore_index": 3}
    found = K.cross_entropy(x, target, **case)
    agree(found, LAW.cross_entropy(x, target, **case), np.float32)
    g = np.array(2, np.float32)
    agree(
        K.cross_entropy_grad(g, x, target, None, found[1], **case),
        LAW.cross_entropy_grad(g, x, target, None, found[1], **case),
        np.float32,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("indices", "row"),
    [((9,), (5,)), ((4, 6), (3, 2)), ((0,), (4,)), ((), (300,)), ((40,), ()), ((400,), (40,)), ((70,), (260,))],
)
def test_embedding_grad(dtype: Any, indices: Any, row: Any) -> None:
    at = np.array(np.random.default_rng(6).integers(0, 5, indices))
    g = draw((*indices, *row), dtype, seed=7)
    for padding, by_frequency in product((None, 2, -1), (False, True)):
        case: dict[str, Any] = {"num_weights": 6, "padding_idx": padding, "scale_grad_by_freq": by_frequency}
        agree(K.embedding_grad(g, at, **case), LAW.embedding_grad(g, at, **case), dtype, 4, floor=0.1)
