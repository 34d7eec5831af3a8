"""What operations mean for sparse tensors: on their buffers alone (`SparseBackend`), and beside dense tensors (`MIXED`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import accumulate
from typing import Any

import mortice
from mortice.backends.kernel_tools import is_number
from mortice.layout import sparse_coo, sparse_csr
from mortice.levels.backend import LevelBackend
from mortice.shape import Size, prod
from mortice.sparse.coo import HINT, LEVEL, Sparse, merge, place, places, refusal, take, to_dense, told, values_of, wrap
from mortice.tensor import make

# ---- sparse operands alone: rules over buffers, named like ops and kernels ----


def _merged(x: Sparse) -> Sparse:
    return merge(wrap(x))._buffer  # type: ignore[no-any-return]


def _alike(name: str, x: Any, y: Any) -> None:
    if not isinstance(x, Sparse) or not isinstance(y, Sparse):
        raise RuntimeError(f"{name}(sparse, dense) is not supported. Use {name}(dense, sparse) instead, or .to_dense() first.")
    if x.shape != y.shape or (x.sparse_dim != y.sparse_dim and x.nnz and y.nnz):
        raise RuntimeError(f"{name}: expected sparse tensors of one shape and sparse_dim; got {told(x)} and {told(y)}.")


def _add(k: Any, x: Any, y: Any) -> Sparse:
    if isinstance(x, Sparse) and not isinstance(y, Sparse) and not is_number(y):
        # What the engine adds to a sparse `.grad`: the dense gradient of a table that is looked up in, and used otherwise.
        y = make(y, x.values._device, x.values.dtype, x.shape).to_sparse(x.sparse_dim)._buffer
    _alike("add", x, y)
    if x.sparse_dim != y.sparse_dim:  # one is empty, and leaves the other
        return RULES["clone"](k, x if x.nnz else y)  # type: ignore[no-any-return]
    known = x.coalesced and y.coalesced and x.nnz == y.nnz
    if x.indices is y.indices or (known and (not x.nnz or mortice.equal(x.indices, y.indices))):
        return x.with_values(x.values + y.values)  # type: ignore[no-any-return]
    made = Sparse(mortice.cat([x.indices, y.indices], 1), mortice.cat([x.values, y.values]), x.shape)
    return _merged(made) if x.coalesced and y.coalesced else made


def _sub(k: Any, x: Any, y: Any) -> Sparse:
    _alike("sub", x, y)
    return _add(k, x, y.with_values(-y.values))


def _mul(k: Any, x: Any, y: Any) -> Sparse:
    if not isinstance(x, Sparse) or not isinstance(y, Sparse):  # a number
        return x.with_values(x.values * y) if isinstance(x, Sparse) else y.with_values(x * y.values)
    if not x.shape or not y.shape:
        number, x = (x, y) if not x.shape else (y, x)
        return x.with_values(x.values * to_dense(wrap(number)))  # type: ignore[no-any-return]
    n = x.sparse_dim
    if x.shape != y.shape and (len(x.shape), n, x.shape[:n]) == (len(y.shape), y.sparse_dim, y.shape[:n]):  # dense dims broadcast
        shape = mortice.broadcast_shapes(x.shape, y.shape)
        x, y = _broadcast(wrap(x), shape)._buffer, _broadcast(wrap(y), shape)._buffer
    _alike("mul", x, y)
    if x.sparse_dim != y.sparse_dim:
        return x if not x.nnz else y
    x = _merged(x)
    both = x.values * take(wrap(y), x)
    here = mortice.isin(x.numbers, _merged(y).numbers).nonzero().flatten()
    return Sparse(x.indices.index_select(1, here), both.index_select(0, here), x.shape, True)


def _div(k: Any, x: Any, y: Any, rounding_mode: Any = None) -> Sparse:
    if not is_number(y):
        kind = "floor division" if rounding_mode == "floor" else "division"
        raise RuntimeError(f"div: Sparse {kind} requires a scalar or zero-dim dense tensor divisor (got shape {list(y.shape)}). {HINT}")
    x = x if rounding_mode is None or x.distinct else _merged(x)
    return x.with_values(mortice.div(x.values, y, rounding_mode=rounding_mode))


def _pow(k: Any, x: Any, y: Any) -> Sparse:
    if not isinstance(x, Sparse) or isinstance(y, Sparse) or not y.real > 0:
        raise refusal("pow", x, y)  # 0 to any other power is not 0
    x = _merged(x)
    return x.with_values(x.values**y)


def _permute(k: Any, x: Sparse, axes: Any) -> Sparse:
    n = x.sparse_dim
    if x.layout is not sparse_coo:
        return x.permute(axes)  # type: ignore[attr-defined, no-any-return]
    if sorted(axes[:n]) != list(range(n)):
        raise RuntimeError(f"permute: sparse and dense dims do not change places; got {axes}, and {n} sparse dims. {HINT}")
    dense = x.values.permute(0, *[a - n + 1 for a in axes[n:]]) if len(axes) > n else x.values
    in_order = list(axes[:n]) == list(range(n))
    indices = x.indices if in_order else mortice.stack([x.indices[a] for a in axes[:n]])
    return Sparse(indices, dense, [x.shape[a] for a in axes], x.coalesced and in_order)


def _matmul(k: Any, x: Sparse, y: Sparse) -> Sparse:
    """Multiply two sparse matrices: each element of x meets the row of y that its column names."""
    if len(x.shape) != 2 or len(y.shape) != 2 or x.sparse_dim != 2 or y.sparse_dim != 2:
        raise refusal("matmul", x, y)
    if (x.layout is sparse_coo) is not (y.layout is sparse_coo):
        raise refusal("matmul", x, y)
    y = _merged(y)
    left, right = _pairs(x.indices[1], y.indices[0], y.shape[0])
    indices = mortice.stack([x.indices[0][left], y.indices[1][right]])
    made = _merged(Sparse(indices, x.values[left] * y.values[right], (x.shape[0], y.shape[1])))
    return made if x.layout is sparse_coo else compressed(made, sparse_csr)


def compressed(x: Sparse, layout: Any, block: Any = ()) -> Sparse:
    return import_module("mortice.sparse.compressed").compress(wrap(x), layout, block)._buffer  # type: ignore[no-any-return]


def _pairs(wanted: Any, ordered: Any, size: int) -> tuple[Any, Any]:
    """Return all pairs of positions at which two vectors of numbers below `size` are equal, the second in order."""
    sizes = mortice.bincount(ordered, minlength=size)
    many = sizes[wanted]
    left = mortice.arange(len(many), device=many.device).repeat_interleave(many)
    within = mortice.arange(len(left), device=many.device) - (many.cumsum(0) - many)[left]
    return left, (sizes.cumsum(0) - sizes)[wanted][left] + within


def _cat(k: Any, *parts: Any, axis: int) -> Sparse:
    n = parts[0].sparse_dim
    if any([p.sparse_dim != n for p in parts]):
        counts = [p.sparse_dim for p in parts]
        raise RuntimeError(f"cat: All tensors must have the same number of sparse and dense dimensions; got {counts} sparse ones.")
    *starts, size = accumulate([p.shape[axis] for p in parts], initial=0)
    shape = [size if d == axis else s for d, s in enumerate(parts[0].shape)]
    moved, values = [p.indices for p in parts], [p.values for p in parts]
    if axis < n:
        moved = [mortice.stack([r + start if d == axis else r for d, r in enumerate(p)]) for p, start in zip(moved, starts)]
    else:  # each value is 0 where the others have theirs
        around = [(0, 0) * (len(shape) - 1 - axis) + (start, size - start - p.shape[axis]) for p, start in zip(parts, starts)]
        values = [mortice.nn.functional.pad(v, by) for v, by in zip(values, around)]
    return Sparse(mortice.cat(moved, 1), mortice.cat(values), shape)


def _getitem(k: Any, x: Sparse, key: Any, shape: Any = None) -> Sparse:
    """Read slices by whole numbers; the other sparse dims stay."""
    new = [i for i in key if i is None]
    if not all([isinstance(i, int) or i in (slice(None), ..., None) for i in key]) or sum([i is ... for i in key]) > 1:
        raise refusal("getitem with this index", x)
    if ... in key:
        at = key.index(...)
        key = (*key[:at], *[slice(None)] * (len(x.shape) - len(key) + len(new) + 1), *key[at + 1 :])
    if new:
        x, shown = _getitem(k, x, tuple([i for i in key if i is not None])), [i for i in key if not isinstance(i, int)]
        for axis in [axis for axis, i in enumerate(shown) if i is None]:
            x = _view(k, x, (*x.shape[:axis], 1, *x.shape[axis:]), axis)
        return x
    fixed, n = [(d, i % x.shape[d]) for d, i in enumerate(key) if isinstance(i, int)], x.sparse_dim
    if len([d for d, _ in fixed if d < n]) >= n:
        raise refusal("getitem of single elements", x)
    if x.layout is not sparse_coo:
        if n > 2 and any([n - 2 <= d < n for d, _ in fixed]):
            raise RuntimeError("getitem: selecting sparse dimensions is not supported for batched sparse compressed tensors.")
        x = _merged(x)
    for d, i in reversed(fixed):
        if d >= n:
            x = Sparse(x.indices, x.values.select(d - n + 1, i), [s for m, s in enumerate(x.shape) if m != d], x.coalesced)
            continue
        here = (x.indices[d] == i).nonzero().flatten()
        rows = mortice.stack([r for n, r in enumerate(x.indices) if n != d]).index_select(1, here)
        shape = [s for n, s in enumerate(x.shape) if n != d]
        x = Sparse(rows, x.values.index_select(0, here), shape, x.coalesced)
    return x


def _view(k: Any, x: Sparse, shape: Any, axis: Any = None) -> Sparse:
    """Show a new dim of one element: among the sparse ones, or behind them."""
    if x.layout is not sparse_coo or type(axis) is not int:
        raise refusal("view", x)
    return _reshape(k, x, shape, x.sparse_dim + (axis <= x.sparse_dim))


def _reshape(k: Any, x: Sparse, shape: Any, n: int | None = None) -> Sparse:
    size = prod(x.shape[: x.sparse_dim])
    if n is None:  # dims of one element may stand on either side: as many dense dims as there were, where that can be
        dense = x.values.ndim - 1
        n = min([m for m in range(1, len(shape) + 1) if prod(shape[:m]) == size], key=lambda m: abs(len(shape) - m - dense))
    return Sparse(places(x.numbers, shape[:n]), x.values.reshape(x.nnz, *shape[n:]), shape, x.coalesced)


def _stack(k: Any, *parts: Any, axis: int) -> Sparse:
    return _cat(k, *[_view(k, p, (*p.shape[:axis], 1, *p.shape[axis:]), axis) for p in parts], axis=axis)


def _fill(k: Any, x: Sparse, value: Any, **attrs: Any) -> Sparse:
    if x.layout is not sparse_coo and is_number(value):
        return x.with_values(mortice.full_like(x.values, value))
    if len(value.numbers) if isinstance(value, Sparse) else value:
        raise refusal("fill with a number other than 0", x)
    return nothing(x.shape, x.values.dtype, x.values._device, len(x.shape) - x.sparse_dim)


def nothing(shape: Any, dtype: Any, device: Any, dense: int = 0) -> Sparse:
    n = len(shape) - dense
    indices = mortice.zeros(n, 0, dtype=mortice.int64, device=device)
    return Sparse(indices, mortice.zeros(0, *tuple(shape)[n:], dtype=dtype, device=device), shape, True)


def _eq(k: Any, x: Any, y: Any) -> Sparse:
    if not is_number(y) or not y:  # else what is not there is equal
        raise refusal("eq", x, y)
    x = x if x.distinct else _merged(x)
    return x.with_values(x.values == y)  # type: ignore[no-any-return]


RULES: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": _sub, "subtract": _sub, "mul": _mul, "multiply": _mul, "div": _div, "divide": _div, "pow": _pow,
    "permute": _permute, "permute_dims": _permute, "matmul": _matmul, "cat": _cat, "getitem": _getitem,
    "fill": _fill, "full_like": _fill, "view": _view, "reshape": _reshape, "stack": _stack,
    "view_scatter": lambda k, x, part, steps: part,
    "cast": lambda k, x, dtype, source: x.with_values(x.values.to(dtype)), "astype": lambda k, x, d: x.with_values(x.values.to(d)),
    "neg": lambda k, x: x.with_values(-x.values), "negative": lambda k, x: x.with_values(-x.values),
    "clone": lambda k, x: x.with_values(x.values.clone()), "copy": lambda k, x: x.with_values(x.values.clone()),
    "conj": lambda k, x: x.with_values(x.values.conj()), "real": lambda k, x: x.with_values(x.values.real),
    "zeros_like": lambda k, x: _fill(k, x, 0),
    "eq": _eq, "contiguous": lambda k, x: x, "relu_grad": lambda k, g, out: out.with_values(take(wrap(g), out) * (out.values > 0)),
}  # fmt: skip
# Functions that take 0 to 0: of the whole value of a place.
ZERO_TO_ZERO = (
    "abs angle asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan log1p nan_to_num rad2deg relu round sgn sign "
    "signbit sin sinh sqrt square tan tanh trunc"
)


def _of_values(name: str) -> Callable[..., Any]:
    fn = getattr(mortice, name)

    def rule(k: Any, x: Sparse, **attrs: Any) -> Sparse:
        x = x if x.distinct else _merged(x)
        return x.with_values(fn(x.values, **attrs))

    return rule


RULES.update({name: _of_values(name) for name in ZERO_TO_ZERO.split()})


# ---- what the formulas of gradients ask for, which are of the places that there are ----


def _add_in_formulas(k: Any, x: Any, y: Any) -> Sparse:
    if isinstance(x, Sparse) and is_number(y):
        x = _merged(x)
        return x.with_values(x.values + y)  # type: ignore[no-any-return]
    return _add(k, x, y)


def _div_in_formulas(k: Any, x: Any, y: Any) -> Sparse:
    if isinstance(x, Sparse) and isinstance(y, Sparse):
        return y.with_values(take(wrap(x), y) / y.values)
    return _div(k, x, y)


OF_FORMULAS: dict[str, Callable[..., Any]] = {"add": _add_in_formulas, "divide": _div_in_formulas}


class SparseTable(dict[Any, Callable[..., Any]]):
    """The compiled ops of sparse tensors."""

    def __init__(self, backend: SparseBackend) -> None:
        self.backend = backend

    def __missing__(self, op: Any) -> Callable[..., Any]:
        found = self[op] = self.backend.rule(op.name)
        return found


class SparseBackend(LevelBackend):
    """The backend of sparse tensors above another one; it refuses every kernel but those in `RULES`."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.table = SparseTable(self)

    def rule(self, name: str, in_formulas: bool = False) -> Callable[..., Any]:
        """Return what computes an op of that name, or a kernel in the formula of a gradient."""
        rule = (OF_FORMULAS.get(name) if in_formulas else None) or RULES.get(name)
        if rule is not None:
            return lambda *args, **attrs: _as_given(rule(self, *args, **attrs), args)

        def refuse(*args: Any, **attrs: Any) -> Any:
            raise refusal(name, *[a for a in args if isinstance(a, Sparse)])

        return refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not callable(getattr(self.inner, name)):
            return getattr(self.inner, name)
        found = self.__dict__[name] = self.rule(name, in_formulas=True)
        return found

    def _constant(self, data: Any) -> Any:
        raise refusal("making one of dense values")

    def _parts(self, x: Sparse) -> Any:
        return x.values._buffer

    def device_of(self, x: Sparse) -> Any:
        return LEVEL.above(x.values._device)

    def shape_of(self, x: Sparse) -> Any:
        return x.shape

    def numel_of(self, x: Sparse) -> int:
        return prod(x.shape)

    def is_contiguous(self, x: Sparse) -> bool:
        return False

    def owns(self, x: Sparse) -> bool:
        return False  # several may have the same values, which can be written

    def copy_to(self, x: Sparse, device: Any) -> Sparse:
        return LEVEL.moved(x, self.device_of(x), device, lambda part, source, target: self.inner.copy_to(part, target))

    def any(self, x: Sparse) -> bool:
        return bool(x.values.any())

    def item(self, x: Any) -> Any:
        return x if isinstance(x, bool) else to_dense(wrap(x)).item()

    def full(self, shape: Any, value: Any, *, dtype: Any, device: Any) -> Sparse:
        if value:
            raise refusal("making one filled with a number other than 0")
        return nothing(shape, dtype, device.inner)

    def from_host(self, host: Any, device: Any) -> Any:
        raise refusal("making one of dense values")

    def address(self, x: Sparse) -> int:
        raise LEVEL.no_memory("data_ptr")



