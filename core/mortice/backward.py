"""The backward engine: the walk that pulls gradients back through what `graph` has recorded, and runs the hooks on its way."""

from __future__ import annotations

import heapq
import sys
from functools import cached_property
from operator import attrgetter

from mortice import graph
from mortice.errors import ShapeError
from mortice.graph import Node, Slot
from mortice.modes import modes, set_recording, settle, watch
from mortice.shape import out_of_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mortice.graph import Algebra, Extra, Hooks

_AGE = attrgetter("seq")  # Python 3.13.0 falls where memory ends as it makes a lambda
# Profilers that run: each calls `pull` of a node's puller in its own way.
watchers: list[Callable[[Any, Any, Any, bool], Sequence[Any]]] = []
_DEEP = 20  # so many backwards, each called in a formula or hook of the one before, run on the stack of one thread


class Run:
    """A backward that runs; `selective` where it was asked for the gradients of certain tensors only."""

    def __init__(self, roots: Sequence[Any], selective: bool) -> None:
        self.roots, self.selective = roots, selective
        self.depth: int = 0 if modes.running is None else modes.running.depth + 1
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
    grad, outer, hooks = modes.grad, modes.running, modes.saved_hooks
    run = Run(roots, inputs is not None)
    try:
        modes.running = run
        set_recording(create_graph)
        asked = roots, grads, retain_graph, create_graph or tensors, inputs, accumulate
        if run.depth % _DEEP < _DEEP - 1:
            found = _walk(*asked)
        else:
            from mortice.threads import elsewhere

            found = elsewhere(lambda: _walk(*asked))
        for fn in run.after:
            fn()
        return found
    except MemoryError as error:
        raise out_of_memory("backward", None, None, error) from error
    finally:
        modes.grad, modes.running, modes.quiet = grad, outer, False  # at once, as `settle` says
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
    algebra = graph.GRAPH if create_graph else graph.RAW
    watched = modes.anomaly or bool(watchers) or bool(modes.dispatch)
    captured: list[Any] = [None] * len(inputs or ())
    wanted, useful = ({}, set()) if inputs is None else _asked(roots, inputs, accumulate)
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
            g = arrive(leaf, g, mine, algebra, accumulate)
            if inputs is not None:
                captured[wanted[id(leaf)]] = g
    if inputs is None or accumulate:
        return None
    found_at = [captured[wanted[id(t) if t._node is None else id(t._node)]] for t in inputs]
    return [None if g is None else algebra.wrap(g, t) for g, t in zip(found_at, inputs)]


def _asked(roots: Sequence[Any], inputs: Sequence[Any], accumulate: bool) -> tuple[dict[int, int], set[int]]:
    """Return the number of each of `inputs` by the id of its node or leaf, and the ids of the nodes above them."""
    wanted: dict[int, int] = {}
    for i, t in enumerate(inputs):
        wanted.setdefault(id(t) if t._node is None else id(t._node), i)
        if accumulate and t._node is not None and t._buffer is not None:  # an edge has no .grad
            t.retain_grad()
    # Which node was the first to read a leaf is not known.
    oldest = min([0 if t._node is None else t._node.seq for t in inputs], default=0)
    useful = _reaching([t._node for t in roots], wanted, oldest)
    modes.running.reached = useful.union(wanted)
    return wanted, useful


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
    for node in sorted(found.values(), key=_AGE):  # after all that it reads
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
        if not hasattr(result, "_buffer"):
            raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
        if tuple(result.shape) != tuple(like.shape):
            raise ShapeError(
                f"hook '{name}' has changed the size of value: a gradient keeps its shape {list(like.shape)}; got "
                f"{list(result.shape)}."
            )
        if result.dtype is not like.dtype:
            raise RuntimeError(
                f"hook '{name}' has changed the type of value: a gradient keeps its dtype {like.dtype}; got {result.dtype}."
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
        pulled = (
            watchers[-1](node, puller, g, graph) if watchers
            else puller.pull_told(g) if modes.dispatch and not graph else puller.pull(g, graph)
        )  # fmt: skip
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

    for message in (f"Error detected in {node.name()}. {where}", *trace[1:]):
        try:
            warn(message)
        except Warning:  # an error to the program's filters: it must not hide the one it tells of
            print(message, file=sys.stderr)


def _deliver(leaves: dict[int, list[Any]], seq: int, algebra: Algebra) -> int:
    """Deliver the gradients to which no node of `seq` or older adds; return the youngest first use of the rest."""
    due = 0
    for key, (leaf, g, mine) in list(leaves.items()):
        first = leaf._leaf.first_use if leaf._leaf is not None else 0
        if first > seq:
            del leaves[key]
            arrive(leaf, g, mine, algebra, True)
        elif first > due:
            due = first
    return due


def arrive(leaf: Any, g: Any, mine: bool, algebra: Algebra, accumulate: bool) -> Any:
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
