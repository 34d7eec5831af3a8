"""Schedules that go up and down: warm restarts, cycles, the one-cycle policy; the latter two cycle momentum as well."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from mortice.optim.decay import attributes
from mortice.optim.optimizer import Optimizer
from mortice.optim.schedule import LRScheduler, check_optimizer, per_group, set_option


class CosineAnnealingWarmRestarts(LRScheduler):
    """Falls along a cosine and starts again after `T_0` epochs; each period is `T_mult` times as long as the last."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the learning rates at `T_cur` of the current period."""
        self._now()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to the one given, which may lie between two."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            periods, start = 0, 0  # whole periods before, and where they end
            if epoch >= self.T_0 and self.T_mult == 1:
                start = epoch // self.T_0 * self.T_0
            elif epoch >= self.T_0:
                periods = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                start = self.T_0 * (self.T_mult**periods - 1) / (self.T_mult - 1)
            self.T_cur, self.T_i = epoch - start, self.T_0 * self.T_mult**periods
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            self._set(self.get_lr())
        finally:
            self._get_lr_called_within_step = False


class _Momentum:
    """The momentum of an optimiser's groups, which may be called beta1."""

    optimizer: Optimizer
    use_beta1: bool

    def _check_momentum(self, optimizer: Optimizer) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _begin_momentum(self, optimizer: Optimizer, base: list[float], largest: list[float]) -> None:
        for group, low, high in zip(optimizer.param_groups, base, largest):
            self._set_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low


class CyclicLR(LRScheduler, _Momentum):
    """Goes up from `base_lr` to `max_lr` and down again, and momentum the other way; by batch, not by epoch.

    Args:
        mode: "triangular", "triangular2" (half the height each cycle) or "exp_range" (`gamma` ** step).
        scale_fn: the height as a function of the cycle, or of the step if `scale_mode` is "iterations".
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float],
        step_size_up: int = 2000, step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True, base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                set_option(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self.scale_mode, self._scale_fn_custom = mode, gamma, scale_mode, scale_fn
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._begin_momentum(optimizer, self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        """Return the learning rates at step `last_epoch`, and set the momentum."""
        self._now()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = share * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser and a custom function; of another callable, its attributes."""
        fn = self._scale_fn_custom
        return super().state_dict() | {"_scale_fn_custom": None if fn is None else attributes(fn)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        fn, saved = self._scale_fn_custom, state_dict.get("_scale_fn_custom")
        super().load_state_dict(state_dict | {"_scale_fn_custom": fn})
        if saved is not None:
            fn.__dict__.update(saved)


class OneCycleLR(LRScheduler, _Momentum):
    """Goes up to `max_lr` in the share `pct_start` of all steps, then down to almost nothing; by batch, not by epoch.

    Args:
        total_steps: how many steps there are; or give `epochs` and `steps_per_epoch`.
        div_factor: `max_lr` over the first learning rate.
        final_div_factor: the first learning rate over the last.
        three_phase: whether to go down to the first learning rate before falling to the last.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos", cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        counts = {"total_steps": total_steps}
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        for name, value in counts.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        self.total_steps = math.prod(counts.values())
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        rise, last = pct_start * self.total_steps - 1, self.total_steps - 1
        ends = [(rise, "max_lr", "base_momentum"), (last, "min_lr", "max_momentum")]
        if three_phase:
            ends.insert(1, (2 * rise, "initial_lr", "max_momentum"))
        self._schedule_phases = []
        lr, momentum = "initial_lr", "max_momentum"
        for end, next_lr, next_momentum in ends:
            self._schedule_phases.append(
                {"end_step": end, "start_lr": lr, "end_lr": next_lr, "start_momentum": momentum,
                 "end_momentum": next_momentum})  # fmt: skip
            lr, momentum = next_lr, next_momentum
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, largest in zip(optimizer.param_groups, max_lrs):
                group["initial_lr"] = largest / div_factor
                group["max_lr"], group["min_lr"] = largest, group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            low, high = (
                per_group("base_momentum", optimizer, base_momentum), per_group("max_momentum", optimizer, max_momentum)
            )  # fmt: skip
            if last_epoch == -1:
                self._begin_momentum(optimizer, low, high)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        """Return the learning rates at step `last_epoch`, and set the momentum."""
        self._now()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases:
            end: Any = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        share = (step - start) / (end - start)
        groups = self.optimizer.param_groups
        rates = [self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share) for group in groups]
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share))
        return rates
