"""nll_loss and its gradient: against the default bodies, with weights, labels to ignore and labels that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt
from mortice.backends import Backend

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def numbers(k: Any, x: Any) -> Any:
    return k.to_host(x).tolist()


def operands(shape: tuple[int, ...], dtype: str) -> tuple[Any, Any, Any, Any]:
    g = mt.Generator().manual_seed(0)
    d = getattr(mt, dtype)
    at = (shape[0], *shape[2:])
    labels = mt.randint(0, shape[1], at, generator=g)
    return (
        mt.randn(*shape, generator=g).to(d)._buffer, labels._buffer, mt.rand(shape[1], generator=g).to(d)._buffer,
        mt.randn(*at, generator=g).to(d)._buffer,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (64, 10), (2, 4, 3), (3, 5, 2, 4), (300, 200), (0, 3), (2, 3, 0)])
@pytest.mark.parametrize("ignored", [-100, 0, 2])
def test_losses_and_gradients_are_those_of_the_default_bodies(
    k: Any, shape: tuple[int, ...], dtype: str, ignored: int
) -> None:
    logp, labels, weight, g = operands(shape, dtype)
    for w in (None, weight):
        got, want = (
            f(logp, labels, w, ignore_index=ignored) for f in (k.nll_loss, lambda *a, **b: Backend.nll_loss(k, *a, **b))
        )
        assert [numbers(k, v) for v in got] == [numbers(k, v) for v in want]
        assert all(k.dtype_of(v) is k.dtype_of(logp) for v in got)
        given = {"x_shape": shape, "ignore_index": ignored}
        made = k.nll_loss_grad(g, labels, w, **given)
        assert numbers(k, made) == numbers(k, Backend.nll_loss_grad(k, g, labels, w, **given))
        assert k.dtype_of(made) is k.dtype_of(g)


def test_operands_may_be_strided(k: Any) -> None:
    logp, labels, _, _ = operands((6, 4), "float32")
    turned = k.permute_dims(k.copy(k.permute_dims(logp, (1, 0))), (1, 0))
    assert numbers(k, k.nll_loss(turned, labels)[0]) == numbers(k, k.nll_loss(logp, labels)[0])
    g = k.broadcast_to(mt.tensor(0.5)._buffer, (6,))
    assert sum(map(sum, numbers(k, k.nll_loss_grad(g, labels, None, x_shape=(6, 4))))) == -3.0


@pytest.mark.usefixtures("modern")
@pytest.mark.parametrize("label", [-1, 4, -100 + 1, 2**40, -(2**63)])
def test_labels_outside_are_refused_and_nothing_is_touched(k: Any, label: int) -> None:
    logp, _, _, g = operands((3, 4), "float32")
    labels = mt.tensor([0, label, 1])._buffer
    with pytest.raises(IndexError, match="out of bounds for 4 classes"):
        k.nll_loss(logp, labels)
    with pytest.raises(IndexError, match="out of bounds for 4 classes"):
        k.nll_loss_grad(g, labels, None, x_shape=(3, 4))


@pytest.mark.usefixtures("modern")
def test_wrong_shapes_are_refused(k: Any) -> None:
    logp, labels, weight, g = operands((3, 4), "float32")
    for call in (
        lambda: k.nll_loss(logp, mt.tensor([0, 1])._buffer),
        lambda: k.nll_loss(logp, g),
        lambda: k.nll_loss(logp, labels, g),
        lambda: k.nll_loss_grad(weight, labels, None, x_shape=(3, 4)),
        lambda: k.nll_loss_grad(g, labels, None),
        lambda: k.nll_loss_grad(g, labels, None, x_shape=(3,)),
    ):
        with pytest.raises((RuntimeError, TypeError)):
            call()
