"""mortice.fx: what model code names of `torch.fx` besides tracing. Programs are not rewritten here, so nothing is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__path__: list[str] = []  # a package to PyTorch; see mortice.addresses
_LEFT_OUT = "rewriting programs is left out"


class Proxy:
    """The type of a value while a program is traced, for `isinstance`; no value is one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: {_LEFT_OUT}; expected no call.")


class Graph(Proxy):
    """The type of a program, for `isinstance` and annotations; there are none."""


class GraphModule(Proxy):
    """The type of a module made of a program, for `isinstance` and annotations; there are none."""


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Return what a trace would keep as one call as it is. Also a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "wrap: Unsupported type for global function! Must be either a callable or string name; "
            f"got {type(fn_or_name).__name__}."
        )
    return fn_or_name


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'mortice.fx' has no attribute {name!r}: {_LEFT_OUT}")


__all__ = ["Graph", "GraphModule", "Proxy", "wrap"]
