"""Optimizer: parameter groups, state, and its exchange with PyTorch's state_dict format."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, TypeAlias

from mortice import Tensor
from mortice.autograd.gradients import clear_grads
from mortice.autograd.graph import RemovableHandle, register
from mortice.notice import warn

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
StateDict: TypeAlias = dict[str, Any]


class _Required:
    """The default of an option that every parameter group must have."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


# The tables of hooks have PyTorch's names: optimisers that wrap another one make them without calling `__init__`.
_HOOKS = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip


class Optimizer:
    """The base of all optimisers: subclasses define `step`.

    Args:
        params: tensors, (name, tensor) pairs, or dictionaries that each describe a group.
        defaults: options for groups that do not give their own.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        # A ParameterList is as good as a list; other modules give modules one by one, or nothing.
        module = hasattr(params, "parameters") and not (hasattr(params, "__iter__") and all(isinstance(p, Tensor) for p in params))
        if module or isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + type(params).__name__ + ". Give its .parameters()." * module
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            error = ValueError("optimizer got an empty parameter list")
            error.add_note(
                "A generator is read once; modules in a plain list or dict are not found, those in an nn.ModuleList or nn.ModuleDict are."
            )
            raise error
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = param_group  # itself: what the program changes in its dict later counts
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named) and not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        if any(named):
            group["param_names"], params = [item[0] for item in params], [item[1] for item in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                made = p.grad_fn.name().removesuffix("0").removesuffix("Backward")
                error = ValueError("can't optimize a non-leaf Tensor")
                error.add_note(
                    f"This one, of shape {list(p.shape)}, was made by {made}. Optimize the parameter itself, and compute "
                    "from it in forward."
                )
                raise error
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error")
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if any(named) else 'without'} names to the optimizer"
            )
        group["params"] = params
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; a closure computes the loss anew and returns it."""
        raise NotImplementedError

    # ---- hooks ----

    def _patch_step_function(self) -> None:
        """Do nothing, as a class has its hooks when it is made; optimisers of other libraries call it."""

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs).

        As in PyTorch, `args` begins with the optimiser itself.
        """
        return register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before state_dict is made."""
        return register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` when state_dict is made."""
        return register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading."""
        return register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """Return state and groups, parameters replaced by numbers."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and options; the parameters stay this optimiser's.

        Raises:
            ValueError: when the groups do not match in number or size.
        """
        state_dict = dict(state_dict)
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if [len(g["params"]) for g in groups] != [len(g["params"]) for g in saved]:
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        numbers = itertools.chain.from_iterable(g["params"] for g in saved)
        params = itertools.chain.from_iterable(g["params"] for g in groups)
        by_number = dict(zip(numbers, params))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                p = by_number[key]
                state[p] = _fitted(value, p)
            else:
                state[key] = value
        for mine, theirs in zip(groups, saved):
            theirs["params"] = mine["params"]
            if "param_names" in mine and "param_names" not in theirs:
                theirs["param_names"] = mine["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        for group in self.param_groups:
            for name, default in self.__dict__.get("defaults", {}).items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return f"{type(self).__name__} (" + "\n".join(lines) + "\n)"


def _fitted(value: Any, p: Any, key: str | None = None) -> Any:
    """Return loaded state on the parameter's device and, where floating point, in its dtype; step counts stay as they are."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.clone()
        moved = value.to(p.device, p.dtype if p.is_floating_point() else value.dtype)
        return moved.clone() if moved is value else moved
    if isinstance(value, dict):
        return {k: _fitted(v, p, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_fitted(v, p) for v in value)
    return value


def _with_hooks(step: Any) -> Any:
    """Run the hooks of all optimisers and of this one around a subclass's step."""
    if hasattr(step, "hooked"):
        return step

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if "_opt_called" in self.__dict__:  # there is a schedule, which wants to come after
            self._opt_called = True
        if "_optimizer_step_pre_hooks" not in self.__dict__:  # it wraps another optimiser and never called `__init__`
            return step(self, *args, **kwargs)
        if not (self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or _all_pre_hooks or _all_post_hooks):
            return step(self, *args, **kwargs)
        for hook in [*_all_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
            changed = hook(self, (self, *args), kwargs)
            if isinstance(changed, tuple) and len(changed) == 2:
                (_, *args), kwargs = changed
            elif changed is not None:
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
        result = step(self, *args, **kwargs)
        for hook in [*self._optimizer_step_post_hooks.values(), *_all_post_hooks.values()]:
            hook(self, (self, *args), kwargs)
        return result

    run.hooked = True
    return run


_all_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_all_post_hooks: OrderedDict[int, Any] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of any optimiser."""
    return register(_all_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of any optimiser."""
    return register(_all_post_hooks, hook)
