"""Can the model learn one batch by heart? The first thing to try when nothing is learnt."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import Tensor, optim
from mortice.doctor.events import all_tensors
from mortice.doctor.mistakes.checks import CannotOverfit
from mortice.doctor.tools.chart import Chart, Line, Plotted
from mortice.doctor.tools.result import Result, count, listed
from mortice.doctor.tools.sandbox import Forward, apart, copies, loss_of, norms, numbers, quiet_dropout

FALLS, NEARLY_0 = 0.9, 0.05  # by how much the loss is to fall, or how low a classifier's is to be
RATES = (1e-3, 1e-2)  # of Adam, where the user gives no optimiser
LOOKS = 8  # how often gradients are looked at


class Overfit(Plotted, Result):
    """What `overfit_one_batch` returns.

    Attributes:
        losses: the loss before each step and after the last.
        memorised: whether the loss fell far enough; None where that was not to be judged.
        lr: the learning rate.
        accuracy: of the batch at the end, in train mode; None where outputs are no scores of classes.
        dead: parameters whose gradients were zero, NaN or missing all the time.
        why_not: why it was not judged.
    """

    losses: list[float]
    memorised: bool | None = None
    lr = 0.0
    accuracy: float | None = None
    why_not = ""

    def __init__(self) -> None:
        super().__init__("overfit_one_batch")
        self.losses, self.dead = [], {}  # type: ignore[var-annotated]
        self.floor = 0.0

    def lines(self) -> list[str]:
        if self.why_not:
            return [f"not judged: {self.why_not}"]
        if not self.losses:
            return []
        right = "" if self.accuracy is None else f", {self.accuracy:.0%} of the samples right"
        return [
            f"loss {self.losses[0]:.3f} -> {self.losses[-1]:.3f} in {len(self.losses) - 1} steps at lr {self.lr:g}{right}"
        ]

    def chart(self) -> Chart:
        steps = [float(i) for i in range(len(self.losses))]
        return Chart("Learning one batch by heart", "step", "loss", [Line("loss", steps, self.losses)], [])


def overfit_one_batch(
    model: Any, loss_fn: Any, batch: Any, steps: int = 200, *, optimizer: Any = None, forward: Forward | None = None
) -> Overfit:
    """Train a copy of the model on one batch, and tell whether it learns it by heart.

    Dropout and weight decay are off. The model, the optimizer and random numbers stay as they are.

    Args:
        model: the Module.
        loss_fn: called as loss_fn(model(*inputs), targets).
        batch: (inputs, targets), with any number of inputs before the targets.
        steps: at most so many; it ends early when the loss is as good as gone.
        optimizer: its kind and settings are tried, on a copy; else Adam with a rate that does.
        forward: forward(model, batch) returns the loss, for models and batches of another form.
    """
    result = Overfit()
    result.why_not = _not_to_judge(batch, forward)
    if result.why_not:
        return result.told()
    with apart(model, loss_fn, optimizer):
        if optimizer is not None:
            _train(result, model, loss_fn, batch, steps, optimizer, forward)
        else:
            best: Overfit | None = None
            for lr in RATES:
                tried = Overfit()
                state = mortice.get_rng_state()
                _train(tried, model, loss_fn, batch, steps, lr, forward)
                mortice.set_rng_state(state)
                if best is None or _last(tried) < _last(best):
                    best = tried
                if best.memorised or len(tried.losses) < 2:
                    break
            vars(result).update(vars(best), site=result.site)
    _judge(result, loss_fn, batch, optimizer)
    return result.told()


def _last(result: Overfit) -> float:
    last = result.losses[-1] if result.losses else math.inf
    return math.inf if math.isnan(last) else last


def _not_to_judge(batch: Any, forward: Any) -> str:
    if forward is not None or not isinstance(batch, (list, tuple)) or not batch or not isinstance(batch[-1], Tensor):
        return ""
    target = batch[-1].detach()
    n = target.shape[0] if target.ndim else 1
    if n < 2 and target.ndim < 2:
        return "the batch has one sample"
    rows = target.reshape(n, -1)
    if n < 2 or bool((rows == rows[:1]).all()):
        return f"all {n} targets are the same, which needs no input. Give a batch with at least 2 different ones"
    return ""


def _train(
    result: Overfit, model: Any, loss_fn: Any, batch: Any, steps: int, optimizer: Any, forward: Forward | None
) -> None:
    if isinstance(optimizer, float):
        (net,) = copies("overfit_one_batch", model)
        result.lr = optimizer
        trained = [p for p in net.parameters() if p.requires_grad]
        optimizer = optim.Adam(trained, lr=optimizer) if trained else None
    else:
        net, optimizer = copies("overfit_one_batch", model, optimizer)
        result.lr = float(optimizer.param_groups[0]["lr"])
        for group in optimizer.param_groups:
            if "weight_decay" in group:
                group["weight_decay"] = 0 if not isinstance(group["weight_decay"], float) else 0.0
    if not net.training:
        net.train()
    quiet_dropout(net)
    named = [(name, p) for name, p in net.named_parameters() if p.requires_grad]
    alive: dict[str, str] = {}  # what is wrong with each parameter's gradient so far
    output = target = None
    pending: list[Any] = []
    for step in range(steps + 1):
        loss, output, target = loss_of("overfit_one_batch", net, loss_fn, batch, forward)
        pending.append(loss.detach())
        if step == 0:
            result.floor = _floor(loss_fn, output)
        if step == steps or step % 10 == 0:
            result.losses += numbers(pending)
            pending.clear()
            if not math.isfinite(result.losses[-1]) or _memorised(result, target):
                break
            if step == steps:
                break
        if optimizer is None or not loss.requires_grad:
            result.losses += numbers(pending)
            break
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if step % max(1, steps // LOOKS) == 0:
            _look(named, alive, step == 0)
        optimizer.step()
    result.memorised = bool(result.losses) and _memorised(result, target)
    result.dead = {name: what for name, what in alive.items() if what}
    if not result.losses or not all_tensors(output):
        return
    result.accuracy = _accuracy(output, target)


def _look(named: list[tuple[str, Any]], dead: dict[str, str], first: bool) -> None:
    """Note which gradients are missing, zero or NaN; one that is sound once is out."""
    there = [(name, p.grad) for name, p in named if p.grad is not None]
    kinds = {name: "no" for name, _ in named}
    for (name, _), norm in zip(there, norms([g for _, g in there]) if there else []):
        kinds[name] = "zero" if norm == 0 else "" if math.isfinite(norm) else "NaN"
    for name, kind in kinds.items():
        before = dead.get(name, kind if first else "")
        dead[name] = kind if kind and before else ""


def _memorised(result: Overfit, target: Any) -> bool:
    first, last = result.losses[0] - result.floor, result.losses[-1] - result.floor
    labels = isinstance(target, Tensor) and not target.is_floating_point()
    return last <= (1 - FALLS) * first if first > 0 and not (labels and last < NEARLY_0) else last < NEARLY_0


def _floor(loss_fn: Any, output: Any) -> float:
    """Return what is left of a loss with label smoothing when all is right."""
    smoothing = getattr(loss_fn, "label_smoothing", 0.0)
    if not isinstance(smoothing, float) or not 0 < smoothing < 1 or not isinstance(output, Tensor) or output.ndim < 2:
        return 0.0
    classes = output.shape[1]
    rest = smoothing / classes
    best = 1 - smoothing + rest
    return -(best * math.log(best) + (classes - 1) * rest * math.log(rest))


def _accuracy(output: Any, target: Any) -> float | None:
    if not isinstance(output, Tensor) or not isinstance(target, Tensor) or target.is_floating_point():
        return None
    if output.ndim != target.ndim + 1 or output.shape[:1] != target.shape[:1]:
        return None
    guess = output.detach().argmax(1)
    return None if guess.shape != target.shape else float((guess == target).to(mortice.float32).mean().item())


def _judge(result: Overfit, loss_fn: Any, batch: Any, optimizer: Any) -> None:
    if result.memorised:
        return
    n = _samples(batch)
    many = f"one batch of {count(n, 'sample')}" if n else "one batch"
    if len(result.losses) == 1 and math.isfinite(result.losses[0]):
        result.find(
            CannotOverfit,
            f"The loss of {many} is {result.losses[0]:.3f} and does not depend on any parameter that is trained.",
            remedy="Look for detach(), .data, item(), argmax() or no_grad() between the model and the loss, and for frozen parameters.",
        )
        return
    first, last, steps = result.losses[0], result.losses[-1], len(result.losses) - 1
    if not math.isfinite(last):
        bad = listed(name for name, what in result.dead.items() if what == "NaN")
        when = "from the start" if not math.isfinite(first) else f"within {count(steps, 'step')} at lr {result.lr:g}"
        result.find(
            CannotOverfit,
            f"The loss of {many} is {last} {when}." + (f" Gradients of {bad} were NaN all the time." if bad else ""),
            remedy="Look at the batch (check_inputs), at gradients (check_gradients), and lower the learning rate.",
            first=first, last=last, steps=steps,
        )  # fmt: skip
        return
    parts = [
        f"{ {'no': 'no gradient', 'zero': 'zero gradients', 'NaN': 'NaN gradients'}[kind] } all the time in {listed(names)}"
        for kind in ("no", "zero", "NaN")
        if (names := [name for name, what in result.dead.items() if what == kind])
    ]
    message = f"The model cannot memorise {many}: loss {first:.3f} -> {last:.3f} in {count(steps, 'step')}"
    message += f" ({'; '.join(parts)})." if parts else "."
    values = {"first": first, "last": last, "steps": steps, "samples": n, "lr": result.lr}
    late = result.losses[-1 - len(result.losses) // 5]
    remedy = "Before training longer, look at the loss/target pairing and the learning rate."
    if parts:
        remedy = "Before training longer, look at these layers, the loss/target pairing, and the learning rate."
    level = None
    softmaxed = _softmax_floor(loss_fn, batch, result, first)
    if result.accuracy is not None and result.accuracy >= 0.999 and not softmaxed and not parts:
        level = "info"
        message = f"All samples of {many} are right, though the loss fell only from {first:.3f} to {last:.3f} in {steps} steps."
        remedy = "Does the loss have a floor: smoothed or soft labels, a penalty? Then all is well."
    elif softmaxed:
        message += f" {last:.2f} is where softmaxed outputs end in a loss that applies softmax itself."
        remedy = "Remove the softmax before the loss."
    elif math.isfinite(late) and last < 0.8 * late:
        remedy = (
            f"The loss was still falling: try a higher learning rate than {result.lr:g}, or more steps. "
            + remedy.replace("Before training longer, look", "Else look")
        )
    result.find(CannotOverfit, message, level=level, remedy=remedy, **values)


def _softmax_floor(loss_fn: Any, batch: Any, result: Overfit, first: float) -> bool:
    """Tell whether the loss ended just above what cross entropy of probabilities cannot fall below."""
    classes = round(math.exp(min(first, 12.0)))
    if result.accuracy is None or classes < 2:
        return False
    least = math.log(1 + (classes - 1) / math.e)
    return least * 0.97 <= result.losses[-1] <= least * 1.05


def _samples(batch: Any) -> int:
    return next((t.shape[0] for t in all_tensors(batch) if t.ndim), 0)
