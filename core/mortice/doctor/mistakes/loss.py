"""What goes into a loss: probabilities where logits are wanted, and their kin."""

from __future__ import annotations

import math
import weakref
from typing import Any

from mortice.doctor import events, trail
from mortice.doctor.events import Call, Forward
from mortice.doctor.looks import Rarely, number
from mortice.doctor.rule import Rule, register

# Losses over classes or labels, and losses of numbers; functions of nn.functional.
OF_CLASSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")
OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
# What log(p + epsilon) may come to.
HIGHEST_LOG = 1e-3
DROPPING = trail.ARRANGING | {"dropout"}
# Functions of single elements, or of elements among their kin, that have no weights.
ACTIVATIONS = frozenset(
    "softmax log_softmax log sigmoid logsigmoid relu leaky_relu tanh elu gelu silu softplus exp".split()
)


def class_dim(x: Any) -> int:
    """Return the dim in which losses over classes look for them."""
    return 1 if x.ndim > 1 else 0


@register
class ProbabilitiesAsLogits(Rule):
    """A softmax or sigmoid before a loss that applies its own."""

    id = "D04"
    title = "Softmax (or sigmoid) output into a loss that wants logits"
    why = (
        "The loss applies softmax or sigmoid itself. Of probabilities, which lie between 0 and 1, it cannot come near 0, and "
        "its gradients are small: training is slow and ends early."
    )
    remedy = "Remove the Softmax, or use NLLLoss on log_softmax."
    functions = ("cross_entropy", "binary_cross_entropy_with_logits")

    def start(self) -> None:
        self.rarely = Rarely()

    def function(self, event: Call) -> None:
        x = event.input
        if x._node is None:
            if event.op == "cross_entropy" and self.rarely() and _sums_to_one(x):
                self._say(event, "its values are not negative and sum to 1 over the classes")
            return
        path = trail.path(x, DROPPING)
        op = trail.op_of(path[-1]) if path else ""
        if op in ("softmax", "sigmoid"):
            self._say(event, f"output of {self.session.maker(path[-1])}")
        elif op == "log_softmax" and event.op == "cross_entropy":
            if trail.carry(path[-1].attrs["axis"], path) == class_dim(x):
                self.report(
                    "cross_entropy got log-probabilities. It applies log_softmax itself, which changes them no more: the "
                    "same value, twice the work.",
                    level="info",
                    remedy="Remove the LogSoftmax, or use NLLLoss.",
                )

    def _say(self, event: Call, seen: str) -> None:
        if event.op == "cross_entropy":
            classes = event.input.shape[class_dim(event.input)]
            least = math.log(1 + (classes - 1) / math.e)
            self.report(
                f"cross_entropy got probabilities ({seen}); it applies log_softmax itself. The loss cannot fall below "
                f"{least:.3f} this way.",
                classes=classes,
                least=least,
            )
        else:
            self.report(
                f"binary_cross_entropy_with_logits got probabilities ({seen}); it applies sigmoid itself. The loss cannot "
                "fall below 0.313 where the target is 1, nor below 0.693 where it is 0.",
                remedy="Remove the Sigmoid, or use BCELoss.",
            )


def _sums_to_one(x: Any) -> bool:
    dim = class_dim(x)
    classes = x.shape[dim] if x.ndim else 0
    if classes < 2 or x.numel() < 4 * classes or not x.is_floating_point():
        return False
    x = x.detach()
    off = number((x.sum(dim) - 1).abs().max())
    return off is not None and off < 1e-4 and (number(x.min()) or 0) >= 0


def _cuts_negatives(node: Any) -> bool:
    op = trail.op_of(node)
    if op == "clamp":
        low: Any = node.saved[1] if node.saved else None
        return getattr(low, "_buffer", None) == 0 and low.shape == ()
    return op == "relu"


