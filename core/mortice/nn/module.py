"""Module: the base of all layers. Parameters, buffers and submodules register by assignment."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from mortice import Tensor, no_grad
from mortice.nn.hooks import GLOBAL, HookDict, backward_hooks
from mortice.nn.parameter import Buffer, Parameter

Self = TypeVar("Self", bound="Module")
_TABLES = ("_parameters", "_buffers", "_modules")


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ("missing_keys", "unexpected_keys"))):
    """What `load_state_dict(strict=False)` found missing and unexpected."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class Module:
    """The base class of layers and models: subclass it, assign layers in `__init__`, compute in `forward`."""

    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        set_ = super().__setattr__
        set_("training", True)
        set_("_parameters", {})
        set_("_buffers", {})
        set_("_non_persistent_buffers_set", set())
        set_("_modules", {})
        set_("_forward_pre_hooks", HookDict())
        set_("_forward_hooks", HookDict())
        set_("_backward_pre_hooks", HookDict())
        set_("_backward_hooks", HookDict())
        set_("_state_dict_hooks", HookDict())
        set_("_state_dict_pre_hooks", HookDict())
        set_("_load_state_dict_pre_hooks", HookDict())
        set_("_load_state_dict_post_hooks", HookDict())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input: Any) -> Any:
        """Compute the output; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- calling ----

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
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: Any, kwargs: Any) -> Any:
        always = []
        try:
            for hook, options in [*GLOBAL.forward_pre.entries(), *self._forward_pre_hooks.entries()]:
                if options.get("with_kwargs"):
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        if not (isinstance(changed, tuple) and len(changed) == 2):
                            raise RuntimeError(
                                "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                                f"{changed}."
                            )
                        args, kwargs = changed
                else:
                    changed = hook(self, args)
                    if changed is not None:
                        args = changed if isinstance(changed, tuple) else (changed,)
            watch = backward_hooks(self)
            if watch is not None:
                args = watch.inputs(args)
            result = self.forward(*args, **kwargs)
            always = [*GLOBAL.forward.entries(), *self._forward_hooks.entries()]
            while always:
                hook, options = always.pop(0)
                changed = hook(self, args, kwargs, result) if options.get("with_kwargs") else hook(self, args, result)
                if changed is not None:
                    result = changed
            return result if watch is None else watch.outputs(result)
        except Exception:
            for hook, options in always or [*GLOBAL.forward.entries(), *self._forward_hooks.entries()]:
                if options.get("always_call"):
                    try:
                        hook(self, args, kwargs, None) if options.get("with_kwargs") else hook(self, args, None)
                    except Exception as error:
                        warnings.warn(f"forward hook with always_call=True raised: {error}", stacklevel=2)
            raise

    # ---- attributes ----

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        if isinstance(value, Parameter):
            _need_init(d, name, "parameters")
            _forget(d, name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            _need_init(d, name, "modules")
            _forget(d, name, "_modules")
            d["_modules"][name] = value
        elif isinstance(value, Buffer):
            _need_init(d, name, "buffers")
            _forget(d, name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif "_parameters" in d and name in d["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (mortice.nn.Parameter or None expected)"
                )
            d["_parameters"][name] = None
        elif "_modules" in d and name in d["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (mortice.nn.Module or None expected)"
                )
            d["_modules"][name] = None
        elif "_buffers" in d and name in d["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as buffer '{name}' (mortice.Tensor or None expected)"
                )
            d["_buffers"][name] = value
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
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*super().__dir__()]
        for table in _TABLES:
            names += self.__dict__.get(table, {})
        return sorted(n for n in set(names) if n.isidentifier())

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or a place for one (None)."""
        _check_name(self, name, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' (mortice.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add state that is no weight; a persistent buffer is part of the state_dict."""
        _check_name(self, name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (mortice Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        _check_name(self, name, "module")
        self._modules[name] = module

    register_module = add_module

    # ---- walking ----

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[table].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (dotted name, parameter)."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Iterate over the buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over (dotted name, buffer)."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

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
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the submodule of that dotted name."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of that dotted name."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """Return the buffer of that dotted name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    # ---- changing all of it ----

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every submodule, children first, then on this one; return self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self: Self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace every tensor by `fn(tensor)`; parameters keep their identity."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                changed = fn(param)
            if changed is not param:
                param.data = changed
            if param.grad is not None:
                with no_grad():
                    gradient = fn(param.grad)
                param.grad = gradient
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Move and convert parameters and buffers in place; a dtype applies to floating point ones only."""
        from mortice.methods import _to_arguments

        device, dtype, _, backend = _to_arguments(args, dict(kwargs))
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

        def convert(t: Any) -> Any:
            change = dtype if t.is_floating_point() or t.is_complex() else None
            return t.to(device=device, dtype=change, backend=backend)

        return self._apply(convert)

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without the values."""
        return self._apply(lambda t: t.new_empty(tuple(t.shape), device=device), recurse)

    def _floats_to(self: Self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: Self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        import mortice

        return self._floats_to(mortice.float32)

    def double(self: Self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        import mortice

        return self._floats_to(mortice.float64)

    def half(self: Self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        import mortice

        return self._floats_to(mortice.float16)

    def bfloat16(self: Self) -> Self:
        """Convert floating point parameters and buffers to bfloat16."""
        import mortice

        return self._floats_to(mortice.bfloat16)

    def type(self: Self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.to(dst_type))

    def cpu(self: Self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        """Move to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def train(self: Self, mode: bool = True) -> Self:
        """Set training mode, recursively; return self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode, recursively; return self."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set requires_grad of all parameters; return self."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    p.grad = p.grad.detach()
                    p.grad.zero_()

    def share_memory(self: Self) -> Self:
        """Return self: parameters are sent to worker processes by copy."""
        return self

    # ---- state ----

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return parameters and persistent buffers by dotted name; they share memory with the module's."""
        if args:
            destination = args[0]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        for hook, _ in self._state_dict_pre_hooks.entries():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook, _ in self._state_dict_hooks.entries():
            changed = hook(self, destination, prefix, {"version": self._version})
            destination = destination if changed is None else changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """Return state beside parameters and buffers; define it together with `set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take the state that `get_extra_state` returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy parameters and buffers from a state_dict.

        Raises:
            RuntimeError: listing missing, unexpected and mis-shaped keys (the first two only when strict).
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None) or {}
        state = dict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module: Module, prefix: str) -> None:
            local = metadata.get(prefix[:-1], {})
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")
            keys = _IncompatibleKeys(missing, unexpected)
            for hook, _ in module._load_state_dict_post_hooks.entries():
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, "")
        if strict:
            # Unexpected first, as PyTorch prints them last inserted first.
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        for hook, options in self._load_state_dict_pre_hooks.entries():
            arguments = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
            hook(self, *arguments) if options.get("with_module") else hook(*arguments)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        for name, param in {**self._parameters, **own}.items():
            if param is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            value = state_dict[key]
            if not isinstance(value, Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected mortice.Tensor or Tensor-like object from '
                    f"checkpoint but received {type(value)}"
                )
                continue
            if not param.shape and value.shape == (1,):
                value = value[0]  # checkpoints of PyTorch 0.3 and before have no 0-d tensors
            if value.shape != param.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                    f"current model is {param.shape}."
                )
                continue
            if not assign:
                with no_grad():
                    param.copy_(value.to(param.device))
            elif name in self._parameters:
                setattr(self, name, value if isinstance(value, Parameter) else Parameter(value, param.requires_grad))
            else:
                self._buffers[name] = value
        extra = prefix + "_extra_state"
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, *rest = key[len(prefix) :].split(".", 1)
                    known = head in self._modules if rest else head in own or head in self._parameters
                    if not known and not (not rest and self._parameters.get(head, self) is None):
                        unexpected_keys.append(key)

    # ---- hooks ----

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Any:
        """Call `hook(module, args)` before forward; what it returns replaces the input."""
        return self._forward_pre_hooks.add(hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Any:
        """Call `hook(module, args, output)` after forward; what it returns replaces the output."""
        return self._forward_hooks.add(hook, prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Call `hook(module, grad_output)` before the module's backward; what it returns replaces grad_output."""
        return self._backward_pre_hooks.add(hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Call `hook(module, grad_input, grad_output)` after the module's backward; it may replace grad_input."""
        return self._backward_hooks.add(hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, prefix, keep_vars)` before state_dict is made."""
        return self._state_dict_pre_hooks.add(hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, state_dict, prefix, local_metadata)` when state_dict is made; it may change it in place."""
        return self._state_dict_hooks.add(hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, state_dict, prefix, ...)` before loading."""
        return self._load_state_dict_pre_hooks.add(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Any:
        return self._load_state_dict_pre_hooks.add(hook, with_module=with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, incompatible_keys)` after loading."""
        return self._load_state_dict_post_hooks.add(hook)

    # ---- printing ----

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: every module runs eagerly."""


def _need_init(d: dict[str, Any], name: str, kind: str) -> None:
    if "_modules" not in d:
        raise AttributeError(f"cannot assign {kind} before Module.__init__() call; assigning {name!r}.")


def _forget(d: dict[str, Any], name: str, keep: str) -> None:
    """Remove a name from everywhere but the table that it is about to enter."""
    for place in (d, *(d[t] for t in _TABLES if t != keep)):
        place.pop(name, None)
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
    table = getattr(module, {"parameter": "_parameters", "buffer": "_buffers", "module": "_modules"}[kind])
    if hasattr(module, name) and name not in table:
        raise KeyError(f"attribute '{name}' already exists")


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{k}"' for k in keys)


