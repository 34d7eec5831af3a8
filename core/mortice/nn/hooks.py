"""Module hooks: their tables and handles, the hooks on every module, and the methods that register hooks on one.

How a call runs them is in calling.py.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from mortice.autograd.graph import RemovableHandle, register
from mortice.autograd.graph import unserializable_hook as unserializable_hook  # torch.utils.hooks is here
from mortice.autograd.graph import warn_if_has_hooks as warn_if_has_hooks

Hook = Callable[..., Any]
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class Handle(RemovableHandle):
    """Removes a module hook; also a context manager."""

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        super().remove()
        GLOBAL.refresh()


class _WrappedHook:
    """A hook before loading that gets its module too, called without: libraries call those of the table themselves."""

    with_module = True  # PyTorch's files wrap other hooks too

    def __init__(self, hook: Hook, module: Any) -> None:
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "with_module": True, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.with_module:
            self.module = weakref.ref(state["module"])


class HookDict(OrderedDict[int, Hook]):
    """Hooks by id, in the order in which they run; `options` holds what some of them asked for."""

    _written_as = OrderedDict  # in files, as PyTorch's tables: `adopt` makes them these again
    options: Mapping[int, dict[str, Any]] = {}  # one of its own with the first entry: most have none

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def add(self, hook: Hook, prepend: bool = False, **options: Any) -> Handle:
        """Register a hook; return its handle."""
        handle = register(self, hook, prepend, Handle)
        if any(options.values()):
            self.options = {**self.options, handle.id: options}
        GLOBAL.refresh()
        return handle

    def entries(self) -> list[tuple[Hook, Mapping[str, Any]]]:
        """Return (hook, options) pairs, as they are now."""
        return [(hook, self.options.get(number, NO_OPTIONS)) for number, hook in self.items()]


# What PyTorch keeps of hooks in tables beside theirs: the option's name here, and the table.
_BESIDE = {
    "_forward_pre_hooks": {"with_kwargs": "_forward_pre_hooks_with_kwargs"},
    "_forward_hooks": {"with_kwargs": "_forward_hooks_with_kwargs", "always_call": "_forward_hooks_always_called"},
}  # fmt: skip


class _Beside:
    """Such a table, to be read."""

    def __init__(self, table: str, option: str) -> None:
        self.table, self.option = table, option

    def __get__(self, owner: Any, kind: type) -> dict[int, bool]:
        table = getattr(owner, self.table)
        return OrderedDict((number, True) for number in table if table.options.get(number, NO_OPTIONS).get(self.option))


def options_beside(module: Any) -> dict[str, Any]:
    """Return PyTorch's tables of options that a module's hooks have, by the names of its attributes."""
    held = [places for table, places in _BESIDE.items() if table in module.__dict__ and module.__dict__[table].options]
    return {beside: getattr(module, beside) for places in held for beside in places.values()}


def adopt(state: dict[str, Any], tables: tuple[str, ...]) -> None:
    """Make the tables in a module's attributes this library's, where they are PyTorch's or lack, as in old files."""
    for name in tables:
        options = {option: state.pop(beside, None) or {} for option, beside in _BESIDE.get(name, {}).items()}
        given = state.get(name)
        if isinstance(given, HookDict):
            continue
        table = state[name] = HookDict()
        if hasattr(given, "__dict__"):
            if "options" in vars(given):
                table.options = given.options
            given.adopted = table
        for number, hook in (given or {}).items():
            asked = {option: True for option, chosen in options.items() if number in chosen}
            table[number] = hook.hook if isinstance(hook, _WrappedHook) and not hook.with_module else hook
            if asked:
                table.options = {**table.options, number: asked}


class _Global:
    """Hooks on every module."""

    forward_hooks_with_kwargs, forward_hooks_always_called = _Beside("forward", "with_kwargs"), _Beside("forward", "always_call")

    def __init__(self) -> None:
        self.forward_pre, self.forward = HookDict(), HookDict()
        self.backward_pre, self.backward = HookDict(), HookDict()
        self.parameters, self.buffers, self.modules = HookDict(), HookDict(), HookDict()
        self.full: bool | None = None
        self.active = False

    def refresh(self) -> None:
        """Note whether any global hook waits for calls, so that calling a module asks one flag."""
        self.active = bool(self.forward_pre or self.forward or self.backward_pre or self.backward)

    def registered(self, table: HookDict, module: Any, name: str, value: Any) -> Any:
        """Show a value that is being registered to the hooks; return it, or what they put in its place."""
        for hook in table.values():
            changed = hook(module, name, value)
            value = value if changed is None else changed
        return value


GLOBAL = _Global()
# By PyTorch's names in torch.nn.modules.module.
_TABLES = {
    **{f"_global_{name}_hooks": name for name in ("forward_pre", "forward", "backward_pre", "backward")},
    **{f"_global_{name}_registration_hooks": f"{name}s" for name in ("parameter", "buffer", "module")},
    **{f"_global_{name}": name for name in ("forward_hooks_with_kwargs", "forward_hooks_always_called")},
}


