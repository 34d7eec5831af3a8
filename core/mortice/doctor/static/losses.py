"""What goes into a loss, as far as the text tells."""

from __future__ import annotations

import ast
from typing import NamedTuple

from mortice.doctor.static.meaning import Meaning, Origin
from mortice.doctor.static.rule import StaticRule, register

LOSSES = {
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "BCELoss": "binary_cross_entropy", "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss",
    "MultiMarginLoss": "multi_margin_loss", "HuberLoss": "huber_loss",
}  # fmt: skip
NAMES = {v: k for k, v in LOSSES.items()}


class Loss(NamedTuple):
    """A call of a loss: its function's name, how it is called in the program, and its input."""

    name: str
    label: str
    input: ast.expr


def loss_of(meaning: Meaning, call: ast.Call) -> Loss | None:
    """Return which loss a call is, if it is one."""
    given = meaning.argument(call, 0, "input")
    if given is None:
        return None
    head, _, name = meaning.program.qualified(call.func).rpartition(".")
    if head == "torch.nn.functional" and name in NAMES:
        return Loss(name, name, given)
    made = meaning.thing(call.func)
    if made is not None and made.kind == "loss" and made.name in LOSSES:
        return Loss(LOSSES[made.name], made.name, given)
    return None


class LossRule(StaticRule):
    """A rule about the calls of losses."""

    def visit_Call(self, node: ast.Call) -> None:
        loss = loss_of(self.meaning, node)
        if loss is not None:
            origin = self.meaning.origin(loss.input)
            if origin is not None:
                self.see(node, loss, origin)

    def see(self, node: ast.Call, loss: Loss, origin: Origin) -> None:
        """Look at a loss and what its input comes from."""


@register
class ProbabilitiesAsLogits(LossRule):
    """A softmax or sigmoid before a loss that applies its own."""

    id = "D04"
    title = "Softmax (or sigmoid) output into a loss that wants logits"
    why = "The loss applies softmax itself: of probabilities it cannot come near 0, and gradients are small."
    remedy = "Remove the Softmax, or use NLLLoss on log_softmax."

    def see(self, node: ast.Call, loss: Loss, origin: Origin) -> None:
        if loss.name not in ("cross_entropy", "binary_cross_entropy_with_logits"):
            return
        own = "log-softmax" if loss.name == "cross_entropy" else "the sigmoid"
        kind, place = origin.op.capitalize(), self.line(origin.node)
        if origin.op in ("softmax", "sigmoid"):
            remedy = f"Remove the {kind}, or use BCELoss on probabilities."
            if loss.name == "cross_entropy":
                remedy = self.remedy if origin.op == "softmax" else "Remove the Sigmoid: give the loss the logits."
            said = f"{loss.label} got probabilities (output of the {kind} in {place}); it applies {own} itself."
            self.report(node, said, remedy=remedy)
        elif origin.op == "log_softmax" and loss.name == "cross_entropy":
            said = f"{loss.label} got log-probabilities (output of the log_softmax in {place}); it applies {own} once more."
            self.report(
                node,
                f"{said} That changes nothing.",
                level="info",
                remedy="Use NLLLoss, or leave the log_softmax out.",
            )


@register
class SoftmaxIntoNLL(LossRule):
    """Probabilities where log-probabilities are wanted."""

    id = "D14"
    title = "Softmax with NLLLoss"
    why = "NLLLoss only picks the value of the right class: of probabilities that is no likelihood, and the loss is negative."
    remedy = "Use log_softmax, or CrossEntropyLoss on logits."

    def see(self, node: ast.Call, loss: Loss, origin: Origin) -> None:
        if loss.name == "nll_loss" and origin.op in ("softmax", "sigmoid"):
            self.report(
                node,
                f"{loss.label} expects log-probabilities and got the output of the {origin.op} in {self.line(origin.node)}.",
            )


