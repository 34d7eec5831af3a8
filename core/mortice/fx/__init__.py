"""mortice.fx: programs recorded as graphs of calls, which can be read, changed and written as Python again.

What it takes is imported when it is first used, so that code which only marks functions by `wrap` pays nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from mortice.addresses import attribute
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
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # the namespaces of what `wrap` was told, by their ids and the names


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Let a trace keep a function of the calling module as one call. Also a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "wrap: Unsupported type for global function! Must be either a callable or string name; "
            f"got {type(fn_or_name).__name__}."
        )
    if sys._getframe(1).f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    names = sys._getframe(1).f_globals
    _wrapped[id(names), fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__] = names
    return fn_or_name


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