# ---- beside dense tensors: rules over tensors in the graph ----


def _as_given(made: Sparse, args: Any) -> Sparse:
    """Return what a rule has made of coordinates in the layout of its first operand; a part with too few dims stays."""
    first = args[0] if isinstance(args[0], Sparse) else args[-1]
    if first.layout is sparse_coo or type(made) is not Sparse or made.sparse_dim < 2:
        return made
    return compressed(made, first.layout, first.block)  # type: ignore[attr-defined]


def _sparse(x: Any) -> bool:
    return isinstance(getattr(x, "_buffer", None), Sparse)


def _mixed_add(x: Any, y: Any) -> Any:
    if _sparse(x):
        if x._buffer.layout is not sparse_coo:
            return _mixed_add(y, x)
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if x.shape != y.shape:
        raise RuntimeError(f"add: expected 'self' and 'other' to have same size; got {tuple(x.shape)} and {tuple(y.shape)}.")
    d, data = mortice.promote_types(x.dtype, y.dtype), y._buffer
    values = values_of(y).to(d)
    rows = x.to(d).reshape(prod(tuple(x.shape)[: data.sparse_dim]), *values.shape[1:])
    return rows.index_add(0, data.numbers, values).reshape(x.shape)


def _broadcast(t: Any, shape: Any) -> Any:
    while t.ndim < len(shape):
        t = t.unsqueeze(0)
    for d, size in enumerate(shape):
        if t.shape[d] != size:
            t = t.index_select(d, mortice.zeros(size, dtype=mortice.int64, device=t._buffer.values.device))
    return t


