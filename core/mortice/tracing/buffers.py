"""Buffers among the arguments and results of kernels, and what can be said of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mortice.shape import prod


def buffers(values: Any) -> Iterator[Any]:
    """Yield the buffers among arguments or results, those within lists too."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from buffers(value)
        elif value is not None and not isinstance(value, (int, float, complex, str, slice)) and value is not Ellipsis:
            yield value


def size_of(backend: Any, x: Any) -> int:
    """Return the bytes of a buffer's elements."""
    return prod(backend.shape_of(x)) * backend.dtype_of(x).itemsize


def are_buffers(backend: Any, values: list[Any]) -> bool:
    """Tell whether a backend takes all of the values, of which there is one at least, for its buffers."""
    try:
        for x in values:
            backend.dtype_of(x)
    except Exception:  # a device, a dtype, a host buffer: each backend refuses one in its own way
        return False
    return bool(values)


def described(backend: Any, args: Any) -> tuple[list[Any], list[str]]:
    """Return the shapes and dtypes of what a call is given; an empty shape stands for what has none."""
    shapes: list[Any] = []
    dtypes: list[str] = []
    for x in args:
        inside = list(buffers(x if isinstance(x, (tuple, list)) else (x,)))
        if not are_buffers(backend, inside):
            shapes.append([])
            dtypes.append("" if x is None else "Scalar" if isinstance(x, (int, float, complex)) else type(x).__name__)
        elif isinstance(x, (tuple, list)):
            shapes.append([list(backend.shape_of(b)) for b in inside])
            dtypes.append("TensorList")
        else:
            shapes.append(list(backend.shape_of(x)))
            dtypes.append(backend.dtype_of(x).name)
    return shapes, dtypes


def shares(backend: Any, x: Any, y: Any) -> bool:
    """Tell whether a kernel that gives a view where it can has given one: `y` of `x`, from its first element on."""
    if y is x:
        return True
    try:
        return bool(backend.address(x) == backend.address(y))
    except RuntimeError:  # its buffers have no addresses
        return not backend.owns(y)
