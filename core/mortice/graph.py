"""The recorded graph and the backward engine: nodes, hooks, and the walk that pulls gradients back.

Nothing here knows an operation: an op's node (`op.OpNode`) and a custom Function's node only have to `pull`.
"""

from __future__ import annotations

import heapq
import itertools
import os
import sys
from collections import OrderedDict
from functools import cache, cached_property

from mortice.errors import ShapeError
from mortice.modes import modes, no_grad, settle, watch
from mortice.shape import out_of_memory

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
        self.packed: list[PackedValue] = []
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
        return self.more().metadata

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

# Profilers that run: each calls `pull` of a node's puller in its own way.
watchers: list[Callable[[Any, Any, Any, bool], Sequence[Any]]] = []


def install(raw: Algebra, graph: Algebra) -> None:
    """Give the engine its algebra; called once by `node`."""
    global RAW, GRAPH
    RAW, GRAPH = raw, graph


# ---- the engine ----


class Run:
    """A backward that runs; `selective` where it was asked for the gradients of certain tensors only."""

    def __init__(self, roots: Sequence[Any], selective: bool) -> None:
        self.roots, self.selective = roots, selective
        self.after: list[Callable[[], None]] = []  # to be called when it ends

    @cached_property
    def reached(self) -> set[int]:
        """The ids of the nodes and leaves that gradients go to."""
        found: set[int] = set()
        stack = [r if r._node is None else r._node for r in self.roots]
        while stack:
            at = stack.pop()
            if at is not None and id(at) not in found:
                found.add(id(at))
                stack += getattr(at, "edges", ())
        return found


def backward(
    roots: Sequence[Any],
    grads: Sequence[Any],
    *,
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
    accumulate: bool = True,
    tensors: bool = False,
) -> list[Any] | None:
    """Walk the graph from `roots` (tensors) and add gradients to leaves, or return those of `inputs`.

    Gradients are Tensors under `create_graph`, and where `tensors` says so: then they are of a level above the graph's.
    """
    outer = modes.grad, modes.running
    hooks = modes.saved_hooks
    modes.grad, modes.running = create_graph, Run(roots, inputs is not None)
    settle()
    try:
        found = _walk(roots, grads, retain_graph, create_graph or tensors, inputs, accumulate)
        for fn in modes.running.after:
            fn()
        return found
    except MemoryError as error:
        raise out_of_memory("backward", None, None, error) from error
    finally:
        modes.grad, modes.running = outer
        if modes.saved_hooks is not hooks:  # a hook has entered saved_tensors_hooks, and not left them
            modes.saved_hooks = hooks
            watch()
        settle()


