"""How a tensor is written as text, and the options that shape it.

Works on shapes, dtypes and plain Python values: it computes nothing with tensors, and reads from a
summarised one only the slices that are shown. `Tensor.__repr__` calls it; nothing here imports Tensor.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mortice.dtype import get_default_dtype

__all__ = ["get_printoptions", "parameter_repr", "printoptions", "set_printoptions", "tensor_repr"]


class _Options:
    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth: float = 80
        self.sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

_options = PRINT_OPTS = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; what is not given keeps its value, except `sci_mode`.

    Differs from torch: a negative precision or edgeitems raises ValueError.

    Args:
        precision: Digits after the decimal point.
        threshold: A tensor with more elements than this is summarised.
        edgeitems: Elements shown at each end of a summarised dimension.
        linewidth: Characters a line may take.
        profile: "default", "short" or "full", applied before the other arguments; another name changes nothing.
        sci_mode: True or False forces scientific notation on or off; None, also when left out,
            decides from the values.

    Example:
        >>> mortice.set_printoptions(precision=2)
        >>> mortice.tensor([1.12345])
        tensor([1.12])
        >>> mortice.set_printoptions(profile="default")
    """
    changes: dict[str, Any] = {}
    if profile is not None:
        changes.update(_PROFILES.get(profile, {}))
    if precision is not None:
        changes["precision"] = _count("precision", precision)
    if edgeitems is not None:
        changes["edgeitems"] = _count("edgeitems", edgeitems)
    if threshold is not None:
        changes["threshold"] = threshold
    if linewidth is not None:
        changes["linewidth"] = linewidth
    changes["sci_mode"] = sci_mode
    for name, value in changes.items():
        setattr(_options, name, value)


def get_printoptions() -> dict[str, Any]:
    """Return the print options as keyword arguments for `set_printoptions`."""
    return dict(vars(_options))


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options, as `set_printoptions` does, until the `with` block ends."""
    saved = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**saved)


def tensor_repr(t: Any, contents: Any = None) -> str:
    """Write a tensor as PyTorch would, reading only the elements that are shown; with `contents` in their place.

    Args:
        t: Anything with shape, dtype, device, requires_grad, grad_fn, numel(), detach(), tolist() and
            basic slicing.
    """
    kind = type(t).__name__
    head = "tensor(" if kind in ("Tensor", "Parameter", "Buffer") else f"{kind}("
    text = join_suffixes(head + (body(t, len(head)) if contents is None else str(contents)), suffixes(t), len(head))
    return f"Parameter({text})" if getattr(t, "_is_param", False) else text


def parameter_repr(t: Any, text: str) -> str:
    """Write a parameter: a line that says so, then the tensor, whose text is given."""
    if type(t).__name__ != "Parameter":
        text = f"Parameter({text})"
    return f"Parameter containing:\n{text}"


def _count(name: str, value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if count < 0:
        raise ValueError(
            f"set_printoptions: {name} must be an integer of at least 0; got {value!r}. Pass None to leave it as it is."
        )
    return count


# Reading: nested lists of what will be shown.


def _shown(t: Any, edge: int | None) -> Any:
    """Read a tensor as nested lists; with `edge`, only that many items at both ends of long dimensions."""
    t = t.detach()
    if edge is None or not _any_long(t.shape, edge):
        return t.tolist()
    return _read_block(t, tuple(t.shape), edge, ())


def _any_long(shape: Iterable[int], edge: int) -> bool:
    return any(size > 2 * edge for size in shape)


def _read_block(t: Any, shape: tuple[int, ...], edge: int, key: tuple[slice, ...]) -> Any:
    axis = len(key)
    if not _any_long(shape[axis:], edge):
        return t[key].tolist()
    size = shape[axis]
    if size <= 2 * edge:
        return _read_block(t, shape, edge, (*key, slice(None)))
    first = _read_block(t, shape, edge, (*key, slice(0, edge)))
    last = _read_block(t, shape, edge, (*key, slice(size - edge, size)))
    return _joined(first, last, axis)


def _joined(first: list[Any], last: list[Any], axis: int) -> list[Any]:
    """Put two nested lists one after the other along an axis."""
    if axis == 0:
        return first + last
    return [_joined(a, b, axis - 1) for a, b in zip(first, last, strict=True)]


def _leaves(nested: Any, rank: int) -> list[Any]:
    leaves = [nested]
    for _ in range(rank):
        leaves = [item for items in leaves for item in items]
    return leaves


# Numbers: one style for all that is shown.


class _Style(NamedTuple):
    """A way to write one number: a format spec, whether a bare point follows, and the column's width."""

    spec: str = ""
    point: bool = False
    width: int = 1

    def text(self, value: Any) -> str:
        text = format(value, self.spec)
        return text + "." if self.point and math.isfinite(value) else text

    def cell(self, value: Any) -> str:
        return self.text(value).rjust(self.width)

    def fitted(self, values: Iterable[Any]) -> _Style:
        return self._replace(width=max(len(self.text(value)) for value in values))


