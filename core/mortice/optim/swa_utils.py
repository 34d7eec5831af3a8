"""Averages of weights along training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal

import mortice
from mortice import no_grad
from mortice.nn import Module
from mortice.nn.norm import _BatchNorm
from mortice.optim.optimizer import Optimizer
from mortice.optim.schedule import LRScheduler, check_optimizer, per_group

__all__ = [
    "AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return the exponential moving average as an `avg_fn` of AveragedModel."""
    _check_decay(decay)

    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return no_grad()(ema_update)


def get_swa_avg_fn() -> Callable[..., Any]:
    """Return the equal-weight average as an `avg_fn` of AveragedModel."""

    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return no_grad()(swa_update)


def _of_lists(update: Callable[..., Any]) -> Callable[..., Any]:
    @no_grad()
    def multi_update(averaged: Any, current: Any, num_averaged: Any) -> None:
        for a, c in zip(averaged, current):
            a.copy_(update(a, c, num_averaged))

    return multi_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return the exponential moving average as a `multi_avg_fn` of AveragedModel."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averaged: Any, current: Any, num_averaged: Any) -> None:
        if averaged[0].is_floating_point() or averaged[0].is_complex():
            mortice._foreach_lerp_(averaged, current, 1 - decay)
        else:
            for a, c in zip(averaged, current):
                a.copy_(a * decay + c * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., Any]:
    """Return the equal-weight average as a `multi_avg_fn` of AveragedModel."""
    return _of_lists(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model that holds the average of its parameters, taken at each `update_parameters`.

    Args:
        device: where to keep the average.
        avg_fn: gives the new average from (average, parameter, number averaged); equal weights by default.
        multi_avg_fn: changes a list of averages in place, from (averages, parameters, number averaged); a list is of one
            device and dtype.
        use_buffers: whether to average buffers too; otherwise they are copied.
    """

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", mortice.tensor(0, dtype=mortice.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters into the average."""
        averages, news = list(self.module.parameters()), list(model.parameters())
        buffers = list(zip(self.module.buffers(), model.buffers()))
        if self.use_buffers:
            averages, news = averages + [a for a, _ in buffers], news + [b for _, b in buffers]
            buffers = []
        averages = [a.detach() for a in averages]
        news = [new.detach().to(a.device) for a, new in zip(averages, news)]
        with no_grad():
            if self.n_averaged == 0:
                for a, new in zip(averages, news):
                    a.copy_(new)
            elif self.multi_avg_fn is not None or self.avg_fn is None:
                alike: dict[Any, Any] = {}
                for a, new in zip(averages, news):
                    alike.setdefault((a.device, a.dtype), []).append((a, new))
                for group in alike.values():
                    (self.multi_avg_fn or get_swa_multi_avg_fn())(*map(list, zip(*group)), self.n_averaged)
            else:
                for a, new in zip(averages, news):
                    a.copy_(self.avg_fn(a, new, self.n_averaged))
            for own, new in buffers:
                own.copy_(new.detach())
            self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch norm layers anew, in one pass over the data.

    Args:
        loader: gives batches, or lists and tuples that begin with one.
    """
    layers = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not layers:
        return
    training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for layer, momentum in layers.items():
        layer.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Goes to the constant learning rate `swa_lr` in `anneal_epochs` epochs."""

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        for group, rate in zip(optimizer.param_groups, per_group("swa_lr", check_optimizer(optimizer), swa_lr)):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _done(self, step: int) -> float:
        """Return how much of the way is behind after a number of steps."""
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return share if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2

    def get_lr(self) -> list[Any]:
        """Return the learning rates of this step, from those before it."""
        now = self._now()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, done = self._done(step - 1), self._done(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, now):
            goal = group["swa_lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            rates.append(goal * done + start * (1 - done))
        return rates
