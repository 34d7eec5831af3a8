"""The recorded graph: its nodes, their hooks, and what the engine in `backward.py` asks of them and of the tensor layer.

Nothing here knows an operation: an op's node (`node.OpNode`) and a custom Function's node only have to `pull`.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from functools import cache
from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Hooks = OrderedDict[int, Callable[..., Any]] | None  # by number; None where none was ever registered

next_seq = itertools.count(1).__next__


class Released:
    """Stands in for a node's saved values after the backward that freed them."""


RELEASED = Released()


class Extra:
    """What few nodes have: hooks, a tensor whose gradient is kept, the forward line, storages under watch."""

    __slots__ = (
        "hooks", "prehooks", "tensor_hooks", "retained", "trace", "storages", "metadata", "packed", "slots", "origin",
        "parts",
    )  # fmt: skip

    def __init__(self) -> None:
        self.hooks: Hooks = None  # of the node, after it has run
        self.prehooks: Hooks = None  # of the node, before
        self.tensor_hooks: Hooks = None  # of the tensor that it made
        self.retained: Any = None
        self.trace: tuple[str, ...] = ()  # under anomaly detection: where it was recorded, and what had led to that
        self.storages: dict[int, Any] = {}  # or tensors of their own, each with the version that it had
        self.metadata: dict[Any, Any] = {}
        self.packed: list[Any] = []  # saved values in the care of hooks
        self.slots: list[Any] = []  # weak references to the Slots, so that a rebuilt output finds its own
        self.parts: tuple[tuple[Any, int], ...] = ()  # what `next_functions` shows, if not the edges
        self.origin: Any = None  # of a node without some of its edges: the node itself


class Node:
    """A recorded operation. `edges[i]` is where the gradient of input i goes: a Node, a leaf tensor, or None."""

    __slots__ = ("seq", "edges", "device", "shape", "dtype", "extra", "__weakref__")
    seq: int
    edges: tuple[Any, ...]
    device: Any
    shape: Any
    dtype: Any
    extra: Extra | None

    def name(self) -> str:
        """Return the name that a printed tensor shows as its grad_fn."""
        return type(self).__name__

    def seen(self) -> Node:
        """Return the node as users get it: of a class with the name that it has in PyTorch."""
        return self

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        """Return the gradient of each input, given the output's: raw buffers, or Tensors when `graph`."""
        raise NotImplementedError

    def pull_told(self, g: Any) -> Sequence[Any]:
        """Do so with raw buffers while dispatch modes are to be told."""
        return self.pull(g, False)

    def release(self) -> None:
        """Drop the saved values."""

    def note_storage(self, number: int, storage: Any) -> None:
        """Learn of the storage of an output, to notice writes to it if the node has kept it."""

    def owns(self, g: Any, pulled: Sequence[Any]) -> bool:
        """Tell whether nobody else holds the buffer `g` that `pull` has just returned."""
        return False

    def without(self, keep: tuple[bool, ...]) -> Node:
        """Return a node that pulls only the gradients in `keep`, if that saves work; this one otherwise."""
        return self

    def place(self, number: int) -> Any:
        """Return where the gradient of an output arrives: this node, or a Slot."""
        return self

    def more(self) -> Extra:
        """Return the node's extras, made at the first need."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whoever walks the graph."""
        extra = self.more()
        if extra.trace:
            extra.metadata.setdefault("traceback_", [extra.trace[0]])
        return extra.metadata

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that gradients go to next, each with its output number."""
        found: list[tuple[Any, int]] = []
        for edge in self.edges:
            if edge is None:
                found.append((None, 0))
            elif isinstance(edge, Slot):
                found.append((edge.parent.seen(), edge.number))
            else:
                found.append((edge.seen() if isinstance(edge, Node) else AccumulateGrad(edge), 0))
        return tuple(found)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run; it may return new grad_inputs."""
        return add_hook(self.more(), "hooks", fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; it may return new grad_outputs."""
        return add_hook(self.more(), "prehooks", fn)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class AccumulateGrad(Node):
    """What `next_functions` shows where a gradient arrives at a leaf."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        self.variable, self.edges, self.extra = variable, (), None

    def name(self) -> str:
        """Return PyTorch's name of it."""
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn((), (grad,))` after the gradient was added, with what `.grad` then is."""
        state = self.variable._state()
        return add_hook(state, "post_hooks", lambda leaf: fn((), (leaf.grad,)))

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn((grad,))` before the gradient is added, after the tensor's own hooks; it may return another one."""
        return add_hook(self.variable._state(), "prehooks", lambda g: _first(fn((g,))))

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self.variable):#x}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)


