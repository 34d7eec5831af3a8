"""Selective checkpointing: a policy says of each operator whether its result is kept for the second run or computed there again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from mortice._ops import HigherOrderOperator, OpOverload, OpOverloadPacket, aten
from mortice.autograd.checkpoint import CheckpointPolicy, SelectiveCheckpointContext
from mortice.subclasses.dispatching import TorchDispatchMode
from mortice.tensor import TensorBase
from mortice.utils._pytree import tree_map

_IGNORED = frozenset({aten.detach.default})  # whose number may differ between the two runs
_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, True)
_AGAIN, _USED = object(), object()
_HINT = "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that changed "
_HINT += "between forward and backward."


class _First(TorchDispatchMode):
    """The first run: ask, and keep."""

    def __init__(self, policy: Callable[..., Any], kept: dict[Any, list[Any]]) -> None:
        self.policy, self.kept = policy, kept

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func not in _IGNORED:
            context = SelectiveCheckpointContext(is_recompute=False, op_output=made)
            keeps = self.policy(context, func, *args, **(kwargs or {})) in _KEPT
            self.kept[func].append(tree_map(_Kept, made) if keeps else _AGAIN)
        return made


class _Kept:
    """A value of the first run; of a tensor its version too."""

    def __init__(self, value: Any) -> None:
        tensor = isinstance(value, TensorBase)
        self.value, self.version = (value.detach(), value._version) if tensor else (value, None)

    def get(self, mutable: bool) -> Any:
        if self.version is not None and not mutable and self.value._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. Write to a clone of it, or pass "
                "allow_cache_entry_mutation=True to create_selective_checkpoint_contexts."
            )
        return self.value


class _Second(TorchDispatchMode):
    """The second run: take what was kept, call by call of each operator, and compute the rest."""

    def __init__(self, kept: dict[Any, list[Any]], mutable: bool) -> None:
        self.kept, self.mutable = kept, mutable
        self.calls: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> Any:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        entry: Any = _AGAIN
        if func not in _IGNORED:
            number, entries = self.calls[func], self.kept.get(func)
            self.calls[func] += 1
            if entries is None:
                raise RuntimeError(f"{func} encountered during backward but not found in storage. {_HINT}")
            if number >= len(entries):
                what = f"{func} invocation index {number}"
                raise RuntimeError(f"{what} encountered during backward but not found in storage. {_HINT}")
            entry = entries[number]
        if entry is _AGAIN:
            return func(*args, **(kwargs or {}))
        if entry is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                "activation checkpoint."
            )
        entries[number] = _USED
        return tree_map(lambda part: part.get(self.mutable), entry)


def contexts(policy: Any, mutable: bool) -> tuple[Any, Any]:
    """Return the two that `create_selective_checkpoint_contexts` promises."""
    if isinstance(policy, list):
        for op in policy:
            if not isinstance(op, (OpOverload, HigherOrderOperator)):
                more = ""
                if isinstance(op, OpOverloadPacket):
                    more = f" Please update the OpOverloadPacket to a specific OpOverload, e.g. torch.ops.{op} to torch.ops.{op}.default."
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{more}")
        listed = frozenset(policy)
        policy = lambda context, op, *args, **kwargs: op in listed
    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[Any, list[Any]] = defaultdict(list)
    return _First(policy, kept), _Second(kept, mutable)