def _walk(
    roots: Sequence[Any],
    grads: Sequence[Any],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None,
    accumulate: bool,
) -> list[Any] | None:
    """Pull gradients from the roots down to the leaves.

    Nodes run newest first. A node is always newer than all nodes it reads from, so when its turn comes every
    gradient that flows into it has arrived, without counting dependencies beforehand. A leaf has its whole gradient
    once all nodes that wait are older than its first use; it is then delivered, so that memory is freed and hooks of
    modules find `.grad` set. Leaves whose first use is not known are delivered at the end.
    """
    algebra = GRAPH if create_graph else RAW
    watched = modes.anomaly or bool(watchers)
    wanted: dict[int, int] = {}
    captured: list[Any] = []
    useful: set[int] = set()
    if inputs is not None:
        captured = [None] * len(inputs)
        for i, t in enumerate(inputs):
            wanted.setdefault(id(t) if t._node is None else id(t._node), i)
            if accumulate and t._node is not None and t._data is not None:  # an edge has no .grad
                t.retain_grad()
        # Which node was the first to read a leaf is not known.
        oldest = min([0 if t._node is None else t._node.seq for t in inputs], default=0)
        useful = _reaching([t._node for t in roots], wanted, oldest)
        modes.running.reached = useful.union(wanted)
    pending: dict[int, list[Any]] = {}
    heap: list[int] = []
    leaves: dict[int, list[Any]] = {}
    for root, g in zip(roots, grads):
        _send(root if root._node is None else root._node, g, pending, heap, leaves, algebra)
    plain = inputs is None and not watched
    heappop, heappush = heapq.heappop, heapq.heappush
    due = 0  # the youngest first use of a leaf that waits
    following: Any = None  # the only node that waits, kept out of the queue: in a chain every node is
    while following is not None or heap:
        if following is not None:
            node, following = following, None
        else:
            node, g = pending.pop(heappop(heap))
        if due > node.seq:
            due = _deliver(leaves, node.seq, algebra)
        extra = node.extra
        hooked: Any = False
        puller = node
        if plain and extra is None and type(node) is not Slot:
            pulled = node.pull(g, create_graph)
        else:
            found = wanted.get(id(node)) if inputs is not None else None
            if found is not None:
                captured[found] = g
            if extra is not None:
                g = _before(node, extra, g, algebra)
            if inputs is not None:
                if id(node) not in useful:
                    # As in PyTorch, a gradient that goes on from here is returned as it was before the tensor's hooks.
                    if found is not None:
                        captured[found] = g
                        if accumulate and extra is not None and (extra.hooks or extra.prehooks):
                            _pull(node, node, g, create_graph, algebra)  # for its hooks alone
                    continue
                keep = tuple([e is not None and (id(e) in useful or id(e) in wanted) for e in node.edges])
                puller = node.without(keep)
            if type(node) is Slot:
                _send_slot(node, g, pending, heap, algebra)
                continue
            hooked = extra is not None and (extra.hooks or extra.prehooks)
            if hooked or watched:
                pulled = _pull(node, puller, g, create_graph, algebra)
            else:
                pulled = puller.pull(g, create_graph)
            if inputs is not None:
                pulled = [gi if k else None for gi, k in zip(pulled, keep)]
        given, i = g, 0
        for edge in node.edges:
            gi = pulled[i]
            i += 1
            if edge is None or gi is None:
                continue
            if isinstance(edge, Node):
                if not heap and following is None:
                    following, g = edge, gi
                    continue
                if following is not None:
                    pending[-following.seq] = [following, g]
                    heappush(heap, -following.seq)
                    following = None
                seq = -edge.seq
                entry = pending.get(seq)
                if entry is None:
                    pending[seq] = [edge, gi]
                    heappush(heap, seq)
                else:
                    entry[1] = algebra.add(edge, entry[1], gi)
            else:
                entry = leaves.get(id(edge))
                if entry is None:
                    # A hook may have kept what it was shown, so then nothing is known to be the leaf's own.
                    mine = gi is not given and not hooked and not create_graph and puller.owns(gi, pulled)
                    leaves[id(edge)] = [edge, gi, mine]
                    state = edge._leaf
                    if inputs is None and state is not None and state.first_use > due:
                        due = state.first_use
                else:
                    entry[1] = algebra.add(edge, entry[1], gi)
                    entry[2] = True
        if not retain_graph:
            node.release()
        given = pulled = None  # a big gradient must not live on while the next one is computed
    for leaf, g, mine in leaves.values():
        if inputs is None or id(leaf) in wanted:
            g = _arrive(leaf, g, mine, algebra, accumulate)
            if inputs is not None:
                captured[wanted[id(leaf)]] = g
    if inputs is None or accumulate:
        return None
    found_at = [captured[wanted[id(t) if t._node is None else id(t._node)]] for t in inputs]
    return [None if g is None else algebra.wrap(g, t) for g, t in zip(found_at, inputs)]


def _reaching(roots: Sequence[Any], wanted: dict[int, int], oldest: int) -> set[int]:
    """Return the ids of nodes from which a wanted node or leaf can be reached strictly below.

    What is no newer than the oldest that is wanted reads none of them, so that a step's gradients do not cost the steps before.
    """
    found: dict[int, Any] = {}
    stack = [r for r in roots if r is not None]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack.extend([e for e in node.edges if isinstance(e, Node) and e.seq > oldest and id(e) not in found])
    useful: set[int] = set()
    for node in sorted(found.values(), key=lambda n: n.seq):  # after all that it reads
        for e in node.edges:
            if e is not None and (id(e) in wanted or id(e) in useful):
                useful.add(id(node))
                break
    return useful


