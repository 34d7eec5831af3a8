"""`summary`: a model's layers with their output shapes, parameters, memory and multiply-adds, from one forward pass.

The pass leaves nothing behind: modes, buffers, gradients and random numbers are as before.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mortice
from mortice import Tensor, tracing
from mortice.tracing.flops import products_once
from mortice.utils._pytree import tree_leaves
from mortice.utils.undisturbed import undisturbed

__all__ = ["Summary", "summary"]


class _Products(tracing.Watcher):
    """Adds up multiply-adds for the modules that run while kernels do."""

    def __init__(self) -> None:
        self.running: list[dict[str, Any]] = []

    def ended(self, frame: tracing.Frame) -> None:
        """Count a kernel."""
        count = products_once(frame) if frame.kernel and self.running and frame.node is None else 0
        if count:
            self.running[-1]["own_mult_adds"] += count
            for row in {id(row): row for row in self.running}.values():
                row["mult_adds"] += count


class Summary:
    """What `summary` found: `rows`, one dict a module, and `totals`; `str()` is the table, `to_dict()` all of it.

    Of a row: name (its path), type, depth, calls, output (shapes, nested as the output is), parameters and trainable (its own
    and its submodules', each once), own (its own alone), mult_adds, output_bytes (of all calls), and shared_with, the earlier
    path of a module that has two.
    """

    def __init__(self, rows: list[dict[str, Any]], totals: dict[str, int], depth: int | None) -> None:
        self.rows, self.totals, self.depth = rows, totals, depth

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts, lists, strings and numbers."""
        return {"layers": self.rows, "totals": self.totals}

    def __str__(self) -> str:
        table = [("layer", "output shape", "parameters", "multiply-adds")]
        for row in self.rows:
            if self.depth is not None and row["depth"] > self.depth:
                continue
            leaf = not row["children"] or row["depth"] == self.depth
            named = row["name"].rpartition(".")[2]
            layer = "  " * row["depth"] + (f"{named}: " if named else "") + row["type"]
            shape = _shown(row["output"]) if row["calls"] else "not called"
            shape += f" ({row['calls']} calls)" if row["calls"] > 1 else ""
            parameters = row["parameters"] if leaf else row["own"]
            if row["shared_with"] is not None:
                table.append((layer, shape, f"shared with {row['shared_with'] or 'the model'}", ""))
                continue
            frozen = " frozen" if leaf and parameters and not row["trainable"] else ""
            count = row["mult_adds"] if leaf else row["own_mult_adds"]
            table.append((layer, shape, f"{parameters:,}{frozen}" if parameters else "", f"{count:,}" if count else ""))
        widths = [max(len(line[i]) for line in table) for i in range(4)]
        lines = [
            f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}".rstrip() for a, b, c, d in table
        ]
        rule = "-" * (sum(widths) + 6)
        t = self.totals
        fixed = t["parameters"] - t["trainable"]
        return "\n".join(
            [
                lines[0], rule, *lines[1:], rule,
                f"parameters     {t['parameters']:,} ({t['trainable']:,} trainable, {fixed:,} not)",
                f"multiply-adds  {t['mult_adds']:,} ({t['flops']:,} FLOPs)",
                f"memory         {_size(t['parameter_bytes'])} parameters, {_size(t['buffer_bytes'])} buffers, "
                f"{_size(t['input_bytes'])} input, {_size(t['activation_bytes'])} outputs of layers",
            ]
        )  # fmt: skip

    __repr__ = __str__


