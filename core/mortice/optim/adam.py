"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mortice
from mortice.optim.optimizer import Optimizer, check, closure_loss


class Adam(Optimizer):
    """Adam; with `amsgrad` its variant that divides by the largest second moment so far."""

    _decoupled = False

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        check(lr >= 0.0, f"Invalid learning rate: {lr}")
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check(0.0 <= betas[0] < 1.0, f"Invalid beta parameter at index 0: {betas[0]}")
        check(0.0 <= betas[1] < 1.0, f"Invalid beta parameter at index 1: {betas[1]}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(
            params,
            dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
                 foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
                 decoupled_weight_decay=decoupled_weight_decay or self._decoupled),
        )  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            # Parameters that got their first gradient later are at another step: each count is one call.
            by_step: dict[float, list[Any]] = {}
            for p in self._with_gradients(group):
                state = self.state[p]
                if not state:
                    state["step"] = count = mortice.tensor(0.0, dtype=mortice.float32)
                    self._known_counts()[id(count)] = (count, count._version, 0.0)
                    state["exp_avg"] = mortice.zeros_like(p)
                    state["exp_avg_sq"] = mortice.zeros_like(p)
                    if group["amsgrad"]:
                        state["max_exp_avg_sq"] = mortice.zeros_like(p)
                by_step.setdefault(self._next(state["step"]), []).append(p)
            for step, params in by_step.items():
                self._update(group, params, step)
        return loss

    def _known_counts(self) -> dict[int, tuple[Any, int, float]]:
        """Return the numbers that step counts hold, by identity: reading one would wait for the device."""
        return self.__dict__.setdefault("_counts", {})  # type: ignore[no-any-return]

    def _next(self, count: Any) -> float:
        """Add 1 to a step count and return its number; one that someone else wrote is read once."""
        known = self._known_counts().get(id(count))
        value = known[2] if known is not None and known[1] == count._version else count.item()
        count += 1
        self._known_counts()[id(count)] = (count, count._version, value + 1.0)
        return float(value + 1.0)

    def _update(self, group: dict[str, Any], params: list[Any], step: float) -> None:
        states = [self.state[p] for p in params]
        beta1, beta2 = group["betas"]
        mortice._fused_step_(
            "adam_step",
            (params, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states],
             [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else []),
            ([p.grad for p in params],), lr=float(group["lr"]), beta1=float(beta1), beta2=float(beta2),
            eps=group["eps"], weight_decay=group["weight_decay"], decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"], step=step,
        )  # fmt: skip


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    _decoupled = True

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused,
        )  # fmt: skip