def _send(edge: Any, g: Any, pending: Any, heap: Any, leaves: Any, algebra: Algebra) -> None:
    """Give a root its gradient."""
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
    # A second slot of the same output exists where the tensor itself has gone and a formula rebuilt it.
    old = entry[1][slot.number]
    entry[1][slot.number] = g if old is None else algebra.add(slot, old, g)


def _before(node: Any, extra: Extra, g: Any, algebra: Algebra) -> Any:
    """Run the hooks of the tensor that this node made, then keep its gradient if it asked for that."""
    if extra.tensor_hooks:
        g = _run_hooks(extra.tensor_hooks, g, node, algebra)
    kept = extra.retained and extra.retained()
    if kept is not None:
        kept._keep_grad(g, algebra)
    return g


def _run_hooks(hooks: Hooks, g: Any, like: Any, algebra: Algebra) -> Any:
    """Show a gradient to hooks, each of which may replace it; they see one Tensor, where one may leave a note for the next."""
    shown = algebra.wrap(g, like)
    for hook in list((hooks or {}).values()):
        result = hook(shown)
        if result is None:
            continue
        name = getattr(hook, "__name__", type(hook).__name__)
        if not hasattr(result, "_data"):
            raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
        if tuple(result.shape) != tuple(like.shape):
            raise ShapeError(
                f"hook '{name}' has changed the size of value: a gradient keeps its shape {list(like.shape)}; got "
                f"{list(result.shape)}."
            )
        if result.dtype is not like.dtype:
            raise RuntimeError(
                f"hook '{name}' has changed the type of value: a gradient keeps its dtype {like.dtype}; got "
                f"{result.dtype}."
            )
        if result.device is not (getattr(like, "_device", None) or like.device).base:
            raise RuntimeError(f"hook '{name}' has changed the device of value: got {result.device}.")
        shown = result
    return algebra.unwrap(shown)  # a hook may have written to it


