"""mortice.compile and mortice.compiler: accepted, and nothing is compiled, since every function runs as it is written."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance",
]  # fmt: skip
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor", mode: str | None = None, options: dict[str, Any] | None = None,
    name: str | None = None, disable: bool = False, recompile_limit: int | None = None, isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """Return the function itself, or what calls the module, as its `_orig_mod`; or a decorator that does.

    Differs from torch: nothing is compiled; a custom `backend` is not called.
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "compile: either mode or options can be specified, but both can't be specified at the same time; "
            f"got {mode!r} and {options!r}."
        )
    if mode not in _MODES:
        raise RuntimeError(f"compile: unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}")
    if model is None:
        return functools.partial(_checked, disable)
    return _checked(disable, model)


def _checked(disable: bool, model: Any) -> Any:
    if not callable(model):
        raise RuntimeError(f"compile: expected a function or a module; got {type(model).__name__}.")
    modules = sys.modules.get("mortice.nn.module")
    if disable or modules is None or not isinstance(model, modules.Module):
        return model
    kind = import_module("mortice._dynamo.eval_frame").OptimizedModule
    return model if isinstance(model, kind) else kind(model)


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds; PyTorch's way to write an assertion that its tracers see."""
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError unless a tensor of one element holds; where PyTorch would not wait for a device, this does."""
    if not bool(input):
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(
    a: Any, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """Raise RuntimeError unless a tensor has what is given of its sizes, strides, dtype, device and layout."""
    found = {"sizes": (size, list(a.shape)), "strides": (stride, list(a.stride())), "dtype": (dtype, a.dtype)}
    for what, (wanted, have) in (found | {"device": (device, a.device), "layout": (layout, a.layout)}).items():
        if wanted is not None and (list(wanted) if isinstance(have, list) else wanted) != have:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {wanted}, Got: {have}")


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function itself, or a decorator that does."""
    return fn if fn is not None else lambda fn: fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function itself."""
    return fn


assume_constant_result = allow_in_graph


def is_compiling() -> bool:
    """Return False: nothing is ever compiled."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the compilers there are: none."""
    return []


def reset() -> None:
    """Do nothing: there is nothing to forget."""


@contextmanager
def patch(*settings: Any, **changes: Any) -> Iterator[None]:
    """Do nothing for a block or function: nothing reads the settings of `_dynamo.config` and `_inductor.config`."""
    yield


def cudagraph_mark_step_begin() -> None:
    """Do nothing: steps are not recorded."""


class set_stance:
    """Accept how compiled functions should behave, at once or as a context manager or decorator; without effect."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __enter__(self) -> set_stance:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, fn: Any) -> Any:
        return fn
