"""Bunch and Kaufman's factorisation of symmetric and Hermitian matrices, packed as LAPACK does, and solving with it.

A step eliminates one column, or two that a 2 by 2 pivot takes together. Matrices of a batch may differ in that, so each
step prepares both and chooses: nothing is read on the host.
"""

from __future__ import annotations

import math
from typing import Any

from mortice import return_types
from mortice.backends.linalg_tools import adjoint, block, columns, gather_columns, gather_rows, rows, taxicab
from mortice.call import give
from mortice.dtype import int32
from mortice.errors import DTypeError, ShapeError
from mortice.op import op
from mortice.ops.elementwise import undefined
from mortice.ops.factor import full_precision, solved
from mortice.ops.linalg import check_matrix, check_one_dtype, check_pivots, check_square, fail
from mortice.ops.movement import expand
from mortice.ops.reduce import write_all
from mortice.shape import Size, broadcast

# A pivot of at least this share of its column's largest element keeps the growth of the others small.
_SHARE = (1 + math.sqrt(17)) / 8


def _turned(k: Any, x: Any, hermitian: bool) -> Any:
    return adjoint(k, x) if hermitian else k.matrix_transpose(x)


def _swapped(k: Any, order: Any, first: Any, second: Any) -> Any:
    """Exchange two places, counts of shape (..., 1), in the order of rows."""
    return k.where(k.equal(order, first), second, k.where(k.equal(order, second), first, order))


def _at(k: Any, x: Any, row: int, column: int) -> Any:
    return block(k, x, row, row + 1, column, column + 1)


def _choose(k: Any, w: Any, count: Any) -> tuple[Any, Any, Any]:
    """Return the place of the pivot of column 0, whether it takes two columns, and whether the column is all zeros."""
    *batch, n, _ = k.shape_of(w)
    size = k.reshape(taxicab(k, columns(k, w, None, 1)), (*batch, n))
    own = k.getitem(size, (..., slice(0, 1)))
    others = k.where(k.equal(count, 0), 0.0, size)
    best = k.argmax(others, axis=-1, keepdims=True)
    largest = k.max(others, axis=-1, keepdims=True)
    row = k.reshape(taxicab(k, gather_rows(k, w, best)), (*batch, n))
    corner = k.take_along_axis(row, best, axis=-1)
    row_largest = k.max(k.where(k.equal(count, best), 0.0, row), axis=-1, keepdims=True)
    empty = k.equal(k.maximum(own, largest), 0.0)
    safe = k.where(k.equal(row_largest, 0.0), 1.0, row_largest)
    stay = k.less_equal(k.multiply(largest, _SHARE), own)
    stay = k.logical_or(stay, k.less_equal(k.multiply(k.multiply(largest, _SHARE), k.divide(largest, safe)), own))
    stay = k.logical_or(stay, empty)
    two = k.logical_and(k.logical_not(stay), k.less(corner, k.multiply(row_largest, _SHARE)))
    return k.where(stay, 0, best), two, empty


def _solve_pair(k: Any, c: Any, a: Any, b: Any, d: Any, across: Any) -> tuple[Any, Any]:
    """Return both columns of c @ inverse([[a, across], [b, d]])."""
    determinant = k.subtract(k.multiply(a, d), k.multiply(b, across))
    determinant = k.where(k.equal(determinant, 0.0), 1.0, determinant)
    first, second = columns(k, c, 0, 1), columns(k, c, 1, 2)
    left = k.divide(k.subtract(k.multiply(first, d), k.multiply(second, b)), determinant)
    return left, k.divide(k.subtract(k.multiply(second, a), k.multiply(first, across)), determinant)


def _with_pivots(op: Any, d: Any) -> Any:
    return full_precision(op, d)[0], (d, int32, int32)


def _ldl_shapes(name: str, shape: Size, *, hermitian: bool) -> tuple[Size, ...]:
    return shape, Size(tuple(shape)[:-1]), Size(tuple(shape)[:-2])


@op(result=_with_pivots, shape=_ldl_shapes, dtypes="fc", outputs=("LD", "pivots", "info"), differentiable=1,
    name="linalg_ldl_factor")  # fmt: skip
