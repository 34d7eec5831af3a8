"""Stochastic gradient descent: SGD, ASGD with its average, Muon with orthogonal steps."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.optim.fused import (
    FusedOptimizer,
    add_rows,
    check,
    check_fused,
    check_lr,
    check_not_negative,
    rounded,
    zeros,
)

_PLAIN = (None,), (("first", False),)


class SGD(FusedOptimizer):
    """Gradient descent with momentum, weight decay and Nesterov's variant."""

    _kernel = "sgd_step"
    _options = ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")
    _counts = False

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: Any = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        check(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
        )
        options = dict(
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
            maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused,
        )  # fmt: skip
        super().__init__(params, options)
        check_fused(options)

    def _plan(self, group: dict[str, Any], p: Any) -> Any:
        if not group["momentum"]:
            return _PLAIN
        first = self.state[p].get("momentum_buffer") is None
        if first:
            self._first()
            self.state[p]["momentum_buffer"] = zeros(p)
        return ("momentum_buffer",), (("first", first),)


    def _sparse_step(self, group: dict[str, Any], p: Any, grad: Any) -> None:
        if group["weight_decay"]:
            raise RuntimeError("SGD: weight_decay option is not compatible with sparse gradients")
        if momentum := group["momentum"]:
            state = self.state[p]
            held = state.get("momentum_buffer")
            held = grad.clone() if held is None else held.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            state["momentum_buffer"] = held = held.coalesce()
            grad = grad.add(held, alpha=momentum) if group["nesterov"] else held
        add_rows(p, grad, -float(group["lr"]))


class ASGD(FusedOptimizer):
    """Gradient descent that averages its way: `state[p]["ax"]` is the mean of the parameters since step `t0`."""

    _kernel = "asgd_step"
    _options = ("lambd", "weight_decay", "maximize")

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                 differentiable=differentiable, capturable=capturable),
        )  # fmt: skip

    def _start(self, group: dict[str, Any], p: Any) -> dict[str, Any]:
        for name, value in (("eta", float(group["lr"])), ("mu", 1.0)):
            self._hold(p, name, value, p.device if group["capturable"] else None)
        return {"ax": zeros(p)}

    def _plan(self, group: dict[str, Any], p: Any) -> Any:
        now = tuple([(name, self._read(p, name)) for name in ("eta", "mu")])
        step, lr = self._read(p, "step"), float(group["lr"])
        eta, mu = lr / (1 + group["lambd"] * lr * step) ** group["alpha"], 1 / max(1, step - group["t0"])
        for name, value in (("eta", eta), ("mu", mu)):  # numbers of the default dtype, whatever dtype holds them
            self._write(p, name, rounded(mortice.get_default_dtype(), value))
        return ("ax",), now


class Muon(FusedOptimizer):
    """Momentum made orthogonal, for the matrices of hidden layers; other parameters belong to another optimiser."""

    _kernel = "muon_step"
    _options = ("lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps")
    _counts = False

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        check(momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}")
        check(weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}")
        check(
            adjust_lr_fn in (None, "original", "match_rms_adamw"),
            f"Adjust learning rate function {adjust_lr_fn} is not supported",
        )
        super().__init__(
            params,
            dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                 ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn),
        )  # fmt: skip
        for p in (p for group in self.param_groups for p in group["params"]):
            check(p.dim() == 2, f"Muon only supports 2D parameters whereas we found a parameter with size: {p.shape}")

    def _plan(self, group: dict[str, Any], p: Any) -> Any:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        check(group["ns_steps"] < 100, "Number of steps must be less than 100 for computational efficiency")
        check(len(group["ns_coefficients"]) == 3, "Coefficients must be a tuple of exactly 3 values")
        if self.state[p].get("momentum_buffer") is None:
            self.state[p]["momentum_buffer"] = zeros(p)
        rows, columns = p.shape
        like_adam = group["adjust_lr_fn"] == "match_rms_adamw"  # the size of step that AdamW takes
        scale = 0.2 * max(rows, columns) ** 0.5 if like_adam else max(1, rows / columns) ** 0.5
        return ("momentum_buffer",), (("scale", scale),)
