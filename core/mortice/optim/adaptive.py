"""Optimisers that scale each parameter's step by its gradients so far: Adagrad, Adadelta, RMSprop, Rprop, Adafactor."""

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
    with_values,
    zeros,
)


def full_like(p: Any, value: float) -> Any:
    """Return state for a parameter filled with a number, in both parts of a complex one."""
    return mortice.full_like(p, complex(value, value) if p.is_complex() else value, requires_grad=False)


class Adagrad(FusedOptimizer):
    """Divides each gradient by the root of the sum of its squares so far."""

    _kernel = "adagrad_step"
    _options = ("lr", "lr_decay", "weight_decay", "eps", "maximize")

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value, eps=eps
        )
        options = dict(
            lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
            differentiable=differentiable, fused=fused,
        )  # fmt: skip
        super().__init__(params, options)
        check_fused(options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with options of their own; their state begins at once."""
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            self._begin(self.param_groups[-1], p)

    def _start(self, group: dict[str, Any], p: Any) -> dict[str, Any]:
        return {"sum": full_like(p, group["initial_accumulator_value"])}

    def share_memory(self) -> None:
        """Move the state to memory that other processes can see."""
        for state in self.state.values():
            for value in state.values():
                if isinstance(value, mortice.Tensor):
                    value.share_memory_()

    def _plan(self, group: dict[str, Any], p: Any) -> Any:
        return ("sum",), (("step", self._read(p, "step")),)

    def _sparse_step(self, group: dict[str, Any], p: Any, grad: Any) -> None:
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        self._count(group, [p])
        grad, total = grad.coalesce(), self.state[p]["sum"]
        g = grad.values()
        add_rows(total, grad * grad)
        rate = float(group["lr"]) / (1 + (self._read(p, "step") - 1) * group["lr_decay"])
        step = g / (total.sparse_mask(grad).values().sqrt() + group["eps"])
        add_rows(p, with_values(grad, step), -rate)


class Adadelta(FusedOptimizer):
    """Steps by the ratio of the sizes of changes and gradients so far."""

    _kernel = "adadelta_step"
    _options = ("lr", "rho", "eps", "weight_decay", "maximize")
    _averages = ("square_avg", "acc_delta")

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        check_not_negative(eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
                 foreach=foreach, differentiable=differentiable),
        )  # fmt: skip


class RMSprop(FusedOptimizer):
    """Divides each gradient by the root of its running mean square, or of its variance when `centered`."""

    _kernel = "rmsprop_step"
    _options = ("lr", "alpha", "eps", "weight_decay", "momentum", "maximize")

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            dict(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
                 capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable),
        )  # fmt: skip

    def _names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return "square_avg", "momentum_buffer" if group["momentum"] > 0 else None, "grad_avg" if group["centered"] else None


class Rprop(FusedOptimizer):
    """Resilient backpropagation: only the gradient's sign counts, and whether it stays."""

    _kernel = "rprop_step"
    _options = ("etas", "step_sizes", "maximize")
    _averages = ("prev", "step_size")

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            dict(lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
                 differentiable=differentiable, capturable=capturable),
        )  # fmt: skip

    def _start(self, group: dict[str, Any], p: Any) -> dict[str, Any]:
        return {"prev": zeros(p), "step_size": full_like(p, float(group["lr"]))}


class Adafactor(FusedOptimizer):
    """Adam without its memory: of a matrix's squared gradients it keeps the means of rows and columns."""

    _kernel = "adafactor_step"
    _options = ("lr", "beta2_decay", "d", "weight_decay", "maximize")

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0, weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        check(beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        check(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        check(d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        check(weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach,
                 maximize=maximize),
        )  # fmt: skip

    def _start(self, group: dict[str, Any], p: Any) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.dim() < 2:
            return {"variance": zeros(p)}
        *rest, rows, columns = p.shape
        return {"row_var": p.new_zeros((*rest, rows, 1)), "col_var": p.new_zeros((*rest, 1, columns))}

    def _plan(self, group: dict[str, Any], p: Any) -> Any:
        eps1, eps2 = group["eps"]
        eps = mortice.finfo(p.dtype).eps if eps1 is None else eps1, eps2
        names = ("row_var", "col_var", None) if p.dim() > 1 else (None, None, "variance")
        return names, (("step", self._read(p, "step")), ("eps", eps))
