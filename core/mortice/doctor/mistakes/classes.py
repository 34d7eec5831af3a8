"""Which dim holds the classes, and whether one class excludes another."""

from __future__ import annotations

import weakref
from typing import Any

from mortice.doctor import events, trail
from mortice.doctor.events import Call, Forward
from mortice.doctor.finding import Site
from mortice.doctor.looks import Rarely, number
from mortice.doctor.memory import Notes
from mortice.doctor.mistakes.loss import DROPPING, OF_CLASSES, OF_NUMBERS, class_dim
from mortice.doctor.rule import Rule, register

SOFTMAXES = ("softmax", "log_softmax")


class _Made:
    """A softmax that was called: over which axis, in which line, and whether of a network's answer."""

    __slots__ = ("op", "axis", "site", "answer")

    def __init__(self, op: str, axis: int, site: Site, answer: bool) -> None:
        self.op, self.axis, self.site, self.answer = op, axis, site, answer


@register
class SoftmaxOverWrongDim(Rule):
    """A softmax over another dim than the one that is read as classes."""

    id = "D09"
    title = "Softmax over the wrong dim"
    why = (
        "Softmax makes the values along its dim compete and sum to 1. Over the batch, samples compete with each other instead "
        "of classes, and a prediction depends on what else is in the batch."
    )
    remedy = "Use dim=1 for scores (N, C), or the dim that holds the classes."
    ops = ("argmax", "max_dim", "topk")
    functions = (*OF_CLASSES, *OF_NUMBERS, *SOFTMAXES, "softmin")
    through = trail.ARRANGING | {"log"}

    def start(self) -> None:
        self.nodes: dict[int, _Made] = {}  # by the identity of the node, for this step
        self.tensors = Notes()  # where there is no graph
        self.answers: dict[Site, tuple[Any, _Made, int]] = {}  # over the batch: nodes, until it is seen what they are for

    def backward(self, event: Any) -> None:
        self._answers(event.losses)

    def end(self, event: Any) -> None:
        self._answers([])

    def _answers(self, losses: list[Any]) -> None:
        found, self.answers = self.answers, {}
        for ref, made, n in found.values():
            if not self.again(made.site) and not trail.weighs(losses, ref()):
                self._say_batch(made, n, "")

    def backward_done(self, event: Any) -> None:
        self.nodes.clear()

    def call(self, event: Call) -> None:
        axis = event.attrs["axis"]
        if axis is not None:
            self._read(event.input, axis % max(event.input.ndim, 1), event.op.removesuffix("_dim"))

    def _softmax(self, event: Call) -> None:
        x, out, axis = event.input, event.out, event.args[1] if len(event.args) > 1 else event.attrs.get("dim")
        if axis is None:
            self._say_implicit(event.op, x)
            return
        if not isinstance(axis, int) or event.op == "softmin":
            return
        axis %= max(x.ndim, 1)
        node = trail.source(out, frozenset())
        if node is not None:
            self.nodes.pop(id(node), None)
        if x.ndim < 2 or axis == x.ndim - 1 == 1:  # as it should be
            return
        outputs = self.session.outputs
        made = _Made(event.op, axis, events.here(), x in outputs or x._base in outputs)
        if node is not None:
            self.nodes[id(node)] = made
        else:
            self.tensors[out] = made
        if made.answer and self._over_batch(x, axis):
            if node is None:
                self._say_batch(made, x.shape[0], "")
            else:
                self.answers[made.site] = weakref.ref(node), made, x.shape[0]

    def answer(self, event: Forward) -> None:
        """A softmax over the batch that ends a network."""
        out = event.output[0] if isinstance(event.output, tuple) and event.output else event.output
        if hasattr(out, "_node") and out.ndim == 2:
            made, axis = self._find(out)
            if made is not None and self._over_batch(out, axis):
                path = trail.path(out, self.through)
                if path:
                    self.answers[made.site] = weakref.ref(path[-1]), made, out.shape[0]
                else:
                    self._say_batch(made, out.shape[0], "")

    def function(self, event: Call) -> None:
        x = event.input
        if event.op in (*SOFTMAXES, "softmin"):
            self._softmax(event)
            return
        made, axis = self._find(x)
        if made is None:
            return
        if event.op in ("cross_entropy", "nll_loss"):
            if axis is not None and axis != class_dim(x):
                self._say(made, axis, x, f"{event.op} reads classes from dim {class_dim(x)}", class_dim(x))
        elif x.ndim == 2 and axis == 0 and x.shape[1] > 1 and x.shape[0] > 1 and event.target.shape == x.shape:
            if x.shape[0] != x.shape[1] and event.target._node is None:
                self._say_batch(made, x.shape[0], f", and {event.op} compares it with targets")

    def _find(self, x: Any) -> tuple[_Made | None, int | None]:
        """Return the softmax that made a tensor, and where its axis lies in it."""
        if x._node is None:
            made = self.tensors.get(x)
            return made, made and made.axis
        path = trail.path(x, self.through)
        made = self.nodes.get(id(path[-1])) if path else None
        return (None, None) if made is None else (made, trail.carry(made.axis, path))

    def _read(self, x: Any, axis: int, reader: str) -> None:
        """See who takes the best over an axis."""
        made, along = self._find(x)
        if made is None or along is None or along == axis or x.shape[along] < 2:
            return
        # Of a matrix, over the samples and then the best class; of more dims only where it is a network's answer: the
        # best of attention weights may be asked for in any direction.
        if (x.ndim == 2 and along == 0 and x.shape[0] != x.shape[1]) or (made.answer and x.ndim > 2):
            self._say(made, along, x, f"{reader} then looks for the best in dim {axis}", axis)

    def _over_batch(self, x: Any, axis: int | None) -> bool:
        """Tell whether axis 0 holds the samples of the loader's batch, and the other one classes."""
        batch = self.session.batch
        return (
            axis == 0
            and x.ndim == 2
            and batch is not None
            and 1 < x.shape[0] == batch.size
            and x.shape[1] > 1
            and x.shape[0] != x.shape[1]
        )

    def _say(self, made: _Made, axis: int, x: Any, reader: str, dim: int) -> None:
        along = f"the batch ({x.shape[0]} samples)" if axis == 0 else f"dim {axis} (size {x.shape[axis]})"
        self.report(
            f"{made.op}(dim={made.axis}) normalises over {along}, but {reader}.",
            site=made.site,
            remedy=f"Use dim={dim}." if made.axis == axis else None,
            dim=made.axis,
            read=dim,
        )

    def _say_batch(self, made: _Made, n: int, reader: str) -> None:
        self.report(
            f"{made.op}(dim={made.axis}) normalises over the batch ({n} samples){reader}: samples compete, not classes.",
            site=made.site,
            remedy="Use dim=1.",
            dim=made.axis,
            samples=n,
        )

    def _say_implicit(self, op: str, x: Any) -> None:
        chosen = 0 if x.ndim in (0, 1, 3) else 1
        if x.ndim == 3:
            self.report(
                f"{op} without dim takes dim 0 of a tensor of shape {tuple(x.shape)}: that is the batch.",
                remedy="Say dim=-1, or the dim that holds the classes.",
                dim=chosen,
            )
        else:
            self.report(
                f"{op} without dim takes dim {chosen} of a tensor of shape {tuple(x.shape)}.",
                level="info",
                remedy=f"Say dim={chosen}: the choice depends on the number of dims.",
                dim=chosen,
            )


