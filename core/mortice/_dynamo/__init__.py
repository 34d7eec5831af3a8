"""The names of PyTorch's compiler that libraries import, private as they are; nothing is compiled, so none does anything."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

from mortice._dynamo import eval_frame
from mortice._dynamo.eval_frame import OptimizedModule, is_dynamo_supported
from mortice.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "explain", "graph_break",
    "is_compiling", "is_dynamo_supported", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "reset",
]  # fmt: skip

config = import_module("mortice._dynamo.config")  # takes any setting


def graph_break(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


def explain(f: Any, **options: Any) -> Any:
    """Return a function that calls `f` and tells of its graphs: there are none, and none breaks."""

    def told(*args: Any, **kwargs: Any) -> SimpleNamespace:
        f(*args, **kwargs)
        return SimpleNamespace(
            graphs=[], graph_count=0, graph_break_count=0, break_reasons=[], op_count=0, ops_per_graph=[], out_guards=[]
        )

    return told


mark_dynamic = mark_static = mark_static_address = maybe_mark_dynamic = graph_break