class Tables(ModuleType):
    """A module in which the hooks on every module can be read and replaced."""

    def __getattr__(self, name: str) -> Any:
        if name not in _TABLES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(GLOBAL, _TABLES[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _TABLES:
            super().__setattr__(name, value)
            return
        table, hooks = getattr(GLOBAL, _TABLES[name]), dict(value)
        table.clear()
        table.update(hooks)
        GLOBAL.refresh()


def _one_kind(owner: Any, attribute: str, full: bool, what: str) -> None:
    """Refuse regular and full backward hooks side by side."""
    if getattr(owner, attribute) is (not full):
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks {what}. Please use only one of them."
        )
    setattr(owner, attribute, full)


# ---- hooks on every module ----


def register_module_forward_pre_hook(hook: Hook) -> Handle:
    """Call `hook(module, args)` before the forward of every module."""
    return GLOBAL.forward_pre.add(hook)


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Call `hook(module, args, output)` after the forward of every module."""
    return GLOBAL.forward.add(hook, with_kwargs=with_kwargs, always_call=always_call)


def register_module_full_backward_pre_hook(hook: Hook) -> Handle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return GLOBAL.backward_pre.add(hook)


def register_module_full_backward_hook(hook: Hook) -> Handle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    _one_kind(GLOBAL, "full", True, "as a global Module hook")
    return GLOBAL.backward.add(hook)


def register_module_backward_hook(hook: Hook) -> Handle:
    """Call `hook(module, grad_input, grad_output)` after the backward of the node that made a module's output."""
    _one_kind(GLOBAL, "full", False, "as a global Module hook")
    return GLOBAL.backward.add(hook)


def register_module_parameter_registration_hook(hook: Hook) -> Handle:
    """Call `hook(module, name, parameter)` when any module registers a parameter; what it returns takes its place."""
    return GLOBAL.parameters.add(hook)


def register_module_buffer_registration_hook(hook: Hook) -> Handle:
    """Call `hook(module, name, buffer)` when any module registers a buffer; what it returns takes its place."""
    return GLOBAL.buffers.add(hook)


def register_module_module_registration_hook(hook: Hook) -> Handle:
    """Call `hook(module, name, submodule)` when any module registers a submodule; what it returns takes its place."""
    return GLOBAL.modules.add(hook)


# ---- hooks on one module ----


class Hooked:
    """The part of Module that registers hooks."""

    _forward_pre_hooks: HookDict
    _forward_hooks: HookDict
    _backward_pre_hooks: HookDict
    _backward_hooks: HookDict
    _state_dict_pre_hooks: HookDict
    _state_dict_hooks: HookDict
    _load_state_dict_pre_hooks: HookDict
    _load_state_dict_post_hooks: HookDict
    _forward_pre_hooks_with_kwargs = _Beside("_forward_pre_hooks", "with_kwargs")
    _forward_hooks_with_kwargs = _Beside("_forward_hooks", "with_kwargs")
    _forward_hooks_always_called = _Beside("_forward_hooks", "always_call")

    def register_forward_pre_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call `hook(module, args)` before forward; what it returns replaces the input."""
        return self._forward_pre_hooks.add(hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call `hook(module, args, output)` after forward; what it returns replaces the output."""
        return self._forward_hooks.add(hook, prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> Handle:
        """Call `hook(module, grad_output)` before the module's backward; what it returns replaces grad_output."""
        return self._backward_pre_hooks.add(hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> Handle:
        """Call `hook(module, grad_input, grad_output)` after the module's backward; it may replace grad_input."""
        _one_kind(self, "_is_full_backward_hook", True, "on a single Module")
        return self._backward_hooks.add(hook, prepend)

    def register_backward_hook(self, hook: Hook) -> Handle:
        """Call `hook(module, grad_input, grad_output)` around the node that made the output; prefer the full hook."""
        _one_kind(self, "_is_full_backward_hook", False, "on a single Module")
        return self._backward_hooks.add(hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> Handle:
        """Call `hook(module, prefix, keep_vars)` before state_dict is made."""
        return self._state_dict_pre_hooks.add(hook)

    def register_state_dict_post_hook(self, hook: Hook) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata)` when state_dict is made; it may change it in place."""
        return self._state_dict_hooks.add(hook, in_place=True)

    def _register_state_dict_hook(self, hook: Hook) -> Handle:
        """Register a hook that may also return another state_dict."""
        return self._state_dict_hooks.add(hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> Handle:
        """Call `hook(module, state_dict, prefix, ...)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, True)

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> Handle:
        return self._load_state_dict_pre_hooks.add(_WrappedHook(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> Handle:
        """Call `hook(module, incompatible_keys)` after loading."""
        return self._load_state_dict_post_hooks.add(hook)
