"""The kernels' arithmetic on plain Python numbers: slow, short and exact about what each kernel means.

Replace it piece by piece with your library; the conformance kit says after each step whether it still means the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

INF, NAN = math.inf, math.nan
product, sums = math.prod, accumulate


# ---- elements ----


def element(value: Any, dtype: Any) -> Any:
    """Return a number as an element of the dtype; memory itself rounds to float32."""
    if dtype.kind == "b":
        return value != 0
    if dtype.kind == "f":
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    bits = 8 * dtype.itemsize
    low = int(value) & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low


def guarded(fn: Callable[[float], float], beyond: float = INF) -> Callable[[float], float]:
    """Return a function of math's that gives what IEEE 754 has where math raises."""

    def call(v: float) -> float:
        try:
            return fn(v)
        except OverflowError:
            return beyond
        except ValueError:
            return NAN

    return call


exp, sqrt, sin, cos, tanh = (guarded(fn) for fn in (math.exp, math.sqrt, math.sin, math.cos, math.tanh))


def log(v: float) -> float:
    """Take the natural logarithm."""
    return math.log(v) if v > 0 else -INF if v == 0 else NAN


def sign(v: Any) -> Any:
    """Give -1, 0 or 1, or nan."""
    return v if v != v or not v else math.copysign(1, v)


def floor(v: Any) -> Any:
    """Round down."""
    return math.copysign(math.floor(v), v) if isinstance(v, float) and math.isfinite(v) else v


def divide(a: float, b: float) -> float:
    """Divide floats."""
    if b:
        return a / b
    return math.copysign(INF, a) * math.copysign(1, b) if a and a == a else NAN


def floor_divide(a: Any, b: Any) -> Any:
    """Divide and round down."""
    return a // b if b else divide(a, b) if isinstance(a, float) else 0


def remainder(a: Any, b: Any) -> Any:
    """Return what is left of a division."""
    return a % b if b else NAN if isinstance(a, float) else 0


def pow(a: Any, b: Any) -> Any:
    """Raise to a power."""
    if not isinstance(a, float):
        return a**b if b >= 0 else 0
    odd = math.isfinite(b) and b % 2 == 1
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INF if a < 0 and odd else INF
    except ValueError:
        return NAN if a else math.copysign(INF, a) if odd else INF


def larger(a: Any, b: Any) -> Any:
    """Return the larger, or nan."""
    return a if a != a or a >= b else b


def smaller(a: Any, b: Any) -> Any:
    """Return the smaller, or nan."""
    return a if a != a or a <= b else b


def rank(v: Any) -> tuple[bool, Any]:
    """Return what orders elements: nan is above all."""
    return (True, 0) if v != v else (False, v)


# ---- shapes: an array is read by positions in its flat memory ----


def size(shape: Sequence[int]) -> int:
    """Count the elements of a shape."""
    return math.prod(shape)


def steps(start: Any, stop: Any, step: Any) -> int:
    """Count the steps from start to stop."""
    return max(0, math.ceil((stop - start) / step))


def inferred(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """Return a shape with its -1 replaced."""
    known = size([n for n in shape if n != -1])
    return tuple(count // known if n == -1 else n for n in shape)


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how far apart neighbours along each axis are in row-major order."""
    return tuple(size(shape[i + 1 :]) for i in range(len(shape)))


def positions(shape: Iterable[int], step: Iterable[int], start: int = 0) -> list[int]:
    """Return the position in memory of each element, in row-major order."""
    found = [start]
    for n, s in zip(shape, step):
        found = [p + i * s for p in found for i in range(n)]
    return found


def stretched(shape: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """Return the strides that read an array as one of the larger shape: 0 where it repeats."""
    own = tuple(0 if n == 1 else s for n, s in zip(shape, strides(shape)))
    return (0,) * (len(to) - len(shape)) + own


def spread(x: Any, shape: Sequence[int]) -> Sequence[Any]:
    """Return the elements of x broadcast to a shape."""
    if tuple(shape) == x.shape:
        return x.data
    return [x.data[p] for p in positions(shape, stretched(x.shape, shape))]


def common(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which all broadcast."""
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(s)) + tuple(s) for s in shapes]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded))


