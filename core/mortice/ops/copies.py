"""The views as copies: each `<view>_copy` gives what `<view>` does, in memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice import call as _call
from mortice.layout import contiguous_format
from mortice.node import named
from mortice.ops import complex as complex_ops
from mortice.ops import movement, strided, views
from mortice.ops.movement import clone, contiguous
from mortice.shape import check_dim

__all__ = [
    "alias_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "permute_copy", "select_copy",
    "slice_copy", "split_copy", "split_with_sizes_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy",
    "unfold_copy", "unsqueeze_copy", "view_as_complex_copy", "view_as_real_copy", "view_copy",
]  # fmt: skip


def _alias(input: Any) -> Any:
    return input[...]


def _slice(input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return input[(*(slice(None),) * check_dim("slice_copy", dim, len(input.shape)), slice(start, end, step))]


def _view(input: Any, *shape: Any, **given: Any) -> Any:
    return movement.view(contiguous(input), *shape, **given)


def _copied(seen: Any) -> Any:
    made = clone(seen, memory_format=contiguous_format)
    return named(made, f"{seen.grad_fn.name()}_copy") if made._rg else made


def _copy(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    """Make the copying form of a function that returns a view, or several."""

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        seen = view(*args, **kwargs)
        if isinstance(seen, (tuple, list)):
            if out is None:
                return tuple([_copied(x) for x in seen])
            return tuple([_call.WRITE_OUT(name, o, x) for o, x in zip(out, seen)])
        return _copied(seen) if out is None else _call.WRITE_OUT(name, out, seen)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Copy what `{name.removesuffix('_copy')}` shows into memory of its own, row by row."
    return call


alias_copy, detach_copy = _copy("alias_copy", _alias), _copy("detach_copy", views.detach)
as_strided_copy, diagonal_copy = _copy("as_strided_copy", strided.as_strided), _copy("diagonal_copy", strided.diagonal)
unfold_copy, slice_copy = _copy("unfold_copy", strided.unfold), _copy("slice_copy", _slice)
expand_copy, permute_copy = _copy("expand_copy", movement.expand), _copy("permute_copy", movement.permute)
squeeze_copy, unsqueeze_copy = _copy("squeeze_copy", movement.squeeze), _copy("unsqueeze_copy", movement.unsqueeze)
t_copy, transpose_copy = _copy("t_copy", movement.t), _copy("transpose_copy", movement.transpose)
view_copy, select_copy = _copy("view_copy", _view), _copy("select_copy", views.select)
split_copy, split_with_sizes_copy = (
    _copy("split_copy", views.unsafe_split), _copy("split_with_sizes_copy", views.split_with_sizes))  # fmt: skip
unbind_copy = _copy("unbind_copy", views.unbind)
view_as_complex_copy = _copy("view_as_complex_copy", complex_ops.view_as_complex)
view_as_real_copy = _copy("view_as_real_copy", complex_ops.view_as_real)