class Part(Node):
    """What `next_functions` shows of an op that is several functions to PyTorch: one of the inner ones. It never runs."""

    __slots__ = ("next_functions",)
    next_functions: tuple[tuple[Any, int], ...]

    def __init__(self, name: str, *parts: tuple[Any, int]) -> None:
        self.__class__ = _part_class(name)
        self.next_functions, self.edges, self.extra = parts, (), None

    def name(self) -> str:
        """Return PyTorch's name of it."""
        return type(self).__name__

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Refuse: it does not run, so a hook would never be called."""
        raise NotImplementedError(f"{self.name()}: expected a node that runs; got a part of one. Hook the node before it.")

    register_prehook = register_hook


@cache
def _part_class(name: str) -> Any:
    return type(name, (Part,), {"__slots__": ()})


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


class Slot(Node):
    """One differentiable output of a node that has several; hands its gradient to `parent` as number `number`."""

    __slots__ = ("parent", "number")
    parent: Any
    number: int

    def __init__(self, parent: Any, number: int, device: Any, shape: Any, dtype: Any) -> None:
        self.seq, self.edges, self.device, self.shape, self.dtype = next_seq(), (parent,), device, shape, dtype
        self.extra = None
        self.parent, self.number = parent, number

    def name(self) -> str:
        return self.parent.name()  # type: ignore[no-any-return]

    def note_storage(self, number: int, storage: Any) -> None:
        self.parent.note_storage(self.number, storage)


def give_slots(node: Any, results: Any) -> list[Any]:
    """Give results of a node their places in the graph, and return weak references to those."""
    found = []
    for i, t in enumerate(results):
        t._rg, t._node = True, (slot := Slot(node, i, t._device, t.shape, t.dtype))
        found.append(ref(slot))
    return found


class RemovableHandle:
    """Removes a hook again; also a context manager.

    Args:
        hooks_dict: the hooks by `id`; whoever makes the handle puts the hook there.
        extra_dict: a dictionary, or a list of them, whose entries of that id go with the hook.
    """

    __module__ = "mortice.utils.hooks"  # where files of whole modules look for it

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(number for number in self._ids if number not in hooks_dict)  # a loaded table has numbers already
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self._tables = [hooks_dict, *extra]

    def __setstate__(self, state: Any) -> None:
        # PyTorch's own: the table, the number, and tables of options.
        self.__dict__.update({"_tables": [state[0]], "id": state[1]} if isinstance(state, tuple) else state)

    def hooks_dict_ref(self) -> Any:
        """Return the dictionary of hooks."""
        return self._tables[0]

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        for table in self._tables:
            table = getattr(table, "adopted", table)  # which a loaded handle of PyTorch's leads to
            if table is not None:
                table.pop(self.id, None)
                getattr(table, "options", {}).pop(self.id, None)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def add_hook(owner: Any, name: str, hook: Callable[..., Any]) -> RemovableHandle:
    """Put a hook into the table of that name, which is made with the first one; return its handle."""
    table = getattr(owner, name)
    if table is None:
        table = OrderedDict()
        setattr(owner, name, table)
    made: RemovableHandle = register(table, hook)
    return made


def register(table: OrderedDict[int, Any], hook: Any, prepend: bool = False, kind: Any = RemovableHandle) -> Any:
    """Put a hook into a table, after the others or before them; return its handle, of that kind."""
    handle = kind(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


# ---- what the tensor layer supplies: how a gradient is wrapped, added and checked, in both modes ----


class Algebra:
    """The few operations the engine itself needs, on raw buffers or on Tensors."""

    kernels: Any = None  # the namespace that speaks its values, where they are tensors

    def add(self, like: Any, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        raise NotImplementedError

    def wrap(self, g: Any, like: Any) -> Any:
        """Return the gradient as a Tensor shaped like `like` (a node or a leaf)."""
        raise NotImplementedError

    def wrap_any(self, g: Any, device: Any) -> Any:
        """Return a gradient of any shape as a Tensor."""
        raise NotImplementedError

    def unwrap(self, g: Any) -> Any:
        raise NotImplementedError

    def fresh(self, g: Any, device: Any) -> Any:
        """Return a buffer that nobody else holds."""
        raise NotImplementedError

    def add_into(self, total: Any, g: Any) -> Any:
        """Add to a Tensor that is someone's `.grad`, in place where no graph is made; return the Tensor."""
        raise NotImplementedError

    def has_nan(self, g: Any, like: Any) -> bool:
        raise NotImplementedError


RAW: Algebra
GRAPH: Algebra


def install(raw: Algebra, graph: Algebra) -> None:
    """Give the engine its algebra; called once by `node`."""
    global RAW, GRAPH
    RAW, GRAPH = raw, graph
