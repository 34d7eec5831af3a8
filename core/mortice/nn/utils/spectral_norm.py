"""spectral_norm, as a hook before forward: a weight is `<name>_orig` over its largest singular value.

`<name>_u` and `<name>_v` are the running estimates of that value's singular vectors.
"""

from __future__ import annotations

from typing import Any

import mortice
from mortice.nn import functional as F
from mortice.nn.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from mortice.nn.parameter import Parameter, is_lazy

__all__ = ["remove_spectral_norm", "spectral_norm"]


def output_dim(module: Any, dim: int | None) -> int:
    """Return the dim of a module's weight that counts its outputs, unless one is given."""
    transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
    return int(transposed) if dim is None else dim


def as_matrix(weight: Any, dim: int) -> Any:
    """Return a weight as a matrix whose rows run along `dim`."""
    return weight.movedim(dim, 0).flatten(1)


def unit(x: Any, eps: float) -> Any:
    """Return a vector divided by its length."""
    return F.normalize(x, dim=0, eps=eps)


def check_iterations(n: int) -> None:
    """Refuse to estimate in no steps."""
    if n <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n}")


class SpectralNorm:
    """The hook that makes the weight anew before each forward."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        check_iterations(n_power_iterations)
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """Return the weight, after improving the singular vectors if asked to."""
        weight, u, v = (getattr(module, self.name + part) for part in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with mortice.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(unit(matrix.t().mv(u), self.eps))
                    u.copy_(unit(matrix.mv(v), self.eps))
                u, v = u.clone(), v.clone()  # the next forward may come before this one's backward
        return weight / u.dot(matrix.mv(v))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Split a parameter of the module and register the hooks."""
        if any(isinstance(h, SpectralNorm) and h.name == name for h in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with mortice.no_grad():
            height, width = as_matrix(weight, dim).shape
            u, v = (unit(weight.new_empty(n).normal_(0, 1), eps) for n in (height, width))
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)  # not a parameter, so that conversions before the first forward pass it by
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook

    def remove(self, module: Any) -> None:
        """Put the weight back as one parameter."""
        with mortice.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for part in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + part)
        module.register_parameter(self.name, Parameter(weight))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class SpectralNormStateDictHook:
    """Writes the version of the format into the state_dict's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        local_metadata.setdefault("spectral_norm", {})[self.fn.name + ".version"] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Reads state_dicts of PyTorch 0.4, which hold the weight in place of v."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], *rest: Any
    ) -> None:
        fn, key = self.fn, prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        complete = all(key + part in state_dict for part in ("_orig", "_u", "_v")) and key not in state_dict
        if (version is not None and version >= 1) or (version is None and complete):
            return
        missing = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with mortice.no_grad():
            original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = as_matrix(original, fn.dim)
            # v solves matrix v = sigma u in the least squares, so that u . matrix v is sigma.
            v = (matrix.t() @ matrix).pinverse() @ (matrix.t() @ u)
            state_dict[key + "_v"] = v * (sigma / u.dot(matrix.mv(v)))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a parameter by its largest singular value, through a hook; return the module.

    `nn.utils.parametrizations.spectral_norm` does the same without hooks.
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module, dim), eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`; the weight stays what it is."""
    hooks = module._forward_pre_hooks
    found = [n for n, hook in hooks.items() if isinstance(hook, SpectralNorm) and hook.name == name]
    if not found:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hooks.pop(found[0]).remove(module)
    kinds = (SpectralNormStateDictHook, SpectralNormLoadStateDictPreHook)
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number in [n for n, hook in table.items() if isinstance(hook, kinds) and hook.fn.name == name]:
            del table[number]
    return module
