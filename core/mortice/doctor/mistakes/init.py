"""How a network is put together and begins: constant weights, biases without effect, the order of layers."""

from __future__ import annotations

import weakref
from typing import Any

import mortice
from mortice import nn
from mortice.doctor import events, trail
from mortice.doctor.events import Call, Forward, Step
from mortice.doctor.finding import Site
from mortice.doctor.memory import Notes
from mortice.doctor.rule import Rule, register

_CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_LINEAR = (*_CONVS, nn.Linear)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


@register
class ConstantInitialisation(Rule):
    """A layer whose units begin equal and get equal gradients.

    Equal weights alone are no mistake: of a last layer that begins with zeros the gradients differ.
    """

    id = "D12"
    title = "Zero (constant) initialisation"
    why = "Units that begin equal and get equal gradients can never become different: the layer is as good as one unit."
    remedy = "Initialise weights at random, with xavier_uniform_, kaiming_normal_ or trunc_normal_ of nn.init."

    def start(self) -> None:
        self.equal = Notes()  # optimisers: weights whose units were equal, with equal gradients, at the first step

    def step(self, event: Step) -> None:
        if event.number == 1:
            found = [weakref.ref(p) for p in event.params if _units_equal(p)]
            if found:
                self.equal[event.optimizer] = found
        elif event.number == 3:
            self._again(event, self.equal.pop(event.optimizer, []))

    def _again(self, event: Step, refs: list[Any]) -> None:
        """Look a second time, when a layer before which all was zero has got a gradient."""
        found = [p for p in (ref() for ref in refs) if p is not None and _units_equal(p)]
        matrices = [p for p in event.params if p.ndim > 1 and p.grad is not None]
        # Without any gradient a layer is not in use, unless most layers are so: then zeros stop every gradient.
        if 2 * len(found) < len(matrices) or len(matrices) < 2:
            found = [p for p in found if bool(p.grad.any())]
        if not found:
            return
        first = found[0]
        name = self.session.parameter(first).removesuffix(".weight")
        others = f" So it is in {len(found) - 1} more layers." if len(found) > 1 else ""
        self.report(
            f"All {first.shape[0]} units of {name} start equal and get equal gradients: they stay copies of one "
            f"unit.{others}",
            units=first.shape[0],
            layer=name,
            layers=len(found),
        )


def _units_equal(p: Any) -> bool:
    """Tell whether all rows of a weight are the same, and those of its gradient."""
    if p.ndim < 2 or p.shape[0] < 2 or p.grad is None or not p.numel():
        return False
    w, g = p.detach(), p.grad
    # Two rows decide nearly always, in one look.
    return _rows_equal(w[:2]) and _rows_equal(g[:2]) and _rows_equal(w) and _rows_equal(g)


def _rows_equal(t: Any) -> bool:
    """Tell whether all rows are the same up to rounding: the products of some BLAS round the rows of a result apart."""
    return bool((t - t[:1]).abs().amax() <= 1e-5 * t.abs().amax())


class _Made:
    """The layers that made tensors in the model call that runs."""

    def __init__(self) -> None:
        self.by: dict[int, tuple[Any, Any]] = {}

    def add(self, out: Any, module: Any) -> None:
        self.by[id(out)] = weakref.ref(out), weakref.ref(module)

    def of(self, t: Any) -> Any:
        """Return the layer whose very output a tensor is."""
        found = self.by.get(id(t))
        return found[1]() if found is not None and found[0]() is t else None