def lines(shape: Sequence[int], axes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return where the lines along some axes begin, and the way from there to each of their elements."""
    step = strides(shape)
    outer = [i for i in range(len(shape)) if i not in axes]
    return (
        positions([shape[i] for i in outer], [step[i] for i in outer]),
        positions([shape[i] for i in axes], [step[i] for i in axes]),
    )


# ---- kernels ----


def unary(fn: Callable[[Any], Any], x: Any, dtype: Any = None) -> Any:
    """Map a function over the elements."""
    dtype = dtype or x.dtype
    return x.like([element(fn(v), dtype) for v in x.data], x.shape, dtype)


def pair(x: Any, y: Any) -> tuple[Any, Any]:
    """Turn a Python number into a 0-d buffer of the other's dtype."""
    if not hasattr(x, "dtype"):
        x = y.like([element(x, y.dtype)], ())
    if not hasattr(y, "dtype"):
        y = x.like([element(y, x.dtype)], ())
    return x, y


def binary(fn: Callable[[Any, Any], Any], x: Any, y: Any, dtype: Any = None) -> Any:
    """Map a function over the elements of two operands."""
    x, y = pair(x, y)
    shape, dtype = common(x.shape, y.shape), dtype or x.dtype
    return x.like([element(fn(a, b), dtype) for a, b in zip(spread(x, shape), spread(y, shape))], shape, dtype)


def where(cond: Any, x: Any, y: Any) -> Any:
    """Choose between two operands."""
    x, y = pair(x, y)
    shape = common(cond.shape, x.shape, y.shape)
    return x.like([a if c else b for c, a, b in zip(*(spread(t, shape) for t in (cond, x, y)))], shape)


def reduce(fn: Callable[[Any], Any], x: Any, axis: Any, keepdims: bool, dtype: Any = None) -> Any:
    """Apply a function to the elements along axes."""
    ndim, dtype = len(x.shape), dtype or x.dtype
    given = range(ndim) if axis is None or not ndim else axis if isinstance(axis, tuple) else (axis,)
    axes = [i % ndim for i in given]
    starts, way = lines(x.shape, axes)
    values = [element(fn([x.data[p + q] for q in way]), dtype) for p in starts]
    return x.like(values, [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes], dtype)


def least(row: list[Any]) -> Any:
    """Return the smallest, or nan."""
    return min(row, key=lambda v: (v == v, v))


def first_largest(row: list[Any]) -> int:
    """Return where the largest is first."""
    return max(range(len(row)), key=lambda i: rank(row[i]))


def along(x: Any, axis: int, fn: Callable[[list[Any]], Iterable[Any]], dtype: Any = None) -> Any:
    """Replace each line along an axis by what a function makes of it."""
    if not x.shape:
        return x.like(fn(list(x.data)), (), dtype)
    dtype = dtype or x.dtype
    starts, way = lines(x.shape, [axis % len(x.shape)])
    out = [0] * len(x.data)
    for p in starts:
        for q, v in zip(way, fn([x.data[p + q] for q in way])):
            out[p + q] = element(v, dtype)
    return x.like(out, x.shape, dtype)


def order(row: list[Any], descending: bool) -> list[int]:
    """Return the positions that sort; Python's sort is stable both ways."""
    return sorted(range(len(row)), key=lambda i: rank(row[i]), reverse=descending)


def permute_dims(x: Any, axes: Sequence[int]) -> Any:
    """Order the axes anew."""
    step, shape = strides(x.shape), [x.shape[i] for i in axes]
    return x.like([x.data[p] for p in positions(shape, [step[i] for i in axes])], shape)


def concat(arrays: Sequence[Any], axis: int) -> Any:
    """Join along an axis: block after block of each array in turn."""
    first = arrays[0]
    axis %= len(first.shape)
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in arrays)
    blocks = [size(x.shape[axis:]) for x in arrays]
    rows = range(size(shape[:axis]))
    return first.like([v for r in rows for x, n in zip(arrays, blocks) for v in x.data[r * n : (r + 1) * n]], shape)


