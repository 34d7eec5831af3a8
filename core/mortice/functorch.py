"""The package functorch: `mortice.func`, and its older functions, which take a module's state apart from the module."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from mortice.func import *  # noqa: F403 - one namespace
from mortice.func import __all__ as _FUNC
from mortice.func import functional_call, stack_module_state
from mortice.func.vmap import chunk_vmap  # noqa: F401 - of functorch.experimental
from mortice.nn.module import Module

__all__ = [
    *_FUNC, "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
]  # fmt: skip
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers, each in the order of their names, before its arguments."""

    def __init__(self, stateless_model: Module) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(name for name, _ in stateless_model.named_parameters())
        self.buffer_names = tuple(name for name, _ in stateless_model.named_buffers())

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module that is called with its parameters, in the order of their names, before its arguments."""

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a function of (params, buffers, *args), and copies of the parameters and buffers that it takes first."""
    made, params = _taken_apart(FunctionalModuleWithBuffers, model, disable_autograd_tracking)
    return made, params, tuple(made.stateless_model.buffers())


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Return a function of (params, *args), and copies of the parameters that it takes first; buffers are refused."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return _taken_apart(FunctionalModule, model, disable_autograd_tracking)


def _taken_apart(cls: Any, model: Module, constant: bool) -> tuple[Any, tuple[Any, ...]]:
    made = cls(deepcopy(model))
    params = tuple(made.stateless_model.parameters())
    for p in params if constant else ():
        p.requires_grad_(False)
    return made, params


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a function for models of one kind, to be mapped over with vmap, and their parameters and buffers stacked."""
    params, buffers = stack_module_state(models)
    stacked = tuple([p.detach() for p in params.values()])
    return make_functional_with_buffers(models[0])[0], stacked, tuple(buffers.values())
