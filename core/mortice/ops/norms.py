"""Vector and matrix norms of `mortice.linalg`."""

from __future__ import annotations

import math
from typing import Any

from mortice import call as _call
from mortice.dtype import DType
from mortice.dtype import as_dtype as known
from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.op import op
from mortice.ops.arguments import numpy_names
from mortice.ops.complex import conj
from mortice.ops.data import number
from mortice.ops.elementwise import mul
from mortice.ops.movement import cast, permute, reshape
from mortice.ops.reduce import spread
from mortice.ops.unary import slope_of_abs
from mortice.rules import real_part, reduced
from mortice.shape import broadcast, check_dim, check_dims, prod


@op(
    result=real_part, shape=reduced, kernel="vector_norm", name="linalg_vector_norm", dtypes="fc", holomorphic=False,
    grad_name="LinalgVectorNormBackward0",
)  # fmt: skip
def _vector_norm(k: Any, x: Any, /, *, p: float, axis: Any, keepdims: bool) -> Any:
    """Take the p-norm along axes."""


def norm_back(k: Any, g: Any, x: Any, out: Any, x_shape: Any, p: float, axis: Any, keepdims: bool) -> Any:
    """The gradient of a p-norm."""
    d = k.dtype_of(x)

    def wide(t: Any) -> Any:
        return spread(k, t, x_shape, axis, keepdims)

    def times(direction: Any, scale: Any) -> Any:
        return k.multiply(direction, k.astype(scale, d) if d.is_complex else scale)

    if p == 0:
        return k.zeros_like(x)
    if p == 1:
        return times(slope_of_abs(k, x), wide(g))
    still = k.equal(out, 0)
    if p == 2:
        return times(x, wide(k.where(still, 0, k.divide(g, k.where(still, 1, out)))))
    size = k.abs(x)
    if math.isinf(p):
        best = k.logical_or(k.equal(size, wide(out)), k.isnan(size))
        count = k.sum(k.astype(best, d.to_real()), axis=axis, keepdims=True)
        return times(k.sgn(x), k.where(best, k.divide(k.reshape(g, k.shape_of(count)), count), 0))
    nothing, steps = k.equal(size, 0), 1 if p < 2 else 2
    power = k.where(nothing, 0, k.pow(k.where(nothing, 1, size), p - steps))
    scale = wide(k.where(still, 0, k.divide(g, k.pow(k.where(still, 1, out), p - 1))))
    return times(k.sgn(x) if p < 2 else x, k.multiply(power, scale))


_vector_norm.vjp(x=norm_back)


def _check_floats(name: str, x: Any) -> None:
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}. Use .float().")


def as_dtype(name: str, x: Any, dtype: DType | None) -> Any:
    """Cast to the dtype that a norm is to be computed in; integers are refused."""
    if dtype is not None:
        dtype = known(name, dtype)
        if dtype.kind not in "fc":
            raise RuntimeError(f"{name}: dtype should be floating point or complex; got {dtype}.")
        if x.dtype.is_complex != dtype.is_complex:
            what = "complex" if x.dtype.is_complex else "real"
            raise RuntimeError(f"{name}: dtype should be {what} for {what} inputs, but got {dtype}.")
        if x.dtype.itemsize > dtype.itemsize:
            raise RuntimeError(
                f"{name}: the dtype of the input ({x.dtype}) should be convertible without narrowing to the specified "
                f"dtype ({dtype})."
            )
        return cast(x, dtype)
    _check_floats(name, x)
    return x


@numpy_names
def vector_norm(
    input: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None
) -> Any:
    """Return the norm of vectors along dims, of the flat tensor by default."""
    input = as_dtype("linalg.vector_norm", input, dtype)
    if hasattr(ord, "item"):
        ord = number(ord, "linalg.vector_norm", "ord")
    _real_order("linalg.vector_norm", ord)
    if not isinstance(ord, (int, float)):
        raise TypeError(f"linalg.vector_norm: expected ord to be a number; got {type(ord).__name__}.")
    axes = check_dims("linalg.vector_norm", dim, len(input.shape)) if input.shape else ()
    if not input.shape and dim not in (None, (), []):
        check_dims("linalg.vector_norm", dim, 0)
    ord = float(ord)
    if not prod(input.shape) and (ord < 0 or ord == math.inf):
        if dim is None or any(input.shape[a] == 0 for a in axes):
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not "
                "have an identity"
            )
    made = _vector_norm(input, p=ord, axis=axes if input.shape else None, keepdims=keepdim)
    return _call.give("linalg.vector_norm", out, made)


