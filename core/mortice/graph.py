"""The recorded graph and the backward engine: nodes, grad modes, and the walk that pulls gradients back.

Nothing here knows an operation: an op's node (`op.OpNode`) and a custom Function's node only have to `pull`.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mortice.errors import ShapeError

next_seq = itertools.count(1).__next__


class _Modes(threading.local):
    """Per-thread switches; the class attributes are what a new thread starts with."""

    grad = True
    inference = False
    anomaly = False
    check_nan = True
    saved_hooks: tuple[Any, ...] = ()


modes = _Modes()
# How many blocks that change a mode are open in any thread. While there are none, every thread has the modes above, and
# the call path need not ask: reading a thread's own mode costs more than the rest of its bookkeeping.
special = [0]
_special_lock = threading.Lock()


def open_block(change: int) -> None:
    """Count a mode block that opens (1) or closes (-1)."""
    with _special_lock:
        special[0] += change


class Released:
    """Stands in for a node's saved values after the backward that freed them."""


RELEASED = Released()


class Extra:
    """What few nodes have: hooks, a tensor whose gradient is kept, the forward line, storages under watch."""

    __slots__ = ("hooks", "prehooks", "retained", "trace", "storages", "metadata")

    def __init__(self) -> None:
        self.hooks: list[Any] = []
        self.prehooks: list[Any] = []
        self.retained: Any = None
        self.trace: str | None = None
        self.storages: dict[int, Any] = {}
        self.metadata: dict[Any, Any] = {}


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

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        """Return the gradient of each input, given the output's: raw buffers, or Tensors when `graph`."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop the saved values."""

    def note_storage(self, number: int, storage: Any) -> None:
        """Learn of the storage of an output, to notice writes to it if the node has kept it."""

    def more(self) -> Extra:
        """Return the node's extras, made at the first need."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whoever walks the graph."""
        return self.more().metadata

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that gradients go to next, each with its output number."""
        found = []
        for edge in self.edges:
            if edge is None:
                found.append((None, 0))
            elif isinstance(edge, Slot):
                found.append((edge.parent, edge.number))
            else:
                found.append((edge if isinstance(edge, Node) else AccumulateGrad(edge), 0))
        return tuple(found)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run; it may return new grad_inputs."""
        return RemovableHandle(self.more().hooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; it may return new grad_outputs."""
        return RemovableHandle(self.more().prehooks, lambda g: _first(fn((g,))))

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


class AccumulateGrad:
    """What `next_functions` shows where a gradient arrives at a leaf."""

    __slots__ = ("variable",)
    next_functions = ()

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)


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


class RemovableHandle:
    """Removes a hook again; also a context manager."""

    __slots__ = ("_hooks", "_hook", "id", "__weakref__")
    _ids = itertools.count()

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        # Each registration is its own entry, so that one function registered twice is removed once.
        self._hooks, self._hook, self.id = hooks, (hook,), next(self._ids)
        hooks.append(self._hook)

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        self._hooks[:] = [h for h in self._hooks if h is not self._hook]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


# ---- what the tensor layer supplies: how a gradient is wrapped, added and checked, in both modes ----


class Algebra:
    """The few operations the engine itself needs, on raw buffers or on Tensors."""

    def add(self, like: Any, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        raise NotImplementedError

    def wrap(self, g: Any, like: Any) -> Any:
        """Return the gradient as a Tensor shaped like `like` (a node or a leaf)."""
        raise NotImplementedError

    def unwrap(self, g: Any) -> Any:
        raise NotImplementedError

    def fresh(self, g: Any, device: Any) -> Any:
        """Return a buffer that nobody else holds."""
        raise NotImplementedError


RAW: Algebra
GRAPH: Algebra


def install(raw: Algebra, graph: Algebra) -> None:
    """Give the engine its algebra; called once by `op`."""
    global RAW, GRAPH
    RAW, GRAPH = raw, graph


# ---- the engine ----


def backward(
    roots: Sequence[Any],
    grads: Sequence[Any],
    *,
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
    accumulate: bool = True,
) -> list[Any] | None:
    """Walk the graph from `roots` (tensors) and add gradients to leaves, or return those of `inputs`.

    Nodes run newest first. A node is always newer than all nodes it reads from, so when its turn comes every
    gradient that flows into it has arrived, without counting dependencies beforehand.
    """
    algebra = GRAPH if create_graph else RAW
    wanted: dict[int, int] | None = None
    captured: list[Any] = []
    useful: set[int] | None = None
    if inputs is not None:
        captured = [None] * len(inputs)
        wanted = {}
        for i, t in enumerate(inputs):
            wanted.setdefault(id(t._node) if t._node is not None else id(t), i)
        useful = _reaching([t._node for t in roots], wanted)
    pending: dict[int, list[Any]] = {}
    heap: list[int] = []
    leaves: dict[int, list[Any]] = {}
    for root, g in zip(roots, grads):
        _send(root if root._node is None else root._node, g, pending, heap, leaves, algebra, None)
    heappop = heapq.heappop
    while heap:
        node, g = pending.pop(heappop(heap))
        extra = node.extra
        if extra is not None:
            g = _before(node, extra, g, algebra)
        if wanted is not None:
            found = wanted.get(id(node))
            if found is not None:
                captured[found] = g if captured[found] is None else algebra.add(node, captured[found], g)
            if id(node) not in useful:  # type: ignore[operator]
                continue
        if type(node) is Slot:
            _send_slot(node, g, pending, heap, algebra)
            continue
        pulled = node.pull(g, create_graph) if extra is None else _pull(node, extra, g, create_graph, algebra)
        if not retain_graph:
            node.release()
        i = 0
        for edge in node.edges:
            gi = pulled[i]
            i += 1
            if edge is None or gi is None:
                continue
            if isinstance(edge, Node):
                seq = -edge.seq
                entry = pending.get(seq)
                if entry is None:
                    pending[seq] = [edge, gi]
                    heapq.heappush(heap, seq)
                else:
                    entry[1] = algebra.add(edge, entry[1], gi)
            else:
                entry = leaves.get(id(edge))
                if entry is None:
                    leaves[id(edge)] = [edge, gi, gi is not g]
                else:
                    entry[1] = algebra.add(edge, entry[1], gi)
                    entry[2] = True
    for leaf, g, mine in leaves.values():
        _arrive(leaf, g, mine, wanted, captured, algebra, create_graph, accumulate)
    if inputs is None:
        return None
    for i, t in enumerate(inputs):
        first = wanted[id(t._node) if t._node is not None else id(t)]  # type: ignore[index]
        captured[i] = captured[first]
    results = [None if g is None else algebra.wrap(g, t) for g, t in zip(captured, inputs)]
    if not accumulate:
        return results
    for t, r in zip(inputs, results):
        if r is not None and t._node is not None:
            t._accumulate(r, create_graph)
    return None


def _reaching(roots: Sequence[Any], wanted: dict[int, int]) -> set[int]:
    """Return the ids of nodes from which a wanted node or leaf can be reached strictly below."""
    useful: set[int] = set()
    done: set[int] = set()
    stack = [(r, False) for r in roots if r is not None]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            if any(e is not None and (id(e) in wanted or id(e) in useful) for e in node.edges):
                useful.add(id(node))
            continue
        if id(node) in done:
            continue
        done.add(id(node))
        stack.append((node, True))
        stack.extend((e, False) for e in node.edges if isinstance(e, Node) and id(e) not in done)
    return useful


def _send(edge: Any, g: Any, pending: Any, heap: Any, leaves: Any, algebra: Algebra, came: Any) -> None:
    if isinstance(edge, Node):
        entry = pending.get(-edge.seq)
        if entry is None:
            pending[-edge.seq] = [edge, g]
            heapq.heappush(heap, -edge.seq)
        else:
            entry[1] = algebra.add(edge, entry[1], g)
    else:
        entry = leaves.get(id(edge))
        if entry is None:
            leaves[id(edge)] = [edge, g, False]
        else:
            entry[1], entry[2] = algebra.add(edge, entry[1], g), True


def _send_slot(slot: Slot, g: Any, pending: Any, heap: Any, algebra: Algebra) -> None:
    parent = slot.parent
    entry = pending.get(-parent.seq)
    if entry is None:
        entry = pending[-parent.seq] = [parent, [None] * parent.count]
        heapq.heappush(heap, -parent.seq)
    # A second slot of the same output exists where a formula rebuilt that output under create_graph.
    old = entry[1][slot.number]
    entry[1][slot.number] = g if old is None else algebra.add(slot, old, g)


def _before(node: Any, extra: Extra, g: Any, algebra: Algebra) -> Any:
    """Run the hooks of the tensor that this node made, then keep its gradient if it asked for that."""
    for (hook,) in list(extra.prehooks):
        result = hook(algebra.wrap(g, node))
        if result is not None:
            g = algebra.unwrap(_checked_hook_result(result, node))
    kept = extra.retained and extra.retained()
    if kept is not None:
        kept._accumulate(algebra.wrap(g, node), False, replace=True)
    return g


def _checked_hook_result(result: Any, like: Any) -> Any:
    if not hasattr(result, "_data"):
        raise TypeError(f"hook: expected a Tensor or None as the result; got {type(result).__name__}.")
    if tuple(result.shape) != tuple(like.shape):
        raise ShapeError(
            f"hook: the gradient that a hook returns must keep its shape; got {tuple(result.shape)} "
            f"for {tuple(like.shape)}."
        )
    return result


def _pull(node: Any, extra: Extra, g: Any, graph: bool, algebra: Algebra) -> Sequence[Any]:
    """Pull with node hooks and anomaly detection."""
    try:
        pulled = node.pull(g, graph)
    except Exception:
        if modes.anomaly:
            _blame(node)
        raise
    if modes.anomaly and modes.check_nan:
        for i, (edge, gi) in enumerate(zip(node.edges, pulled)):
            if edge is not None and gi is not None and algebra.wrap(gi, edge).isnan().any().item():
                _blame(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    if extra.hooks:
        ins = tuple(None if gi is None or e is None else algebra.wrap(gi, e) for gi, e in zip(pulled, node.edges))
        outs = tuple(g) if isinstance(g, list) else (algebra.wrap(g, node),)
        for (hook,) in list(extra.hooks):
            result = hook(ins, outs)
            if result is not None:
                ins = result if isinstance(result, tuple) else (result,)
        pulled = [None if t is None else algebra.unwrap(t) for t in ins]
    return pulled


def _blame(node: Any) -> None:
    where = (node.extra and node.extra.trace) or "No forward pass information available. Enable detect anomaly during forward pass.\n"
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{where}", stacklevel=5
    )


def forward_trace() -> str:
    """Return the traceback of the line being recorded, without the library's own frames."""
    frames = [f for f in traceback.extract_stack() if "/mortice/" not in f.filename.replace("\\", "/")]
    return "".join(traceback.format_list(frames))


def _arrive(
    leaf: Any, g: Any, mine: bool, wanted: Any, captured: list[Any], algebra: Algebra, graph: bool, accumulate: bool
) -> None:
    """Deliver a leaf's whole gradient: hooks first, then capture or accumulation."""
    state = leaf._leaf
    if state is not None and state.hooks:
        for (hook,) in list(state.hooks):
            result = hook(algebra.wrap(g, leaf))
            if result is not None:
                g, mine = algebra.unwrap(_checked_hook_result(result, leaf)), False
    if wanted is not None:
        found = wanted.get(id(leaf))
        if found is None:
            return
        captured[found] = g if captured[found] is None else algebra.add(leaf, captured[found], g)
        if not accumulate:
            return
        g = captured[found]
    if not graph and not mine:
        g = algebra.fresh(g, leaf._device)
    leaf._accumulate(algebra.wrap(g, leaf), graph)
    if state is not None and state.post_hooks:
        for (hook,) in list(state.post_hooks):
            hook(leaf)


# ---- modes ----


class _Switch(contextlib.ContextDecorator):
    """A grad mode as context manager and decorator; nests, and is restored when the block raises."""

    _name = "grad"
    _value: Any = False

    def __init__(self) -> None:
        self._before: list[Any] = []

    def __enter__(self) -> Any:
        open_block(1)
        self._before.append(getattr(modes, self._name))
        setattr(modes, self._name, self._value)
        return self

    def __exit__(self, *exc: Any) -> None:
        setattr(modes, self._name, self._before.pop())
        open_block(-1)

    def __call__(self, fn: Any) -> Any:
        return _wrap_generator(self, fn) if _is_generator(fn) else super().__call__(fn)

    def _recreate_cm(self) -> Any:
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__, _before=[])
        return fresh


