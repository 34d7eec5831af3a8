"""The names of PyTorch's compiler that libraries import, private as they are; nothing is compiled, so none does anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mortice._dynamo import eval_frame
from mortice._dynamo.eval_frame import OptimizedModule
from mortice.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "graph_break",
    "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "reset",
]  # fmt: skip

config = SimpleNamespace()  # takes any setting


def graph_break(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


mark_dynamic = mark_static = mark_static_address = maybe_mark_dynamic = graph_break
