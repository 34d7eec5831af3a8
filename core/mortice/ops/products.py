"""Products made of matmul, or beside it: chains, tensordot, inner, kron, trace, cross, and the distances of cdist."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice.backends.linalg_tools import rows
from mortice.dtype import CLASS_NAMES, check_kind, promote_types
from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.node import named, unbroadcast
from mortice.notice import warn
from mortice.op import op
from mortice.ops import elementwise
from mortice.ops.arguments import numpy_names
from mortice.ops.joining import _tensors
from mortice.ops.matmul import _matmul, _one_dtype, _rank, matmul
from mortice.ops.movement import cast, expand, permute, reshape, unsqueeze
from mortice.ops.norms import norm_back
from mortice.ops.strided import diagonal
from mortice.ops.unary import slope_of_abs
from mortice.rules import same
from mortice.shape import Size, broadcast, check_dim, prod
from mortice.tensor import TensorBase

__all__ = ["cdist", "chain_matmul", "cross", "inner", "kron", "tensordot", "trace"]

# ---- chains, tensordot, kron ----


@autocasting
def multi_dot(tensors: Any, *, out: Any = None) -> Any:
    """Multiply a chain of matrices in the cheapest order; the first and last may be vectors."""
    parts = list(_tensors("multi_dot", tensors))
    if len(parts) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(parts)}")
    for i, x in enumerate(parts):
        inner_one = 0 < i < len(parts) - 1
        if len(x.shape) != 2 and (inner_one or len(x.shape) != 1):
            raise ShapeError(
                f"multi_dot(): expected tensor {i} to have {'2' if inner_one else '1 or 2'} dims; got {len(x.shape)}."
            )
        _one_dtype("multi_dot", parts[0], x)
        _call.check_device(_matmul.op, parts[0], x)
    row, column = len(parts[0].shape) == 1, len(parts[-1].shape) == 1
    if row:
        parts[0] = unsqueeze(parts[0], 0)
    if column:
        parts[-1] = unsqueeze(parts[-1], 1)
    for i in range(len(parts) - 1):
        if parts[i].shape[1] != parts[i + 1].shape[0]:
            raise ShapeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(parts[i].shape)} and "
                f"{list(parts[i + 1].shape)} cannot be multiplied"
            )
    made = _chain(parts)
    shape = tuple(made.shape)[1 if row else 0 : 1 if column else 2]
    made = made if len(shape) == 2 else reshape(made, shape)
    return _call.give("multi_dot", out, made)


@lru_cache(256)  # shapes recur
def _cuts(*sizes: int) -> list[list[int]]:
    """Return where each part of a chain, from a matrix to another, is cheapest cut in two."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i][m] + cost[m + 1][j] + sizes[i] * sizes[m + 1] * sizes[j + 1], m) for m in range(i, j)
            ]
            cost[i][j], cut[i][j] = min(options)
    return cut


def _chain(parts: list[Any]) -> Any:
    cut = _cuts(*[x.shape[0] for x in parts], parts[-1].shape[1])

    def product(i: int, j: int) -> Any:
        return parts[i] if i == j else matmul(product(i, cut[i][j]), product(cut[i][j] + 1, j))

    return product(0, len(parts) - 1)


@autocasting
def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """Multiply a chain of matrices in the cheapest order."""
    warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
        once=True,
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for x in matrices:
        _rank("chain_matmul", x, "each argument", 2)
    return matrices[0].clone() if len(matrices) == 1 else multi_dot(matrices, out=out)


