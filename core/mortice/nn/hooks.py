"""Module hooks: ordered tables with removable handles, global hooks, and the backward hooks around a module's call."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from mortice import Tensor


class Handle:
    """Removes a module hook; also a context manager."""

    _ids = itertools.count()

    def __init__(self, table: HookDict) -> None:
        self.id = next(self._ids)
        self._table = table

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        self._table.pop(self.id, None)
        GLOBAL.refresh()

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class HookDict(dict[int, Any]):
    """Hooks in the order in which they run: id -> (hook, options)."""

    def add(self, hook: Callable[..., Any], prepend: bool = False, **options: Any) -> Handle:
        """Register a hook; return its handle."""
        handle = Handle(self)
        if prepend:
            rest = dict(self)
            self.clear()
            self[handle.id] = (hook, options)
            self.update(rest)
        else:
            self[handle.id] = (hook, options)
        GLOBAL.refresh()
        return handle

    def entries(self) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
        """Return (hook, options) pairs, as they are now."""
        return list(self.values())


class _Global:
    """Hooks on every module."""

    def __init__(self) -> None:
        self.forward_pre, self.forward, self.backward_pre, self.backward = {}, {}, {}, {}  # type: ignore[var-annotated]
        self.active = False

    def refresh(self) -> None:
        """Note whether any global hook exists, so that calling a module asks one flag."""
        self.active = bool(self.forward_pre or self.forward or self.backward_pre or self.backward)


GLOBAL: Any = _Global()
GLOBAL.forward_pre, GLOBAL.forward = HookDict(), HookDict()
GLOBAL.backward_pre, GLOBAL.backward = HookDict(), HookDict()


@functools.cache
def _boundary() -> Any:
    """Return the identity on several tensors at once, whose backward sees all their gradients together."""
    from mortice.autograd import Function

    class Boundary(Function):
        @staticmethod
        def forward(ctx: Any, seen: Callable[..., Any], *tensors: Any) -> Any:
            ctx.seen = seen
            ctx.set_materialize_grads(False)
            return tuple(t.view_as(t) for t in tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return (None, *ctx.seen(grads))

    return Boundary


class _Watch:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.pre = [h for h, _ in [*GLOBAL.backward_pre.entries(), *module._backward_pre_hooks.entries()]]
        self.full = [h for h, _ in [*GLOBAL.backward.entries(), *module._backward_hooks.entries()]]
        self.grad_output: Any = None
        self.input_count = 0

    def inputs(self, args: Any) -> Any:
        """Pass the tensors among the inputs through a boundary that runs the full hooks."""
        where = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.input_count = len(args)
        if not self.full or not any(args[i].requires_grad for i in where):
            return args
        self.watched = where
        passed = _boundary().apply(self._at_input, *[args[i] for i in where])
        args = list(args)
        for i, t in zip(where, passed if isinstance(passed, tuple) else (passed,)):
            args[i] = t
        return tuple(args)

    def _at_input(self, grads: Any) -> Any:
        full: list[Any] = [None] * self.input_count
        for i, g in zip(self.watched, grads):
            full[i] = g
        full_input = tuple(full)
        for hook in self.full:
            changed = hook(self.module, full_input, self.grad_output)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                if len(changed) != len(full_input):
                    raise RuntimeError(
                        f"Backward hook returned an invalid number of grad_input, got {len(changed)}, but expected "
                        f"{len(full_input)}"
                    )
                full_input = changed
        return tuple(full_input[i] for i in self.watched)

    def outputs(self, result: Any) -> Any:
        """Pass the tensors among the outputs through a boundary that runs the pre-hooks and keeps the gradient."""
        single = isinstance(result, Tensor)
        items = [result] if single else list(result) if isinstance(result, (tuple, list)) else None
        if items is None:
            return result
        where = [i for i, r in enumerate(items) if isinstance(r, Tensor)]
        if not any(items[i].requires_grad for i in where):
            return result
        has_input = hasattr(self, "watched")

        def at_output(grads: Any) -> Any:
            full: list[Any] = [None] * len(items)
            for i, g in zip(where, grads):
                full[i] = g
            self.grad_output = tuple(full)
            for hook in self.pre:
                changed = hook(self.module, self.grad_output)
                if changed is not None:
                    self.grad_output = changed if isinstance(changed, tuple) else (changed,)
            if not has_input:
                # No input wants a gradient, so no boundary there will run the full hooks.
                for hook in self.full:
                    if hook(self.module, (None,) * self.input_count, self.grad_output) is not None:
                        raise RuntimeError(
                            "backward hook: nn.Modules with no input requiring grad can't change grad_input."
                        )
            return tuple(self.grad_output[i] for i in where)

        passed = _boundary().apply(at_output, *[items[i] for i in where])
        for i, t in zip(where, passed if isinstance(passed, tuple) else (passed,)):
            items[i] = t
        if single:
            return items[0]
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*items)
        return type(result)(items)


def backward_hooks(module: Any) -> _Watch | None:
    """Return what watches a call of the module, None when it has no backward hooks."""
    if module._backward_hooks or module._backward_pre_hooks or GLOBAL.backward or GLOBAL.backward_pre:
        return _Watch(module)
    return None


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, args)` before the forward of every module."""
    return GLOBAL.forward_pre.add(hook)  # type: ignore[no-any-return]


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Call `hook(module, args, output)` after the forward of every module."""
    return GLOBAL.forward.add(hook, with_kwargs=with_kwargs, always_call=always_call)  # type: ignore[no-any-return]


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return GLOBAL.backward_pre.add(hook)  # type: ignore[no-any-return]


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    return GLOBAL.backward.add(hook)  # type: ignore[no-any-return]
