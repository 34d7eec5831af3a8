"""What flows through a network: saturated and dead units, gradients that vanish or explode, values that are not finite.

A few steps are looked at in full, the 1st, 5th, 20th and each 50th, later each 200th; what is seen is kept for the report's plots.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any

import mortice
from mortice import Tensor, no_grad
from mortice.doctor import samples, trail
from mortice.doctor.events import Backward, Call, Forward, Step, all_tensors, here
from mortice.doctor.finding import NOWHERE, Site
from mortice.doctor.rule import Rule, register

IN_A_ROW = 3
SATURATED, DEAD = 0.9, 0.75  # the shares of a layer's outputs, and of its channels, from which it is said
VANISHING, EXPLODING, DEEP = 1e-4, 1e4, 3  # the first layer's gradient over the last one's, in a chain so long at least
ROWS = 16  # of how few values a channel's silence means nothing
WAIT = 8  # steps until a sample ends although not every optimiser has stepped
SHOWN = ("relu", "leaky_relu", "tanh", "sigmoid", "elu", "gelu", "silu", "mish")
BOUNDS = {"tanh": (-0.97, 0.97), "sigmoid": (0.03, 0.97)}
CURES = {
    "log": "Keep its operand away from 0: log(x.clamp(min=1e-8)), or a function that has the log inside, such as log_softmax.",
    "log_softmax": "Look for -inf or nan in the logits.",
    "sqrt": "Keep its operand above 0: sqrt(x.clamp(min=0) + 1e-8).",
    "div": "Keep the divisor away from 0: x / (y + 1e-8).",
    "exp": "exp overflows above 88 in float32: subtract the maximum, or use softmax, logsumexp or softplus.",
    "pow": "A fractional power of a negative number is nan; clamp(min=0) before it.",
    "softmax": "Where a mask is -inf in a whole row, its softmax is nan: leave one place, or mask with a large negative number.",
}
AGAIN = frozenset("log log2 log10 log1p pow div rsqrt reciprocal exp expm1 acos asin acosh atanh logit".split())
MASKED = frozenset(("softmax", "log_softmax", "logsumexp"))  # of which -inf is an operand on purpose
GENERAL = (
    "Lower the learning rate, clip gradients, or run once under autograd.set_detect_anomaly(True) to see the line."
)


class _Streak:
    """How many samples in a row something held, and where and how it was last."""

    __slots__ = ("held", "site", "channels", "share")

    def __init__(self) -> None:
        self.held, self.share = 0, 0.0
        self.site: Site = NOWHERE
        self.channels: list[set[int]] = []  # that gave 0 for the whole batch, of the last samples


@register
class Distributions(Rule):
    """Samples activations, gradients and updates; reports what has gone wrong with them for three samples in a row."""

    id = "D18"
    title = "Activations or gradients that cannot teach"
    why = (
        "What is saturated, dead, vanishing or not finite hands on no gradient of use: the layers before it stop learning, or are "
        "ruined."
    )
    remedy = "Scale the input, initialise for the activation (nn.init), normalise between layers, or lower the learning rate."
    ops = SHOWN
    always = ("stepped",)

    def start(self) -> None:
        self.kept = self.session.samples
        self.on, self.next = True, self.kept.after(1)
        self.session.sampled = True
        self.left = WAIT
        self.stepped_already: set[int] = set()  # optimisers, in this sample
        self.done: set[int] = set()  # outermost modules that have run in this sample
        self.calls: dict[Any, int] = {}
        self.nodes: dict[int, Any] = {}  # of activations in this sample, by the identity of their graph node
        self.layout = 1  # the dim of channels, as the last layer with weights has it
        self.order: dict[str, int] = {}  # layers in the order in which they ran
        self.before: list[tuple[Any, Any, samples.Track, dict[str, Any]]] = []
        self.ends: set[Any] = set()  # activations that make a model's output, which may saturate
        self.streaks: dict[Any, _Streak] = {}
        self.site = NOWHERE  # of the last backward
        self.suspicion: dict[str, Any] | None = None
        self.last: tuple[int, float] | None = None  # the last finite loss and its step
        self.first: float | None = None

    # ---- activations ----

    def call(self, event: Call) -> None:
        if not self.on or not event.out.requires_grad:
            return
        running = self.session.running
        if running and id(running[0]) in self.done:
            return
        owner = running[-1] if running else None
        at = here()
        if owner is None:
            key: Any = (at.file, at.line, event.op)
            name = f"{event.op} in line {at.line}"
        else:
            place = (id(owner), event.op)
            number = self.calls[place] = self.calls.get(place, 0) + 1
            key = (*place, number)
            label = self.session.names.get(owner, type(owner).__name__)
            alone = type(owner).__name__.lower() == event.op.replace("_", "")
            name = (label if alone else f"{event.op} in {label}") + (f", call {number}" if number > 1 else "")
        self._record(key, name, type(owner).__name__ if owner is not None else event.op, event.op, event.out, at)

    def forward(self, event: Forward) -> None:
        if not self.on or not event.grad:
            return
        module, root = event.module, self.session.running[0] if self.session.running else event.module
        if id(root) in self.done:
            return
        if module._parameters and any(p is not None and p.ndim > 1 for p in module._parameters.values()):
            name = self.session.names.get(module, type(module).__name__)
            self.order.setdefault(name, len(self.order))
            self.layout = 1 if "Conv" in type(module).__name__ else -1
            place = (id(module), "")
            number = self.calls[place] = self.calls.get(place, 0) + 1
            outputs = all_tensors(event.output)
            if number == 1 and outputs:
                self._record((*place, number), name, type(module).__name__, "", outputs[0], None)
        if event.root:
            if any(True for _ in module.parameters()):  # a loss is a module as well
                self.kept.models[type(module).__name__] = None
            self.done.add(id(module))
            for t in all_tensors(event.output):
                self._ending(trail.source(t))

    def _ending(self, node: Any) -> None:
        """Note that an activation makes a model's output."""
        key = self.nodes.get(id(node))
        if key is not None:
            self.ends.add(key)

    def _record(self, key: Any, name: str, kind: str, op: str, out: Any, at: Site | None) -> None:
        node = out._node
        if op and node is not None:
            self.nodes[id(getattr(node, "parent", node))] = key
        track = self.kept.track(self.kept.activations, key, name, kind)
        values = sorted(samples.values_of(out))
        if track is None or not values or (track.samples and track.samples[-1]["step"] == self.session.steps + 1):
            return
        sample: dict[str, Any] = {"step": self.session.steps + 1, **samples.histogram(values)}
        track.samples.append(sample)
        if op in BOUNDS:
            low, high = BOUNDS[op]
            sample["saturated"] = (bisect_left(values, low) + len(values) - bisect_right(values, high)) / len(values)
        elif op == "relu" and out.ndim > 1:
            self._count_dead(key, sample, out)
        if at is not None and ("saturated" in sample or "channels" in sample):
            streak = self.streaks.setdefault(key, _Streak())
            streak.site = at
            streak.share = share = sample.get("saturated", 0.0)
            streak.held = streak.held + 1 if share > SATURATED else 0

    def _count_dead(self, key: Any, sample: dict[str, Any], out: Any) -> None:
        """Note which channels of a ReLU gave 0 for the whole batch, in this sample and in those before it."""
        dim = self.layout % out.ndim if out.ndim != 2 else 1
        channels = out.shape[dim]
        if out.numel() < ROWS * channels:
            return
        with no_grad():
            most = out.detach().amax(tuple(d for d in range(out.ndim) if d != dim % out.ndim)).tolist()
        silent = {i for i, v in enumerate(most) if v == 0}
        streak = self.streaks.setdefault(key, _Streak())
        streak.channels = [*streak.channels[1 - IN_A_ROW :], silent]
        sample["channels"], sample["dead"] = channels, len(silent) / channels

    # ---- losses that are not finite ----

    def backward(self, event: Backward) -> None:
        self.site, loss = event.site, event.loss
        self.suspicion = None
        if loss.numel() != 1 or not (self.session.close or loss.device.type in ("cpu", "strict")):
            return  # where values lie on a device, reading one means to wait for it
        try:
            value = float(loss.item())
        except (RuntimeError, TypeError, ValueError):
            return
        if math.isfinite(value):
            self.last = self.session.steps, value
            if self.first is None:
                self.first = value
        else:
            self.suspicion = {"loss": value, **_origin(loss)}
        if self.on:
            for node in _head(loss):
                self._ending(node)

    def _not_finite(self, event: Step) -> None:
        """Report a loss that was not finite and has made gradients so, which this step writes into the parameters."""
        found, self.suspicion = self.suspicion, None
        assert found is not None
        grads = [p for p in event.params if p.grad is not None]
        bad = sum(not _finite(p.grad) for p in grads)
        if not bad:
            return
        number = self.session.steps + 1
        says = [f"The loss is {found['loss']} at step {number}, and {bad} of {len(grads)} gradients are not finite."]
        remedy = GENERAL
        if found["data"] is not None:
            says.append(f"The first value that is not finite is in the data: an operand of {found['data']}.")
            remedy = "Look for nan and inf in the inputs and targets before training: x.isfinite().all()."
        elif found["leaf"] is not None:
            name = self.session.parameter(found["leaf"])
            when = f"; at step {self.last[0] + 1} the loss was {self.last[1]:.3g} still" if self.last else ""
            says.append(
                f"{name} is not finite itself{when}: an earlier step wrote a gradient that was not finite into it."
            )
            if self._grew():
                remedy = "The loss grew before: lower the learning rate, or clip gradients."
            else:
                remedy = "sqrt, norm, pow and division have no finite gradient at 0: add a small number. " + GENERAL
        elif found["op"]:
            after = f", fed by {self.session.parameter(found['after'])}" if found["after"] is not None else ""
            says.append(f"The first value that is not finite came from {self.session.maker(found['node'])}{after}.")
            remedy = CURES.get(found["op"], GENERAL)
        self.say(" ".join(says), site=self.site, level="error", remedy=remedy, loss=str(found["loss"]), step=number,
                    first=found["op"])  # fmt: skip

    def _grew(self) -> bool:
        return self.last is not None and self.first is not None and abs(self.last[1]) > 10 * abs(self.first) + 10

    # ---- gradients and updates ----

    def step(self, event: Step) -> None:
        if not self.on or id(event.optimizer) in self.stepped_already:
            return
        self.kept.optimizers[type(event.optimizer).__name__] = None
        groups: dict[str, list[tuple[str, Any]]] = {}
        for p in event.params:
            if p.grad is not None and p.grad.layout is p.layout:
                full = self.session.parameter(p)
                label, dot, _ = full.rpartition(".")
                groups.setdefault(label if dot and p in self.session.parameters else full, []).append((full, p))
        for label, members in groups.items():
            main = max((p for _, p in members), key=lambda p: (p.ndim > 1, p.numel()))
            key = id(main)
            track = self.kept.track(self.kept.layers, key, label, "")
            values = samples.values_of(main.grad)
            if track is None or not values:
                continue
            weights = samples.values_of(main)
            counts, zero = samples.magnitudes(sorted(map(abs, values)))
            with no_grad():
                norm = math.hypot(*(float(p.grad.norm()) for _, p in members))
                weight = float(main.detach().norm())
            sample = {
                "step": self.session.steps + 1,
                "gradient": norm,
                "weight": weight,
                "magnitudes": counts,
                "zero": zero,
            }
            track.samples.append(sample)
            self.before.append((main, weights, track, sample))
        self._compare(event, groups)

    def say(self, text: str, level: str | None = None, **rest: Any) -> None:
        """Report, as mere information where a run diverges for which another mistake was found before."""
        first = next((f for f in self.session.findings if f.rule != self.id and f.level != "info"), None)
        if first is not None and (level == "error" or self._grew()):
            text, level = f"{text} It may follow from {first.rule} (line {first.site.line}).", "info"
        self.report(text, level=level, **rest)

    def _compare(self, event: Step, groups: dict[str, list[tuple[str, Any]]]) -> None:
        """Compare the first layer's gradient with the last one's."""
        chain = [(self.order[label], track, sample) for p, _, track, sample in self.before
                 if (label := self._label(p)) in self.order and p.ndim > 1 and label in groups]  # fmt: skip
        chain.sort(key=lambda c: c[0])
        streak = self.streaks.setdefault(("chain", id(event.optimizer)), _Streak())
        norms = [c[2]["gradient"] for c in chain]
        if len(chain) < DEEP or not all(map(math.isfinite, norms)) or norms[-1] == 0:
            streak.held = 0
            return
        ratio = norms[0] / norms[-1]
        # It is the chain that shrinks or grows them, rather than one odd layer, where most links go the same way.
        downhill = sum(a <= b for a, b in zip(norms, norms[1:])) / (len(norms) - 1)
        vanishes, explodes = ratio < VANISHING and downhill >= 0.6, ratio > EXPLODING and downhill <= 0.4
        if not (vanishes or explodes):
            streak.held = 0
            return
        streak.held += 1
        if streak.held < IN_A_ROW:
            return
        first, last = chain[0][1].name, chain[-1][1].name
        share = "0" if ratio == 0 else f"{ratio:.0e}"
        if vanishes:
            text = (
                f"Gradients vanish: {first} gets {share} of the gradient of {last}, for {streak.held} checks in a row."
            )
            remedy = "Use ReLU or residual connections, normalise between layers, or initialise for the activation."
        else:
            text = f"Gradients explode: {first} gets {share} times the gradient of {last}, for {streak.held} checks in a row."
            remedy = "Initialise with smaller weights (nn.init), normalise between layers, or clip gradients."
        self.say(text, site=self.site, remedy=remedy, ratio=ratio, first=first, last=last)

    def _label(self, p: Any) -> str:
        return self.session.parameter(p).rpartition(".")[0]

    def stepped(self, event: Step) -> None:
        if self.suspicion is not None:  # only now, when other rules have said what they know of the step
            self._not_finite(event)
        if self.on:
            self._updates()
            self.stepped_already.add(id(event.optimizer))
            self.left -= 1
            if self.left <= 0 or all(id(o) in self.stepped_already for o, _ in self.session.optimizers.items()):
                self._judge()
                self._close()
        elif self.session.steps + 2 >= self.next:
            self._open()

    def _updates(self) -> None:
        """Compare parameters with what they were before the step."""
        for p, weights, _, sample in self.before:
            now = samples.values_of(p)
            if len(now) != len(weights):
                continue
            moved, size = math.dist(now, weights), math.hypot(*weights)
            if size > 0 and math.isfinite(moved):
                sample["update"] = moved / size
        self.before.clear()

    def _open(self) -> None:
        self.on = self.session.sampled = True
        self.next = self.kept.after(self.session.steps + 2)

    def _close(self) -> None:
        self.on = self.session.sampled = False
        self.left = WAIT
        self.stepped_already.clear()
        self.done.clear()
        self.calls.clear()
        self.nodes.clear()
        self.kept.thin()
        if self.session.steps + 2 >= self.next:  # steps 1 and 2, where several optimisers took their time
            self._open()

    def _judge(self) -> None:
        """Report the layers of which something has held for some samples in a row."""
        for key, streak in self.streaks.items():
            track = self.kept.activations.get(key)
            if track is None or not track.samples or key in self.ends:
                continue
            if streak.held >= IN_A_ROW:
                self.say(
                    f"{_named(track)}: {streak.share:.0%} of its outputs are saturated, for {streak.held} checks in a row"
                    f"{self._gradient_before()}.",
                    site=streak.site,
                    layer=track.name,
                    share=streak.share,
                )
            if len(streak.channels) == IN_A_ROW:
                silent, channels = set.intersection(*streak.channels), track.samples[-1].get("channels", 0)
                if channels and len(silent) >= DEAD * channels and (channels >= 8 or len(silent) == channels):
                    self.say(
                        f"{_named(track)}: {len(silent)} of {channels} channels gave 0 for every sample of the batch, in the "
                        f"last {IN_A_ROW} checks: dead ReLUs.",
                        site=streak.site,
                        remedy="Lower the learning rate, initialise biases at 0 or above, or use LeakyReLU or GELU.",
                        layer=track.name,
                        dead=len(silent),
                        channels=channels,
                    )

    def _gradient_before(self) -> str:
        """Say how the first layer's gradient compares with the last one's, where both are known and it is small."""
        known = [t for label in self.order for t in self.kept.layers.values() if t.name == label and t.samples]
        if len(known) < 2:
            return ""
        first, last = known[0].samples[-1]["gradient"], known[-1].samples[-1]["gradient"]
        return (
            f"; the first layer's gradient is {first / last:.0e} of the last one's" if 0 < first < 0.01 * last else ""
        )


