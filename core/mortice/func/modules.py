"""Modules as functions: called with parameters from outside, and several of one kind stacked into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.node import TENSOR_KERNELS

k: Any = TENSOR_KERNELS


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, given by name, in place of its own."""
    parts = parameter_and_buffer_dicts
    given: dict[str, Any] = {}
    for part in parts if isinstance(parts, (tuple, list)) else [parts]:
        given.update(part)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    own = dict(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    if strict:
        _check_names(module, set(own) - set(given), set(given) - set(own))
    given = {name: value for name, value in given.items() if name in own}
    if tie_weights:
        by_id = {id(own[name]): value for name, value in given.items()}
        given = {name: by_id[id(t)] for name, t in own.items() if id(t) in by_id} | given
    swapped: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in given.items():
            path, _, last = name.rpartition(".")
            holder = module.get_submodule(path)
            table = holder._parameters if last in holder._parameters else holder._buffers
            swapped.append((table, last, table[last]))
            table[last] = value
        return module(*args, **(kwargs or {}))
    finally:
        for table, last, value in reversed(swapped):
            table[last] = value


def _check_names(module: Any, missing: set[str], unknown: set[str]) -> None:
    lines = [
        f"{what} key(s): {', '.join(repr(name) for name in sorted(names))}."
        for what, names in (("Unexpected", unknown), ("Missing", missing))
        if names
    ]
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(lines))


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and buffers of several models of one kind, stacked along a new first dim."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if any(m.training is not models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    parameters, buffers = {}, {}
    for name, p in models[0].named_parameters():
        parts = [dict(m.named_parameters())[name] for m in models]
        if any(part._rg is not p._rg for part in parts):
            raise RuntimeError(
                f"stack_module_state: Expected {name} of all models to have the same .requires_grad; got "
                f"{[part._rg for part in parts]}."
            )
        parameters[name] = k.stack([part.detach() for part in parts], 0).requires_grad_(p._rg)
    for name, _ in models[0].named_buffers():
        buffers[name] = k.stack([dict(m.named_buffers())[name].detach() for m in models], 0)
    return parameters, buffers


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let no batch norm of a module keep running statistics, in place: inside vmap they could not be updated."""
    for m in root.modules():
        if "running_mean" in m._buffers and hasattr(m, "track_running_stats"):
            m.running_mean = m.running_var = m.num_batches_tracked = None
            m.track_running_stats = False
    return root
