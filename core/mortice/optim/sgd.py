"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mortice
from mortice.optim.optimizer import Optimizer, check, closure_loss


class SGD(Optimizer):
    """Gradient descent with momentum, weight decay and Nesterov's variant."""

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check(lr >= 0.0, f"Invalid learning rate: {lr}")
        check(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
        )
        super().__init__(
            params,
            dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                 maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused),
        )  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            params = self._with_gradients(group)
            if not group["momentum"]:
                self._update(group, params, None)
                continue
            for p in params:
                if self.state[p].get("momentum_buffer") is None:
                    self.state[p]["momentum_buffer"] = None
            fresh = [p for p in params if self.state[p]["momentum_buffer"] is None]
            started = [p for p in params if self.state[p]["momentum_buffer"] is not None]
            for p in fresh:
                self.state[p]["momentum_buffer"] = mortice.zeros_like(p, requires_grad=False).detach()
            self._update(group, fresh, True)
            self._update(group, started, False)
        return loss

    def _update(self, group: dict[str, Any], params: list[Any], first: bool | None) -> None:
        if not params:
            return
        momenta = [] if first is None else [self.state[p]["momentum_buffer"] for p in params]
        mortice._fused_step_(
            "sgd_step", (params, momenta), ([p.grad for p in params],), lr=float(group["lr"]),
            momentum=group["momentum"], dampening=group["dampening"], weight_decay=group["weight_decay"],
            nesterov=group["nesterov"], maximize=group["maximize"], first=bool(first),
        )  # fmt: skip