def _pull(node: Any, puller: Any, g: Any, graph: bool, algebra: Algebra) -> Sequence[Any]:
    """Pull with node hooks, anomaly detection and profilers."""
    extra, several = node.extra, isinstance(g, list)
    device = node.device

    def wrapped(gs: Any) -> tuple[Any, ...]:
        return tuple([None if gi is None else algebra.wrap_any(gi, device) for gi in gs])

    if extra is not None and extra.prehooks:
        outs = wrapped(g if several else (g,))
        for hook in list(extra.prehooks.values()):
            outs = _as_many(hook, hook(outs), outs)
        raw = [None if t is None else algebra.unwrap(t) for t in outs]
        if all(part is None for part in raw):
            return [None] * len(node.edges)
        g = raw if several else raw[0]
    outer = modes.pulled
    modes.pulled = node if modes.anomaly else None
    try:
        pulled = watchers[-1](node, puller, g, graph) if watchers else puller.pull(g, graph)
    except Exception:
        if modes.anomaly:
            _blame(node)
        raise
    finally:
        modes.pulled = outer
    if modes.anomaly and modes.check_nan:
        for i, (edge, gi) in enumerate(zip(node.edges, pulled)):
            if edge is not None and gi is not None and algebra.has_nan(gi, edge):
                _blame(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    if extra is not None and extra.hooks:
        ins, outs = wrapped(pulled), wrapped(g if several else (g,))
        for hook in list(extra.hooks.values()):
            ins = _as_many(hook, hook(ins, outs), ins)
        return [None if t is None else algebra.unwrap(t) for t in ins]
    return pulled


def _as_many(hook: Any, result: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the gradients that a node's hook gave, or the old ones."""
    if result is None:
        return old
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(result, tuple):
        raise TypeError(f"hook '{name}': expected a tuple of gradients or None; got {type(result).__name__}.")
    if len(result) != len(old):
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values: got {len(result)}, but expected {len(old)}."
        )
    return result


def _blame(node: Any) -> None:
    trace = node.extra.trace if node.extra is not None else ()
    where = (
        f"Traceback of forward call that caused the error:\n{trace[0]}"
        if trace
        else "No forward pass information available. Enable detect anomaly during forward pass for more information."
    )
    from mortice.notice import warn

    warn(f"Error detected in {node.name()}. {where}")
    for earlier in trace[1:]:
        warn(earlier)


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def forward_trace() -> tuple[str, ...]:
    """Return the traceback of the line being recorded, without the library's own frames.

    What a backward records was led to by a node, about which more texts tell, as far as the first forward.
    """
    import traceback

    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    here = "".join(traceback.format_list(traceback.extract_stack(frame)))
    node = modes.pulled
    if node is None or node.extra is None or not node.extra.trace:
        return (here,)
    first, *rest = node.extra.trace
    led = f"\n\nPrevious calculation was induced by {node.name()}. Traceback of forward call that induced the previous "
    return here, f"{led}calculation:\n{first}", *rest


def _deliver(leaves: dict[int, list[Any]], seq: int, algebra: Algebra) -> int:
    """Deliver the gradients to which no node of `seq` or older adds; return the youngest first use of the rest."""
    due = 0
    for key, (leaf, g, mine) in list(leaves.items()):
        first = leaf._leaf.first_use if leaf._leaf is not None else 0
        if first > seq:
            del leaves[key]
            _arrive(leaf, g, mine, algebra, True)
        elif first > due:
            due = first
    return due


def _arrive(leaf: Any, g: Any, mine: bool, algebra: Algebra, accumulate: bool) -> Any:
    """Deliver a leaf's whole gradient: hooks first, then accumulation."""
    if not leaf._rg:
        return g  # it was told, after the forward, to want none
    if accumulate and leaf._node is not None:
        raise RuntimeError("leaf variable has been moved into the graph interior")
    state = leaf._leaf
    if state is not None and state.hooks:
        g, mine = _run_hooks(state.hooks, g, leaf, algebra), False
    if accumulate:
        if state is not None and state.prehooks:
            g, mine = _run_hooks(state.prehooks, g, leaf, algebra), False
        leaf._accumulate(g, mine, algebra)
        if state is not None and state.post_hooks:
            for hook in list(state.post_hooks.values()):
                given = hook(leaf)
                if given is not None and given is not leaf:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    return g


# ---- saved values in the care of hooks ----


class PackedValue:
    """A saved tensor that the pack hook of `saved_tensors_hooks` has taken; read like the tensor it stands for."""

    __slots__ = ("handle", "unpack", "cache", "shape", "dtype", "_rg", "target")
    _storage = None  # hooks replace the check that nobody wrote to it

    def __init__(self, t: Any, target: Any, pack: Any, unpack: Any) -> None:
        self.shape, self.dtype, self._rg, self.target = t.shape, t.dtype, t._rg, target
        version = t._version
        with no_grad():
            self.handle = pack(t)
        if self.handle is t and target is None:
            self.handle = t._share()  # a node must not own what it has made
        if t._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )
        self.unpack, self.cache = unpack, None

    def load(self) -> Any:
        """Return what the unpack hook makes of it; the node that asked drops it when it is done."""
        if self.cache is None:
            with no_grad():
                found = self.unpack(self.handle)
            if not hasattr(found, "_data"):
                raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor; got {type(found).__name__}.")
            self.cache = found
        return self.cache

    @property
    def _data(self) -> Any:
        return self.load()._data

    def tensor(self) -> Any:
        """Return it with its place in the graph."""
        t = self.load()._share()
        if self._rg:
            t._rg = True
            t._node = self.target if isinstance(self.target, Node) else _Identity(self.target)
        return t


class _Identity(Node):
    """Stands between a leaf and another tensor object that has its value."""

    __slots__ = ()

    def __init__(self, leaf: Any) -> None:
        self.seq, self.edges, self.extra = next_seq(), (leaf,), None
        self.device, self.shape, self.dtype = leaf._device, leaf.shape, leaf.dtype

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        return (g,)