@register
class SoftmaxOverLabels(Rule):
    """Probabilities that sum to 1 for samples that may have several labels."""

    id = "D11"
    title = "Softmax in multi-label classification"
    why = "Softmax makes the classes compete: probabilities sum to 1, so two labels of one sample cannot both come near 1."
    remedy = "Use one sigmoid per label: BCEWithLogitsLoss on the logits."
    functions = ("binary_cross_entropy", "mse_loss", "cross_entropy")

    def start(self) -> None:
        self.rarely = Rarely()

    def function(self, event: Call) -> None:
        x, target = event.input, event.target
        if x.ndim != 2 or x.shape != target.shape or x.shape[1] < 2 or not target.is_floating_point():
            return
        if event.op == "cross_entropy":
            if not self.rarely():
                return
        else:
            path = trail.path(x, DROPPING)
            if not path or trail.op_of(path[-1]) != "softmax" or trail.carry(path[-1].attrs["axis"], path) != 1:
                return
        site = events.here()
        if self.again(site):
            return
        target = target.detach()
        most = number(target.sum(1).max())
        if most is not None and most > 1.5 and number(((target == 0) | (target == 1)).all()):
            self.report(
                f"Targets have up to {most:.0f} labels per sample, but softmax makes the classes compete (probabilities sum "
                "to 1).",
                site=site,
                labels=int(most),
            )
