"""Training that starves: wasted backwards, gradients that vanish, generators that collapse."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.doctor import trail
from mortice.doctor.events import Backward, Forward, Step
from mortice.doctor.finding import Site
from mortice.doctor.memory import Notes
from mortice.doctor.mistakes.loop import Mark, smallest
from mortice.doctor.rule import Rule, register


class _Pass:
    """A backward: who has stepped on it."""

    __slots__ = ("site", "owner", "touched")

    def __init__(self, site: Site) -> None:
        self.site, self.owner, self.touched = site, None, set[int]()


class _Player:
    """An optimiser, seen through its smallest parameter, and the backwards that left gradients in it."""

    def __init__(self, sentinel: Any) -> None:
        self.sentinel = sentinel
        self.mark = Mark(sentinel)
        self.left: list[_Pass] = []
        self.wasted: dict[int, int] = {}  # by the id of the player who stepped: how often in a row
        self.before: dict[int, bool] = {}  # whether all of this player is before the other in the graph
        self.began = self.stepped = 0  # steps of the session


@register
class WastedBackward(Rule):
    """The discriminator's backward also runs through the generator, whose gradients are then cleared unused."""

    id = "D30"
    title = "GAN: the fake batch is not detached"
    why = "The backward through the other network costs as much as its own, and its result is thrown away."
    remedy = "Detach what comes from the network that does not step: netD(fake.detach())."

    def start(self) -> None:
        self.players = Notes()
        self.several = False  # there are several optimisers
        self.passes: list[_Pass] = []  # since the last step
        self.marks: list[tuple[_Player, Mark]] = []

    def backward(self, event: Backward) -> None:
        if not self.several:
            return
        players = [player for _, player in self.players.items()]
        for player in players:
            if player.left and (player.sentinel.grad is None or not player.mark.same(player.sentinel)):
                self._cleared(player)
        self.marks = [(player, Mark(player.sentinel)) for player in players]
        for player in players:
            for other in players:
                if player.wasted.get(id(other), 0) >= 2 and id(other) not in player.before:
                    known = self._is_before(player, other, event)
                    if known is not None:
                        player.before[id(other)] = known

    def backward_done(self, event: Backward) -> None:
        if not self.marks:
            return
        this = _Pass(event.site)
        for player, mark in self.marks:
            if not mark.same(player.sentinel):
                this.touched.add(id(player))
                player.left.append(this)
            player.mark = Mark(player.sentinel)
        self.marks = []
        self.passes.append(this)

    def stepped(self, event: Step) -> None:
        if not self.several:
            self.several = len(self.session.optimizers) > 1
            return
        stepping = self.players.get(event.optimizer)
        if stepping is None:
            sentinel = smallest(event.optimizer)
            if sentinel is not None:
                player = self.players[event.optimizer] = _Player(sentinel)
                player.began = player.stepped = self.session.steps
            return
        for this in self.passes:
            if id(stepping) in this.touched:
                this.owner = stepping
        for _, player in self.players.items():
            if player is not stepping and not any(this in player.left for this in self.passes):
                player.wasted.pop(id(stepping), None)
        for this in stepping.left:
            if this.owner is not None and this.owner is not stepping:
                stepping.wasted.pop(id(this.owner), None)  # it was of use
        stepping.left.clear()
        stepping.stepped = self.session.steps
        stepping.mark = Mark(stepping.sentinel)
        self.passes.clear()

    def _cleared(self, player: _Player) -> None:
        owners = {id(this.owner): this for this in player.left if this.owner is not None}
        player.left.clear()
        for key, this in owners.items():
            player.wasted[key] = player.wasted.get(key, 0) + 1
            # One that has not stepped since the other began may be of a phase of the program that is over.
            if player.wasted[key] >= 3 and player.before.get(key) and player.stepped >= this.owner.began:
                mine, theirs = (self._label(p.sentinel) for p in (player, this.owner))
                self.report(
                    f"The backward of {theirs}'s loss also ran through {mine}, and the gradients that it left there were "
                    "thrown away.",
                    site=this.site,
                    remedy=f"Give {theirs} a detached tensor: {theirs}(fake.detach()).",
                    wasted=mine,
                    stepping=theirs,
                )

    def _label(self, p: Any) -> str:
        return self.session.parameter(p).partition(".")[0]

    def _is_before(self, player: _Player, other: _Player, event: Backward) -> bool | None:
        """Tell whether the one's parameters only make what the other's read; None where the loss is not of both."""
        if not self._apart(player.sentinel, other.sentinel):
            return False
        mine, theirs = self._params(player), self._params(other)
        here: list[Any] = []
        there: list[Any] = []
        for node in (node for loss in event.losses for node in trail.walk(loss)):
            leaves = {id(leaf) for leaf in trail.leaves(node)}
            if leaves & mine:
                here.append(node)
            if leaves & theirs:
                there.append(node)
        if not here or not there:
            return None
        return _reaches(there, here) and not _reaches(here, there)

    def _apart(self, one: Any, other: Any) -> bool:
        """Tell whether two parameters are of two models, each called by the program itself: not parts of one."""
        has = [(any(p is one for p in m.parameters()), any(p is other for p in m.parameters())) for m in self._models()]
        return (True, False) in has and (False, True) in has

    def _models(self) -> list[Any]:
        return [model for model, _ in self.session.roots.items()]

    def _params(self, player: _Player) -> set[int]:
        for optimizer, known in self.players.items():
            if known is player:
                return {id(p) for group in optimizer.param_groups for p in group["params"]}
        return set()