def _float_style(values: list[float], options: _Options) -> _Style:
    # Zeros and non-finite values have no say, not even in the width: torch lets them stick out.
    telling = [value for value in values if value != 0 and math.isfinite(value)]
    if not telling:
        return _Style(".0f", point=True)
    scientific = options.sci_mode
    if scientific is None:
        sizes = [abs(value) for value in telling]
        largest, smallest = max(sizes), min(sizes)
        scientific = largest > 1e8 or smallest < 1e-4 or largest / smallest > 1000
    if scientific:
        style = _Style(f".{options.precision}e")
    elif all(value.is_integer() for value in telling):
        style = _Style(".0f", point=True)
    else:
        style = _Style(f".{options.precision}f")
    return style.fitted(telling)


def _cells(values: list[Any], dtype: Any, options: _Options) -> tuple[Callable[[Any], str], int]:
    """Choose how to write the values of a dtype: the writer of one value, and the width of a column."""
    if dtype.is_complex:
        real = _float_style([value.real for value in values], options)
        imag = _float_style([value.imag for value in values], options)

        def write(value: complex) -> str:
            tail = imag.text(value.imag)
            return real.cell(value.real) + (tail if tail.startswith("-") else f"+{tail}") + "j"

        return write, real.width + imag.width + 1
    style = _float_style(values, options) if dtype.is_floating_point else _Style().fitted(values)
    return style.cell, style.width


# Layout: brackets, line breaks and gaps.


def body(t: Any, indent: int) -> str:
    """Write the elements in their brackets; `indent` is the column where they start."""
    options = _options
    if t.device.type == "meta":  # it has none
        return "..."
    if t.numel() == 0:
        return "[]"
    rank = len(t.shape)
    edge = options.edgeitems if t.numel() > options.threshold else None
    if edge == 0 and rank > 0:
        return "[...]"
    nested = _shown(t, edge)
    write, width = _cells(_leaves(nested, rank), t.dtype, options)

    def gap(axis: int) -> int | None:
        """Give the position of the dots on an axis that is cut short."""
        return edge if edge is not None and t.shape[axis] > 2 * edge else None

    def row(items: list[Any], axis: int) -> str:
        texts = [write(item) for item in items]
        if (at := gap(axis)) is not None:
            texts.insert(at, " ...")
        column = indent + axis
        per_line = max(1, int(min(len(texts), (options.linewidth - column) / (width + 2))))
        lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (column + 1)).join(lines) + "]"

    def block(items: list[Any], axis: int) -> str:
        below = rank - axis - 1
        if below == 0:
            return row(items, axis)
        texts = [block(item, axis + 1) for item in items]
        if (at := gap(axis)) is not None:
            texts.insert(at, "...")
        return "[" + ("," + "\n" * below + " " * (indent + axis + 1)).join(texts) + "]"

    return block(nested, 0) if rank else write(nested)


_tensor_str = body


def suffixes(t: Any) -> list[str]:
    """List what follows the elements: device, size, dtype and the place in the graph."""
    found = []
    meta = t.device.type == "meta"
    if t.device.type != "cpu":
        found.append(f"device='{t.device}'")
    default = get_default_dtype()
    unsaid = {default.name}
    if t.numel() == 0 or meta:
        if len(t.shape) != 1 or meta:
            found.append(f"size={tuple(t.shape)}")
    else:
        if _options.edgeitems == 0:
            found.append(f"size={tuple(t.shape)}")
        unsaid |= {"int64", "bool", default.to_complex().name}
    if t.dtype.name not in unsaid:
        found.append(f"dtype={t.dtype}")
    if t.grad_fn is not None:
        found.append(f"grad_fn=<{_node_name(t.grad_fn)}>")
    elif t.requires_grad:
        found.append("requires_grad=True")
    return found


def _node_name(node: Any) -> str:
    name = getattr(node, "name", None)
    if callable(name):
        name = name()
    return name.rsplit("::", 1)[-1] if isinstance(name, str) else type(node).__name__


def join_suffixes(text: str, suffixes: list[str], indent: int, force_newline: bool = False) -> str:
    """Add what follows the elements, on lines that end where PyTorch's do; on a new line if told."""
    # Lines break where torch's do, so that a text differs from torch's in the name alone: the line that the
    # elements end on counts two columns more than it has, and "mortice." no more than "torch.".
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        size = len(suffix.replace("=mortice.", "=torch."))
        if used + size + 2 > _options.linewidth or force_newline:
            text += ",\n" + " " * indent + suffix
            used, force_newline = indent + size, False
        else:
            text += ", " + suffix
            used += size + 2
    return text + ")"


_add_suffixes = join_suffixes