@register
class ReluOnLogits(Rule):
    """A ReLU between the last layer and the softmax or the loss."""

    id = "D10"
    title = "ReLU left before a softmax or the loss"
    why = (
        "Negative evidence is cut to 0, and where all logits of a sample are 0 no gradient comes through: "
        "the network can say for a class, but not against it."
    )
    remedy = "Remove the ReLU before the softmax or the loss."
    functions = (
        "softmax", "log_softmax", "cross_entropy", "nll_loss", "binary_cross_entropy_with_logits", "binary_cross_entropy",
    )  # fmt: skip

    def start(self) -> None:
        self.lines: dict[int, Any] = {}  # by the identity of a softmax's node: the line that asked for it
        self.answers: dict[Any, tuple[Any, Any]] = {}  # by that line: the node, and its module's output

    def _softmax(self, event: Call) -> None:
        path = trail.path(event.out)
        node = next((n for n in path if trail.op_of(n) == event.op), None)
        if node is not None:
            self.lines.pop(id(node), None)
            if _cuts_negatives(trail.before(node, DROPPING)):
                self.lines[id(node)] = events.here()

    def backward(self, event: Any) -> None:
        answers, self.answers = self.answers, {}
        for site, (ref, out) in answers.items():
            node = ref()
            if node is not None and not self.again(site) and not trail.weighs(event.losses, node):
                self._say(trail.before(node, DROPPING), out, site, trail.op_of(node))

    def backward_done(self, event: Any) -> None:
        self.lines.clear()

    def answer(self, event: Forward) -> None:
        """A softmax that ends a network is a loss's, which the user may have written out."""
        if not self.lines:
            return
        out = event.output[0] if isinstance(event.output, tuple) and event.output else event.output
        node = trail.source(out) if hasattr(out, "_node") else None
        if id(node) in self.lines:
            self.answers[self.lines[id(node)]] = weakref.ref(node), out.detach()

    def function(self, event: Call) -> None:
        if event.op in ("softmax", "log_softmax"):
            self._softmax(event)
            return
        x = event.input
        node = trail.source(x, DROPPING)
        kind, site = event.op, None
        if trail.op_of(node) == "log":
            node = trail.before(node)
        if trail.op_of(node) in ("softmax", "log_softmax"):
            site = self.lines.get(id(node))
            node = trail.before(node, DROPPING)
        elif kind == "nll_loss":
            return
        elif kind == "binary_cross_entropy":
            if trail.op_of(node) != "sigmoid":
                return
            node = trail.before(node, DROPPING)
        if _cuts_negatives(node):
            self._say(node, x.detach(), site or events.here(), kind)

    def _say(self, node: Any, x: Any, site: Any, kind: str) -> None:
        if self.again(site):
            return
        name = self.session.maker(node)
        if kind.startswith("binary"):
            self.report(
                f"The logits come straight out of {name}: none is negative, so that no probability falls below 0.50.",
                site=site,
                least=0.5,
            )
            return
        if kind == "cross_entropy":
            x = x.softmax(class_dim(x))
        elif kind in ("log_softmax", "nll_loss"):
            x = x.exp()
        least = number(x.amin(class_dim(x)).mean())
        kept = "" if least is None else f", and the least likely class keeps a probability of {least:.2g} on average"
        self.report(
            f"The logits come straight out of {name}: negative evidence is cut to 0{kept}.",
            site=site,
            least=least,
        )


@register
class SoftmaxIntoNll(Rule):
    """Probabilities, or logits, where NLLLoss wants logarithms of probabilities."""

    id = "D14"
    title = "Softmax with NLLLoss"
    why = (
        "NLLLoss takes the input at the target's class and changes its sign; it computes no logarithm. Of probabilities that "
        "gives a loss between -1 and 0 with weak gradients, of logits one that falls without end."
    )
    remedy = "Use log_softmax, or CrossEntropyLoss on logits."
    functions = ("nll_loss",)

    def start(self) -> None:
        self.rarely = Rarely()

    def function(self, event: Call) -> None:
        x = event.input
        node = trail.source(x, DROPPING)
        op = trail.op_of(node)
        if op == "log_softmax" or not x.numel() or not (op == "softmax" or self.rarely()):
            return
        site = events.here()
        if self.again(site):
            return
        highest = number(x.detach().max())
        if highest is None:
            return
        if op == "softmax" or highest > HIGHEST_LOG:
            of = f" (output of {self.session.maker(node)})" if op == "softmax" else ""
            self.report(
                f"NLLLoss expects log-probabilities, got values up to {highest:.2f}{of}. Its result is negative.",
                site=site,
                highest=highest,
            )


@register
class DropoutOnOutput(Rule):
    """A dropout after the last layer with weights."""

    id = "D21"
    title = "Dropout on the output layer"
    why = "The loss sees predictions that are set to 0 at random, so that it stays high whatever the network learns."
    remedy = "Move the Dropout before the last layer."
    functions = (*OF_CLASSES, *OF_NUMBERS)
    through = trail.ARRANGING | ACTIVATIONS

    def function(self, event: Call) -> None:
        x = event.input
        node = trail.source(x, self.through)
        if trail.op_of(node) != "dropout" or (event.op in OF_NUMBERS and not self._is_prediction(x, event.target)):
            return
        p = (node.attrs or {}).get("p", 0.0)
        name = self.session.maker(node)
        made = self.session.outputs.get(x) or self.session.outputs.get(x._base)
        whose = self.session.name(made) if made is not None else "the network"
        what = "logits" if event.op in ("cross_entropy", "binary_cross_entropy_with_logits") else "outputs"
        if p > 0:
            self.report(
                f"Dropout({p:g}) is applied to the output of {whose} ({name}): {p:.0%} of the {what} are set to 0 at "
                "random before the loss.",
                p=p,
            )

    def _is_prediction(self, x: Any, target: Any) -> bool:
        """Tell a network's answer to data from features that are pulled together, of which dropout may be the noise."""
        outputs = self.session.outputs
        known = target._node is None and not target.requires_grad and target not in outputs
        return known and (x in outputs or x._base in outputs)
