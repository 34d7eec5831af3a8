"""Do gradients reach every layer, and are they of a size to learn from?"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mortice import nn, optim
from mortice.doctor.events import all_tensors
from mortice.doctor.mistakes.checks import (
    BadGradients,
    ExplodingGradients,
    NoGradient,
    NotOptimized,
    VanishingGradients,
    ZeroGradients,
)
from mortice.doctor.tools.result import Result, count, listed, table
from mortice.doctor.tools.sandbox import Forward, apart, copies, loss_of, norms, numbers, real

LOOKS = 3  # a layer must be in a bad way at each of them: a zero-initialised last layer hides the others at the first
FAR_APART = 1e4  # of the first and the last layer's gradients
TOO_LARGE = 1e3  # of a gradient beside its weight


class Layer(NamedTuple):
    """A module's own parameters at the first look: norms of gradient and weight, the largest gradient, the share of zeros."""

    name: str
    kind: str
    gradient: float | None
    weight: float
    largest: float
    zeros: float


class Gradients(Result):
    """What `check_gradients` returns.

    Attributes:
        layers: in the order in which they ran.
        loss: of the batch.
        frozen: names of parameters that do not require grad.
    """

    def __init__(self) -> None:
        super().__init__("check_gradients")
        self.layers: list[Layer] = []
        self.loss = math.nan
        self.frozen: list[str] = []

    def lines(self) -> list[str]:
        rows = [
            (
                f"{layer.name} ({layer.kind})",
                "none" if layer.gradient is None else f"{layer.gradient:.2e}",
                f"{layer.weight:.2e}",
                "" if layer.gradient is None or not layer.weight else f"{layer.gradient / layer.weight:.1e}",
                "" if layer.gradient is None else f"{layer.zeros:.0%}",
            )
            for layer in self.layers
        ]
        said = [f"loss {self.loss:.4g}", *table(("layer", "gradient", "weight", "ratio", "zeros"), rows)]
        if self.frozen:
            said.append(f"frozen: {listed(self.frozen)}")
        return said


def check_gradients(
    model: Any, loss_fn: Any, batch: Any, *, optimizer: Any = None, forward: Forward | None = None
) -> Gradients:
    """Run a batch forward and backward on a copy; tell of layers whose gradients are missing, zero, NaN, tiny or huge.

    Args:
        model: the Module, in the mode in which it is to be looked at.
        loss_fn: called as loss_fn(model(*inputs), targets).
        batch: (inputs, targets), with any number of inputs before the targets.
        optimizer: one or several; whether they have the model's parameters is checked as well.
        forward: forward(model, batch) returns the loss, for models and batches of another form.
    """
    result = Gradients()
    with apart(model, loss_fn):
        (net,) = copies("check_gradients", model)
        looks = [_look(result, net, loss_fn, batch, forward, first) for first in (True, *[False] * (LOOKS - 1))]
    _judge(result, net, [look for look in looks if look])
    if optimizer is not None:
        _judge_optimizer(result, model, optimizer)
    return result.told()


class _Seen(NamedTuple):
    """One look: for each parameter the norm of its gradient, None without one; its own norm; its elements."""

    gradients: dict[str, float | None]
    weights: dict[str, float]
    order: list[Any]  # modules as they ran
    strange: str  # the first module whose output is NaN or infinite


def _look(result: Gradients, net: Any, loss_fn: Any, batch: Any, forward: Any, first: bool) -> _Seen | None:
    order: list[Any] = []
    outputs: list[tuple[Any, Any, Any]] = []
    handles = [
        m.register_forward_hook(lambda m, args, out: (order.append(m), outputs.append((m, args, out)), None)[2])
        for m in net.modules()
    ]
    try:
        loss, _, _ = loss_of("check_gradients", net, loss_fn, batch, forward)
    finally:
        for handle in handles:
            handle.remove()
    named = list(net.named_parameters())
    net.zero_grad(set_to_none=True)
    if loss.requires_grad:
        loss.backward()
    there = [(name, p.grad) for name, p in named if p.grad is not None]
    found = dict(zip([n for n, _ in there], norms([g for _, g in there]))) if there else {}
    weights = dict(zip([n for n, _ in named], norms([p for _, p in named]))) if named else {}
    strange = _first_strange(net, outputs) if first else ""
    seen = _Seen({name: found.get(name) for name, _ in named}, weights, list(dict.fromkeys(order)), strange)
    if first:
        (result.loss,) = numbers([loss])
        result.frozen = [name for name, p in named if not p.requires_grad]
        result.layers = _layers(net, seen)
    if all(math.isfinite(n) for n in found.values()) and there:
        # Small, and the same for all whatever their size: only where a step leads matters here.
        optim.Adam([p for _, p in named if p.grad is not None], lr=1e-3).step()
    return seen


