"""Gradients of recurrent networks that explode, where nobody clips them."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import mortice
from mortice import nn
from mortice.doctor.events import Backward, Forward, Step, here
from mortice.doctor.finding import Site
from mortice.doctor.memory import Notes
from mortice.doctor.rule import Rule, register
from mortice.nn.utils.rnn import PackedSequence


class _Norms:
    """The gradient norms of one optimiser's recurrent weights."""

    def __init__(self, weights: list[Any]) -> None:
        self.weights = weights
        self.unread: list[tuple[int, Any]] = []
        self.read: list[float] = []
        self.first = 0.0
        self.site: Site | None = None


@register
class ExplodingGradient(Rule):
    """A recurrent network's gradient that jumps, without clipping."""

    id = "D20"
    title = "No gradient clipping on a recurrent network"
    why = "Over many steps a gradient can grow by orders of magnitude; one such step undoes many good ones."
    remedy = "Clip between backward() and step(): clip_grad_norm_(model.parameters(), 1.0)."
    modules = ("RNNBase", "RNNCellBase")
    READ, ENOUGH, JUMP, SHORT, HUGE = 16, 20, 10, 10, 100

    def start(self) -> None:
        self.weights = Notes()  # recurrent weights: [the layer's name, steps in its longest sequence, calls]
        self.norms = Notes()
        self.versions: dict[int, tuple[Any, int]] = {}

    def forward(self, event: Forward) -> None:
        module = event.module
        if not event.grad:
            return
        layer = hasattr(module, "bidirectional")
        weight = getattr(module, "weight_hh_l0" if layer else "weight_hh", None)
        note = self.weights.get(weight) if weight is not None else None
        if note is None:
            if not isinstance(weight, nn.Parameter):
                return
            note = self.weights[weight] = [self.session.name(module), 0, 0]
            self.session.want(self, "backward_done", "step")
        if not layer:
            note[2] += 1
        elif note[1] < self.SHORT:
            x = event.args[0] if event.args else event.kwargs["input"]
            if isinstance(x, PackedSequence):
                note[1] = max(note[1], len(x.batch_sizes))
            else:
                note[1] = max(note[1], x.shape[0 if x.ndim == 2 or not module.batch_first else 1])

    def backward_done(self, event: Backward) -> None:
        if not len(self.weights):
            return
        self.versions.clear()
        for weight, note in self.weights.items():
            note[1], note[2] = max(note[1], note[2]), 0
            if note[1] >= self.SHORT and weight.grad is not None:
                self.versions[id(weight)] = weight.grad, weight.grad._version

    def step(self, event: Step) -> None:
        if not self.versions:
            return
        norms = self.norms.get(event.optimizer)
        if norms is None:
            own = [p for p in event.params if p in self.weights]
            norms = self.norms[event.optimizer] = _Norms(own)
        if not norms.weights or self.clipped(norms.weights):
            return
        if norms.site is None:
            norms.site = here()
        grads = [w.grad.detach() for w in norms.weights if w.grad is not None]
        if not grads:
            return
        each = [mortice.linalg.vector_norm(g) for g in grads]
        norms.unread.append(
            (event.number, each[0] if len(each) == 1 else mortice.linalg.vector_norm(mortice.stack(each)))
        )
        if len(norms.unread) == self.READ:
            self._read(norms)
        self.versions.clear()

    def clipped(self, weights: list[Any]) -> bool:
        """Tell whether somebody has written into the gradients, or replaced them, since the backward."""
        for weight in weights:
            grad, version = self.versions.get(id(weight), (None, 0))
            if grad is not None and (weight.grad is not grad or grad._version != version):
                return True
        return False

    def end(self, event: Any) -> None:
        for _, norms in self.norms.items():
            if norms.unread:
                self._read(norms)

    def _read(self, norms: _Norms) -> None:
        values = mortice.stack([n for _, n in norms.unread]).tolist()
        numbers = [number for number, _ in norms.unread]
        norms.unread.clear()
        for number, value in zip(numbers, values):
            if len(norms.read) >= self.ENOUGH:
                usual = median(norms.read)
                norms.first = norms.first or usual
                alone = value > self.JUMP / 2 * max(norms.read) or value > self.HUGE * max(norms.first, 1.0)
                if value > self.JUMP * usual and alone and value > self.JUMP / 2 * norms.first > 0:
                    limit = float(f"{5 * usual:.1g}")
                    self._tell(norms, f"jumped to {value:.1e} (median {usual:.1e}) at step {number}", limit, value)
            if math.isfinite(value):
                norms.read = [*norms.read[-49:], value]
            elif norms.read:
                before, norms.read = norms.read[-1], []
                if before > self.HUGE:
                    self._tell(norms, f"was {before:.1e} at step {number - 1} and {value} after it", 1.0, before)

    def _tell(self, norms: _Norms, what: str, limit: float, value: float) -> None:
        names = ", ".join(dict.fromkeys(self.weights.get(w)[0] for w in norms.weights))
        self.report(
            f"The gradient norm of {names} {what}.",
            site=norms.site,
            remedy=f"Clip between backward() and step(): clip_grad_norm_(model.parameters(), {limit:g}).",
            norm=value,
        )
