"""Functions of functions: grad, vjp, jvp, Jacobians, vmap, and modules called with parameters from outside."""

from __future__ import annotations

from mortice.func.forward import jacfwd, jvp, linearize
from mortice.func.levels import debug_unwrap, functionalize
from mortice.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from mortice.func.reverse import grad, grad_and_value, hessian, jacrev, value_and_grad, vjp
from mortice.func.vmap import vmap

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