def selected(shape: Sequence[int], key: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Return the shape and the positions that a basic key selects."""
    parts = list(key)
    named = sum(part is not None and part is not Ellipsis for part in parts)
    rest = [slice(None)] * (len(shape) - named)
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[at : at + 1] = rest
    sizes, step, start, axis, own = [], [], 0, 0, strides(shape)
    for part in parts:
        if part is None:
            sizes.append(1)
            step.append(0)
            continue
        if isinstance(part, slice):
            taken = range(shape[axis])[part]
            sizes.append(len(taken))
            step.append(own[axis] * taken.step)
            start += own[axis] * taken.start
        else:
            start += own[axis] * (part % shape[axis])
        axis += 1
    return sizes, positions(sizes, step, start)


def getitem(x: Any, key: Sequence[Any]) -> Any:
    """Read at a key."""
    shape, at = selected(x.shape, key)
    return x.like([x.data[p] for p in at], shape)


def setitem(x: Any, key: Sequence[Any], value: Any) -> Any:
    """Write at a key, into a copy."""
    shape, at = selected(x.shape, key)
    _, value = pair(x, value)
    out = x.like(x.data, x.shape)
    for p, v in zip(at, spread(value, shape)):
        out.data[p] = v
    return out


def matmul(x: Any, y: Any) -> Any:
    """Multiply matrices, row by column."""
    a, b = (1, *x.shape)[-max(2, len(x.shape)) :], y.shape if len(y.shape) > 1 else (*y.shape, 1)
    batch, (m, inner), n = common(a[:-2], b[:-2]), a[-2:], b[-1]
    left = positions(batch, stretched((*a[:-2], m * inner), (*batch, m * inner)))
    right = positions(batch, stretched((*b[:-2], inner * n), (*batch, inner * n)))
    out = []
    for p, q in zip(left, right):
        rows = [x.data[p + i * inner : p + (i + 1) * inner] for i in range(m)]
        columns = [y.data[q + j : q + inner * n : n] for j in range(n)]
        out += [element(sum(map(mul, row, column)), x.dtype) for row in rows for column in columns]
    return x.like(out, (*batch, *((m,) if len(x.shape) > 1 else ()), *((n,) if len(y.shape) > 1 else ())))


def take(x: Any, indices: Any, axis: int) -> Any:
    """Pick positions along an axis."""
    axis %= len(x.shape)
    starts, way = lines(x.shape, range(axis, axis + 1))
    shape = (*x.shape[:axis], len(indices.data), *x.shape[axis + 1 :])
    out = x.like([0] * size(shape), shape)
    there, step = lines(shape, [axis])
    for p, q in zip(starts, there):
        for s, i in zip(step, indices.data):
            out.data[q + s] = x.data[p + way[i]]
    return out


def aimed(x: Any, indices: Any, axis: int) -> list[int]:
    """Return the position in x that each index means: its own place, but for the axis."""
    own = strides(x.shape)
    axis %= len(own)
    rest = positions(indices.shape, [0 if i == axis else s for i, s in enumerate(own)])
    return [p + i * own[axis] for p, i in zip(rest, indices.data)]


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """Pick along an axis."""
    return x.like([x.data[p] for p in aimed(x, indices, axis)], indices.shape)


def scatter_add(x: Any, indices: Any, values: Any, axis: int) -> Any:
    """Add values at positions, into a copy."""
    out = x.like(x.data, x.shape)
    for p, v in zip(aimed(x, indices, axis), values.data):
        out.data[p] = element(out.data[p] + v, x.dtype)
    return out