@register
class ReluBeforeLoss(LossRule):
    """Logits that cannot be negative."""

    id = "D10"
    title = "ReLU left before a softmax or the loss"
    why = "Negative evidence is cut to 0: a wrong class always keeps some probability, and gets no gradient below it."
    remedy = "Remove the ReLU before the softmax or the loss."
    wanting = ("cross_entropy", "binary_cross_entropy_with_logits", "multi_margin_loss")

    def see(self, node: ast.Call, loss: Loss, origin: Origin) -> None:
        if loss.name in self.wanting and origin.op == "relu":
            self.report(node, f"The input of {loss.label} comes straight out of the ReLU in {self.line(origin.node)}.")
        elif loss.name in ("cross_entropy", "nll_loss", "binary_cross_entropy") and origin.op in (
            "softmax",
            "log_softmax",
            "sigmoid",
        ):
            self._softmax(origin)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A forward that returns a softmax of a ReLU, whatever its loss."""
        if node.name == "forward" and self.meaning.is_module(self.program.owner(node)):
            for returned in self.meaning.returns(node):
                if isinstance(returned, ast.Call):
                    origin = self.meaning.origin(returned)
                    if origin is not None and origin.op in ("softmax", "log_softmax"):
                        self._softmax(origin, level="info")  # its output may be weights of attention

    def _softmax(self, origin: Origin, level: str | None = None) -> None:
        call = origin.node
        if not isinstance(call, ast.Call) or any(n is call for _, n in self.findings):
            return
        if isinstance(call.func, ast.Attribute) and not self.program.qualified(call.func):
            before = self.meaning.origin(call.func.value)
        else:
            before = self.meaning.origin(self.meaning.argument(call, 0, "input"))
        if before is not None and before.op == "relu":
            said = f"The input of the {origin.op} comes straight out of the ReLU in {self.line(before.node)}."
            self.report(call, said, level=level)

    def finish(self) -> None:
        """Look at the Sequentials that end in ReLU and Softmax."""
        for node in self.program.nodes.get(ast.Call, ()):
            made = self.meaning.thing(node)
            if (
                made is None
                or made.node is not node
                or made.kind != "sequential"
                or not made.items
                or len(made.items) < 3
            ):
                continue
            last, before = made.items[-1], made.items[-2]
            if last and before and last.name in ("Softmax", "LogSoftmax") and before.name == "ReLU":
                self.report(
                    last.node, f"The input of {last.name} comes straight out of the ReLU in {self.line(before.node)}."
                )


@register
class DropoutOnOutput(LossRule):
    """A dropout after the last layer."""

    id = "D21"
    title = "Dropout on the output layer"
    why = "Some of the logits are set to 0 at random before the loss reads them: that is noise in the answer, and no regulariser."
    remedy = "Move the dropout before the last layer."
    distances = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")  # draw features together, too

    def see(self, node: ast.Call, loss: Loss, origin: Origin) -> None:
        if origin.dropout is not None and (loss.name not in self.distances or self._data(node)):
            line = self.line(origin.dropout)
            self.report(node, f"The input of {loss.label} comes out of the dropout in {line}, after the last layer.")

    def _data(self, call: ast.Call) -> bool:
        """Tell whether a loss compares with what the program was given, and not with what it has computed."""
        target = self.meaning.argument(call, 1, "target")
        binding = self.program.reaching(target) if isinstance(target, ast.Name) else None
        return binding is not None and binding.how in ("for", "parameter")


@register
class SoftmaxWithoutDim(StaticRule):
    """A softmax that must guess its dim."""

    id = "D09"
    title = "Softmax over the wrong dim"
    why = "Without dim it is 0 for 1-D, 3-D tensors and 1 else: of (batch, time, classes) it normalises over the batch."
    remedy = "Say dim: for (batch, classes) it is dim=1, for classes in the last place dim=-1."

    def visit_Call(self, node: ast.Call) -> None:
        head, _, name = self.program.qualified(node.func).rpartition(".")
        if name in ("Softmax", "LogSoftmax", "Softmin") and head == "torch.nn":
            place = 0
        elif name in ("softmax", "log_softmax", "softmin") and head == "torch.nn.functional":
            place = 1
        else:
            return
        dim = self.meaning.argument(node, place, "dim")
        if self.meaning.starred(node) or (
            dim is not None and not (isinstance(dim, ast.Constant) and dim.value is None)
        ):
            return
        self.report(
            node,
            f"{name} without dim takes the dim that the number of dims suggests, which need not be that of the classes.",
        )