def _ldl_factor(k: Any, x: Any, /, *, hermitian: bool) -> Any:
    """Factor, reading the lower triangle."""
    *batch, n, _ = k.shape_of(x)
    hermitian = hermitian and k.dtype_of(x).is_complex
    low = k.tril(x, diagonal=-1)
    diagonal = k.subtract(k.tril(x, diagonal=0), low)
    if hermitian:
        diagonal = k.multiply(k.add(diagonal, k.conj(diagonal)), 0.5)
    w = k.add(k.add(low, _turned(k, low, hermitian)), diagonal)
    # `second`: the column belongs to the pivot before it, which has prepared it.
    second = k.new_full(x, (*batch, 1), 0, int32)
    info, pivot = k.new_full(x, (*batch, 1), 0, int32), second
    prepared = k.new_full(x, (*batch, n, 1), 0)
    packed, pivots = [], []
    for j in range(n):
        size = n - j
        count = k.broadcast_to(k.new_arange(x, 0, size), (*batch, size))
        place, two, empty = _choose(k, w, count)
        waiting = k.equal(second, 1)
        two = k.logical_and(two, k.logical_not(waiting))
        order = _swapped(k, count, k.where(two, 1, k.new_full(place, k.shape_of(place), 0)), place)
        order = k.where(waiting, count, order)
        w = gather_columns(k, gather_rows(k, w, order), order)
        pivot = k.where(waiting, pivot, k.astype(k.add(place, j + 1), int32))
        pivot = k.where(two, k.negative(pivot), pivot)
        pivots.append(pivot)
        failed = k.logical_and(k.logical_and(empty, k.logical_not(waiting)), k.equal(info, 0))
        info = k.where(failed, j + 1, info)

        lone, pair, done = (k.expand_dims(flag, -1) for flag in (k.logical_not(two), two, waiting))
        head = _at(k, w, 0, 0)
        below = rows(k, columns(k, w, 0, 1), 1, None)
        one = k.divide(below, k.where(k.equal(head, 0.0), 1.0, head))
        rest = block(k, w, 1, None, 1, None)
        reduced = k.subtract(rest, k.matmul(one, _turned(k, k.multiply(one, head), hermitian)))
        column, following = one, k.zeros_like(below)
        if size > 1:
            b, d = _at(k, w, 1, 0), _at(k, w, 1, 1)
            c = block(k, w, 1, None, 0, 2)
            left, right = _solve_pair(k, c, head, b, d, _at(k, w, 0, 1))
            both = k.concat([left, right], axis=-1)
            two_reduced = k.subtract(rest, k.matmul(both, _turned(k, c, hermitian)))
            reduced = k.where(lone, reduced, two_reduced)
            column = k.where(lone, one, k.concat([b, rows(k, left, 1, None)], axis=-2))
            following = k.where(pair, k.concat([d, rows(k, right, 1, None)], axis=-2), following)
        column = k.where(done, prepared, k.concat([head, column], axis=-2))
        w = k.where(done, rest, reduced)
        prepared, second = following, k.astype(two, int32)
        if j:
            column = k.concat([k.new_full(x, (*batch, j, 1), 0), column], axis=-2)
        packed.append(column)
    if not n:
        return k.copy(x), k.new_full(x, (*batch, 0), 0, int32), k.new_full(x, batch, 0, int32)
    return k.concat(packed, axis=-1), k.concat(pivots, axis=-1), k.reshape(info, tuple(batch))


_ldl_factor.vjp(x=lambda k, g: undefined("aten::linalg_ldl_factor_ex"))


def _pairs(k: Any, pivots: Any) -> list[Any]:
    """Return, for each column, whether a 2 by 2 pivot begins there, as (..., 1, 1)."""
    *batch, n = k.shape_of(pivots)
    began, found = k.new_full(pivots, (*batch, 1), False, k.dtype_of(k.equal(pivots, 0))), []
    for j in range(n):
        began = k.logical_and(k.less(k.getitem(pivots, (..., slice(j, j + 1))), 0), k.logical_not(began))
        found.append(k.expand_dims(began, -1))
    return found