@autocasting
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Add up products over pairs of dims: the last `dims` of a with the first of b, or two lists of dims."""
    if isinstance(dims, TensorBase):
        dims = dims.tolist()
    if isinstance(dims, (tuple, list)):
        first, second = (list(d) if isinstance(d, (tuple, list)) else [d] for d in dims)
    else:
        dims = operator.index(dims)
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(len(a.shape), len(b.shape)):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(len(a.shape) - dims, len(a.shape))), list(range(dims))
    if len(first) != len(second):
        raise RuntimeError(f"both dimension lists should have same length, got {len(first)} and {len(second)}")
    _one_dtype("tensordot", a, b)
    first = [check_dim("tensordot", d, len(a.shape)) for d in first]
    second = [check_dim("tensordot", d, len(b.shape)) for d in second]
    if len(set(first)) != len(first) or len(set(second)) != len(second):
        raise RuntimeError("tensordot: each dim may appear once in each list of dims.")
    for p, q in zip(first, second):
        n, m = a.shape[p], b.shape[q]
        if n != m:
            if n != 1 and m != 1:
                raise ShapeError(
                    f"contracted dimensions need to match, but first has size {n} in dim {p} and second has size {m} in dim {q}"
                )
            if n == 1:
                b = b.sum(q, keepdim=True, dtype=b.dtype)
            else:
                a = a.sum(p, keepdim=True, dtype=a.dtype)
    rest_a = [d for d in range(len(a.shape)) if d not in first]
    rest_b = [d for d in range(len(b.shape)) if d not in second]
    shape_a, shape_b = [a.shape[d] for d in rest_a], [b.shape[d] for d in rest_b]
    inside = prod(a.shape[d] for d in first)
    left = reshape(permute(a, (*rest_a, *first)), (prod(shape_a), inside))
    right = reshape(permute(b, (*second, *rest_b)), (inside, prod(shape_b)))
    made = reshape(matmul(left, right), (*shape_a, *shape_b))
    return _call.give("tensordot", out, made)


@autocasting
def inner(input: Any, other: Any, *, out: Any = None) -> Any:
    """Add up products over the last dims."""
    if not input.shape or not other.shape:
        return elementwise.mul(input, other, out=out)
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    if len(input.shape) == len(other.shape) == 1 and input.dtype is other.dtype:
        made = named(matmul(input, other), "ViewBackward0")
    else:
        made = tensordot(input, other, ([-1], [-1]))
    return _call.give("inner", out, made)


@lru_cache(4096)
def _kron_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Size, Size, Size]:
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    return Size([v for p in a for v in (p, 1)]), Size([v for q in b for v in (1, q)]), Size([p * q for p, q in zip(a, b)])


def kron(input: Any, other: Any, *, out: Any = None) -> Any:
    """Multiply every element of `input` with all of `other`: the Kronecker product."""
    spread, repeated, joined = _kron_shapes(input.shape, other.shape)
    made = reshape(elementwise.mul(reshape(input, spread), reshape(other, repeated)), joined)
    return _call.give("kron", out, made)


@autocasting
def trace(input: Any) -> Any:
    """Add up the diagonal of a matrix."""
    if len(input.shape) != 2:
        raise ShapeError(f"trace: expected a matrix; got {list(input.shape)}.")
    check_kind("trace", input.dtype, "uifc")
    return named(diagonal(input).sum(), "TraceBackward0")


@op(shape=same, kernel="cross", name="cross", dtypes="uifc", grad_name="LinalgCrossBackward0")
def _cross(k: Any, x: Any, y: Any, /, *, axis: int) -> Any:
    """Multiply 3-vectors along an axis."""


_cross.vjp(
    x=lambda k, g, y, axis: k.cross(y, g, axis=axis), y=lambda k, g, x, axis: k.cross(g, x, axis=axis), jvp="bilinear"
)


@numpy_names
def linalg_cross(input: Any, other: Any, *, dim: int = -1, out: Any = None) -> Any:
    """Multiply 3-vectors along a dim: the cross product."""
    if len(input.shape) != len(other.shape):
        raise ShapeError(
            f"linalg.cross: inputs must have the same number of dimensions; got {len(input.shape)} and {len(other.shape)}."
        )
    if input.dtype is not other.dtype:
        check_kind("cross", input.dtype, "uifc")
        wanted, found = (CLASS_NAMES[x.dtype.name] for x in (input, other))
        raise DTypeError(f"linalg.cross: expected scalar type {wanted} but found {found}. Convert one of them with .to(dtype).")
    axis = check_dim("linalg.cross", dim, len(input.shape))
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise ShapeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[axis]} and {other.shape[axis]}"
        )

    shape = broadcast("linalg.cross", input.shape, other.shape)
    made = _cross(expand(input, shape), expand(other, shape), axis=axis)
    return _call.give("cross", out, made)


@numpy_names
@autocasting
def cross(input: Any, other: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """Multiply 3-vectors along a dim, by default the first of size 3: the cross product."""
    if dim is None:
        warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply "
            "use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release.",
            once=True,
        )
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input; got {list(input.shape)}.")
    return linalg_cross(input, other, dim=dim, out=out)


# ---- distances ----


def _distance_shape(name: str, x: Size, y: Size, **_: Any) -> Size:
    return Size((*broadcast(name, tuple(x)[:-2], tuple(y)[:-2]), tuple(x)[-2], tuple(y)[-2]))


@op(shape=_distance_shape, name="euclidean_distance", dtypes="f", grad_name="EuclideanDistBackward0")
def _euclidean(k: Any, x: Any, y: Any, /) -> Any:
    """Return the distances of all pairs of rows by way of one matrix product."""
    xx = k.sum(k.square(x), axis=-1, keepdims=True)
    yy = k.matrix_transpose(k.sum(k.square(y), axis=-1, keepdims=True))
    # In PyTorch's order, in which what is left of near rows is never beside the larger sum of both squares.
    squares = k.add(k.subtract(xx, k.multiply(k.matmul(x, k.matrix_transpose(y)), 2.0)), yy)
    return k.sqrt(k.maximum(squares, 0.0))


def _per_distance(k: Any, g: Any, out: Any) -> Any:
    at_zero = k.equal(out, 0)
    return k.where(at_zero, 0, k.divide(g, k.where(at_zero, 1, out)))


def _euclidean_x(k: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    ratio = _per_distance(k, g, out)
    pulled = k.subtract(k.multiply(x, k.sum(ratio, axis=-1, keepdims=True)), k.matmul(ratio, y))
    return unbroadcast(k, pulled, Size(k.shape_of(x)))


def _euclidean_y(k: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    return _euclidean_x(k, k.matrix_transpose(g), y, x, k.matrix_transpose(out))


_euclidean.vjp(x=_euclidean_x, y=_euclidean_y)


@op(shape=_distance_shape, name="row_distance", dtypes="f", grad_name="CdistBackward0")
def _row_distances(k: Any, x: Any, y: Any, /, *, p: float) -> Any:
    """Return the p-norms of the differences of all pairs of rows."""
    return k.row_distances(x, y, p=p)


def _row_distances_x(k: Any, g: Any, x: Any, y: Any, out: Any, p: float) -> Any:
    shape, pulled = k.shape_of(x), []
    weights = g if p == 1 else _per_distance(k, g, out) if p == 2 else None
    # Of a few rows at once, so that differences stay in fast memory.
    step = max((1 << 17) * shape[-2] // max(prod(k.shape_of(out)) * shape[-1], 1), 1)
    for i in range(0, max(shape[-2], 1), step):
        apart = k.subtract(k.expand_dims(rows(k, x, i, i + step), -2), k.expand_dims(y, -3))
        if weights is not None:  # a product adds up faster
            apart = slope_of_abs(k, apart) if p == 1 else apart
            pulled.append(k.squeeze(k.matmul(k.expand_dims(rows(k, weights, i, i + step), -2), apart), -2))
        else:
            wide, g_rows, out_rows = k.shape_of(apart), rows(k, g, i, i + step), rows(k, out, i, i + step)
            pulled.append(k.sum(norm_back(k, g_rows, apart, out_rows, wide, p, len(wide) - 1, False), axis=-2))
    return unbroadcast(k, k.concat(pulled, axis=-2), Size(shape))


def _row_distances_y(k: Any, g: Any, x: Any, y: Any, out: Any, p: float) -> Any:
    return _row_distances_x(k, k.matrix_transpose(g), y, x, k.matrix_transpose(out), p)


_row_distances.vjp(x=_row_distances_x, y=_row_distances_y)


# The gradient finds the differences once, for both directions.
@op(shape=lambda name, x, p: _distance_shape(name, x, x), name="own_distance", dtypes="f")
def own_distances(k: Any, x: Any, /, *, p: float) -> Any:
    """Return the p-norms of the differences of all pairs of rows of one matrix."""
    return k.row_distances(x, x, p=p)


own_distances.vjp(x=lambda k, g, x, out, p: _row_distances_x(k, k.add(g, k.matrix_transpose(g)), x, x, out, p))


@autocasting
def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """Return the p-norm distances of all pairs of rows of two (batches of) matrices."""
    for name, x in (("X1", x1), ("X2", x2)):
        if len(x.shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {len(x.shape)}D")
        if x.dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"{name} and X1 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", None)
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    big = x1.shape[-2] > 25 or x2.shape[-2] > 25
    d = promote_types(x1.dtype, x2.dtype)
    x1, x2 = cast(x1, d), cast(x2, d)
    if p == 2 and (compute_mode == modes[1] or (big and compute_mode != modes[2])):
        return _euclidean(x1, x2)
    return _row_distances(x1, x2, p=float(p))
