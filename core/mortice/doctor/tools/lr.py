"""The learning rate range test: the rate grows from step to step, and the loss says which are too small and too large."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.doctor.mistakes.checks import NoRateHelps, RateTooHigh
from mortice.doctor.tools.chart import Chart, Line, Mark, Plotted
from mortice.doctor.tools.result import Result
from mortice.doctor.tools.sandbox import Forward, apart, copies, loss_of, numbers, passes

EVERY = 5  # losses are read from the device so often
BEGIN = 10  # steps, of which the loss is taken for that of the untrained model
PROBES = 2  # batches whose loss is taken now and then beside the training: it differs for one reason only
HELPS = 0.05  # of itself, by which their loss must fall


class RateRange(Plotted, Result):
    """What `find_lr` returns.

    Attributes:
        lrs, losses: of each step.
        smoothed: the losses, with what jumps from batch to batch evened out.
        suggestion: a rate to begin with; None where none lowers the loss.
        diverges: the rate from which the loss grows without end; None where it was not reached.
        current: the optimizer's own rate.
    """

    def __init__(self, current: float) -> None:
        super().__init__("find_lr")
        self.lrs: list[float] = []
        self.losses: list[float] = []
        self.smoothed: list[float] = []
        self.suggestion: float | None = None
        self.diverges: float | None = None
        self.current = current
        self.probed: list[float] = []  # the loss of always the same batches

    def lines(self) -> list[str]:
        if not self.lrs:
            return []
        said = f"{len(self.lrs)} rates from {self.lrs[0]:.3g} to {self.lrs[-1]:.3g}"
        said += f"; the loss diverges at {self.diverges:.2g}" if self.diverges is not None else ""
        hint = "none found" if self.suggestion is None else f"{self.suggestion:.2g}"
        return [said, f"suggestion: {hint} (now: {self.current:.3g})"]

    def chart(self) -> Chart:
        marks = [] if self.suggestion is None else [Mark(f"suggestion {self.suggestion:.2g}", self.suggestion)]
        lines = [Line("loss", self.lrs, self.losses, True), Line("smoothed", self.lrs, self.smoothed)]
        return Chart("Learning rate range test", "learning rate", "loss", lines, marks, True)


def find_lr(
    model: Any, optimizer: Any, loss_fn: Any, loader: Any, *, start: float = 1e-6, end: float = 10.0, steps: int = 100,
    smooth: float = 0.9, forward: Forward | None = None,
) -> RateRange:  # fmt: skip
    """Train a copy with a learning rate that grows exponentially; suggest one from where the loss falls fastest.

    The model, the optimizer, random numbers and the loader's order stay as they are. Groups of other rates keep their
    ratio to the first group's.

    Args:
        model: the Module.
        optimizer: its kind and settings are tried, on a copy.
        loss_fn: called as loss_fn(model(*inputs), targets).
        loader: gives batches (inputs, targets); gone through again if it is short.
        start, end: the rates of the first and the last step.
        steps: at most so many; the test ends when the loss diverges.
        smooth: how much of the average of earlier losses is kept at each step, from 0 to 1.
        forward: forward(model, batch) returns the loss, for models and batches of another form.
    """
    if not 0 < start < end or steps < 10:
        raise ValueError(f"find_lr: expected 0 < start < end and at least 10 steps; got {start}, {end}, {steps}.")
    groups = optimizer.param_groups
    current = float(groups[0]["lr"])
    ratios = [float(g["lr"]) / current if current else 1.0 for g in groups]
    result = RateRange(current)
    pending: list[Any] = []
    with apart(model, optimizer, loss_fn, loader):
        net, stepper = copies("find_lr", model, optimizer)
        net.train()
        probes: list[Any] = []
        for i, batch in zip(range(steps), passes("find_lr", loader)):
            lr = start * (end / start) ** (i / (steps - 1))
            for group, ratio in zip(stepper.param_groups, ratios):
                group["lr"] = lr * ratio
            if len(probes) < PROBES:
                probes.append(batch)
            if len(probes) == PROBES and i % EVERY == PROBES - 1:
                result.probed.append(_probe(net, loss_fn, probes, forward))
            stepper.zero_grad()
            loss, _, _ = loss_of("find_lr", net, loss_fn, batch, forward)
            result.lrs.append(lr)
            pending.append(loss.detach())
            if len(pending) == EVERY or i == steps - 1:
                result.losses += numbers(pending)
                pending.clear()
                if _diverged(result, smooth):
                    break
            if not loss.requires_grad:
                break
            loss.backward()
            stepper.step()
        result.losses += numbers(pending) if pending else []
    _diverged(result, smooth)
    _earlier(result)
    _suggest(result)
    return result.told()


def _probe(net: Any, loss_fn: Any, batches: list[Any], forward: Any) -> float:
    with mortice.random.fork_rng(), mortice.no_grad():
        mortice.manual_seed(0)  # the same dropout each time
        return sum(numbers([loss_of("find_lr", net, loss_fn, batch, forward)[0] for batch in batches])) / len(batches)


def _begin(losses: list[float]) -> tuple[float, float]:
    """Return the mean of the first losses, at rates too small to change anything, and by how much batches differ."""
    first = [loss for loss in losses[:BEGIN] if math.isfinite(loss)]
    if not first:
        return math.nan, 0.0
    return sum(first) / len(first), max(first) - min(first)


def _diverged(result: RateRange, smooth: float) -> bool:
    """Smooth the losses, and tell whether they have left for good; what comes after that is cut off."""
    average, smoothed = 0.0, []
    first, noise = _begin(result.losses)
    low, left = math.inf, False
    for i, loss in enumerate(result.losses):
        left = not math.isfinite(loss)
        if left:
            break
        average = smooth * average + (1 - smooth) * loss
        smoothed.append(average / (1 - smooth ** (i + 1)))
        low = min(low, smoothed[-1])
        left = i > BEGIN and smoothed[-1] > low + 3 * max(first - low, 0.1 * abs(first), noise)
        if left:
            break
    result.smoothed = smoothed
    if not left:
        return False
    end = min(len(result.losses), len(smoothed) + 1)
    result.lrs, result.losses = result.lrs[:end], result.losses[:end]
    result.diverges = result.lrs[-1]
    return True


def _earlier(result: RateRange) -> None:
    """Find where the loss of the same batches left: it is known before the smoothed one shows it."""
    losses, rates = _probed(result)
    at = losses.index(min(losses)) if losses else 0
    for loss, rate in zip(losses[at:], rates[at:]):
        if loss > losses[0] + 0.1 * abs(losses[0]):
            result.diverges = rate
            return


def _suggest(result: RateRange) -> None:
    smoothed = result.smoothed
    low = smoothed.index(min(smoothed)) if smoothed else 0
    sound = [loss for loss in result.probed if math.isfinite(loss)]
    first, noise = _begin(result.losses)
    fell = smoothed and first - smoothed[low] > max(HELPS * abs(first), noise / 2)
    if not fell and not (sound and sound[0] - min(sound) > HELPS * abs(sound[0])):
        began, best = (f"{sound[0]:.3g}", f"{min(sound):.3g}") if sound else (f"{first:.3g}", "never a number")
        result.find(
            NoRateHelps,
            f"The loss of the same batches is {began} at first and {best} at best, at rates "
            f"from {result.lrs[0]:.1g} to {result.lrs[-1]:.1g}.",
        )
        return
    result.suggestion = _rounded(_steepest(result))
    if result.diverges is not None and result.current >= result.diverges:
        result.find(
            RateTooHigh,
            f"The learning rate is {result.current:g}; the loss diverges from {result.diverges:.2g}.",
            remedy=f"Try {result.suggestion:.2g}, with a warm-up if it is to be higher later.",
            lr=result.current, diverges=result.diverges, suggestion=result.suggestion,
        )  # fmt: skip


def _probed(result: RateRange) -> tuple[list[float], list[float]]:
    """Return the losses of the same batches and the rates just before them; infinite where they are no numbers."""
    rates = result.lrs[PROBES - 1 :: EVERY]
    return [loss if math.isfinite(loss) else math.inf for loss in result.probed[: len(rates)]], rates[
        : len(result.probed)
    ]


def _steepest(result: RateRange) -> float:
    """Return the rate at which the loss of the same batches falls fastest, but not near its lowest point."""
    losses, rates = _probed(result)
    if len(losses) < 3:
        losses, rates = result.smoothed, result.lrs
    low = losses.index(min(losses))
    falls = {math.sqrt(rates[i] * rates[i + 1]): losses[i] - losses[i + 1] for i in range(low)}
    return min(max(falls, key=falls.__getitem__, default=rates[low]), rates[low] / 3)


def _rounded(x: float) -> float:
    """Return a number with two digits."""
    return float(f"{x:.1e}")
