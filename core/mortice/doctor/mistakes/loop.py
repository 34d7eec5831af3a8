"""The training loop: gradients that are not cleared, modes that are not switched, batches that are too small."""

from __future__ import annotations

import weakref
from typing import Any

import mortice
from mortice import nn
from mortice.doctor import events
from mortice.doctor.events import Backward, Forward, Mode, Step, all_tensors
from mortice.doctor.memory import Notes
from mortice.doctor.rule import Rule, register


class Mark:
    """What a parameter's gradient was at some moment, to tell later, without reading it, whether it was touched."""

    __slots__ = ("grad", "version")

    def __init__(self, p: Any) -> None:
        grad = p.grad
        self.grad = None if grad is None else weakref.ref(grad)
        self.version = 0 if grad is None else grad._version

    def same(self, p: Any) -> bool:
        """Tell whether it is the same tensor, not written since."""
        grad = p.grad
        if grad is None or self.grad is None:
            return grad is None and self.grad is None
        return self.grad() is grad and bool(grad._version == self.version)


def smallest(optimizer: Any) -> Any:
    """Return the smallest parameter of an optimiser that has a gradient; None where none has."""
    params = (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
    return min(params, key=lambda p: p.numel(), default=None)


class _Clearing:
    """What is known of an optimiser's smallest parameter between two steps."""

    def __init__(self, optimizer: Any, sentinel: Any) -> None:
        self.optimizer, self.sentinel = weakref.ref(optimizer), sentinel
        self.mark = Mark(sentinel)
        self.last: Any = None  # a copy of its gradient at the last step, once there is a suspicion
        self.fresh = True  # no backward has run since the step
        self.left_over = self.cleared = False
        self.in_a_row = 0


@register
class GradientsNotCleared(Rule):
    """A backward that adds to the gradients of a step that was taken already.

    That a gradient was cleared shows in its identity and version; values are read only where three steps in a row look
    wrong, since `p.grad.data.zero_()` leaves no other trace.
    """

    id = "D03"
    title = "zero_grad forgotten"
    why = "Gradients add up: every step goes along the sum of all gradients so far."
    remedy = (
        "Call zero_grad() at the beginning of each iteration. If you accumulate on purpose, clear them after step()."
    )

    def start(self) -> None:
        self.seen: list[_Clearing] = []

    def backward(self, event: Backward) -> None:
        for seen in self.seen:
            if seen.cleared:
                continue
            if not seen.mark.same(seen.sentinel) or seen.sentinel.grad is None:
                seen.cleared = True
            elif seen.fresh:
                seen.left_over = seen.in_a_row < 2 or self._equal(seen)
                seen.cleared = not seen.left_over
            seen.fresh = False

    def _equal(self, seen: _Clearing) -> bool:
        grad = seen.sentinel.grad
        return bool(grad.any()) and (seen.last is None or bool((grad == seen.last).all()))

    def backward_done(self, event: Backward) -> None:
        for seen in self.seen:
            if not seen.cleared:
                seen.mark = Mark(seen.sentinel)

    def stepped(self, event: Step) -> None:
        seen = next((s for s in self.seen if s.optimizer() is event.optimizer), None)
        if seen is None:
            self.seen = [s for s in self.seen if s.optimizer() is not None]
            sentinel = smallest(event.optimizer)
            if sentinel is not None:
                self.seen.append(_Clearing(event.optimizer, sentinel))
            return
        seen.in_a_row = seen.in_a_row + 1 if seen.left_over and not seen.cleared else 0
        if seen.in_a_row >= 3:
            name, kind = self.session.parameter(seen.sentinel), type(event.optimizer).__name__
            self.report(
                f"Gradients of {kind} were not cleared between steps {event.number - 1} and {event.number}: {name} starts "
                "the backward pass with the gradient of the previous step.",
                optimizer=kind,
                parameter=name,
            )
        grad = seen.sentinel.grad
        seen.left_over, seen.cleared, seen.fresh, seen.mark = False, False, True, Mark(seen.sentinel)
        seen.last = grad.clone() if seen.in_a_row >= 2 and grad is not None else None


# ---- train() and eval() ----

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def _has_mode(layer: Any) -> bool:
    """Tell whether a layer computes something else in training than in evaluation."""
    if isinstance(layer, _DROPOUTS):
        return bool(layer.p > 0)
    return isinstance(layer, _BATCH_NORMS) and layer.running_mean is not None


def _with_mode(module: Any) -> list[Any]:
    return [layer for layer in module.modules() if _has_mode(layer)]


class _Net:
    """What is known of a module that the program calls itself, and of its layers that have a mode."""

    def __init__(self, module: Any) -> None:
        self.layers = _with_mode(module)
        self.outputs: list[Any] = []  # references to the graph of outputs since the last backward, if in training mode
        self.calls = 0
        self.input: Any = None
        self.learned = self.sampling = self.trained = False
        self.trained_at = self.declared_at = -1  # steps of the session
        self.frozen, self.site = 0, events.NOWHERE  # steps in evaluation mode, and where it was called so


@register
class ModesNotSwitched(Rule):
    """Evaluation in training mode, or training in evaluation mode."""

    id = "D02"
    title = "train()/eval() not switched"
    why = (
        "Dropout and BatchNorm compute something else in training: an evaluation in training mode is random and changes "
        "the running statistics; training in evaluation mode goes without regularisation and normalisation."
    )
    remedy = "Call model.eval() before evaluation and model.train() after it."

    def start(self) -> None:
        self.nets, self.learning = Notes(), Notes()
        self.called: list[_Net] = []
        self.suspects: list[tuple[Any, _Net]] = []
        self.backwards = 0

    def mode(self, event: Mode) -> None:
        net = self.nets.get(event.module)
        if net is not None:
            net.layers = _with_mode(event.module)  # which may be others by now
            if event.mode:
                net.declared_at = self.session.steps

    def backward(self, event: Backward) -> None:
        self.backwards += 1
        for net in self.called:
            net.outputs.clear()
            net.calls, net.input = 0, None
        self.called.clear()

    def forward(self, event: Forward) -> None:
        if not event.root:
            return
        module = event.module
        net = self.nets.get(module)
        if net is None:
            net = self.nets[module] = _Net(module)
        if not net.layers:
            return
        if module.training:
            if event.grad:
                net.trained_at, net.trained = self.session.steps, True
            if not net.sampling and net.declared_at != self.session.steps:
                self._in_training(event, net)
        elif event.grad and not any(layer.training for layer in net.layers):
            net.site = events.here()
            if all(net is not other for _, other in self.suspects):
                self.suspects.append((weakref.ref(module), net))

    def _in_training(self, event: Forward, net: _Net) -> None:
        """Count calls whose output is of no backward: without a graph, or with one that is gone already."""
        net.calls += 1
        if net.calls == 1:  # as in every step of a training loop: nothing to look at yet
            self.called.append(net)
            return
        inputs = all_tensors(event.args) or all_tensors(event.kwargs)
        if not inputs:
            return
        x = inputs[0] if inputs[0]._base is None else inputs[0]._base
        part = inputs[0].shape, inputs[0].storage_offset()
        if net.input is not None and net.input[0]() is x and net.input[1] == part:
            net.sampling = True  # the same input again, to see how outputs vary: Monte-Carlo dropout
            return
        if len(self.session.optimizers) > 1 and not self.session.from_loader(inputs[0]):
            return  # a generator that is shown noise
        net.input = weakref.ref(x), part
        if len(net.outputs) < 3:
            nodes = [t._node for t in all_tensors(event.output) if t._node is not None]
            net.outputs.append(weakref.ref(getattr(nodes[0], "parent", nodes[0])) if nodes else None)
        if len(net.outputs) < 3 or any(ref is not None and ref() is not None for ref in net.outputs):
            return
        active = [layer for layer in net.layers if layer.training]
        if not active or not self._learned(event.module, net):
            return
        kinds = sorted({type(layer).__name__ for layer in active})
        norms = any(isinstance(layer, _BATCH_NORMS) for layer in active)
        name = type(event.module).__name__
        changes = " and running statistics change" if norms else ""
        self.report(
            f"{name} was called {net.calls} times without a backward ({'with' if event.grad else 'under no_grad, with'}"
            f"{' gradients on, but' if event.grad else ''} nothing learned from it) in training mode: {len(active)} "
            f"{'/'.join(kinds)} layers are active, so predictions {'depend on the batch' if norms else 'are random'}"
            f"{changes}.",
            remedy="Call .eval() on it before evaluation and .train() after it.",
            module=name,
            calls=net.calls,
            active=len(active),
        )

    def _learned(self, module: Any, net: _Net) -> bool:
        net.learned = net.learned or any(p in self.learning for p in module.parameters())
        return net.learned

    def stepped(self, event: Step) -> None:
        if event.number == 1:
            for p in event.params:
                self.learning[p] = True
        if not self.suspects:
            return
        mine, others = {id(p) for p in event.params}, []
        for ref, net in self.suspects:
            module = ref()
            if module is not None and not any(id(p) in mine for p in module.parameters()):
                others.append((ref, net))  # another optimiser's step decides
                continue
            trained, net.trained = net.trained, False
            if module is None or not self.backwards or trained:
                net.frozen = 0
                continue
            net.frozen += 1
            if net.frozen >= 3:
                self._in_evaluation(module, net, mine)
        self.suspects = others
        self.backwards = 0

    def _in_evaluation(self, module: Any, net: _Net, mine: set[int]) -> None:
        """Report a module all of whose parameters learn while none of its layers is in training mode."""
        if any(not p.requires_grad or id(p) not in mine for p in module.parameters()):
            return  # fine-tuning of a part
        name, drops = type(module).__name__, any(isinstance(layer, _DROPOUTS) for layer in net.layers)
        norms = any(isinstance(layer, _BATCH_NORMS) for layer in net.layers)
        effects = ["BatchNorm statistics are frozen"] * norms + ["Dropout is off"] * drops
        self.report(
            f"{name} is being trained in eval mode: {' and '.join(effects)}.",
            site=net.site,
            # The statistics of a network that was trained elsewhere are at times kept on purpose.
            level="warning" if drops or net.trained_at >= 0 or not _has_statistics(net) else "info",
            remedy=f"Call .train() on {name} before training goes on.",
            module=name,
            layers=len(net.layers),
        )


def _has_statistics(net: _Net) -> bool:
    """Tell whether the running statistics are of data, not those that BatchNorm begins with."""
    counts = (layer.num_batches_tracked for layer in net.layers if isinstance(layer, _BATCH_NORMS))
    return any(count is not None and count.item() > 0 for count in counts)


# ---- parameters that were to stay ----


class _Rows:
    """A parameter of which rows had their gradient set to zero, and what it was before the step."""

    def __init__(self, p: Any, zeroed: Any) -> None:
        self.p, self.zeroed, self.before = p, zeroed, p.detach().clone()


class _Freezing:
    """When an optimiser is looked at next, and what was seen."""

    def __init__(self) -> None:
        self.next, self.hits = 2, 0
        self.sums: list[tuple[Any, Any]] = []  # parameters and the size of their rows' gradients after the backward
        self.rows: list[_Rows] = []
        self.last: dict[int, Any] = {}  # which rows were zero the time before
        self.site = events.NOWHERE


@register
class FrozenByZeroGradients(Rule):
    """Gradients set to zero to keep parameters as they are, while momentum or weight decay moves them on."""

    id = "D40"
    title = "Freezing by zeroing gradients under momentum or Adam"
    why = "Momentum, Adam's averages and weight decay move a parameter whose gradient is zero: it is not frozen."
    remedy = (
        "Use requires_grad_(False), leave the parameter out of the optimizer, or set its grad to None; of single rows, "
        "put the old values back after step()."
    )

    def start(self) -> None:
        self.seen = Notes()
        self.pending = False

    def backward(self, event: Backward) -> None:
        if self.pending:
            self.pending = False
            for optimizer, look in self.seen.items():
                if look.rows:
                    self._moved(optimizer, look)

    def backward_done(self, event: Backward) -> None:
        for optimizer, look in self.seen.items():
            if self.session.taken(optimizer).n + 1 >= look.next:
                params = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
                look.sums = [(p, _sizes(p.grad)) for p in params]

    def step(self, event: Step) -> None:
        look = self.seen.get(event.optimizer)
        if look is None:
            if event.number == 1 and any(map(_goes_on, event.optimizer.param_groups)):
                self.seen[event.optimizer] = _Freezing()
            return
        if event.number < look.next:
            return
        look.next = event.number + max(1, min(event.number // 2, 200))
        sums, look.sums = look.sums, []
        found = [(p, before, _sizes(p.grad)) for p, before in sums if p.grad is not None]
        if not found:
            return
        zeroed = [(p, (before > 0) & (now == 0)) for p, before, now in found]
        if not bool(mortice.cat([z.any().reshape(1).to("cpu") for _, z in zeroed]).any()):
            look.hits = 0
            return
        if all(bool((now == 0).all()) for _, _, now in found):
            return  # zero_grad between backward and step is another matter
        rows, last = [(p, z) for p, z in zeroed if bool(z.any())], look.last
        look.last = {id(p): z for p, z in rows}
        if last and not any(id(p) in last and bool((last[id(p)] == z).all()) for p, z in rows):
            look.hits = 0
            return  # others each time: what is sparse on purpose
        look.rows = [_Rows(p, z) for p, z in rows]
        look.site, self.pending = events.here(), True

    def _moved(self, optimizer: Any, look: _Freezing) -> None:
        rows, look.rows = look.rows, []
        for r in rows:
            moved = _sizes(r.p.detach() - r.before) * r.zeroed
            if not bool(moved.any()):
                continue
            look.hits += 1
            if look.hits < 2:
                return
            name, kind, n = self.session.parameter(r.p), type(optimizer).__name__, int(r.zeroed.sum().item())
            part = f"{n} of {len(r.zeroed)} rows of {name} have" if n < len(r.zeroed) else f"{name} has"
            far = float((r.p.detach() - r.before).abs().reshape(len(r.zeroed), -1)[r.zeroed].max().item())
            kept = "momentum" if any(_has_momentum(g) for g in optimizer.param_groups) else "weight decay"
            self.report(
                f"{part} zero gradient but moved by {far:.1e}: {kind} keeps {kept}.",
                site=look.site,
                parameter=name,
                moved=far,
                optimizer=kind,
            )
            return


def _sizes(g: Any) -> Any:
    """Return the size of each row of a gradient; of a vector, of all of it."""
    g = g.detach().abs()
    return g.reshape(g.shape[0], -1).sum(1) if g.ndim > 1 else g.sum().reshape(1)


def _has_momentum(group: dict[str, Any]) -> bool:
    return bool(group.get("momentum") or "betas" in group)


def _goes_on(group: dict[str, Any]) -> bool:
    """Tell whether parameters of a group can move without a gradient."""
    return _has_momentum(group) or bool(group.get("weight_decay"))


# ---- several devices ----


@register
class TooFewForDevices(Rule):
    """DataParallel over more devices than a batch can keep busy."""

    id = "D43"
    level = "info"
    title = "DataParallel with a batch that is too small"
    why = "The batch is split over the devices: each gets so few samples that most of the time goes into waiting."
    remedy = "Scale the batch size with the number of GPUs: 30 on one are 90 on three."

    def start(self) -> None:
        self.alone, self.small = Notes(), Notes()

    def forward(self, event: Forward) -> None:
        if not event.root or not event.grad:
            return
        module = event.module
        if not isinstance(module, nn.DataParallel):
            if module not in self.alone:
                self.alone[module] = _batch_size(event)
            return
        b, k = _batch_size(event), len(module.requested_ids)
        before = self.alone.get(module.module, 0)
        if k < 2 or not b or not (b < k or 2 * b < before * k and b <= before):
            self.small.pop(module)
            return
        count = self.small[module] = self.small.get(module, 0) + 1
        if count >= 3:
            was = f" Before it was wrapped, {before} samples were one device's." if before else ""
            self.report(f"{b} samples over {k} GPUs is {b / k:.1f} each.{was}", samples=b, devices=k)


def _batch_size(event: Forward) -> int:
    return next((t.shape[0] for t in all_tensors(event.args) if t.ndim), 0)
