"""LazyModuleMixin: modules that learn the shapes of their parameters from their first input."""

from __future__ import annotations

from typing import Any

from mortice import no_grad
from mortice.nn.parameter import is_lazy


class LazyModuleMixin:
    """Makes a module's parameters at its first call, or when a state_dict with shapes is loaded.

    Put it before the module class, make parameters that are `UninitializedParameter`s, define
    `initialize_parameters(*inputs)` to give them their shapes, and name the class to turn into in `cls_to_become`.
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own: Any = self
        own._load_hook = own._register_load_state_dict_pre_hook(own._lazy_load_hook)
        own._initialize_hook = own.register_forward_pre_hook(own._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters the shapes that follow from the inputs of `forward`."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def _tensors(self) -> list[Any]:
        own: Any = self
        return [*own._parameters.items(), *own._buffers.items()]

    def has_uninitialized_params(self) -> bool:
        """Tell whether any parameter or buffer has no shape yet."""
        return any(is_lazy(value) for _, value in self._tensors())

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Take the shapes of what is about to be loaded."""
        for name, value in self._tensors():
            given = state_dict.get(prefix + name)
            if is_lazy(value) and given is not None and not is_lazy(given):
                value.materialize(given.shape)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """Initialise before the first forward, and turn into the ordinary class."""
        with no_grad():
            module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
