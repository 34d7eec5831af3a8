"""Module: the base of all layers. Parameters, buffers and submodules register by assignment.

Its other rooms: hooks.py and calling.py (hooks), state.py (state_dict), moving.py (devices and dtypes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

from mortice import Tensor
from mortice.autograd.gradients import clear_grads
from mortice.nn.calling import call_with_hooks
from mortice.nn.hooks import GLOBAL, HookDict, Hooked, adopt, options_beside
from mortice.nn.moving import Movable
from mortice.nn.parameter import Buffer, Parameter
from mortice.nn.state import Stateful

__all__ = ["Module"]

_TABLES = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks", "_state_dict_pre_hooks",
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


def _no_module(module: Any) -> str:
    """Say what an object is that is no module, and what to do where it is known."""
    name = getattr(module, "__name__", type(module).__name__)
    if isinstance(module, type):
        return f"{name} is not a Module subclass; it is a class. Make one of it: {name}()."
    if callable(module) and hasattr(module, "__name__"):
        return f"{name} is not a Module subclass; it is a function. Call it in forward, or take the module for it, such as ReLU()."
    theirs = next((c.__module__.partition(".")[0] for c in type(module).__mro__ if c.__name__ == "Module"), None)
    if theirs is None:
        return f"{name} is not a Module subclass"
    return f"{name} is not a Module subclass; it is a module of {theirs}. Layers of einops are in mortice.utils.einops.layers."


class Module(Hooked, Stateful, Movable):
    """The base class of layers and models: subclass it, assign layers in `__init__`, compute in `forward`."""

    dump_patches = False
    training: bool
    call_super_init = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            # PyTorch's ops are built in and do not become methods, as functions of Python do: `act = torch.tanh`.
            if callable(value) and str(getattr(value, "__module__", "")).startswith("mortice.ops."):
                setattr(cls, name, staticmethod(value))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        set_ = super().__setattr__
        if not self.call_super_init and (args or kwargs):
            given = next(iter(kwargs), None)
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument '{given}'"
                if given
                else f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        set_("training", True)
        d = self.__dict__
        for table in _TABLES:
            d[table] = {}
        d["_non_persistent_buffers_set"] = set()
        for table in _HOOKS:
            d[table] = HookDict()
        set_("_is_full_backward_hook", None)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input: Any) -> Any:
        """Compute the output; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        d = self.__dict__
        try:
            if not (
                d["_forward_hooks"] or d["_forward_pre_hooks"] or d["_backward_hooks"] or d["_backward_pre_hooks"]
                or GLOBAL.active
            ):  # fmt: skip
                return self.forward(*args, **kwargs)
        except KeyError as error:
            if "_modules" in d:
                raise
            raise AttributeError(f"{type(self).__name__}: call super().__init__() first in __init__().") from error
        return call_with_hooks(self, args, kwargs)

    # ---- attributes ----

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        if isinstance(value, Parameter):
            _need_init(d, name, "parameters")
            _forget(d, name, "_parameters")
            self.register_parameter(name, value)
        elif name in d.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' ({Tensor.__module__}.nn.Parameter or None expected)"
                )
            d["_parameters"][name] = None
        elif isinstance(value, Module):
            _need_init(d, name, "module")
            _forget(d, name, "_modules")
            d["_modules"][name] = GLOBAL.registered(GLOBAL.modules, self, name, value)
        elif name in d.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' ({Tensor.__module__}.nn.Module or None expected)"
                )
            d["_modules"][name] = GLOBAL.registered(GLOBAL.modules, self, name, value)
        elif isinstance(value, Buffer) or name in d.get("_buffers", ()):
            _need_init(d, name, "buffers")
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as buffer '{name}' ({Tensor.__module__}.nn.Buffer, "
                    f"{Tensor.__module__}.Tensor or None expected)"
                )
            persistent = value.persistent if isinstance(value, Buffer) else name not in d["_non_persistent_buffers_set"]
            # Modules that override it may not have the option.
            self.register_buffer(name, value, **({} if persistent else {"persistent": False}))
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        for table in _TABLES:
            found = self.__dict__.get(table)
            if found is not None and name in found:
                return found[name]
        if "_modules" not in self.__dict__:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}': call super().__init__() first in __init__()."
            )
        # Only compiled programs of PyTorch have it: what jit.script and jit.trace return here is the module itself.
        instead = ": save its state_dict() with mortice.save" if name == "save" else ""
        # With `name` and `obj` Python says which name is near.
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{instead}", name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *(name for table in _TABLES for name in self.__dict__.get(table, ()))}
        return sorted(name for name in names if not name[:1].isdigit())

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or a place for one (None)."""
        _check_name(self, name, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' ({Tensor.__module__}.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param if param is None else GLOBAL.registered(GLOBAL.parameters, self, name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add state that is no weight; a persistent buffer is part of the state_dict."""
        _check_name(self, name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (mortice Tensor or None required)"
            )
        self._buffers[name] = GLOBAL.registered(GLOBAL.buffers, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(_no_module(module))
        _check_name(self, name, "module")
        self._modules[name] = GLOBAL.registered(GLOBAL.modules, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule."""
        self.add_module(name, module)

    # ---- walking ----

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()  # keeps what was made on the way, so that nothing else gets its id
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (dotted name, parameter)."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Iterate over the buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over (dotted name, buffer)."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Iterate over the immediate submodules."""
        return (m for _, m in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over (name, immediate submodule)."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all below it."""
        return (m for _, m in self.named_modules(remove_duplicate=remove_duplicate))

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over (dotted name, module), this one first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """Return the submodule of that dotted name."""
        module: Any = self
        for part in target.split(".") if target else []:
            module = _existing(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the submodule of that dotted name, or unless strict add it."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of that dotted name."""
        path, _, name = target.rpartition(".")
        found = _existing(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """Return the buffer of that dotted name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = _existing(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    # ---- changing all of it ----

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every submodule, children first, then on this one; return self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, recursively; return self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode, recursively; return self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set requires_grad of all parameters; return self."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        clear_grads(self.parameters(), set_to_none)

    # ---- printing ----

    def _replicate_for_data_parallel(self) -> Any:
        """Return a shallow copy without parameters, which subclasses of PyTorch's libraries add to."""
        replica = self.__new__(type(self))
        replica.__dict__ = {**self.__dict__, "_parameters": {}, "_is_replica": True}
        replica._buffers, replica._modules = self._buffers.copy(), self._modules.copy()
        return replica

    def extra_repr(self) -> str:
        """Return the settings shown inside the parentheses of the repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = []
        for name, module in self._modules.items():
            text = repr(module).replace("\n", "\n  ")
            children.append(f"({name}): {text}")
        lines = extra + children
        if not lines:
            return f"{self._get_name()}()"
        if len(extra) == 1 and not children:
            return f"{self._get_name()}({extra[0]})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **options_beside(self)}  # which classes take from; object's own may be the dict itself

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._complete()

    def _complete(self) -> None:
        """Make what was read from a file a module of this library's; `load` asks it where a class has its own `__setstate__`."""
        adopt(self.__dict__, _HOOKS)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: every module runs eagerly."""


def _need_init(d: dict[str, Any], name: str, kind: str) -> None:
    if "_modules" not in d:
        raise AttributeError(f"cannot assign {kind} before Module.__init__() call; assigning {name!r}.")


def _forget(d: dict[str, Any], name: str, keep: str) -> None:
    """Remove a name from everywhere but the table that it is about to enter."""
    d.pop(name, None)
    for table in _TABLES:
        if table != keep:
            d[table].pop(name, None)
    d["_non_persistent_buffers_set"].discard(name)


def _check_name(module: Module, name: Any, kind: str) -> None:
    if "_modules" not in module.__dict__:
        raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
    if not name:
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if name not in module.__dict__[f"_{kind}s"] and _has(module, name):
        raise KeyError(f"attribute '{name}' already exists")


def _has(module: Module, name: str) -> bool:
    """Do as hasattr, without the cost of the error where there is nothing to compute the attribute."""
    cls, d = type(module), module.__dict__
    if hasattr(cls, name) or cls.__getattr__ is not Module.__getattr__ or cls.__getattribute__ is not object.__getattribute__:
        return hasattr(module, name)
    return name in d or any([name in d[table] for table in _TABLES])


def _existing(module: Module, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)
