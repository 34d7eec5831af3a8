"""LRScheduler, the base of all learning rate schedules, and how they change parameter groups."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

from mortice import Tensor, no_grad
from mortice.notice import warn
from mortice.optim.optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Call "
    "`scheduler.step()`; with an epoch, the learning rate comes from the closed form where there is one."
)
_DETAILS = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call `optimizer.step()` first; otherwise the "
    f"first value of the learning rate schedule is skipped. {_DETAILS}"
)
OVERRIDDEN_WARNING = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    f"to call `optimizer.step()` before `lr_scheduler.step()`. {_DETAILS}"
)


class LRScheduler:
    """A schedule: `get_lr` says what the learning rates are at `last_epoch`, `step` goes to the next epoch.

    Args:
        optimizer: whose learning rates to set.
        last_epoch: the epoch that was finished, to resume; the groups must then have an `initial_lr`.
    """

    _is_initial = False
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= "
                    "0. Load the optimizer's state_dict first, or start with last_epoch=-1."
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        optimizer.__dict__.setdefault("_opt_called", False)  # the optimiser notes its steps from now on
        own = optimizer.__dict__.get("step")
        if own is not None and not hasattr(own, "_wrapped_by_lr_sched"):  # so does a step that the program put in place
            optimizer.step = _noting(optimizer, own)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the learning rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """Return the learning rates at `last_epoch`, from those before it."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """Return the learning rates that the last step set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to the one given."""
        if self._step_count == 1:
            step = vars(self.optimizer).get("step")
            if step is not None and not hasattr(step, "_wrapped_by_lr_sched"):
                warn(OVERRIDDEN_WARNING)
            elif not getattr(self.optimizer, "_opt_called", True):
                warn(ORDER_WARNING)
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = self._get_closed_form_lr() if hasattr(self, "_get_closed_form_lr") else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: Sequence[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_option(group, "lr", rate)
        self._last_lr = rates_of(self.optimizer)

    def _now(self) -> list[Any]:
        """Return the groups' learning rates, for `get_lr`; warn if the user calls it."""
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The old name of LRScheduler."""


def _noting(optimizer: Optimizer, step: Any) -> Any:
    """Return a step of a program's own that notes that it was called."""
    place = weakref.ref(optimizer)

    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        place()._opt_called = True
        return step(*args, **kwargs)

    run._wrapped_by_lr_sched = True
    return run


def check_optimizer(optimizer: Any) -> Any:
    """Return an optimiser; refuse anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def copied(value: Any) -> Any:
    """Return a number, or a copy of a tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Change an option of a group; one that is a tensor stays the same tensor."""
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def rates_of(optimizer: Any) -> list[Any]:
    """Return the learning rates of an optimiser's groups."""
    return [copied(group["lr"]) for group in optimizer.param_groups]


def per_group(name: str, optimizer: Any, value: Any) -> list[Any]:
    """Return one value for each group: those given, or the one for all."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(n)]
    if len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {n}."
        )
    return list(value)