def _reaches(starts: list[Any], goals: list[Any]) -> bool:
    """Tell whether some goal is among the nodes before the starts."""
    wanted = {id(node) for node in goals}
    seen: set[int] = set()
    waiting = [n for node in starts for n in trail.parents(node)]
    for node in waiting:
        if id(node) in wanted:
            return True
        if id(node) not in seen:
            seen.add(id(node))
            waiting.extend(trail.parents(node))
    return False


# ---- losses that stay ----


class _Course:
    """How an optimiser's loss went, at the steps that are looked at."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.value = self.norm = 0.0
        self.low = self.hits = self.empty = 0
        self.at = self.since = 0  # the step of the last look, and of the first hit in a row


@register
class LossStuck(Rule):
    """A loss that does not move because no gradient reaches the parameters."""

    id = "D36"
    title = "Loss stuck, vanishing gradient"
    why = "Without a gradient nothing is learned, however long training goes on."
    remedy = (
        "Look for what cuts the gradient: saturated or dead units after too large a step, a loss over a single output, "
        "detach() or item() in the forward."
    )
    EVERY, LONG = 8, 50

    def start(self) -> None:
        self.courses = Notes()
        self.losses: list[Any] = []
        self.backwards = 0
        self.before: list[Any] = []

    def backward(self, event: Backward) -> None:
        self.backwards += 1
        if len(self.losses) < 8:
            self.losses.extend(loss.detach() for loss in event.losses if loss.numel() == 1)

    def stepped(self, event: Step) -> None:
        optimizer = event.optimizer
        course = self.courses.get(optimizer)
        if course is None:
            course = self.courses[optimizer] = _Course()
        if optimizer.param_groups[0]["params"][0].grad is not None or any(p.grad is not None for p in event.params):
            course.empty = 0
            if course.first is None or event.number - course.at >= self.EVERY:
                self._look(event, course)
                course.at = event.number
        elif self.backwards and len(self.courses) == 1:
            course.empty += 1
            if course.empty == 3:
                kind = type(optimizer).__name__
                self.report(
                    f"{kind} has taken 3 steps in a row without a single gradient, though there was a backward each time.",
                    remedy="Call zero_grad() before backward(), not after it, and give the optimizer the parameters of "
                    "the model that the loss is computed with.",
                    optimizer=kind,
                )
        if self.losses:
            self.before, self.losses = self.losses, []
        self.backwards = 0

    def _look(self, event: Step, course: _Course) -> None:
        optimizer = event.optimizer
        losses = self.losses if self.backwards else self.before  # two may step on one backward
        if not losses or all(float(group.get("lr", 1)) == 0 for group in optimizer.param_groups):
            return
        value = sum(float(loss.item()) for loss in losses) + 0.0  # never -0.0
        if course.first is None:
            course.first = course.value = value
            return
        same, course.value = value == course.value, value
        course.low = course.low + 1 if abs(value) < 1e-5 else 0
        fell = course.first - value > 0.1 * abs(course.first)  # it has learned what there was to learn
        winner = next((o for o, c in self.courses.items() if c is not course and c.low >= 3), None)
        if fell or not (same or winner is not None):
            course.hits = 0
            return
        self.session.visit(self.session.steps + 2 * self.EVERY, 6)  # this is suspicious
        course.norm = _norm(optimizer)
        course.hits = course.hits + 1 if course.norm < (1e-7 if winner is None else 5e-5) else 0
        if course.hits == 1:
            course.since = course.at
        steps = event.number - course.since
        if course.hits < 3 or steps < self.LONG:
            return
        mine = self._label(optimizer)
        if winner is not None:
            other = self._label(winner)
            self.report(
                f"The loss of {other} has been {self.courses.get(winner).value:.1e} for {steps} steps and "
                f"{mine} gets gradients of {course.norm:.1e}: it cannot learn.",
                remedy=f"Try spectral_norm on the layers of {other}, label smoothing, BCEWithLogitsLoss, or a Wasserstein "
                "loss.",
                starving=mine,
                gradient=course.norm,
            )
        else:
            self.report(
                f"The loss has been exactly {value:.4g} for {steps} steps and the gradients of {mine} are "
                f"{course.norm:.1e} in all: it cannot learn.",
                level="info" if value == 0 else None,  # a margin that is kept, a reward that has not come
                loss=value,
                gradient=course.norm,
            )

    def _label(self, optimizer: Any) -> str:
        p = optimizer.param_groups[0]["params"][0]
        name = self.session.parameter(p).partition(".")[0]
        return type(optimizer).__name__ if name.startswith("a parameter") else name


def _norm(optimizer: Any) -> float:
    """Return the norm of all gradients together, with one look at them."""
    grads = [p.grad.detach() for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    parts = [(g * g).sum().float().to(grads[0].device) for g in grads]
    return float(mortice.stack(parts).sum().item()) ** 0.5


# ---- generators ----


class _Draws:
    """How varied a generator's batches were, compared with real ones."""

    def __init__(self) -> None:
        self.ratios: list[float] = []