def _two(name: str, x: Any, dim: Any) -> tuple[int, int]:
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise ShapeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    a, b = check_dim(name, dim[0], len(x.shape)), check_dim(name, dim[1], len(x.shape))
    if a == b:
        raise ShapeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return a, b


@numpy_names
@autocasting
def matrix_norm(
    input: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: DType | None = None, out: Any = None
) -> Any:
    """Return the norm of matrices: "fro", "nuc", inf, -inf, 1, -1, 2 or -2."""
    x = as_dtype("linalg.matrix_norm", input, dtype)
    _real_order("linalg.matrix_norm", ord)
    if len(x.shape) < 2:
        raise ShapeError(
            f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions; got {list(x.shape)}."
        )
    a, b = _two("linalg.matrix_norm", x, dim)
    if ord == "fro":
        made = _vector_norm(x, p=2.0, axis=(a, b), keepdims=keepdim)
    elif ord == "nuc" or (ord in (2, -2) and not isinstance(ord, str)):
        from mortice.ops.linalg import svdvals

        order = [d for d in range(len(x.shape)) if d not in (a, b)] + [a, b]
        s = svdvals(permute(x, order))
        made = s.sum(-1) if ord == "nuc" else _extreme(s, -1, ord > 0)
        if keepdim:
            made = reshape(made, [1 if d in (a, b) else n for d, n in enumerate(x.shape)])
    elif not isinstance(ord, str) and abs(ord) in (1, math.inf):
        along, other = (a, b) if abs(ord) == 1 else (b, a)
        sums = _vector_norm(x, p=1.0, axis=(along,), keepdims=True)
        made = _extreme(sums, other, ord > 0, True)
        made = made if keepdim else reshape(made, [n for d, n in enumerate(x.shape) if d not in (a, b)])
    else:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    return _call.give("linalg.matrix_norm", out, made)


def _real_order(name: str, order: Any) -> None:
    if isinstance(order, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm; got {order}.")


def _extreme(x: Any, dim: int, largest: bool, keepdim: bool = False) -> Any:
    if largest and x.shape[dim] == 0:
        return x.sum(dim, keepdim)
    return x.amax(dim, keepdim) if largest else x.amin(dim, keepdim)


@numpy_names
def norm(
    input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: DType | None = None
) -> Any:
    """Return a vector norm, or with two dims (or a matrix and an `ord`) a matrix norm."""
    if dim is not None and isinstance(dim, int):
        dim = (dim,)
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype=dtype, out=out)
    if dim is None:
        if len(input.shape) not in (1, 2):
            raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                               f"{len(input.shape)}D.")  # fmt: skip
        if len(input.shape) == 2:
            return matrix_norm(input, ord, (0, 1), keepdim, dtype=dtype, out=out)
        if isinstance(ord, str):
            raise RuntimeError(f"linalg.norm: ord '{ord}' needs a matrix; got {list(input.shape)}.")
    elif len(dim) == 2:
        return matrix_norm(input, ord, dim, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: ord '{ord}' needs two dims; got {dim}.")
    return vector_norm(input, ord, dim, keepdim, dtype=dtype, out=out)


@numpy_names
@autocasting
def vecdot(x: Any, y: Any, *, dim: int = -1, out: Any = None) -> Any:
    """Add up products along a dim, the first factor conjugated; the rest broadcasts."""
    if x.dtype is not y.dtype:
        raise DTypeError(f"linalg.vecdot: Expected x and y to have the same dtype; got {x.dtype} and {y.dtype}.")
    _check_floats("linalg.vecdot", x)
    broadcast("linalg.vecdot", x.shape, y.shape)
    product = mul(conj(x), y)
    check_dim("linalg.vecdot", dim, len(product.shape))
    made = product.sum(dim, dtype=x.dtype)
    return _call.give("linalg.vecdot", out, made)