def summary(
    model: Any, input_data: Any = None, *, input_size: Any = None, dtypes: Sequence[Any] | None = None, device: Any = None,
    depth: int | None = None, mode: str = "eval",
) -> Summary:  # fmt: skip
    """Run a model once and return a table of its layers: output shapes, parameters, multiply-adds, memory.

    Args:
        model: a module, on any backend.
        input_data: what it is called with: a tensor, a tuple of arguments, or a dict of named ones. A size, a sequence of
            sizes, or a dict of them stands for zeros of these sizes.
        input_size: sizes, as they may be given for `input_data`.
        dtypes: of zeros that are made, one for each size.
        device: of zeros that are made; that of the model's first parameter unless given.
        depth: how deep modules are shown; all of them by default.
        mode: 'eval', 'train', or 'same' for the modes that the modules have.

    Multiply-adds are those of products: matrix products, convolutions, attention and recurrent layers.

    Example:
        >>> print(mortice.summary(model, (1, 3, 224, 224)))
    """
    if mode not in ("eval", "train", "same"):
        raise ValueError(f"summary: expected mode to be 'eval', 'train' or 'same'; got {mode!r}.")
    if (input_data is None) == (input_size is None):
        raise TypeError(
            "summary: expected either input_data or input_size; got " + ("neither." if input_data is None else "both.")
        )
    given = _inputs(model, input_data if input_size is None else input_size, dtypes, device)
    args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
    rows, by_module = _rows(model)
    products = _Products()
    handles = []
    for module, row in by_module.items():
        handles.append(module.register_forward_pre_hook(_begins(products, row), prepend=True))
        handles.append(module.register_forward_hook(_ends(products, row), always_call=True))
    tracing.watch(products)
    try:
        with undisturbed(model, None if mode == "same" else mode == "train"), mortice.no_grad():
            model(*args, **kwargs)
    finally:
        tracing.unwatch(products)
        for handle in handles:
            handle.remove()
    for row in rows:
        if row["shared_with"] is not None:
            first = next(r for r in rows if r["name"] == row["shared_with"])
            row.update(output=first["output"], calls=first["calls"])
    parameters, buffers = (
        {id(t): t for t in found if t is not None}.values() for found in (model.parameters(), model.buffers())
    )
    counts = [(p.numel(), p.requires_grad) for p in parameters]
    totals = {
        "parameters": sum(n for n, _ in counts), "trainable": sum(n for n, grad in counts if grad),
        "mult_adds": rows[0]["mult_adds"], "flops": 2 * rows[0]["mult_adds"],
        "parameter_bytes": _bytes(parameters), "buffer_bytes": _bytes(buffers), "input_bytes": _bytes(tree_leaves(given)),
        "activation_bytes": sum(row["output_bytes"] for row in rows if not row["children"] and row["shared_with"] is None),
    }  # fmt: skip
    return Summary(rows, totals, depth)


def _rows(model: Any) -> tuple[list[dict[str, Any]], dict[Any, dict[str, Any]]]:
    """Return a row for each path to a module, and those that stand for modules."""
    rows: list[dict[str, Any]] = []
    by_module: dict[Any, dict[str, Any]] = {}
    seen: set[int] = set()
    for name, module in model.named_modules(remove_duplicate=False):
        earlier = by_module.get(module)
        every = {id(p): p for p in module.parameters()}.values()
        own = {id(p): p for p in module.parameters(recurse=False) if id(p) not in seen}.values()
        seen.update(id(p) for p in own)
        row = {
            "name": name, "type": type(module).__name__, "depth": name.count(".") + 1 if name else 0, "calls": 0, "output": None,
            "parameters": sum(p.numel() for p in every), "trainable": sum(p.numel() for p in every if p.requires_grad),
            "own": sum(p.numel() for p in own), "mult_adds": 0, "own_mult_adds": 0, "output_bytes": 0,
            "children": sum(1 for _ in module.children()),
            "shared_with": None if earlier is None else earlier["name"],
        }  # fmt: skip
        rows.append(row)
        if earlier is None:
            by_module[module] = row
    return rows, by_module


def _begins(products: _Products, row: dict[str, Any]) -> Any:
    def hook(module: Any, args: Any) -> None:
        products.running.append(row)

    return hook


def _ends(products: _Products, row: dict[str, Any]) -> Any:
    def hook(module: Any, args: Any, output: Any) -> None:
        while products.running and products.running.pop() is not row:
            pass
        row["calls"] += 1
        row["output_bytes"] += _bytes(tree_leaves(output))
        if row["output"] is None:
            row["output"] = _shapes(output)

    return hook