@register
class UselessBias(Rule):
    """A bias that BatchNorm takes away, or none where the output needs one."""

    id = "D05"
    level = "info"
    title = "Bias before BatchNorm; no bias in the output layer"
    why = "BatchNorm subtracts the mean of each channel, and a bias with it: parameters that can have no effect."
    remedy = "Use bias=False in layers before BatchNorm."
    modules = ("_ConvNd", "Linear", "_BatchNorm")
    functions = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")

    def start(self) -> None:
        self.made = _Made()
        self.pairs: list[tuple[Any, Any]] = []
        self.met, self.targets = Notes(), Notes()
        self.until = 0
        self.waiting: list[tuple[Site, list[tuple[Any, Any]]]] = []

    def forward(self, event: Forward) -> None:
        if not self.session.close or self.session.steps > self.until:
            return
        module, out = event.module, event.output
        if isinstance(module, _LINEAR):
            self.made.add(out, module)
        elif isinstance(module, _BATCH_NORMS):
            if module.training and event.args:
                maker = self.made.of(event.args[0])
                if maker is not None and maker.bias is not None:
                    self.pairs.append((maker, module))

    def answer(self, event: Forward) -> None:
        pairs, self.pairs = self.pairs, []
        if pairs and event.grad and event.module not in self.met:
            self.met[event.module] = True
            self.waiting.append((events.here(), pairs))

    def function(self, event: Call) -> None:
        if len(event.args) < 2 or event.input._node is None or self.session.steps > self.until:
            return
        layer = self._last_layer(event.input)
        if layer is None or layer.bias is not None or layer in self.targets:
            return
        self.targets[layer] = True
        target = event.args[1].detach()
        if target.numel() < 8 or not target.is_floating_point():
            return
        mean, spread = mortice.stack([target.mean(), target.std()]).tolist()
        if abs(mean) > spread:
            self.report(
                f"The output layer {self.session.name(layer)} has no bias; predictions cannot shift, and targets are "
                f"{mean:.3g} on average.",
                remedy="Use bias=True in the output layer.",
                layer=self.session.name(layer),
                mean=mean,
            )

    def _last_layer(self, output: Any) -> Any:
        """Return the layer that made what a loss is given, past ops that only rearrange."""
        node = trail.source(output)
        for ref, module in self.made.by.values():
            t = ref()
            made = None if t is None else getattr(t._node, "parent", t._node)
            if made is not None and made is node:
                return module()
        return None

    def step(self, event: Step) -> None:
        if event.number == 1:  # perhaps another model: look at it for some steps
            self.until = self.session.steps + 40
        waiting, self.waiting = self.waiting, []
        for site, pairs in waiting:
            self._report(site, [pair for pair in pairs if _without_effect(pair[0])])
        if len(self.made.by) > 64:
            self.made.by.clear()

    def _report(self, site: Site, pairs: list[tuple[Any, Any]]) -> None:
        if not pairs:
            return
        layer, norm = pairs[0]
        saved = sum(layer.bias.numel() for layer, _ in pairs)
        more = f" So it is with {len(pairs) - 1} more layers." if len(pairs) > 1 else ""
        self.report(
            f"The bias of {self.session.name(layer)} has no effect: BatchNorm {self.session.name(norm)} subtracts the "
            f"mean right after it.{more}",
            site=site,
            remedy=f"Use bias=False ({saved} parameters saved).",
            layer=self.session.name(layer),
            layers=len(pairs),
            parameters=saved,
        )


def _without_effect(layer: Any) -> bool:
    """Tell whether a bias gets (nearly) no gradient: it would, if its layer's output went elsewhere too."""
    bias, weight = layer.bias.grad, layer.weight.grad
    if bias is None or weight is None:
        return False
    return bool((bias.abs().max() <= 1e-3 * weight.abs().max()).item())


@register
class NormWithoutActivation(Rule):
    """A linear layer, BatchNorm and another linear layer, with nothing between that is not linear."""

    id = "D13"
    level = "info"
    style = True
    modules = ("_ConvNd", "Linear", "_BatchNorm")
    title = "BatchNorm not before an activation"
    why = "Two linear maps in a row are one linear map: the second layer adds parameters and no expressive power."
    remedy = "The usual order is convolution, BatchNorm, activation."

    def start(self) -> None:
        self.linear, self.norms = _Made(), _Made()
        self.said = Notes()
        self.pairs: list[tuple[Any, Any]] = []

    def forward(self, event: Forward) -> None:
        if not self.session.close:
            return
        module, out = event.module, event.output
        if isinstance(module, _LINEAR):
            norm = self.norms.of(event.args[0]) if event.args else None
            if norm is not None and self._same_part(norm, module):
                self.pairs.append((norm, module))
            self.linear.add(out, module)
        elif isinstance(module, _BATCH_NORMS) and event.args and self.linear.of(event.args[0]) is not None:
            self.norms.add(out, module)

    def answer(self, event: Forward) -> None:
        module = event.module
        pairs, self.pairs = self.pairs, []
        self.linear.by.clear()
        self.norms.by.clear()
        if pairs and module not in self.said:
            self.said[module] = True
            norm, layer = (self.session.name(m) for m in pairs[0])
            more = f" So it is in {len(pairs) - 1} more places." if len(pairs) > 1 else ""
            self.report(f"{norm} feeds {layer} directly: two linear maps in a row.{more}", norm=norm, layer=layer)

    def _same_part(self, norm: Any, layer: Any) -> bool:
        """Tell whether both are of one part of the model: a block may end linear on purpose, as MobileNetV2's do."""
        names = [str(self.session.names.get(m, "")).rpartition(".")[0] for m in (norm, layer)]
        return names[0] == names[1]
