"""A module's call with its hooks: those before and after forward, and those around its backward.

Full backward hooks run at the inputs, their pre-hooks at the outputs, regular backward hooks at one node.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mortice import Tensor
from mortice.nn.hooks import GLOBAL, Hook
from mortice.notice import warn


def call_with_hooks(module: Any, args: Any, kwargs: Any) -> Any:
    """Call a module that has hooks, or any module while there are global ones."""
    waiting: list[tuple[Hook, Mapping[str, Any]]] | None = None
    result = None
    try:
        for hook, options in [*GLOBAL.forward_pre.entries(), *module._forward_pre_hooks.entries()]:
            args, kwargs = _before(module, hook, options, args, kwargs)
        watch = _around_backward(module)
        if watch is not None:
            args = watch.inputs(args)
        result = module.forward(*args, **kwargs)
        waiting = _after_hooks(module)
        while waiting:
            changed = _after(module, *waiting.pop(0), args, kwargs, result)
            result = result if changed is None else changed
        return result if watch is None else watch.outputs(args, result)
    except Exception:
        for hook, options in _after_hooks(module) if waiting is None else waiting:
            if options.get("always_call"):
                try:
                    changed = _after(module, hook, options, args, kwargs, result)
                    result = result if changed is None else changed
                except Exception as error:
                    warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}"
                    )
        raise


def _before(module: Any, hook: Hook, options: Mapping[str, Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Run a forward pre-hook; return the arguments as it left them."""
    if not options.get("with_kwargs"):
        changed = hook(module, args)
        if changed is None:
            return args, kwargs
        return changed if isinstance(changed, tuple) else (changed,), kwargs
    changed = hook(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(
            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
        )
    return changed


def _after(module: Any, hook: Hook, options: Mapping[str, Any], args: Any, kwargs: Any, result: Any) -> Any:
    return hook(module, args, kwargs, result) if options.get("with_kwargs") else hook(module, args, result)


def _after_hooks(module: Any) -> list[tuple[Hook, Mapping[str, Any]]]:
    return [*GLOBAL.forward.entries(), *module._forward_hooks.entries()]


# ---- around backward ----


@functools.cache
def _boundary() -> Any:
    """Return the identity on several tensors at once, whose backward sees all their gradients together."""
    from mortice.autograd import Function

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: Any, seen: Hook, zeros: bool, *tensors: Any) -> Any:
            ctx.seen = seen
            ctx.set_materialize_grads(zeros)
            passed = tuple(t.view_as(t) for t in tensors)
            ctx.mark_non_differentiable(*[p for p, t in zip(passed, tensors) if not t.requires_grad])
            return passed

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return (None, None, *ctx.seen(grads))

    return BackwardHookFunction


def _pass(items: Any, seen: Hook, zeros: bool) -> tuple[Any, list[int] | None]:
    """Pass the tensors among `items` through a boundary; return the items and the tensors' places, None without any.

    `zeros` says that `seen` gets zeros where no gradient arrives.
    """
    where = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
    if not any(items[i].requires_grad for i in where):
        return items, None
    passed = _boundary().apply(seen, zeros, *[items[i] for i in where])
    changed = list(items)
    for i, t in zip(where, passed if isinstance(passed, tuple) else (passed,)):
        changed[i] = t
    return (type(items)(*changed) if hasattr(items, "_fields") else tuple(changed)), where


def _spread(values: Any, where: list[int], size: int) -> tuple[Any, ...]:
    """Return a tuple with the values at their places and None elsewhere."""
    full: list[Any] = [None] * size
    for i, value in zip(where, values):
        full[i] = value
    return tuple(full)


def _changed(new: Any, old: tuple[Any, ...], what: str, grads: str) -> tuple[Any, ...]:
    """Return the gradients that a hook gave, or the old ones."""
    if new is None:
        return old
    new = (new,) if isinstance(new, Tensor) else tuple(new)
    if len(new) != len(old):
        raise RuntimeError(f"{what} returned an invalid number of {grads}, got {len(new)}, but expected {len(old)}")
    return new