def _first_strange(net: Any, outputs: list[tuple[Any, Any, Any]]) -> str:
    names = {id(m): name for name, m in net.named_modules()}
    for module, args, out in outputs:
        if all(_sound(t) for t in all_tensors(list(args))) and not all(_sound(t) for t in all_tensors(out)):
            name = names.get(id(module), "")
            return f"{name} ({type(module).__name__})" if name else type(module).__name__
    return ""


def _sound(t: Any) -> bool:
    return not (t.is_floating_point() or t.is_complex()) or bool(t.detach().isfinite().all())


def _owned(net: Any) -> list[tuple[str, Any, list[tuple[str, Any]]]]:
    """Return each module that has parameters of its own: its name, itself, and the parameters by their full names."""
    found = []
    for name, module in net.named_modules():
        own = [(f"{name}.{n}" if name else n, p) for n, p in module.named_parameters(recurse=False)]
        if own:
            found.append((name, module, own))
    return found


def _layers(net: Any, seen: _Seen) -> list[Layer]:
    place = {id(m): i for i, m in enumerate(seen.order)}
    layers = []
    for name, module, own in sorted(_owned(net), key=lambda o: place.get(id(o[1]), len(place))):
        gradients = [seen.gradients[n] for n, p in own if seen.gradients.get(n) is not None]
        sizes = [p for n, p in own if p.grad is not None and p.numel()]
        largest = max(numbers([real(p.grad).abs().max() for p in sizes])) if sizes else 0.0
        zeros = sum(numbers([(p.grad == 0).sum() for p in sizes])) if sizes else 0.0
        layers.append(
            Layer(
                name or type(module).__name__,
                type(module).__name__,
                math.sqrt(sum(g * g for g in gradients)) if gradients else None,
                math.sqrt(sum(seen.weights[n] ** 2 for n, _ in own)),
                largest,
                zeros / max(1, sum(p.numel() for p in sizes)),
            )
        )
    return layers


def _judge(result: Gradients, net: Any, looks: list[_Seen]) -> None:
    first = looks[0]
    trained = {name: p for name, p in net.named_parameters() if p.requires_grad}
    if not trained:
        result.find(
            NoGradient,
            "No parameter of the model requires grad: nothing would be trained.",
            remedy="Set requires_grad_(True) on what is to be trained.",
        )
        return
    bad = [n for n, g in first.gradients.items() if g is not None and not math.isfinite(g)]
    if bad or not math.isfinite(result.loss):
        where = f"; the first output that is not finite comes from {first.strange}" if first.strange else ""
        of = f"{count(len(bad), 'parameter')} ({listed(bad)})" if bad else "no parameter"
        result.find(
            BadGradients,
            f"The loss is {result.loss:.4g}, and gradients of {of} are NaN or infinite{where}.",
            parameters=", ".join(bad),
        )
    missing = [n for n in trained if all(look.gradients[n] is None for look in looks)]
    if len(missing) == len(trained):
        result.find(
            NoGradient, "The loss reaches no parameter at all: something cuts the graph between the model and the loss."
        )
        return
    if missing:
        result.find(
            NoGradient,
            f"{count(len(missing), 'parameter')} of {len(trained)} got no gradient: {listed(_by_layer(net, missing))}.",
            parameters=", ".join(missing),
        )
    if bad:
        return
    _judge_sizes(result, net, looks)


