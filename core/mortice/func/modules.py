"""Modules as functions: called with parameters from outside, and several of one kind stacked into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mortice.methods import Tensor
from mortice.ops.joining import stack
from mortice.tensor import TensorBase


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, given by name, in place of its own.

    Other attributes that are tensors can be given too. What the module sets anew while it runs goes into the dict that was
    given; the module itself is as before afterwards.

    Args:
        tie_weights: a value goes to all names that the module has for the one that is given.
        strict: all names of the module must be given, and no others.

    Raises:
        ValueError: when a name comes in several dicts, or several values for what is one tensor in the module.
        RuntimeError: when strict, and names are missing or unknown.
        TypeError: for a value that is no Tensor, or an attribute that is none.
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, (tuple, list)):
        names = [name for part in given for name in part]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for part in given for name, value in part.items()}
    elif not isinstance(given, dict):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def _reparametrize_module(
    module: Any, given: dict[str, Any], tie_weights: bool = False, strict: bool = False, stack_weights: bool = True
) -> Iterator[None]:
    """Give a module other tensors within a block, by the rules of `functional_call`; a stack of them is always taken back."""
    values = _tied(module, given) if tie_weights else dict(given)
    if strict:
        own = dict(_named_tensors(module))
        _check_names(module, set(own) - set(values), set(values) - set(own))
    before: dict[str, Any] = {}
    try:
        for name, value in values.items():
            before[name] = _exchange(module, name, value)
        yield
    finally:
        after = {name: _exchange(module, name, value) for name, value in reversed(before.items())}
        given.update({name: after[name] for name in given if name in after})


_ABSENT: Any = object()  # an attribute that is not there


def _named_tensors(module: Any) -> list[tuple[str, Any]]:
    return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


def _tied(module: Any, given: Any) -> dict[str, Any]:
    """Return what is given under all names that the module has for it."""
    names: dict[int, list[str]] = {}
    for name, t in _named_tensors(module):
        names.setdefault(id(t), []).append(name)
    values = dict(given)
    for tied in names.values():
        found = [name for name in tied if name in given]
        if any(given[name] is not given[found[0]] for name in found):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(found)}, which are tied. Consider using tie_weights=False"
            )
        values.update(dict.fromkeys(tied, given[found[0]]) if found else {})
    return values


def _exchange(module: Any, name: str, value: Any) -> Any:
    """Put a value in the place of a name, and return what was there."""
    path, _, last = name.rpartition(".")
    holder = module.get_submodule(path)
    if value is not None and value is not _ABSENT and not isinstance(value, TensorBase):
        raise TypeError(f"{value} is not an instance of {Tensor.__module__}.Tensor")
    for table in (holder._parameters, holder._buffers):
        if last in table:
            before = table[last]
            if value is _ABSENT:
                del table[last]
            else:
                table[last] = value
            return before
    before = getattr(holder, last, _ABSENT)
    if before is not _ABSENT and not isinstance(before, TensorBase):
        raise TypeError(f"functional_call: {before} is not an instance of {Tensor.__module__}.Tensor; it is the attribute {name!r}.")
    if value is _ABSENT:
        delattr(holder, last)
    else:
        setattr(holder, last, value)
    return before


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a module's own and return what was there; None takes it away where it may be missing."""
    if not allow_missing and getattr(module, name, _ABSENT) is _ABSENT:
        raise AttributeError(f"swap_tensor: {type(module).__name__} has no attribute {name!r}.")
    before = _exchange(module, name, _ABSENT if tensor is None and allow_missing else tensor)
    return None if before is _ABSENT else before


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
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        parameters[name] = stack([part.detach() for part in parts], 0).requires_grad_(p._rg)
    for name, _ in models[0].named_buffers():
        buffers[name] = stack([dict(m.named_buffers())[name].detach() for m in models], 0)
    return parameters, buffers


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let no batch norm of a module keep running statistics, in place: inside vmap they could not be updated."""
    for m in root.modules():
        if "running_mean" in m._buffers and hasattr(m, "track_running_stats"):
            m.running_mean = m.running_var = m.num_batches_tracked = None
            m.track_running_stats = False
    return root