@register
class ModeCollapse(Rule):
    """A generator that makes the same of any noise."""

    id = "D37"
    title = "Mode collapse"
    why = "The generator has found one output that deceives the discriminator, and draws nothing else."
    remedy = "Try more steps of the discriminator for each of the generator, as WGAN does, or a lower learning rate."
    EVERY, AFTER, ROW, LEAST = 40, 100, 5, 0.05

    def start(self) -> None:
        self.draws = Notes()
        self.next = self.AFTER
        self.session.visit(self.next, 12)
        self.made: list[tuple[Any, Any, Any]] = []  # generator, noise, output of the step that is looked at
        self.reals: list[tuple[Any, Any]] = []  # module, input

    def stepped(self, event: Step) -> None:
        if self.made or self.reals:
            self.made, self.reals = [], []

    def forward(self, event: Forward) -> None:
        if not event.root or self.session.steps < self.next or len(self.session.optimizers) < 2:
            return
        x, out = event.args[0] if len(event.args) == 1 else None, event.output
        if not (isinstance(x, mortice.Tensor) and isinstance(out, mortice.Tensor)) or x.ndim < 2 or x.shape[0] < 8:
            return
        for made in self.made:
            if _shows(x, made[2]):
                self._compare(event.module, *made)
                return
        if x._node is None and not self.session.from_loader(x) and out.ndim > 1 and x.shape != out.shape:
            self.made.append((event.module, x, out))
        self.reals.append((event.module, x))

    def _compare(self, judge: Any, generator: Any, noise: Any, fake: Any) -> None:
        batch = [] if self.session.batch is None else self.session.batch.tensors
        seen = [x for module, x in self.reals if module is judge]
        real = next((x for x in (*seen, *batch) if x.shape[1:] == fake.shape[1:] and x.shape[0] >= 8), None)
        if real is None or not real.is_floating_point():
            return
        self.next = self.session.steps + self.EVERY
        self.session.visit(self.next, 12)
        z = noise.detach()
        drawn, given, varied, *sizes = mortice.stack(
            [_spread(fake), _spread(real), _spread(z), _size(fake), _size(real), _size(z)]
        ).tolist()  # fmt: skip
        if not given or varied < 1e-3 * sizes[2]:
            return
        draws = self.draws.setdefault(generator, _Draws())
        # Both as it is and for its size: a generator may have another range than the data.
        ratio = (drawn / given * max(1.0, sizes[1] / max(sizes[0], 1e-30))) ** 0.5
        draws.ratios = [*draws.ratios, ratio][-self.ROW :] if ratio < self.LEAST else []
        if len(draws.ratios) == self.ROW and ratio < 1.5 * draws.ratios[0]:
            name = type(generator).__name__
            self.report(
                f"{name} returns nearly the same for different noise (diversity {ratio:.1%} of that of real data).",
                generator=name,
                diversity=ratio,
            )


def _spread(x: Any) -> Any:
    """Return the mean variance over the samples of a batch: half the mean square of their distances, per element."""
    return x.detach().float().var(0).mean()


def _size(x: Any) -> Any:
    return x.detach().float().square().mean()


def _shows(x: Any, out: Any) -> bool:
    """Tell whether a tensor is a module's output, or that output detached."""
    return x is out or (x.shape == out.shape and x._node is None and bool(x.is_set_to(out)))
