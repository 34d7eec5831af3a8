"""Compressed sparse tensors: CSR and CSC, and BSR and BSC, whose values are blocks.

One class serves the four layouts: they differ in which of the two dims is compressed, and in the size of the blocks. Its
buffer tells the coordinates of all values, so that what operations mean is what they mean for tensors in coordinate form.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, wraps
from typing import Any

import mortice
from mortice.dtype import CLASS_NAMES
from mortice.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from mortice.shape import Size, prod
from mortice.sparse.coo import Sparse, add_up, layout_name, place, to_sparse, values_of
from mortice.tensor import TensorBase

BY_ROWS, BLOCKED = (sparse_csr, sparse_bsr), (sparse_bsr, sparse_bsc)
LAYOUTS = (*BY_ROWS, sparse_csc, sparse_bsc)


def index_names(layout: Any) -> tuple[str, str]:
    """Return what the compressed and the plain indices of a layout are called."""
    return ("crow_indices", "col_indices") if layout in BY_ROWS else ("ccol_indices", "row_indices")


class Compressed(Sparse):
    """The buffer of a compressed sparse tensor.

    `starts` says for each row (of blocks; each column in CSC and BSC) where its values begin, and where the last one's end,
    `plain` the column of each value. Both may have batch dims. `values` has one row for each element of each block.
    """

    distinct, node = True, "SparseCompressedTensorBackward0"

    def __init__(self, layout: Any, starts: Any, plain: Any, values: Any, shape: Any, block: Any = ()) -> None:
        self.layout, self.starts, self.plain, self.values = layout, starts, plain, values
        self.shape, self.block = Size(shape), tuple(block)

    def pieces(self) -> tuple[Any, ...]:
        return self.layout, self.starts, self.plain, self.values, self.shape, self.block

    def emptied(self) -> Compressed:
        starts, plain = mortice.zeros_like(self.starts), self.plain[..., :0]
        return Compressed(self.layout, starts, plain, self.values[:0], self.shape, self.block)

    @property
    def batch(self) -> int:  # type: ignore[override]
        return len(self.plain.shape) - 1

    @property
    def sparse_dim(self) -> int:
        return self.batch + 2

    @property
    def nnz(self) -> int:
        return tuple(self.plain.shape)[-1]

    @property
    def stored_shape(self) -> Any:
        return Size((*self.plain.shape, *self.block, *self.values.shape[1:]))

    @property
    def parts(self) -> dict[str, Any]:
        names = index_names(self.layout)
        stored = self.values.detach().reshape(self.stored_shape)
        return {names[0]: self.starts.detach(), names[1]: self.plain.detach(), "values": stored}

    @cached_property
    def indices(self) -> Any:
        """The place of each value, as in coordinate form."""
        sizes = self.starts.diff(dim=-1).reshape(-1).long()
        groups = mortice.arange(len(sizes), device=sizes.device).repeat_interleave(sizes, output_size=self.plain.numel())
        many = max(tuple(self.starts.shape)[-1] - 1, 1)
        pair = [groups % many, self.plain.reshape(-1).long()]
        pair = pair if self.layout in BY_ROWS else pair[::-1]
        outer, rest = [], groups // many
        if self.block:
            h, w = self.block
            inner = [mortice.arange(h, device=rest.device).unsqueeze(1), mortice.arange(w, device=rest.device)]
            pair = [
                (at.reshape(-1, 1, 1) * n + i).expand(-1, h, w).reshape(-1) for at, n, i in zip(pair, (h, w), inner)
            ]
            rest = rest.repeat_interleave(h * w)
        for size in reversed(tuple(self.shape)[: self.batch]):
            outer.append(rest % max(size, 1))
            rest = rest // max(size, 1)
        return mortice.stack([*reversed(outer), *pair])

    @cached_property
    def coalesced(self) -> bool:  # type: ignore[override]
        """Whether the values are in order, row by row."""
        return not self.nnz or bool((self.numbers.diff() > 0).all())

    def permute(self, axes: Any) -> Compressed:
        """Swap the two dims, which turns CSR into CSC, or reorder the batch dims, or the dense ones."""
        b, batch, both = self.batch, list(axes[: self.batch]), list(axes[self.batch : self.batch + 2])
        if sorted(batch) != list(range(b)) or sorted(both) != [b, b + 1]:
            raise RuntimeError(
                f"permute: batch, sparse and dense dims of a compressed tensor do not change places; got {axes}."
            )
        turn, n = both[0] > both[1], len(self.block)
        block = [b + 2, b + 1] if turn else [b + 1, b + 2]
        order = [*batch, b, *block[:n], *[a - 1 + n for a in axes[b + 2 :]]]
        values = self.values.reshape(self.stored_shape).permute(order)
        values = values.reshape(self.values.shape[0], *values.shape[b + 1 + n :])
        layout = dict(zip(LAYOUTS, LAYOUTS[2:] + LAYOUTS[:2]))[self.layout] if turn else self.layout
        starts, plain = self.starts.permute(*batch, b), self.plain.permute(*batch, b)
        return Compressed(
            layout, starts, plain, values, [self.shape[a] for a in axes], self.block[::-1] if turn else self.block
        )


def compress(t: Any, layout: Any, block: Any = ()) -> Any:
    """Return a sparse tensor of any layout in a compressed one; the dims before its last two sparse ones become batch dims."""
    data, values = t._buffer, values_of(t)
    n, (h, w) = data.sparse_dim, block or (1, 1)
    *outer, r, c = data.indices
    batch, (rows, columns) = tuple(data.shape)[: n - 2], tuple(data.shape)[n - 2 : n]
    lead, plain, many, few = r // h, c // w, rows // h, columns // w
    if layout not in BY_ROWS:
        lead, plain, many, few = plain, lead, few, many
    for size, at in zip(reversed(batch), reversed(outer)):
        lead, many = at * many + lead, many * size
    numbers, where = mortice.unique(lead * few + plain, return_inverse=True)
    flat = add_up(values, (where * h + r % h) * w + c % w, len(numbers) * h * w)
    few, nnz = max(few, 1), len(numbers) // max(prod(batch), 1)
    ends = mortice.bincount(numbers // few, minlength=many).reshape(*batch, many // max(prod(batch), 1)).cumsum(-1)
    starts = mortice.nn.functional.pad(ends, (1, 0))
    if not (starts[..., -1] == nnz).all():
        raise RuntimeError("to_sparse: Expect the same number of specified elements per batch.")
    kind = data.starts.dtype if isinstance(data, Compressed) else mortice.int64
    made = Compressed(
        layout, starts.to(kind), (numbers % few).reshape(*batch, nnz).to(kind), flat.detach(), data.shape, block
    )
    return place(made, flat)


def to_layout(t: Any, layout: Any, block: Any = None, dense_dim: int | None = None) -> Any:
    """Convert to a compressed layout: blocks that have an element other than 0 are kept whole."""
    if layout not in LAYOUTS:
        raise RuntimeError(f"to_sparse: expected a layout of sparse tensors; got {layout}.")
    if (block is None) is (layout in BLOCKED):
        said = "without" if block is None else "with"
        raise RuntimeError(
            f"to_sparse: conversion from {layout_name(t.layout)} to {layout_name(layout)} {said} blocksize argument given is not supported"
        )
    block = (block, block) if isinstance(block, int) else tuple(block or ())
    if isinstance(t._buffer, Compressed) and (t._buffer.layout, t._buffer.block) == (layout, block):
        return t
    if isinstance(t._buffer, Sparse):
        if dense_dim not in (None, t.dense_dim()):
            raise RuntimeError(f"to_sparse: expected dense_dim to be {t.dense_dim()}, as it is; got {dense_dim}.")
        if t.layout is sparse_coo and t.sparse_dim() != 2:
            raise RuntimeError(
                f"to_sparse: conversion from Sparse to {layout_name(layout)} for input tensors with sparse_dim()!=2 is not supported; "
                f"got {t.sparse_dim()}."
            )
    n = t._buffer.sparse_dim if isinstance(t._buffer, Sparse) else t.ndim - (dense_dim or 0)
    if n < 2:
        raise IndexError(f"to_sparse: expected at least 2 dims that are not dense for {layout_name(layout)}; got {n}.")
    sizes = tuple(t.shape)[n - 2 : n]
    if block and (len(block) != 2 or min(block) < 1 or sizes[0] % block[0] or sizes[1] % block[1]):
        raise RuntimeError(
            f"to_sparse: tensor sparse size ({sizes[0]},{sizes[1]}) must be divisible by given blocksize ({','.join(map(str, block))})"
        )
    return compress(t if isinstance(t._buffer, Sparse) else to_sparse(t, n), layout, block)


# ---- making one ----


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool | None = False, requires_grad: bool = False, check_invariants: bool | None = None,
    name: str = "sparse_compressed_tensor",
) -> Any:  # fmt: skip
    """Make a compressed sparse tensor of where each row (or column) begins, of the other places, and of values.

    Differs from torch: numbers that would lead outside of the tensor are refused also where `check_invariants` does not ask
    for it.
    """
    if layout not in LAYOUTS:
        given = "none" if layout is None else layout_name(layout)
        raise RuntimeError(f"{name} expected sparse compressed tensor layout but got {given}")
    values = values if isinstance(values, TensorBase) else mortice.tensor(values, device=device)
    values = values.to(device=device or values.device, dtype=dtype or values.dtype)
    places = []
    for x in (compressed_indices, plain_indices):
        x = x if isinstance(x, TensorBase) else mortice.tensor(x, device=values.device)
        places.append(x.to(values.device, x.dtype if x.numel() or x.dtype.kind in "ui" else mortice.int64).detach())
    if check_invariants is None:
        check_invariants = check_sparse_tensor_invariants.is_enabled()
    starts, plain = places
    if starts.dtype is not plain.dtype and not check_invariants:
        starts, plain = starts.long(), plain.long()
    blocks = 2 if layout in BLOCKED else 0
    if size is None:
        block = tuple(values.shape)[plain.ndim : plain.ndim + blocks] or (1, 1)
        pair = [max(starts.shape[-1] - 1, 0) if starts.ndim else 0, int(plain.amax()) + 1 if plain.numel() else 0]
        pair = pair if layout in BY_ROWS else pair[::-1]
        size = [*plain.shape[:-1], *[n * b for n, b in zip(pair, block)], *values.shape[plain.ndim + blocks :]]
    size = Size([int(s) for s in size])
    for wrong, text in _faults(layout, starts, plain, values, size, check_invariants):
        if wrong:
            raise RuntimeError(text)
    if requires_grad:
        values = values.detach()
    inner = plain.ndim + blocks
    flat, block = (
        values.reshape(prod(values.shape[:inner]), *values.shape[inner:]),
        tuple(values.shape)[plain.ndim : inner],
    )
    made = place(Compressed(layout, starts, plain, flat.detach(), size, block), flat)
    return made.requires_grad_() if requires_grad else made


def _faults(layout: Any, starts: Any, plain: Any, values: Any, size: Any, fully: bool) -> Iterator[tuple[Any, str]]:
    """Tell what makes no tensor, in PyTorch's words; if `fully`, also what PyTorch asks for and nothing here needs."""
    one, other = index_names(layout)
    by_rows, blocks, batch = layout in BY_ROWS, 2 if layout in BLOCKED else 0, starts.ndim - 1
    dense = values.ndim - batch - 1 - blocks
    for name, x in ((one, starts), (other, plain)) if fully else ():
        yield x.ndim and x.shape[-1] > 1 and x.stride(-1) != 1, f"expected {name} to be a contiguous tensor per batch"
    yield batch < 0, f"{one} must have dimensionality >= 1 but got 0"
    both = f"{one} and {other}"
    yield (
        starts.ndim != plain.ndim,
        f"{both} dimensionalities must be equal but got {starts.ndim} and {plain.ndim}, respectively",
    )
    sums = f"(={batch} + {blocks}) but got {values.ndim}"
    yield dense < 0, f"values must have dimensionality > sum of batch and block dimensionalities {sums}"
    sums = f"(={batch} + 2 + {dense}) but got {len(size)}"
    yield (
        len(size) != batch + 2 + dense,
        f"tensor dimensionality must be sum of batch, base, and dense dimensionalities {sums}",
    )
    found, wanted = [list(x.shape[:batch]) for x in (starts, plain, values)], list(size[:batch])
    told = f"{one} (={found[0]}), {other} (={found[1]}), and values (={found[2]})"
    yield found != [wanted] * 3, f"all batch dimensions of {told} must be equal to tensor batch dimensions (={wanted})"
    counts = []
    for d, n in enumerate(tuple(values.shape)[batch + 1 : batch + 1 + blocks] or (1, 1)):
        whole, told = size[batch + d], f"divisible with blocksize[{d}] (={n}) as defined by values shape"
        yield not n or whole % n, f"tensor shape[{batch + d}] (={whole}) must be {told}"
        counts.append(whole // n)
    (many, few), nnz = counts if by_rows else counts[::-1], values.shape[batch]
    told = (
        f"{'row' if by_rows else 'column'}{' block' if blocks else ''}s + 1 (={many + 1}), but got {starts.shape[-1]}"
    )
    yield starts.shape[-1] != many + 1, f"{one}.shape[-1] must be equal to the number of {told}"
    told = f"nnz (={nnz}) as defined by values.shape[{batch}], but got {plain.shape[-1]}"
    yield plain.shape[-1] != nnz, f"{other}.shape[-1] must be equal to {told}"
    kinds = [CLASS_NAMES[x.dtype.name] for x in (starts, plain)]
    yield kinds[0] != kinds[1], f"{both} must have the same dtype, bot got {kinds[0]} and {kinds[1]}, respectively"
    yield kinds[0] not in ("Int", "Long"), f"{both} dtype must be Int or Long, but got {kinds[0]}"
    if starts.is_meta:
        return
    yield (starts[..., 0] != 0).any(), f"`{one}[..., 0] == 0` is not satisfied."
    yield (starts[..., -1] != nnz).any(), f"`{one}[..., -1] == nnz` is not satisfied."
    sizes, few_name = starts.diff(dim=-1), "ncols" if by_rows else "nrows"
    yield (
        ((sizes < 0) | (sizes > few)).any(),
        f"`0 <= {one}[..., 1:] - {one}[..., :-1] <= {few_name}` is not satisfied.",
    )
    yield ((plain < 0) | (plain >= few)).any(), f"`0 <= {other} < {few_name}` is not satisfied."
    if fully and nnz:
        groups = mortice.arange(sizes.numel(), device=sizes.device).repeat_interleave(sizes.reshape(-1).long())
        told = f"for all i = 1, ..., {'nrows' if by_rows else 'ncols'} are sorted and distinct along the last dimension values"
        unordered = ((groups * few + plain.reshape(-1)).diff() <= 0).any()
        yield unordered, f"`{other}[..., {one}[..., i - 1]:{one}[..., i]] {told}` is not satisfied."


def _constructor(layout: Any) -> Any:
    name = str(layout).rpartition(".")[2] + "_tensor"
    one, other = index_names(layout)

    def make(*args: Any, layout: Any = layout, **named: Any) -> Any:
        for at, key in enumerate((one, other)):
            if key in named:
                args = (*args[:at], named.pop(key), *args[at:])
        if len(args) + ("values" in named) + ("size" in named) < 3:
            raise TypeError(f"{name}: expected {one}, {other}, values, and a size perhaps; got {len(args)} arguments.")
        if layout is not own:
            raise RuntimeError(f"{name}: layout must be {layout_name(own)} but got {layout_name(layout)}")
        return sparse_compressed_tensor(*args, layout=own, name=name, **named)

    own = layout
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Make a sparse tensor of the layout {name[:-7]}: `{name}({one}, {other}, values, size)`."
    return make


sparse_csr_tensor, sparse_csc_tensor = _constructor(sparse_csr), _constructor(sparse_csc)
sparse_bsr_tensor, sparse_bsc_tensor = _constructor(sparse_bsr), _constructor(sparse_bsc)


class check_sparse_tensor_invariants:
    """Say whether sparse tensors are checked fully when they are made: as a context, a decorator, or for good."""

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state, self.saved = enable, None

    @staticmethod
    def is_enabled() -> bool:
        """Tell whether they are."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Check them from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Check no more than is needed from now on."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self.saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different one for context nesting."
            )
        self.saved = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc: Any) -> None:
        assert self.saved is not None
        check_sparse_tensor_invariants._enabled, self.saved = self.saved, None

    def __call__(self, fn: Any) -> Any:
        @wraps(fn)
        def wrapped(*args: Any, **named: Any) -> Any:
            with type(self)(self.state):
                return fn(*args, **named)

        return wrapped


# ---- methods ----


def _reader(name: str) -> Any:
    def read(self: Any) -> Any:
        data = self._buffer
        if not isinstance(data, Compressed) or name not in index_names(data.layout):
            kind = "row" if name in index_names(sparse_csr) else "column"
            raise RuntimeError(
                f"{name} expected sparse {kind} compressed tensor layout but got {layout_name(self.layout)}"
            )
        return data.parts[name]

    read.__name__ = read.__qualname__ = name
    read.__doc__ = "Return the places of a compressed tensor along one dim, or where each row or column of it begins."
    return read


crow_indices, col_indices = map(_reader, index_names(sparse_csr))
ccol_indices, row_indices = map(_reader, index_names(sparse_csc))


def _converter(layout: Any) -> Any:
    if layout in BLOCKED:

        def convert(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
            return to_layout(self, layout, blocksize, dense_dim)

    else:

        def convert(self: Any, dense_dim: int | None = None) -> Any:
            return to_layout(self, layout, None, dense_dim)

    kind = str(layout).rpartition(".")[2]
    convert.__name__ = convert.__qualname__ = f"to_{kind}"
    convert.__doc__ = f"Return it as a sparse tensor of the layout {kind}."
    return convert


to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc = map(
    _converter, (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
)
