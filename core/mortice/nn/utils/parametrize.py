"""Parametrizations: a tensor of a module is computed by other modules from `original`, each time it is read.

The module gets a class of its own, `Parametrized<its class>`, with a property in the tensor's place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from mortice import Tensor, no_grad
from mortice.nn.container import ModuleDict, ModuleList
from mortice.nn.parameter import Parameter

_cached: dict[tuple[int, str], Any] = {}
_caching = 0


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once inside this context."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cached.clear()


def _keep(module: Any, name: str, value: Any) -> None:
    """Register a tensor as what it is: a parameter, or a buffer."""
    (module.register_parameter if isinstance(value, Parameter) else module.register_buffer)(name, value)


def _put(place: Any, value: Any) -> None:
    """Let a tensor have the memory of another one."""
    if value is not place:
        place.data = value.detach()


def _need_tensor(value: Any, what: str) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(value).__name__}.")


def _need_same(what: str, made: Any, wanted: Any, shape: bool = True) -> None:
    """Refuse a tensor that is not of the dtype and shape of another one."""
    _need_tensor(made, what)
    for name in ("dtype", "shape") if shape else ("dtype",):
        got, want = getattr(made, name), getattr(wanted, name)
        if got != want:
            raise ValueError(
                f"{what} may not change the {name} of the tensor, unless the `unsafe` flag is enabled; "
                f"both must have the same {name}, got {got} for {want}."
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they apply, and what they start from.

    That is `original`, or `original0`, `original1`, ... when the first one's `right_inverse` gives several tensors.
    """

    def __init__(self, modules: Sequence[Any], original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shown = original.detach()
        new = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            for what in ("dtype", "device"):
                if getattr(new, what) != getattr(original, what):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}; got "
                        f"{getattr(new, what)} for {getattr(original, what)}."
                    )
            _put(original, new)
            _keep(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _keep(self, f"original{i}", part.requires_grad_(original.requires_grad))
        if not unsafe:
            _need_same("Registering a parametrization", self(), shown)

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Change what the parametrizations start from, so that their result is `value`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
        if self.is_tensor:
            _need_tensor(value, "right_inverse")
            value = [value]
        elif not isinstance(value, Sequence) or len(value) != self.ntensors:
            got = f"{len(value)} of them" if isinstance(value, Sequence) else type(value).__name__
            raise ValueError(f"'right_inverse' must return a sequence of {self.ntensors} tensors. Got {got}.")
        for place, part in zip(self._originals(), value):
            _need_same("right_inverse", part, place, shape=False)
            _put(place, part)

    def forward(self) -> Any:
        first, *others = self._modules.values()
        x = first(*self._originals())
        for module in others:
            x = module(x)
        return x


# ---- the class of a module with parametrized tensors ----


def _own_class(cls: type, **namespace: Any) -> type:
    """Return a subclass of a module's class, for the properties of one module."""

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): save that, and register the "
            "parametrizations again before loading it."
        )

    def copied(self: Any, memo: Any) -> Any:
        properties = {n: p for n, p in vars(type(self)).items() if isinstance(p, _Parametrized)}
        made = memo[id(self)] = cls.__new__(_own_class(cls, **properties))
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    if not hasattr(cls, "__deepcopy__"):
        namespace["__deepcopy__"] = copied
    return type(f"Parametrized{cls.__name__}", (cls,), {"__getstate__": refuse, **namespace})


class _Parametrized(property):
    """Stands in a module's class for a parametrized tensor."""

    def __init__(self, name: str) -> None:
        super().__init__(self._compute, lambda module, value: module.parametrizations[name].right_inverse(value))
        self.name = name

    def _compute(self, module: Any) -> Any:
        if not _caching:
            return module.parametrizations[self.name]()
        key = (id(module), self.name)
        if key not in _cached:
            _cached[key] = module.parametrizations[self.name]()
        return _cached[key]


# ---- what users call ----


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Let a parameter or buffer be computed by `parametrization` from then on; return the module.

    Args:
        unsafe: allow a parametrization that changes the dtype or shape, and do not run it to find out.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _need_same("Registering a parametrization", after, before)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    _need_same("right_inverse", parametrization.right_inverse(after), before)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _own_class(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _Parametrized(tensor_name))
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Tell whether a module has parametrized tensors, or one of that name."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a tensor an ordinary one again: with the value it has, or else with the one it started from."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if found.is_tensor:
        original = found.original
        if leave_parametrized:
            with no_grad():
                _put(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _keep(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """Return the class that a module had before its tensors were parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give `to_module` the parametrizations of `from_module` and what they start from; return it."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        given = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        taken = to_module.parametrizations[name]
        for key in ["original"] if given.is_tensor else [f"original{i}" for i in range(given.ntensors)]:
            setattr(taken, key, getattr(given, key))
    return to_module
