"""Replacing a pattern, wherever it is in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mortice import nn
from mortice.fx._symbolic_trace import symbolic_trace
from mortice.fx.graph import Graph
from mortice.fx.graph_module import GraphModule, _put
from mortice.fx.node import Node


class Match(NamedTuple):
    """Where a pattern was found: the pattern's last node, and the node of the graph for each of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


class ReplacedPatterns(NamedTuple):
    """A match, and the nodes that took its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(program: Any) -> Graph:
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _flat(value: Any) -> tuple[Any, list[Any]]:
    """Return the form of arguments, and the values in it."""
    if isinstance(value, (tuple, list)):
        parts = [_flat(v) for v in value]
        return (type(value).__name__, *(form for form, _ in parts)), [v for _, values in parts for v in values]
    if isinstance(value, dict):
        form, values = _flat([value[k] for k in sorted(value)])
        return (*sorted(value), form), values
    if isinstance(value, slice):
        return _flat([value.start, value.stop, value.step])
    return "", [value]


class _Matcher:
    """Compares a pattern with a graph from its output up."""

    def __init__(self, pattern: Graph, modules: Any, pattern_modules: Any) -> None:
        self.pattern, self.modules, self.pattern_modules = pattern, modules, pattern_modules
        self.found: dict[Node, Node] = {}

    def value(self, p: Any, v: Any) -> bool:
        """Tell whether an argument matches that of the pattern."""
        if isinstance(p, Node):
            return isinstance(v, Node) and self.node(p, v) if p.op != "placeholder" else self.input(p, v)
        return not isinstance(v, Node) and type(p) is type(v) and bool(p == v)

    def input(self, p: Node, v: Any) -> bool:
        """Tell whether an input of the pattern can be `v`: it is one value throughout."""
        return self.found.setdefault(p, v) is v or self.found[p] == v

    def node(self, p: Node, n: Node) -> bool:
        """Tell whether a node matches one of the pattern."""
        if p in self.found:
            return self.found[p] is n
        if p.op != n.op or not self.same_target(p, n):
            return False
        forms = [_flat((a.args, dict(a.kwargs))) for a in (p, n)]
        if forms[0][0] != forms[1][0]:
            return False
        self.found[p] = n
        return all(self.value(a, b) for a, b in zip(forms[0][1], forms[1][1]))

    def same_target(self, p: Node, n: Node) -> bool:
        """Tell whether two nodes call the same; modules match by their types."""
        if p.op == "call_module" and p.target in self.pattern_modules and n.target in self.modules:
            return type(self.pattern_modules[p.target]) is type(self.modules[n.target])
        return bool(p.target == n.target or p.op == "get_attr")


def _inside_only(pattern: Graph, found: dict[Node, Any], ends: list[Node]) -> bool:
    """Tell whether nothing outside of a match takes what it replaces but the ends."""
    inside = {n for p, n in found.items() if p.op != "placeholder"}
    return all(
        p.op in ("placeholder", "get_attr") or p in ends or all(user in inside for user in n.users) for p, n in found.items()
    )


def _matches(graph: Graph, pattern: Graph, modules: Any, pattern_modules: Any) -> list[dict[Node, Node]]:
    ends = pattern.output_node().all_input_nodes
    found, taken = [], set()
    for node in reversed(graph.nodes):
        matcher = _Matcher(pattern, modules, pattern_modules)
        if node.op == "output" or len(ends) == 0 or not matcher.node(ends[0], node):
            continue
        for end in ends[1:]:  # further outputs are looked for among all nodes
            if end not in matcher.found:
                _ = any(_tried(matcher, end, other) for other in graph.nodes)
        if not all(end in matcher.found for end in ends) or not _inside_only(pattern, matcher.found, ends):
            continue
        inside = {n for p, n in matcher.found.items() if p.op != "placeholder"}
        if not inside & taken:
            taken |= inside
            found.append(matcher.found)
    return found[::-1]


def _tried(matcher: _Matcher, p: Node, n: Node) -> bool:
    before = dict(matcher.found)
    if n not in before.values() and matcher.node(p, n):
        return True
    matcher.found = before
    return False


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace all that matches a pattern in a module's graph, where matches do not overlap; return the matches."""
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: Any = (), ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:  # fmt: skip
    """Replace what matches a pattern and passes the filters, which get (match, graph, pattern's graph)."""
    graph, wanted = gm.graph, _graph_of(pattern)
    pattern_modules = dict(pattern.named_modules()) if isinstance(pattern, nn.Module) else {}
    made: list[ReplacedPatterns] = []
    changed: dict[Node, Any] = {}
    for found in _matches(graph, wanted, dict(gm.named_modules()), pattern_modules):
        outputs = wanted.output_node().args[0]
        ends = wanted.output_node().all_input_nodes
        match = Match(ends[0], found)
        if not all(accepts(match, graph, wanted) for accepts in match_filters or ()):
            continue
        new = replacement_callback(match, graph, wanted) if replacement_callback else _graph_of(replacement)
        inputs = [found[p] for p in wanted.nodes if p.op == "placeholder" and p in found]
        places = [p for p in new.nodes if p.op == "placeholder"]
        if len(inputs) != len(places):
            raise AssertionError(f"replace_pattern: expected {len(inputs)} inputs of the replacement; got {len(places)}.")
        copied: dict[Node, Any] = {p: changed.get(v, v) if isinstance(v, Node) else v for p, v in zip(places, inputs)}
        first = max(found[e] for e in ends)
        after = [n for n in (u for e in ends for u in found[e].users) if n not in found.values()]
        before = set(graph.nodes)
        with graph.inserting_before(min(after) if after else first.next):
            result = graph.graph_copy(new, copied)
        added = [n for n in graph.nodes if n not in before]
        if isinstance(replacement, nn.Module):
            for node in added:
                if node.op in ("call_module", "get_attr") and not _has(gm, node.target):
                    _put(gm, node.target, _at(replacement, node.target))
        outs = _flat(outputs)[1]
        for p, value in zip(outs, _flat(result)[1]):
            old = found[p]
            changed[old] = value
            old.replace_all_uses_with(value)
        for node in reversed(list(wanted.nodes)):
            there = found.get(node)
            if node.op not in ("placeholder", "output") and isinstance(there, Node) and not there.users and not there._erased:
                graph.erase_node(there)
        made.append(ReplacedPatterns(match.anchor, found, added))
    gm.recompile()
    return made


def _at(module: Any, target: str) -> Any:
    for part in target.split("."):
        module = getattr(module, part)
    return module


def _has(module: Any, target: str) -> bool:
    try:
        _at(module, target)
    except AttributeError:
        return False
    return True