def _named(track: samples.Track) -> str:
    return f"{track.name} ({track.kind})" if track.name.rpartition(" ")[0] == "" else track.name


def _finite(t: Any) -> bool:
    with no_grad():
        return bool(t.detach().isfinite().all())


def _head(loss: Any) -> list[Any]:
    """Return the nodes between a loss and the first ops with parameters before it: what makes the output and the loss."""
    node = loss._node
    waiting = [] if node is None else [getattr(node, "parent", node)]
    seen: set[int] = set()
    found = []
    for node in waiting:
        if id(node) in seen or trail.reads_parameter(node) or len(seen) > 1000:
            continue
        seen.add(id(node))
        found.append(node)
        waiting.extend(trail.parents(node))
    return found


def _origin(loss: Any) -> dict[str, Any]:
    """Look in the graph of a loss for the first value that is not finite: in a parameter, in the data, or out of an op.

    Operands that formulas have saved are what can be read; what an op of one of `AGAIN` gave is computed anew from them.
    """
    found: dict[str, Any] = {"op": "", "node": None, "after": None, "leaf": None, "data": None}
    bad: list[Any] = [] if loss._node is None else [getattr(loss._node, "parent", loss._node)]
    for node in trail.walk(loss):
        op, saved = trail.op_of(node), getattr(node, "saved", None) or ()
        for leaf in trail.leaves(node):
            if not _finite(leaf):
                found["leaf"] = leaf
                return found
        known = [s for s in saved if s is not None]
        for edge, operand in zip(node.edges, saved):
            if not isinstance(operand, Tensor) or not operand.is_floating_point() or _finite(operand):
                continue
            if op in MASKED and not bool((operand.detach().isnan() | (operand.detach() == math.inf)).any()):
                continue
            if edge is None:
                found["data"] = op or node.name()
            elif hasattr(edge, "edges"):
                bad.append(getattr(edge, "parent", edge))
        if any(not _finite(t) for t in _kept(node)):
            bad.append(node)
        elif op in AGAIN and len(known) == len(saved) and all(isinstance(s, Tensor) and _finite(s) for s in saved):
            with no_grad():
                if not _finite(getattr(mortice, op)(*saved, **(node.attrs or {}))):
                    bad.append(node)
    if found["data"] is None and bad:
        node = min(bad, key=lambda n: n.seq)
        found["node"], found["op"] = node, trail.op_of(node)
        below = (leaf for n in _below(node) for leaf in trail.leaves(n) if leaf.requires_grad)
        found["after"] = next(below, None)
    return found


def _kept(node: Any) -> list[Any]:
    """Return the outputs that a node keeps for its formulas."""
    if not isinstance(getattr(node, "out", None), (tuple, list)):
        return []
    kept = (node.out_tensor(number) for number in node.op.kept)
    return [t for t in kept if t.is_floating_point()]


def _below(node: Any) -> list[Any]:
    waiting = [node]
    seen: set[int] = set()
    for each in waiting:
        if id(each) not in seen and len(seen) < 1000:
            seen.add(id(each))
            waiting.extend(trail.parents(each))
    return waiting
