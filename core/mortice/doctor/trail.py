"""Walking the graph that a tensor was made by: past what only rearranges, to the first real operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Ops that move or keep values, so that what was true of a distribution of values before is true after.
ARRANGING = frozenset(
    "view reshape permute expand getitem clone contiguous cast diagonal flip roll repeat cat stack pad take gather unfold "
    "as_strided".split()
)

_PICKING = ARRANGING | {"topk"}


def op_of(node: Any) -> str:
    """Return the name of the op that a node is of; empty for a node of another kind."""
    found = getattr(node, "op", None)
    return "" if found is None else str(found.name)


def _node(edge: Any) -> Any:
    """Return the node behind an edge: of an output of several, the node that made them all; None for a leaf."""
    if edge is None or not hasattr(edge, "edges"):
        return None
    return getattr(edge, "parent", edge)


def parents(node: Any) -> list[Any]:
    """Return the nodes that a node's operands were made by."""
    return [n for n in map(_node, node.edges) if n is not None]


def leaves(node: Any) -> Iterator[Any]:
    """Yield the leaves that a node reads directly."""
    for edge in node.edges:
        if edge is not None and not hasattr(edge, "edges"):
            yield edge


def before(node: Any, through: frozenset[str] = ARRANGING) -> Any:
    """Return the node of the first op before a node that is not one of `through`; None where there is none."""
    node = next(iter(parents(node)), None)
    while node is not None and op_of(node) in through:
        node = next(iter(parents(node)), None)
    return node


def path(t: Any, through: frozenset[str] = ARRANGING) -> list[Any]:
    """Return the nodes from a tensor back to its source: the source last. Empty without a graph."""
    node, passed = _node(t._node), []
    while node is not None:
        passed.append(node)
        if op_of(node) not in through:
            return passed
        node = next(iter(parents(node)), None)
    return []


def carry(axis: int, passed: list[Any]) -> int | None:
    """Return where an axis of a source's output lies after what came later, for `path`'s answer; None if that is unknown."""
    before = passed[-1]
    for node in reversed(passed[:-1]):
        op, have, want = op_of(node), tuple(before.shape), tuple(node.shape)
        if op == "permute":
            axis = node.attrs["axes"].index(axis)
        elif have != want:
            if have[: axis + 1] == want[: axis + 1]:
                pass
            elif have[axis:] == want[axis - len(have) :]:
                axis += len(want) - len(have)
            else:
                return None
        before = node
    return axis


def source(t: Any, through: frozenset[str] = ARRANGING) -> Any:
    """Return the node of the first op before a tensor that is not one of `through`; None at a leaf or without a graph.

    Of an arranging op with several operands, such as `cat`, the first decides.
    """
    node = _node(t._node)
    while node is not None and op_of(node) in through:
        node = next(iter(parents(node)), None)
    return node


def walk(t: Any, limit: int = 100_000) -> Iterator[Any]:
    """Yield every node before a tensor, once each, nearest first."""
    start = _node(t._node)
    waiting, seen = [] if start is None else [start], set()
    for node in waiting:
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if len(seen) >= limit:
            return
        waiting.extend(parents(node))


def reads_parameter(node: Any) -> bool:
    """Tell whether a node has a leaf that requires grad among its operands."""
    return any(leaf.requires_grad for leaf in leaves(node))


def weighs(losses: list[Any], node: Any) -> bool:
    """Tell whether what a node gives weighs other values on the way to the losses, as attention does."""
    for n in (n for loss in losses for n in walk(loss)):
        op, before = op_of(n), parents(n)
        if op in ("matmul", "linear") or (op == "mul" and len(before) > 1):
            for each in before:
                while each is not node and op_of(each) in _PICKING and parents(each):
                    each = parents(each)[0]
                if each is node:
                    return True
    return False
