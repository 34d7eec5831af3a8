"""mortice.fx: programs recorded as graphs of calls, which can be read, changed and written as Python again.

What it takes is imported when it is first used, so that code which only marks functions by `wrap` pays little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.addresses import attribute
from mortice.asking import wrap
from mortice.lazy import load, look_up

_LISTED = {
    "fx._symbolic_trace": "PH ProxyableClassMeta Tracer symbolic_trace",
    "fx.codegen": "CodeGen",
    "fx.graph": "Graph",
    "fx.graph_module": "GraphModule",
    "fx.interpreter": "Interpreter Transformer",
    "fx.node": "Node has_side_effect map_arg",
    "fx.proxy": "Proxy",
    "fx.subgraph_rewriter": "replace_pattern",
}
_WHERE = look_up(_LISTED)


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """Decorate nothing: libraries mark by it what they promise of their own tracers."""
    return lambda fn: fn


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        found = globals()[name] = load(*_WHERE[name])
        return found
    return attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


__all__ = [
    "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "PH", "Proxy", "ProxyableClassMeta", "Tracer", "Transformer",
    "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
