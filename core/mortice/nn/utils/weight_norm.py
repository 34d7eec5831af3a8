"""weight_norm, as a hook before forward: a weight is made of its length `<name>_g` and its direction `<name>_v`."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.nn.parameter import Parameter, is_lazy
from mortice.notice import warn


def norm_except_dim(v: Any, pow: Any = 2, dim: int = 0) -> Any:
    """Return the norms of order `pow` of the slices along `dim`, shaped to divide v; for dim -1 the norm of all of it."""
    if dim == -1:
        return mortice.linalg.vector_norm(v, pow)
    shape = [1] * v.ndim
    shape[dim] = v.shape[dim]
    return mortice.linalg.vector_norm(v.movedim(dim, 0).reshape(v.shape[dim], -1), pow, dim=1).reshape(shape)


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """Return v with its slices along `dim` brought to the lengths g."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """The hook that makes the weight anew before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """Return the weight from its parts."""
        return _weight_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Split a parameter of the module and register the hook."""
        warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
        )
        if any(isinstance(h, WeightNorm) and h.name == name for h in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight.detach(), 2, hook.dim)))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Any) -> None:
        """Put the weight back as one parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for part in ("_g", "_v"):
            del module._parameters[self.name + part]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Let a parameter be a direction times a length, through a hook; return the module.

    Prefer `nn.utils.parametrizations.weight_norm`.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`; the weight stays what it is."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
