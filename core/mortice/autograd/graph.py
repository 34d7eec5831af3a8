"""What works on the recorded graph itself: hooks on saved tensors, edges, hooks on several gradients, versions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from mortice.graph import AccumulateGrad, Node, RemovableHandle, Slot
from mortice.graph import register as register  # tables of hooks are of one kind in all layers
from mortice.modes import modes, watch
from mortice.notice import warn
from mortice.tensor import TensorBase


class saved_tensors_hooks:
    """Let `pack_hook` take every tensor saved for backward inside, and `unpack_hook` give it back when it is needed."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if modes.hooks_disabled is not None:
            raise RuntimeError(modes.hooks_disabled)
        modes.saved_hooks = (*modes.saved_hooks, (self.pack_hook, self.unpack_hook))
        watch()

    def __exit__(self, *exc: Any) -> None:
        modes.saved_hooks = modes.saved_hooks[:-1]
        watch()


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved for backward in the CPU's memory, and bring it back when it is needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Any) -> Any:
            return t.device, t.detach().cpu()

        def unpack(packed: Any) -> Any:
            device, t = packed
            return t.to(device)

        super().__init__(pack, unpack)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Let tensors that are saved for backward be overwritten afterwards: backward sees the values that were saved.

    Differs from torch: each is copied when it is saved, not when it is overwritten.
    """

    def __init__(self) -> None:
        super().__init__(_copied, lambda t: t)

    def __enter__(self) -> None:
        if any([pack is _copied for pack, _ in modes.saved_hooks]):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested. One is enough.")
        super().__enter__()


def _copied(t: Any) -> Any:
    return t.detach().clone()


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse `saved_tensors_hooks` inside, with this message."""
    if modes.saved_hooks:
        raise RuntimeError(error_message)
    before, modes.hooks_disabled = modes.hooks_disabled, error_message
    try:
        yield
    finally:
        modes.hooks_disabled = before


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: a node and the number of its output."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return where the gradient of a tensor goes."""
    if not tensor._rg:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients.")
    node = tensor._node
    if node is None:
        return GradientEdge(AccumulateGrad(tensor), 0)
    return GradientEdge(node.parent, node.number) if isinstance(node, Slot) else GradientEdge(node, 0)


def increment_version(tensor: Any) -> None:
    """Count a write to a tensor, or to each of several, that happened where the library could not see it."""
    tensors = (tensor,) if isinstance(tensor, TensorBase) else tensor
    if not hasattr(tensors, "__iter__"):
        raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, or one Tensor; got {type(tensor).__name__}.")
    for t in tensors:
        t.own_storage().version += 1


class _MultiHandle(RemovableHandle):
    """Removes the hooks of several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once a backward: with all gradients of the tensors (None where none comes), or with the first one."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [id(t if t._node is None else t._node) for t in tensors]
    seen: Any = WeakKeyDictionary()  # by backward the gradients, and which are still to come; nothing in mode "any"

    def hook(i: int) -> Callable[[Any], None]:
        def one(g: Any) -> None:
            run = modes.running
            if mode == "any":
                if run not in seen:
                    seen[run] = None
                    fn(g)
                return
            if run not in seen:
                seen[run] = [None] * len(nodes), {j for j, n in enumerate(nodes) if n in run.reached}
            grads, missing = seen[run]
            grads[i] = g
            missing.discard(i)
            if not missing:
                fn(grads)

        return one

    return _MultiHandle([t.register_hook(hook(i)) for i, t in enumerate(tensors)])


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook of tensors, of which files need not keep anything, so that nobody is warned that they do not."""
    vars(f)["__torch_unserializable__"] = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of hooks that a file of the tensor will not have."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function "
                "with @torch.utils.hooks.unserializable_hook to suppress this warning"
            )


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
