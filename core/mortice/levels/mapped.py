"""MappedBackend: every kernel over a batch at once. A buffer is one of the level below with the batch as axis 0.

Here are the rules of the REQUIRED kernels; the bodies of the FREE kernels and of ops then run over a batch as they are.
`mapped_rules` has the rules that save work: a kernel that treats leading axes, or samples, alike need not be taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from mortice.backends.kernels import FreeKernels
from mortice.device import Device
from mortice.levels import DataDependent
from mortice.levels.backend import LevelBackend
from mortice.shape import prod


class Mapped:
    """A buffer of a mapped level: `data` below; `on` says that its axis 0 is the batch, else all lanes share it."""

    __slots__ = ("data", "on")

    def __init__(self, data: Any, on: bool) -> None:
        self.data, self.on = data, on


ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. The same holds for data-dependent control flow "
    "(`if`, bool()), and for int() and float() of a Tensor: use where."
)
DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {}. Use "
    "where, or multiply by a mask."
)

class MappedTable(dict[Any, Callable[..., Any]]):
    """The compiled ops of a mapped backend."""

    def __init__(self, backend: MappedBackend) -> None:
        self.backend = backend

    def __missing__(self, op: Any) -> Callable[..., Any]:
        found = self[op] = MappedBackend.rule_for(self.backend, op)
        return found


class MappedBackend(LevelBackend, FreeKernels):
    """The backend of a vmap level."""

    rule_for: ClassVar[Callable[[Any, Any], Callable[..., Any]]]  # finds what computes an op; set by `mapped_rules`

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.table = MappedTable(self)

    # ---- housekeeping ----

    def _constant(self, data: Any) -> Mapped:
        return Mapped(data, False)

    def _parts(self, x: Mapped) -> Any:
        return x.data

    def shape_of(self, x: Mapped) -> Any:
        shape = self.inner.shape_of(x.data)
        return tuple(shape)[1:] if x.on else shape

    def copy_to(self, x: Mapped, device: Device) -> Mapped:
        return Mapped(self.inner.copy_to(x.data, device.inner), x.on)

    def to_host(self, x: Mapped) -> Any:
        if x.on:
            raise DataDependent(ITEM)
        return self.inner.to_host(x.data)

    def detached(self, x: Mapped) -> Mapped:
        data = self.detached_below(x.data)
        return x if data is x.data else Mapped(data, x.on)

    def with_tangents(self, x: Mapped, y: Mapped) -> Mapped:
        if not isinstance(self.inner, LevelBackend):
            return x
        both = (x.data, y.data) if x.on is y.on else [self.spread(b, self.lanes((x, y))) for b in (x, y)]
        return Mapped(self.with_tangents_below(*both), x.on or y.on)

    def item(self, x: Mapped) -> Any:
        if x.on:
            raise DataDependent(ITEM)
        return self.inner.item(x.data)

    def index_range(self, indices: Mapped) -> Any:
        """Read the least and the greatest of all lanes: what a check needs."""
        return self.inner.index_range(indices.data)

    def refuse_outside(self, x: Mapped, *rest: Any) -> Any:
        return self.inner.refuse_outside(x.data, *rest)

    def flat_nonzero(self, x: Mapped) -> Mapped:
        if x.on:
            raise DataDependent(DYNAMIC.format("nonzero"))
        return Mapped(self.inner.flat_nonzero(x.data), False)

    # ---- lanes ----

    def rank(self, x: Mapped) -> int:
        """Return the number of axes that a lane has."""
        return len(self.inner.shape_of(x.data)) - x.on

    def lanes(self, xs: Sequence[Any]) -> int:
        """Return the size of the batch, known from any operand that has it."""
        for x in xs:
            if type(x) is Mapped and x.on:
                return self.inner.shape_of(x.data)[0]  # type: ignore[no-any-return]
        raise ValueError("no operand is mapped")

    def spread(self, x: Mapped, n: int) -> Any:
        """Return the buffer below with the batch as axis 0, repeated where all lanes share it."""
        if x.on:
            return x.data
        return self.inner.broadcast_to(x.data, (n, *self.inner.shape_of(x.data)))

    def widen(self, data: Any, missing: int) -> Any:
        """Insert axes of 1 behind the batch, so that lanes of fewer axes broadcast from the right."""
        if not missing:
            return data
        n, *rest = self.inner.shape_of(data)
        return self.inner.reshape(data, (n, *[1] * missing, *rest))

    def align(self, xs: Sequence[Any]) -> tuple[list[Any], bool]:
        """Return buffers below that broadcast as their lanes do, and whether any is mapped."""
        on, ranks = False, []
        for x in xs:
            if type(x) is Mapped:
                on = on or x.on
                ranks.append(self.rank(x))
        most = max(ranks, default=0)
        found, at = [], iter(ranks)
        for x in xs:
            if type(x) is Mapped:
                missing = most - next(at)
                found.append(self.widen(x.data, missing) if x.on and missing else x.data)
            else:
                found.append(x)
        return found, on

    def elementwise(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Make the rule of a kernel below that broadcasts its operands."""
        shape_of, align = self.inner.shape_of, self.align

        def rule(*args: Any, **attrs: Any) -> Mapped:
            if len(args) == 1:
                return Mapped(kernel(args[0].data, **attrs), args[0].on)
            if len(args) == 2:
                x, y = args
                if type(x) is not Mapped:
                    return Mapped(kernel(x, y.data, **attrs), y.on)
                if type(y) is not Mapped:
                    return Mapped(kernel(x.data, y, **attrs), x.on)
                if x.on is y.on and len(shape_of(x.data)) == len(shape_of(y.data)):
                    return Mapped(kernel(x.data, y.data, **attrs), x.on)
            found, on = align(args)
            return Mapped(kernel(*found, **attrs), on)

        return rule

    # ---- REQUIRED kernels ----

    def reshape(self, x: Mapped, shape: Any) -> Mapped:
        if not x.on:
            return Mapped(self.inner.reshape(x.data, shape), False)
        n, *rest = self.inner.shape_of(x.data)
        shape = tuple(shape)
        if -1 in shape:
            known = -prod(shape)
            shape = tuple([prod(rest) // known if m == -1 and known else m for m in shape])
        return Mapped(self.inner.reshape(x.data, (n, *shape)), True)

    def permute_dims(self, x: Mapped, axes: Any) -> Mapped:
        if not x.on:
            return Mapped(self.inner.permute_dims(x.data, axes), False)
        rank = self.rank(x)
        return Mapped(self.inner.permute_dims(x.data, (0, *[a % rank + 1 for a in axes])), True)

    def broadcast_to(self, x: Mapped, shape: Any) -> Mapped:
        if not x.on:
            return Mapped(self.inner.broadcast_to(x.data, shape), False)
        missing = len(shape) - self.rank(x)
        data = self.widen(x.data, missing) if missing else x.data
        return Mapped(self.inner.broadcast_to(data, (self.inner.shape_of(data)[0], *shape)), True)

    def concat(self, arrays: Any, *, axis: int) -> Mapped:
        arrays = list(arrays)
        if not any([a.on for a in arrays]):
            return Mapped(self.inner.concat([a.data for a in arrays], axis=axis), False)
        n, rank = self.lanes(arrays), self.rank(arrays[0])
        return Mapped(self.inner.concat([self.spread(a, n) for a in arrays], axis=axis % rank + 1), True)

    def getitem(self, x: Mapped, key: Any) -> Mapped:
        if not x.on:
            return Mapped(self.inner.getitem(x.data, key), False)
        return Mapped(self.inner.getitem(x.data, (slice(None), *key)), True)

    def setitem(self, x: Mapped, key: Any, value: Any) -> Mapped:
        mapped = type(value) is Mapped and value.on
        if not x.on and not mapped:
            data = value.data if type(value) is Mapped else value
            return Mapped(self.inner.setitem(x.data, key, data), False)
        data = x.data if x.on else self.inner.copy(self.spread(x, self.lanes([value])))
        key = (slice(None), *key)
        if mapped:
            missing = len(self.inner.shape_of(self.inner.getitem(data, key))) - 1 - self.rank(value)
            value = self.widen(value.data, missing) if missing > 0 else value.data
        elif type(value) is Mapped:
            value = value.data
        return Mapped(self.inner.setitem(data, key, value), True)

    def matmul(self, x: Mapped, y: Mapped) -> Mapped:
        inner = self.inner
        a, b = x.data, y.data
        if not x.on and not y.on:
            return Mapped(inner.matmul(a, b), False)
        ra, rb = self.rank(x), self.rank(y)
        if x.on and not y.on:
            if rb <= 2:
                if ra < 2 or rb < 2:
                    return Mapped(inner.matmul(a, b), True)
                # One product of all lanes' rows.
                shape = inner.shape_of(a)
                rows = inner.reshape(a, (prod(shape[:-1]), shape[-1]))
                return Mapped(inner.reshape(inner.matmul(rows, b), (*shape[:-1], inner.shape_of(b)[-1])), True)
        elif y.on and not x.on and ra <= 2:
            if rb > 1:
                return Mapped(inner.matmul(a, b), True)
            return Mapped(inner.matmul(b, a if ra == 1 else inner.permute_dims(a, (1, 0))), True)
        # A vector is a matrix of one row or one column.
        rows = (1,) if ra == 1 else ()
        columns = (1,) if rb == 1 else ()
        if rows:
            a = inner.reshape(a, (*inner.shape_of(a)[:-1], 1, inner.shape_of(a)[-1]))
        if columns:
            b = inner.reshape(b, (*inner.shape_of(b), 1))
        ra, rb = max(ra, 2), max(rb, 2)
        a = self.widen(a, rb - ra) if x.on and rb > ra else a
        b = self.widen(b, ra - rb) if y.on and ra > rb else b
        # Matrices of one column and one row: their products are the elements', which no loop over the batch need make.
        out = (inner.multiply if inner.shape_of(a)[-1] == 1 else inner.matmul)(a, b)
        if rows or columns:
            shape = list(inner.shape_of(out))
            del shape[len(shape) - 1 if columns else len(shape) : len(shape)]
            if rows:
                del shape[-1 if columns else -2]
            out = inner.reshape(out, tuple(shape))
        return Mapped(out, True)

    def take(self, x: Mapped, indices: Mapped, *, axis: int) -> Mapped:
        axis = axis % self.rank(x)
        if not indices.on:
            return Mapped(self.inner.take(x.data, indices.data, axis=axis + x.on), x.on)
        n, m = self.inner.shape_of(indices.data)
        if not x.on:
            rows = self.inner.take(x.data, self.inner.reshape(indices.data, (n * m,)), axis=axis)
            shape = self.inner.shape_of(rows)
            rows = self.inner.reshape(rows, (*shape[:axis], n, m, *shape[axis + 1 :]))
            return Mapped(self.inner.moveaxis(rows, axis, 0), True)
        rows, at, back = self.joined(x, indices, axis)
        return back(self.inner.take(rows, at, axis=0), m)

    def joined(self, x: Mapped, indices: Mapped, axis: int) -> tuple[Any, Any, Callable[[Any, int], Mapped]]:
        """Return x with its lanes end to end along an axis that is moved to the front, and indices into that.

        The third result undoes it: `back(rows, m)` gives each lane m of the rows, in place of the axis.
        """
        inner, n = self.inner, self.lanes((x, indices))
        data, at = inner.moveaxis(self.spread(x, n), axis + 1, 1), self.spread(indices, n)
        size, rest = inner.shape_of(data)[1], tuple(inner.shape_of(data))[2:]
        start = inner.reshape(inner.multiply(inner.new_arange(at, 0, n), size), (n, 1))
        at = inner.reshape(inner.add(at, start), (prod(inner.shape_of(at)),))

        def back(rows: Any, m: int) -> Mapped:
            return Mapped(inner.moveaxis(inner.reshape(rows, (n, m, *rest)), 1, axis + 1), True)

        return inner.reshape(data, (n * size, *rest)), at, back

    # ---- random numbers ----

    def random_bits(self, seed: int, offset: int, n: int, *, device: Device) -> Mapped:
        level = device.level
        if level.randomness == "different":
            words = self.inner.random_bits(seed, offset, level.size * n, device=device.inner)
            return Mapped(self.inner.reshape(words, (level.size, n)), True)
        return Mapped(self.inner.random_bits(seed, offset, n, device=device.inner), False)