class _Watch:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Any, pre: list[Hook], full: list[Hook], regular: list[Hook]) -> None:
        self.module, self.pre, self.full, self.regular = module, pre, full, regular
        self.grad_output: Any = None
        self.input_count = self.output_count = 0
        self.inputs_at: list[int] | None = None
        self.outputs_at: list[int] | None = None

    def inputs(self, args: Any) -> Any:
        """Let the full hooks run when the gradients of the inputs are known."""
        self.input_count = len(args)
        if self.full or self.pre:
            args, self.inputs_at = _pass(args, self._at_input, True)
        return args

    def _at_input(self, grads: Any) -> Any:
        if self.grad_output is None:
            return grads  # reached from elsewhere than the outputs, as in a second backward
        assert self.inputs_at is not None
        full = _spread(grads, self.inputs_at, self.input_count)
        for hook in self.full:
            full = _changed(hook(self.module, full, self.grad_output), full, "Backward hook", "grad_input")
        self.grad_output = None
        return tuple(full[i] for i in self.inputs_at)

    def outputs(self, args: Any, result: Any) -> Any:
        """Let the pre-hooks run, and the gradient be noted, when the gradients of the outputs are known."""
        if self.full or self.pre:
            if not isinstance(result, (Tensor, tuple)):
                warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}"
                )
            else:
                items = result if isinstance(result, tuple) else (result,)
                self.output_count = len(items)
                passed, self.outputs_at = _pass(items, self._at_output, False)
                result = passed if isinstance(result, tuple) else passed[0]
        if self.regular:
            _hook_node(self.module, self.regular, args, result)
        return result

    def _at_output(self, grads: Any) -> Any:
        assert self.outputs_at is not None
        full = _spread(grads, self.outputs_at, self.output_count)
        for hook in self.pre:
            full = _changed(hook(self.module, full), full, "Backward pre hook", "grad_output")
        if self.inputs_at is not None:
            self.grad_output = full
        elif self.full:
            self._without_inputs(full)
        return tuple(full[i] for i in self.outputs_at)

    def _without_inputs(self, grad_output: tuple[Any, ...]) -> None:
        """Run the full hooks here, since no boundary at the inputs will."""
        warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients."
        )
        for hook in self.full:
            changed = hook(self.module, (None,) * self.input_count, grad_output)
            if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )


def _around_backward(module: Any) -> _Watch | None:
    """Return what watches a call of the module, None when it has no backward hooks."""
    if not (module._backward_hooks or module._backward_pre_hooks or GLOBAL.backward or GLOBAL.backward_pre):
        return None
    pre = [*GLOBAL.backward_pre.values(), *module._backward_pre_hooks.values()]
    full, regular = [], []
    for is_full, table in ((GLOBAL.full, GLOBAL.backward), (module._is_full_backward_hook, module._backward_hooks)):
        (regular if is_full is False else full).extend(table.values())
    return _Watch(module, pre, full, regular)


# ---- regular hooks, which PyTorch had before the full ones ----


def _hook_node(module: Any, hooks: list[Hook], args: Any, result: Any) -> None:
    """Run hooks after the node that made the first output, with that node's own gradients."""
    first = result
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))
    problem = _lacking(args, result, node)
    if problem:
        warn(
            f"Using {problem[0]} is deprecated and will be removed in future versions. This hook will be missing some "
            f"{problem[1]}. Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
        )


def _lacking(args: Any, result: Any, node: Any) -> tuple[str, str] | None:
    """Say why a regular hook at `node` cannot see all of the module's gradients, and which; None when it can."""
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(r, Tensor) for r in results):
        return "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors", "of the grad_output"
    if not all(isinstance(a, Tensor) for a in args):
        return (
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors",
            "of the grad_input",
        )
    if len({id(r.grad_fn) for r in results if r.grad_fn is not None}) > 1:
        return "a non-full backward hook when outputs are generated by different autograd Nodes", "grad_output"
    if {a.grad_fn for a in args if a.grad_fn is not None} != {n for n, _ in node.next_functions}:
        return "a non-full backward hook when the forward contains multiple autograd Nodes", "grad_input"
    return None