def _is_generator(fn: Any) -> bool:
    import inspect

    return inspect.isgeneratorfunction(fn)


def _wrap_generator(switch: Any, fn: Any) -> Any:
    """Apply the mode only while the generator itself runs, not in the code that consumes it."""
    import functools

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Iterator[Any]:
        generator = fn(*args, **kwargs)
        value: Any = None
        while True:
            with switch._recreate_cm():
                try:
                    item = generator.send(value)
                except StopIteration as stop:
                    return stop.value  # type: ignore[return-value]
            value = yield item

    return run


class _bare_decorator(type):
    """Lets `@no_grad` work without parentheses, as in PyTorch."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], bool):
            return super().__call__()(args[0])
        return super().__call__(*args, **kwargs)


class no_grad(_Switch, metaclass=_bare_decorator):
    """Record nothing inside."""


class enable_grad(_Switch, metaclass=_bare_decorator):
    """Record again inside a `no_grad` block."""

    _value = True


class set_grad_enabled(_Switch):
    """Switch recording on or off, at once; as a context manager until the block ends."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._value = bool(mode)
        self._outer = modes.grad
        if not self._value:
            open_block(1)  # for good: a mode set by a plain call has no end
        modes.grad = self._value

    def __enter__(self) -> Any:
        open_block(1)
        self._before.append(self._outer)
        modes.grad = self._value
        return self

    def __call__(self, fn: Any) -> Any:
        modes.grad = self._outer  # a decorator must not switch the mode where it is applied
        return super().__call__(fn)

    def _recreate_cm(self) -> Any:
        return set_grad_enabled(self._value)


class inference_mode(_Switch, metaclass=_bare_decorator):
    """Record nothing inside; the results can never be recorded later."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode

    def __enter__(self) -> Any:
        open_block(1)
        self._before.append((modes.grad, modes.inference))
        if self._mode:
            modes.grad, modes.inference = False, True
        else:
            modes.inference = False
        return self

    def __exit__(self, *exc: Any) -> None:
        modes.grad, modes.inference = self._before.pop()
        open_block(-1)


def is_grad_enabled() -> bool:
    """Tell whether operations are being recorded in this thread."""
    return modes.grad


def is_inference_mode_enabled() -> bool:
    """Tell whether `inference_mode` is on in this thread."""
    return modes.inference


def weak(t: Any) -> Any:
    """Return a weak reference, for a node that must not keep its own output alive."""
    return weakref.ref(t)
