"""Adam and its family: AdamW, Adamax, NAdam, RAdam, SparseAdam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mortice
from mortice import Tensor
from mortice.optim.fused import (
    FusedOptimizer,
    add_rows,
    check,
    check_betas,
    check_fused,
    check_lr,
    check_not_negative,
    closure_loss,
    rounded,
    with_values,
    zeros,
)
from mortice.optim.optimizer import Optimizer


class _Moments(FusedOptimizer):
    """State and numbers of optimisers with a running mean and another average, corrected by the step number."""

    _options: tuple[str, ...] = ("lr", "betas", "eps", "weight_decay", "maximize")
    _averages = ("exp_avg", "exp_avg_sq")
    _by_count = True

    def __init__(self, params: Any, **options: Any) -> None:
        check_lr(options["lr"])
        check_not_negative(eps=options["eps"])
        check_betas(options["betas"])
        check_not_negative(**{name: options[name] for name in ("weight_decay", "momentum_decay") if name in options})
        super().__init__(params, options)

    def _plan(self, group: dict[str, Any], p: Any) -> Any:
        return self._names(group), (("step", self._number(group, p, "step")),)


class Adam(_Moments):
    """Adam; with `amsgrad` its variant that divides by the largest second moment so far.

    With `capturable`, step counts and a learning rate that is a tensor stay on a device that captures work.

    Differs from torch: `capturable` is accepted on every device; where work cannot be captured it changes only where step
    counts live.
    """

    _kernel = "adam_step"
    _options = (*_Moments._options, "decoupled_weight_decay")

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        tensors = [isinstance(beta, Tensor) for beta in betas]
        if foreach and not capturable:
            for name, bad in [("lr", isinstance(lr, Tensor)), ("betas[0]", tensors[0]), ("betas[1]", tensors[1])]:
                check(not bad, f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        check(all(tensors) or not any(tensors), "betas must be either both floats or both Tensors")
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
            foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )  # fmt: skip
        check_fused(self.defaults)

    def _names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return (*self._averages, "max_exp_avg_sq" if group["amsgrad"] else None)


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # a state of Adam's may be loaded
            group["decoupled_weight_decay"] = True


class Adamax(_Moments):
    """Adam with the infinity norm: it divides by the largest recent gradient."""

    _kernel = "adamax_step"
    _averages = ("exp_avg", "exp_inf")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable,
        )  # fmt: skip


class NAdam(_Moments):
    """Adam with Nesterov's momentum; `decoupled_weight_decay` makes it NAdamW."""

    _kernel = "nadam_step"
    _by_count = False
    _options = (*_Moments._options, "decoupled_weight_decay")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach, capturable=capturable,
            differentiable=differentiable,
        )  # fmt: skip

    def _start(self, group: dict[str, Any], p: Any) -> dict[str, Any]:
        self._hold(p, "mu_product", 1.0, p.device if group["capturable"] else None)
        return super()._start(group, p)

    def _plan(self, group: dict[str, Any], p: Any) -> Any:
        step, beta = self._read(p, "step"), group["betas"][0]
        mu, next_mu = [beta * (1 - 0.5 * 0.96 ** (n * group["momentum_decay"])) for n in (step, step + 1)]
        held = rounded(self.state[p]["mu_product"].dtype, mu)
        product: Any
        if group["differentiable"]:
            product = self.state[p]["mu_product"] = self.state[p]["mu_product"] * held
            product = product.to(p.dtype)
        else:
            product = self._write(p, "mu_product", self._read(p, "mu_product") * held)
        return self._averages, (("step", step), ("mu", mu), ("next_mu", next_mu), ("mu_product", product))


class RAdam(_Moments):
    """Adam that starts without its adaptive part and rectifies it by what is known of its variance."""

    _kernel = "radam_step"
    _options = (*_Moments._options, "decoupled_weight_decay")

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
            capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable,
        )  # fmt: skip


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only the rows that a gradient has move, and so do their averages."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check(lr > 0.0, f"Invalid learning rate: {lr}")
        check(eps > 0.0, f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        places = [([i, j], p) for i, g in enumerate(self.param_groups) for j, p in enumerate(g["params"])]
        for kind, found, why in (
            ("Sparse", [at for at, p in places if p.is_sparse], "requires dense parameter tensors"),
            ("Complex", [at for at, p in places if p.is_complex()], "does not support complex parameters"),
        ):
            check(not found, f"{kind} params at indices {found}: SparseAdam {why}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the rows that the gradients have; dense gradients are refused."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if not p.grad.is_sparse:
                        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                    with mortice.no_grad():
                        self._sparse_step(group, p, p.grad.coalesce())
        return loss

    def _sparse_step(self, group: dict[str, Any], p: Any, grad: Any) -> None:
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=zeros(p), exp_avg_sq=zeros(p))
        state["step"] += 1
        g = -grad.values() if group["maximize"] else grad.values()
        means = []
        for name, beta, value in zip(("exp_avg", "exp_avg_sq"), group["betas"], (g, g * g)):
            old = state[name].sparse_mask(grad).values()
            change = (value - old) * (1 - beta)
            add_rows(state[name], with_values(grad, change))
            means.append(old + change)
        first, second = [1 - beta ** state["step"] for beta in group["betas"]]
        step = means[0] / (means[1].sqrt() + group["eps"])
        add_rows(p, with_values(grad, step), -float(group["lr"]) * second**0.5 / first)