def _inputs(model: Any, given: Any, dtypes: Sequence[Any] | None, device: Any) -> Any:
    """Return a tuple of arguments, or a dict of named ones, with zeros for sizes."""
    if device is None:
        device = next((t.device for found in (model.parameters(), model.buffers()) for t in found), None)
    named = isinstance(given, Mapping)
    if isinstance(given, Tensor) or _is_size(given):
        given = (given,)
    if not isinstance(given, (tuple, list)) and not named:
        raise TypeError(f"summary: expected a tensor, a size, or several of them; got {type(given).__name__}.")
    values = list(given.values()) if named else list(given)
    kinds = list(dtypes) if dtypes is not None else [None] * len(values)
    if len(kinds) != len(values):
        raise ValueError(f"summary: expected a dtype for each of {len(values)} inputs; got {len(kinds)}.")
    made = [
        mortice.zeros(*x, dtype=kind, device=device) if _is_size(x) else x
        for x, kind in zip(values, kinds, strict=True)
    ]
    return dict(zip(given, made, strict=True)) if named else tuple(made)


def _is_size(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and len(x) > 0 and all(type(n) is int for n in x)


def _shapes(output: Any) -> Any:
    """Return shapes in the places of tensors."""
    if isinstance(output, Tensor):
        return list(output.shape)
    if isinstance(output, Mapping):
        return {str(k): _shapes(v) for k, v in output.items()}
    if isinstance(output, (tuple, list)):
        return tuple(_shapes(v) for v in output)
    return None if output is None else type(output).__name__


def _shown(output: Any) -> str:
    if isinstance(output, dict):
        return ", ".join(f"{k} {_shown(v)}" for k, v in output.items())
    if isinstance(output, tuple):
        return f"({', '.join(_shown(v) for v in output)})"
    return str(output)


def _bytes(found: Any) -> int:
    return sum({id(t): t.numel() * t.element_size() for t in found if isinstance(t, Tensor)}.values())


def _size(n: int) -> str:
    if n < 1000:
        return f"{n} B"
    power = min(int(math.log10(n) // 3), 4)
    return f"{n / 1000**power:.1f} {'kMGT'[power - 1]}B"


# ---- the command line ----


def command(arguments: Any) -> int:
    """Serve `python -m mortice summary`; returns the exit status."""
    try:
        if arguments.backend:
            mortice.set_backend(arguments.backend)
        model = _found(arguments.model)
        names, sizes, dtypes = zip(*map(_parsed, arguments.input), strict=True)
        if any(names) and not all(names):
            raise ValueError("--input: expected a name for each input, or for none; got both.")
        if arguments.device:
            model = model.to(arguments.device)
        given = dict(zip(names, sizes, strict=True)) if all(names) else list(sizes)
        found = summary(
            model, input_size=given, dtypes=dtypes, device=arguments.device, depth=arguments.depth, mode=arguments.mode
        )
    except (ValueError, TypeError, RuntimeError, ImportError, AttributeError, OSError) as error:
        print(f"summary: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found.to_dict(), indent=2) if arguments.json else found)
    return 0


def _found(place: str) -> Any:
    """Import what MODULE:CALLABLE names, and call it unless it is a module already."""
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise ValueError(f"expected MODULE:CALLABLE, such as package.models:Net or net.py:net; got {place!r}.")
    sys.path.insert(0, os.getcwd())
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location(os.path.basename(where)[:-3], where)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(where)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, type) or not hasattr(found, "named_modules"):
        found = found()
    if not hasattr(found, "named_modules"):
        raise TypeError(f"expected {place} to be a module or to make one; got {type(found).__name__}.")
    return found


def _parsed(text: str) -> tuple[str, tuple[int, ...], Any]:
    """Read [NAME=]SIZE[:DTYPE]."""
    name, _, rest = text.rpartition("=")
    size, _, kind = rest.partition(":")
    try:
        sizes = tuple(int(n) for n in size.split(","))
    except ValueError:
        raise ValueError(f"--input: expected a size such as 1,3,224,224 or 8,128:int64; got {text!r}.") from None
    dtype = getattr(mortice, kind, None) if kind else None
    if kind and not isinstance(dtype, mortice.dtype):
        raise ValueError(f"--input: expected a dtype such as int64; got {kind!r}.")
    return name, sizes, dtype
