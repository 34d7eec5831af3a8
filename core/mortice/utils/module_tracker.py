"""ModuleTracker: the names of the modules whose forward or backward is running."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from mortice import Tensor
from mortice.autograd.graph import register_multi_grad_hook
from mortice.autograd.variable import Variable
from mortice.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from mortice.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]
_ENGINE = Variable._execution_engine


class ModuleTracker:
    """Keep in `parents` the names of the modules that are running, and "Global": the outermost's class, then the path below it.

    A module whose inputs need no gradient stays there to the end of a backward.
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: Any = WeakKeyDictionary()
        self._seen: Any = WeakSet()

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return _ENGINE.is_running()

    def __enter__(self) -> Any:
        self._hooks = [register_module_forward_pre_hook(self._begin), register_module_forward_hook(self._end, always_call=True)]
        return self

    def __exit__(self, *exc: Any) -> None:
        for hook in self._hooks:
            hook.remove()

    def _name(self, module: Any) -> Any:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._seen:
            for path, below in module.named_children():
                self._names[below] = f"{name}.{path}"
                self._name(below)
            self._seen.add(module)
        return name

    def _begin(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._watch(args, lambda grads: self.parents.discard(name))

    def _end(self, module: Any, args: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._watch(output, lambda grads: self._back(name))

    def _back(self, name: str) -> None:
        self.parents.add(name)
        _ENGINE.queue_callback(lambda: self.parents.intersection_update({"Global"}))

    def _watch(self, values: Any, hook: Any) -> None:
        tensors = [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, hook))
