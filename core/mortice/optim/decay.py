"""Schedules that are a formula of the epoch: steps, exponentials, lines, polynomials, a cosine, users' functions."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from mortice.optim.optimizer import Optimizer
from mortice.optim.schedule import LRScheduler


class _Scaled(LRScheduler):
    """A schedule in which all groups do the same: multiply by a factor at each epoch, or by a share from the start."""

    def _factor(self) -> float:
        """Return the learning rate of this epoch over that of the epoch before."""
        raise NotImplementedError

    def _share(self) -> float:
        """Return the learning rate of this epoch over the initial one."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """Return the learning rates at `last_epoch`, from those before it."""
        now = self._now()
        factor = self._factor()
        return [lr * factor for lr in now]

    def _get_closed_form_lr(self) -> list[Any]:
        share = self._share()
        return [lr * share for lr in self.base_lrs]


class StepLR(_Scaled):
    """Multiplies by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma

    def _share(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Scaled):
    """Multiplies by `gamma` at the epochs given."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones.get(self.last_epoch, 0)

    def _share(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(_Scaled):
    """Multiplies by `factor` until epoch `total_iters`."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1

    def _share(self) -> float:
        return 1.0 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(_Scaled):
    """Goes in a line from `start_factor` to `end_factor` of the learning rate, in `total_iters` epochs."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _share(self) -> float:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ExponentialLR(_Scaled):
    """Multiplies by `gamma` at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self._is_initial else self.gamma

    def _share(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(_Scaled):
    """Falls to 0 in `total_iters` epochs, along a polynomial."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        left, before = [1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1)]
        return (left / before) ** self.power

    def _share(self) -> float:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return left**self.power


class CosineAnnealingLR(LRScheduler):
    """Goes to `eta_min` in `T_max` epochs and back, along a cosine."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: float) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def get_lr(self) -> list[Any]:
        """Return the learning rates at `last_epoch`, from those before it."""
        now = self._now()
        if self._is_initial:
            return now
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # away from the bottom, which no factor can do
            rise = self._height(self.T_max - 1)
            return [lr + (base - self.eta_min) * rise for lr, base in zip(now, self.base_lrs)]
        factor = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [factor * (lr - self.eta_min) + self.eta_min for lr in now]

    def _get_closed_form_lr(self) -> list[Any]:
        return [self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) for base in self.base_lrs]


class _ByFunction(LRScheduler):
    """A schedule of users' functions, one for each group."""

    lr_lambdas: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser and functions; of other callables, their attributes."""
        state = {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}
        return state | {"lr_lambdas": [attributes(fn) for fn in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        own = self.lr_lambdas
        super().load_state_dict(state_dict | {"lr_lambdas": own})
        for fn, saved in zip(own, state_dict["lr_lambdas"]):
            if saved is not None:
                fn.__dict__.update(saved)

    def _functions(self, optimizer: Optimizer, given: Any) -> list[Any]:
        n = len(optimizer.param_groups)
        if not isinstance(given, (list, tuple)):
            return [given] * n
        if len(given) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(given)}")
        return list(given)


def attributes(fn: Any) -> dict[str, Any] | None:
    """Return what to save of a callable: an object's attributes, nothing of a function."""
    return None if isinstance(fn, FunctionType) else dict(getattr(fn, "__dict__", {}))


class LambdaLR(_ByFunction):
    """Multiplies the initial learning rate by a function of the epoch."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.lr_lambdas = self._functions(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the learning rates at `last_epoch`."""
        self._now()
        return [base * fn(self.last_epoch) for fn, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_ByFunction):
    """Multiplies the learning rate at each epoch by a function of it."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.lr_lambdas = self._functions(optimizer, lr_lambda)
        for fn in self.lr_lambdas:
            if not callable(fn):
                raise TypeError(f"lr_lambda should be a function, but got {type(fn).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the learning rates at `last_epoch`, from those before it."""
        now = self._now()
        return now if self._is_initial else [lr * fn(self.last_epoch) for fn, lr in zip(self.lr_lambdas, now)]