def _mixed_mul(x: Any, y: Any) -> Any:
    t, other = (x, y) if _sparse(x) else (y, x)
    shape = Size(mortice.broadcast_shapes(t.shape, other.shape))
    if shape != t.shape:
        if t.layout is not sparse_coo:
            raise RuntimeError(f"mul: expected a dense tensor that broadcasts to {told(t._buffer)}; got {tuple(other.shape)}.")
        t = _broadcast(t, shape)
    data = t._buffer
    return place(data, values_of(t) * (take(other.expand(t.shape), data) if other.shape else other))


def _mixed_div(x: Any, y: Any, rounding_mode: Any = None) -> Any:
    if not _sparse(x) or y.shape:
        _div(None, x, y, rounding_mode)
    x = x if rounding_mode is None else merge(x)
    return place(x._buffer, mortice.div(values_of(x), y, rounding_mode=rounding_mode))


def _mixed_matmul(x: Any, y: Any) -> Any:
    if not _sparse(x):
        if y.ndim != 2:
            raise refusal("matmul", x._buffer, y._buffer)
        if x.ndim > 2:
            return _mixed_matmul(x.reshape(prod(x.shape[:-1]), x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[1])
        return _mixed_matmul(y.t(), x.t()).t()
    d, data = mortice.promote_types(x.dtype, y.dtype), x._buffer
    n = data.sparse_dim
    if n != x.ndim or n != max(y.ndim, 2) or n > 3 or (n == 3 and x.shape[0] != y.shape[0]):
        raise refusal("matmul", data, y._buffer)
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise RuntimeError(
            f"matmul: mat1 and mat2 shapes cannot be multiplied ({x.shape[-2]}x{x.shape[-1]} and "
            f"{'x'.join(map(str, y.shape))}); got {tuple(x.shape)} @ {tuple(y.shape)}"
        )
    rows, columns = data.indices[-2], data.indices[-1]
    if n == 3:  # a batch of products is one, of what lies on the diagonal
        rows, columns = data.indices[0] * x.shape[1] + rows, data.indices[0] * x.shape[2] + columns
    flat = y.to(d).reshape(prod(tuple(y.shape)[: n - 1]), 1 if y.ndim == 1 else y.shape[-1])
    parts = flat.index_select(0, columns) * values_of(x).to(d).unsqueeze(1)
    out = mortice.zeros(prod(tuple(x.shape)[:-1]), flat.shape[1], dtype=d, device=y.device).index_add(0, rows, parts)
    return out.reshape(*tuple(x.shape)[:-1], *tuple(y.shape)[n - 1 :])


def _mixed_take(x: Any, index: Any, axis: int) -> Any:
    """Pick positions along a dim."""
    if not _sparse(x) or x.layout is not sparse_coo:
        raise refusal("index_select of a compressed tensor", x._buffer, index._buffer)
    data = x._buffer
    if axis >= data.sparse_dim:
        values = values_of(x).index_select(axis - data.sparse_dim + 1, index)
        return place(Sparse(data.indices, values.detach(), x.shape[:axis] + index.shape + x.shape[axis + 1 :], data.coalesced), values)
    along, order = data.indices[axis].sort(stable=True)
    left, right = _pairs(index.to(mortice.int64), along, x.shape[axis])
    picked = order[right]
    rows = data.indices.index_select(1, picked)
    rows = mortice.stack([left if d == axis else row for d, row in enumerate(rows)])
    values = values_of(x).index_select(0, picked)
    shape = [len(index) if d == axis else s for d, s in enumerate(x.shape)]
    return place(Sparse(rows, values.detach(), shape), values)


def _mixed_sub(x: Any, y: Any) -> Any:
    # Bools are refused, and unsigned numbers turned where there is room below zero.
    if _sparse(x):
        return _mixed_add(x, -y)
    return _mixed_add(x, -(y if y.dtype is mortice.bool else y.to(mortice.promote_types(x.dtype, y.dtype))))


MIXED: dict[str, Callable[..., Any]] = {
    "add": _mixed_add, "sub": _mixed_sub, "mul": _mixed_mul, "div": _mixed_div, "matmul": _mixed_matmul,
    "take": _mixed_take, "linear": lambda x, w, b=None: _mixed_matmul(x, w.t()) if b is None else _mixed_matmul(x, w.t()) + b,
}  # fmt: skip
for _name in ("floordiv", "floor_divide", "div_floor", "div_trunc"):
    _mode = "trunc" if "trunc" in _name else "floor"
    RULES[_name], MIXED[_name] = partial(_div, rounding_mode=_mode), partial(_mixed_div, rounding_mode=_mode)
LEVEL.backend_class, LEVEL.mixed, LEVEL.merging = SparseBackend, MIXED, frozenset([f"{name}_" for name in ZERO_TO_ZERO.split()])