def _by_layer(net: Any, names: list[str]) -> list[str]:
    """Return names of parameters, with those of a whole layer as the layer's."""
    found, left = [], dict.fromkeys(names)
    for name, module, own in _owned(net):
        mine = [n for n, _ in own if n in left]
        if name and len(mine) == len(own):
            found.append(f"{name} ({type(module).__name__})")
        else:
            found += mine
    return found


def _judge_sizes(result: Gradients, net: Any, looks: list[_Seen]) -> None:
    owned = [(name, module, [n for n, p in own if p.requires_grad]) for name, module, own in _owned(net)]
    zero = [
        f"{name} ({type(module).__name__})" if name else type(module).__name__
        for name, module, own in owned
        if own and all(look.gradients[n] == 0 for look in looks for n in own)
    ]
    if zero:
        result.find(
            ZeroGradients,
            f"All gradients of {count(len(zero), 'layer')} are zero in {len(looks)} looks: {listed(zero)}.",
            layers=", ".join(zero),
        )
    params = dict(net.named_parameters())
    place = {id(m): i for i, m in enumerate(looks[0].order)}
    matrices = [
        (name, n)
        for name, module, own in sorted(owned, key=lambda o: place.get(id(o[1]), len(place)))
        for n in own
        if params[n].ndim > 1 and not isinstance(module, (nn.Embedding, nn.EmbeddingBag))
        and all(look.gradients[n] for look in looks)
    ]  # fmt: skip
    if not matrices:
        return

    def rms(look: _Seen, n: str) -> float:
        return (look.gradients[n] or 0.0) / math.sqrt(params[n].numel())

    last = matrices[-1][1]
    ratios = {n: [rms(look, n) / rms(look, last) for look in looks] for _, n in matrices}
    small = [n for n, r in ratios.items() if max(r) < 1 / FAR_APART]
    if small:
        least = min(small, key=lambda n: ratios[n][0])
        result.find(
            VanishingGradients,
            f"The gradient of {least} is {ratios[least][0]:.0e} of that of {last}"
            + (f"; {len(small)} of {len(matrices)} layers are below 1e-04: {listed(small)}." if len(small) > 1 else "."),
            layer=least, ratio=ratios[least][0],
        )  # fmt: skip
    large = [n for n, r in ratios.items() if min(r) > FAR_APART]
    steep = [
        n
        for _, n in matrices
        if all((look.gradients[n] or 0.0) > TOO_LARGE * max(look.weights[n], 1e-3) for look in looks)
    ]
    if large:
        most = max(large, key=lambda n: ratios[n][0])
        result.find(
            ExplodingGradients,
            f"The gradient of {most} is {ratios[most][0]:.0e} times that of {last}: it grows on its way back.",
            layer=most, ratio=ratios[most][0],
        )  # fmt: skip
    elif steep:
        most = max(steep, key=lambda n: looks[0].gradients[n] or 0.0)
        gradient, weight = looks[0].gradients[most] or 0.0, looks[0].weights[most]
        result.find(
            ExplodingGradients,
            f"The gradient of {most} has a norm of {gradient:.1e}, its weight one of {weight:.1e}, at a loss of {result.loss:.3g}.",
            layer=most, ratio=gradient / max(weight, 1e-12),
        )  # fmt: skip


def _judge_optimizer(result: Gradients, model: Any, optimizer: Any) -> None:
    several = optimizer if isinstance(optimizer, (list, tuple)) else (optimizer,)
    held = {id(p) for each in several for group in each.param_groups for p in group["params"]}
    named = dict(model.named_parameters())
    left_out = [n for n, p in named.items() if p.requires_grad and id(p) not in held]
    strangers = len(held - {id(p) for p in named.values()})
    kind = type(several[0]).__name__
    if not left_out:
        return
    known = len(named) - len(left_out)
    of = "none" if not held & {id(p) for p in named.values()} else f"only {known}"
    also = f", and {count(strangers, 'parameter')} that are not the model's (of an earlier model?)" if strangers else ""
    message = (
        f"{kind} has {of} of the model's {len(named)} parameters{also}. Left out: {listed(_by_layer(model, left_out))}."
    )
    result.find(NotOptimized, message, parameters=", ".join(left_out))