@op(
    result=full_precision, shape=lambda name, a, pivots, b, **attrs: solved(name, a, b), dtypes="fc", fixed=("pivots",),
    name="linalg_ldl_solve",
)  # fmt: skip
def _ldl_solve(k: Any, x: Any, pivots: Any, b: Any, /, *, hermitian: bool) -> Any:
    """Solve with what the factorisation gave."""
    hermitian = hermitian and k.dtype_of(x).is_complex
    n = k.shape_of(x)[-1]
    lead = tuple(broadcast("linalg.ldl_solve", k.shape_of(x)[:-2], k.shape_of(b)[:-2]))
    pairs = _pairs(k, pivots)
    seconds = [k.logical_and(pairs[0], False), *pairs[:-1]]
    b = k.broadcast_to(b, (*lead, *k.shape_of(b)[-2:]))
    count = k.broadcast_to(k.new_arange(x, 0, n), (*lead, n))

    def exchange(y: Any, j: int) -> Any:
        """Swap the rows as column j's pivot did: its own row, or the second one of a pair."""
        target = k.subtract(k.abs(k.astype(k.getitem(pivots, (..., slice(j, j + 1))), k.dtype_of(count))), 1)
        own = k.where(k.squeeze(pairs[j], -1), min(j + 1, n - 1), k.new_full(target, k.shape_of(target), j))
        target = k.where(k.squeeze(seconds[j], -1), own, target)
        return gather_rows(k, y, _swapped(k, count, own, target))

    def lower(j: int) -> Any:
        """Return column j of L - 1: below the diagonal, and of a pair's first column below its second row."""
        column = columns(k, x, j, j + 1)
        row = k.reshape(k.new_arange(x, 0, n), (n, 1))
        start = k.where(pairs[j], j + 1, k.new_full(row, (1, 1), j))
        return k.where(k.less(start, row), column, 0)

    for j in range(n):
        b = exchange(b, j)
        following = rows(k, b, min(j + 1, n - 1), min(j + 1, n - 1) + 1)
        update = k.matmul(lower(j), rows(k, b, j, j + 1))
        if j + 1 < n:
            pair_update = k.add(update, k.matmul(lower(j + 1), following))
            update = k.where(pairs[j], pair_update, update)
        b = k.where(seconds[j], b, k.subtract(b, update))
    parts = []
    for j in range(n):
        own, y = _at(k, x, j, j), rows(k, b, j, j + 1)
        solved = k.divide(y, own)
        for flag, i in ((pairs[j], j), (seconds[j], j - 1)):
            if 0 <= i < n - 1:
                a, low, d = _at(k, x, i, i), _at(k, x, i + 1, i), _at(k, x, i + 1, i + 1)
                across = k.conj(low) if hermitian else low
                determinant = k.subtract(k.multiply(a, d), k.multiply(low, across))
                up, down = rows(k, b, i, i + 1), rows(k, b, i + 1, i + 2)
                if i == j:
                    top = k.subtract(k.multiply(d, up), k.multiply(across, down))
                else:
                    top = k.subtract(k.multiply(a, down), k.multiply(low, up))
                solved = k.where(flag, k.divide(top, determinant), solved)
        parts.append(solved)
    b = k.concat(parts, axis=-2)
    row = k.reshape(k.new_arange(x, 0, n), (n, 1))
    for j in reversed(range(n)):
        update = k.matmul(_turned(k, lower(j), hermitian), b)
        b = k.where(k.equal(row, j), k.subtract(b, update), b)
        # A pair's swap comes after both of its rows.
        b = exchange(b, j)
    return b


_ldl_solve.vjp(lambda k, g: undefined("aten::linalg_ldl_solve"))


def ldl_factor_ex(input: Any, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Factor like ldl_factor, with a code per matrix instead of an error: 0, or the order of a pivot that is zero."""
    check_square("linalg.ldl_factor_ex", input)
    packed, pivots, info = _ldl_factor(input, hermitian=bool(hermitian))
    if check_errors:
        fail("linalg.ldl_factor_ex", info, _SINGULAR)
    return write_all("linalg.ldl_factor_ex", out, return_types.linalg_ldl_factor_ex(packed, pivots, info))


_SINGULAR = "D[{0},{0}] is zero, the factorization has been completed, but solving with it would divide by zero."


def ldl_factor(input: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """Factor symmetric (or Hermitian) matrices, which may be indefinite, into packed L and D, and pivots for ldl_solve."""
    check_square("linalg.ldl_factor", input)
    packed, pivots, info = _ldl_factor(input, hermitian=bool(hermitian))
    fail("linalg.ldl_factor", info, _SINGULAR)
    return write_all("linalg.ldl_factor", out, return_types.linalg_ldl_factor(packed, pivots))


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """Solve A @ X = B given what ldl_factor returns."""
    check_square("linalg.ldl_solve", LD)
    check_matrix("linalg.ldl_solve", B)
    check_one_dtype("linalg.ldl_solve", LD, B)
    n = LD.shape[-1]
    if B.shape[-2] != n:
        raise ShapeError(f"linalg.ldl_solve: Incompatible matrix sizes; got {list(LD.shape)} and {list(B.shape)}.")
    if pivots.dtype.kind not in "iu":
        raise DTypeError(f"linalg.ldl_solve: Expected pivots to be integers; got {pivots.dtype}.")
    check_pivots("linalg.ldl_solve", "LD", LD, abs(pivots))  # those below 0 belong to blocks of two rows
    if not n or not B.shape[-1]:
        return give(
            "linalg.ldl_solve", out, expand(B, solved("linalg.ldl_solve", LD.shape, B.shape)).clone()
        )
    return give("linalg.ldl_solve", out, _ldl_solve(LD, pivots, B, hermitian=bool(hermitian)))
