"""Does weight decay reach what is trained? A stronger one must cost training loss and shrink the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import nn, optim
from mortice.doctor.mistakes.checks import RegulariserMisses
from mortice.doctor.tools.chart import Chart, Line, Plotted
from mortice.doctor.tools.result import Result, listed, table
from mortice.doctor.tools.sandbox import Forward, apart, loss_of, norms, numbers

NOISE = 0.02  # by how much a loss may fall and a norm may stay for no reason


class Regularization(Plotted, Result):
    """What `check_regularization` returns.

    Attributes:
        strengths: from the weakest up.
        losses: the training loss at the end, without the penalty, of each.
        weights: the norm of all trained weights at the end, of each.
    """

    def __init__(self, strengths: Sequence[float]) -> None:
        super().__init__("check_regularization")
        self.strengths = sorted(strengths)
        self.losses: list[float] = []
        self.weights: list[float] = []

    def lines(self) -> list[str]:
        rows = [(f"{s:g}", f"{a:.4g}", f"{w:.4g}") for s, a, w in zip(self.strengths, self.losses, self.weights)]
        return table(("weight_decay", "loss", "norm of weights"), rows)

    def chart(self) -> Chart:
        places = [float(i) for i in range(len(self.strengths))]
        return Chart(
            f"Weight decay {', '.join(f'{s:g}' for s in self.strengths)}", "strength, from the weakest", "training loss",
            [Line("loss", places, self.losses)], [],
        )  # fmt: skip


def check_regularization(
    make_model: Callable[[], Any],
    loss_fn: Any,
    batch: Any,
    strengths: Sequence[float] = (0, 1e-2, 1),
    *,
    optimizer: Callable[[Any, float], Any] | None = None,
    steps: int = 100,
    forward: Forward | None = None,
) -> Regularization:
    """Train briefly at each strength of weight decay; tell whether training loss and weights answer to it.

    Args:
        make_model: makes a model; all begin with the same random numbers.
        loss_fn: called as loss_fn(model(*inputs), targets).
        batch: (inputs, targets).
        strengths: of weight decay.
        optimizer: optimizer(model, strength) makes the optimizer as your program does, groups and all: it is what is
            put to the test. SGD over all parameters otherwise.
        steps: of each training.
        forward: forward(model, batch) returns the loss, for models and batches of another form.
    """
    if len(set(strengths)) < 2:
        raise ValueError(f"check_regularization: expected at least two strengths; got {tuple(strengths)}.")
    result = Regularization(strengths)
    make = optimizer or (lambda model, strength: optim.SGD(model.parameters(), lr=0.1, weight_decay=strength))
    ends: list[dict[str, float]] = []
    with apart(loss_fn):
        for strength in result.strengths:
            mortice.manual_seed(0)
            model = make_model()
            if not isinstance(model, nn.Module):
                raise TypeError(
                    f"check_regularization: expected make_model() to give a Module; got {type(model).__name__}."
                )
            stepper = make(model, strength)
            loss = None
            for _ in range(steps):
                stepper.zero_grad()
                loss, _, _ = loss_of("check_regularization", model, loss_fn, batch, forward)
                loss.backward()
                stepper.step()
            with mortice.no_grad():
                loss, _, _ = loss_of("check_regularization", model, loss_fn, batch, forward)
            named = [(n, p) for n, p in model.named_parameters() if p.requires_grad and p.ndim > 1]
            ends.append(dict(zip([n for n, _ in named], norms([p for _, p in named])))) if named else ends.append({})
            result.losses += numbers([loss])
            result.weights.append(math.sqrt(sum(n * n for n in ends[-1].values())))
    _judge(result, ends)
    return result.told()


def _judge(result: Regularization, ends: list[dict[str, float]]) -> None:
    losses, strengths = result.losses, result.strengths
    pairs = list(zip(strengths, strengths[1:], losses, losses[1:]))
    fell = [(x, y, a, b) for x, y, a, b in pairs if b < a * (1 - NOISE) - 1e-4]
    weak, strong = ends[0], ends[-1]
    missed = [n for n, norm in weak.items() if strong.get(n, 0.0) > norm * (1 - NOISE)]
    missed = [n for n in missed if math.isfinite(strong[n]) and weak[n] > 0]
    where = f" Weights of {listed(missed)} do not shrink." if missed else ""
    remedy = None
    if missed and len(missed) < len(weak):
        remedy = f"Give weight_decay to the group of {listed(missed)} too, or leave it out on purpose."
    if fell and missed:
        x, y, a, b = fell[0]
        result.find(
            RegulariserMisses,
            f"Training loss fell from {a:.4g} to {b:.4g} although weight_decay rose from {x:g} to {y:g}: the regulariser does "
            f"not reach the trained parameters.{where}",
            remedy=remedy, before=a, after=b,
        )  # fmt: skip
    elif missed and result.weights[-1] > result.weights[0] * (1 - NOISE):
        result.find(
            RegulariserMisses,
            f"weight_decay rose from {strengths[0]:g} to {strengths[-1]:g} and the trained weights did not shrink (norm "
            f"{result.weights[0]:.4g} and {result.weights[-1]:.4g}, loss {losses[0]:.4g} and {losses[-1]:.4g}): the "
            f"regulariser does not reach the trained parameters.{where}",
            remedy=remedy, before=losses[0], after=losses[-1],
        )  # fmt: skip
    elif missed and result.weights[-1] < 0.5 * result.weights[0]:
        result.find(
            RegulariserMisses,
            f"weight_decay rose from {strengths[0]:g} to {strengths[-1]:g}, and weights of {listed(missed)} did not shrink.",
            level="info", remedy=remedy,
        )  # fmt: skip
