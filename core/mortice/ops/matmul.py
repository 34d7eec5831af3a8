"""Products of vectors and matrices: matmul and its named cases, the add- forms, tensordot, kron, cross, cdist, cov."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice.backends.kernel_tools import is_number
from mortice.call import no_tensor
from mortice.dtype import dtype_of_all, int8, int32, promote_types
from mortice.errors import DTypeError, ShapeError
from mortice.formula import signature
from mortice.modes import autocasting, modes
from mortice.mutation import inplace
from mortice.node import TENSOR_KERNELS, named, unbroadcast
from mortice.notice import warn
from mortice.op import op
from mortice.ops import elementwise
from mortice.ops.arguments import numpy_names
from mortice.ops.fill import zero
from mortice.ops.movement import _tensors, cast, expand, permute, reshape, unsqueeze
from mortice.ops.norms import vector_norm
from mortice.ops.strided import diagonal
from mortice.rules import number_of, same
from mortice.shape import Size, broadcast, check_dim, prod
from mortice.tensor import TensorBase

# ---- matmul ----


@lru_cache(4096)
def _product_shape(name: str, x: Size, y: Size) -> Size:
    if len(x) == 2 and len(y) == 2:
        if x[1] == y[0]:
            return Size((x[0], y[1]))
    elif x and y:
        inner = tuple.__getitem__(y, -2 if len(y) > 1 else 0)
        if tuple.__getitem__(x, -1) == inner:
            lead = tuple(broadcast(name, tuple(x)[:-2], tuple(y)[:-2]))
            rows = tuple(x)[-2:-1] if len(x) > 1 else ()
            return Size((*lead, *rows, *(tuple(y)[-1:] if len(y) > 1 else ())))
    else:
        raise ShapeError(
            f"{name}: both arguments to matmul need to be at least 1D; got {len(x)}D and {len(y)}D. "
            "Use mul for a 0-d tensor."
        )
    raise ShapeError(f"{name}: {_apart(tuple(x), tuple(y))}; got {tuple(x)} @ {tuple(y)}. Transpose one of them?")


def _apart(x: Any, y: Any) -> str:
    """Say, in PyTorch's words for operands of such ranks, that the inner sizes do not agree."""
    rows, inner = prod(x[:-1]), x[-1]
    if len(x) == len(y) == 1:
        return (f"inconsistent tensor size, expected tensor [{inner}] and src [{y[0]}] to have the same number of elements, "
                f"but got {inner} and {y[0]} elements respectively")  # fmt: skip
    if len(y) == 1:
        return f"size mismatch, got input ({rows}), mat ({rows}x{inner}), vec ({y[0]})"
    if len(y) == 2:
        return f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and {y[0]}x{y[1]})"
    count = prod(broadcast("matmul", x[:-2], y[:-2]))
    return f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {inner}] but got: [{count}, {y[-2]}]"


def _grad_x(k: Any, g: Any, y: Any, x_shape: Any) -> Any:
    y_shape = k.shape_of(y)
    if len(y_shape) == 2:
        if len(x_shape) > 1:
            return k.matmul(g, k.permute_dims(y, (1, 0)))
        return k.matmul(y, g)
    if len(y_shape) == 1:
        if len(x_shape) == 1:
            return k.multiply(y, g)
        return k.multiply(k.expand_dims(g, -1), y)
    if len(x_shape) == 1:
        g = k.expand_dims(g, -2)
        lifted = unbroadcast(k, k.matmul(g, k.matrix_transpose(y)), Size((1, *x_shape)))
        return k.reshape(lifted, tuple(x_shape))
    pulled = k.matmul(g, k.matrix_transpose(y))
    return pulled if len(x_shape) == len(k.shape_of(pulled)) and tuple(k.shape_of(pulled)) == tuple(x_shape) else (
        unbroadcast(k, pulled, Size(x_shape)))  # fmt: skip


def _grad_y(k: Any, g: Any, x: Any, y_shape: Any) -> Any:
    x_shape = k.shape_of(x)
    if len(x_shape) == 2 and len(y_shape) == 2:
        return k.matmul(k.permute_dims(x, (1, 0)), g)
    if len(y_shape) == 2 and len(x_shape) > 2:
        # One product of all rows instead of one per batch that would then be summed.
        rows, n = prod(x_shape[:-1]), x_shape[-1]
        flat = k.reshape(x, (rows, n))
        return k.matmul(k.permute_dims(flat, (1, 0)), k.reshape(g, (rows, y_shape[-1])))
    if len(x_shape) == 1:
        if len(y_shape) == 1:
            return k.multiply(x, g)
        pulled = k.multiply(k.expand_dims(x, -1), k.expand_dims(g, -2))
    elif len(y_shape) == 1:
        if len(x_shape) == 2:
            return k.matmul(k.permute_dims(x, (1, 0)), g)
        rows = prod(x_shape[:-1])
        flat = k.reshape(x, (rows, x_shape[-1]))
        return k.matmul(k.permute_dims(flat, (1, 0)), k.reshape(g, (rows,)))
    else:
        pulled = k.matmul(k.matrix_transpose(x), g)
    return pulled if tuple(k.shape_of(pulled)) == tuple(y_shape) else unbroadcast(k, pulled, Size(y_shape))


def _name_by_dims(node: Any) -> str:
    """Return what PyTorch's matmul does last: batches lie flat as one matrix or one batch."""
    return _LAST.get(tuple([len(s) for s in node.shapes]), "UnsafeViewBackward0")


_LAST = {
    (1, 1): "DotBackward0", (2, 1): "MvBackward0", (1, 2): "SqueezeBackward4", (2, 2): "MmBackward0",
}  # fmt: skip


@op(
    shape=_product_shape, kernel="matmul", name="matmul", dtypes="uifc", grad_name="MmBackward0", grad_name_of=_name_by_dims,
)  # fmt: skip
def _matmul(k: Any, x: Any, y: Any, /) -> Any:
    """Multiply matrices, batches of matrices and vectors."""
    return k.matmul(x, y)


_matmul.vjp(x=_grad_x, y=_grad_y, jvp="bilinear")


def _one_dtype(name: str, x: Any, y: Any) -> None:
    for a in (x, y):
        if not isinstance(a, TensorBase):
            raise TypeError(f"{name}: expected Tensors; got {type(a).__name__}.")
    if x.dtype is not y.dtype and modes.autocast is None:
        raise DTypeError(
            f"{name}: expected m1 and m2 to have the same dtype, but got: {x.dtype.name} != {y.dtype.name}. "
            "Convert one of them with .to(dtype)."
        )


def _fallback(op: Any, x: Any, y: Any, out: Any) -> Any:
    """Take what is not the fast case: products do not promote."""
    if isinstance(y, TensorBase) or not hasattr(type(y), "__torch_function__"):  # whose class `slow` asks
        _one_dtype("matmul", x, y)
    return _call.slow(op, (x, y), {}, out)


matmul = _call.binary(_matmul.op, _fallback)
matmul.__name__ = matmul.__qualname__ = "matmul"
matmul.__module__ = __name__
matmul.__doc__ = """Multiply matrices: vectors count as rows or columns, leading dims broadcast. Dtypes must agree."""


_promoting = _call.binary(_matmul.op, lambda op, x, y, out: _call.slow(op, (x, y), {}, out))


def matmul_operator(self: Any, other: Any) -> Any:
    """Multiply matrices: `x @ y`.

    Differs from torch: `@` promotes, as the array API standard has it; `matmul` refuses two dtypes.
    """
    if not isinstance(other, TensorBase):
        from mortice.ops.data import as_tensor, is_array

        if not is_array(other):
            return NotImplemented
        other = as_tensor(other, device=self._device)
    return _promoting(self, other)


def rmatmul_operator(self: Any, other: Any) -> Any:
    """Multiply matrices: `y @ x` where y is no tensor."""
    from mortice.ops.data import as_tensor, is_array

    return _promoting(as_tensor(other, device=self._device), self) if is_array(other) else NotImplemented


def _rank(name: str, x: Any, what: str, ndim: int) -> None:
    if not isinstance(x, TensorBase):
        raise no_tensor(name, what, x)
    if len(x.shape) != ndim:
        wanted = {1: "1-D tensor", 2: "matrix", 3: "3D tensor"}[ndim]
        raise ShapeError(f"{name}: {what} must be a {wanted}, got {len(x.shape)}-D tensor of shape {list(x.shape)}.")


def _vectors(name: str, x: Any, y: Any) -> None:
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise ShapeError(f"{name}: 1D tensors expected, but got {len(x.shape)}D and {len(y.shape)}D tensors. Use matmul for others.")


def mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Multiply two matrices."""
    _rank("mm", input, "self", 2), _rank("mm", mat2, "mat2", 2)
    return matmul(input, mat2, out=out)


def _int_mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Multiply two int8 matrices; the products are summed in int32."""
    for name, x in (("self", input), ("mat2", mat2)):
        if x.dtype is not int8:
            raise RuntimeError(f"_int_mm: Expected {name} dtype to be of type int8; got {x.dtype}.")
    return mm(cast(input, int32), cast(mat2, int32), out=out)


def bmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Multiply two batches of matrices of the same size."""
    _rank("bmm", input, "batch1", 3), _rank("bmm", mat2, "batch2", 3)
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, {input.shape[2]}] "
            f"but got: {list(mat2.shape[:2])}."
        )
    return named(matmul(input, mat2, out=out), "BmmBackward0")


@autocasting
def mv(input: Any, vec: Any, *, out: Any = None) -> Any:
    """Multiply a matrix with a vector."""
    _rank("mv", input, "input", 2), _rank("mv", vec, "vec", 1)
    return matmul(input, vec, out=out)


_UNEQUAL = "dot : expected both vectors to have same dtype, but found {want} and {have}"


@autocasting
def dot(input: Any, tensor: Any, *, out: Any = None) -> Any:
    """Add up the products of two vectors' elements."""
    _vectors("dot", input, tensor)
    elementwise.same_dtypes("dot", ("input", input), ("tensor", tensor), words=_UNEQUAL)
    return matmul(input, tensor, out=out)


@autocasting
def vdot(input: Any, other: Any, *, out: Any = None) -> Any:
    """Add up the products of two vectors' elements, the first conjugated."""
    _vectors("vdot", input, other)
    elementwise.same_dtypes("vdot", ("input", input), ("other", other), words=_UNEQUAL)
    return matmul(conj(input), other, out=out)


def conj(x: Any) -> Any:
    """Conjugate where the dtype is complex."""
    return TENSOR_KERNELS.conj(x) if x.dtype.is_complex else x


@autocasting
def inner(input: Any, other: Any, *, out: Any = None) -> Any:
    """Add up products over the last dims."""
    if not input.shape or not other.shape:
        made = elementwise.mul(input, other)
    else:
        if input.shape[-1] != other.shape[-1]:
            raise ShapeError(
                f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
                f"{list(other.shape)}"
            )
        made = tensordot(input, other, ([-1], [-1]))
    return made if out is None else _call.WRITE_OUT("inner", out, made)


def outer(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """Multiply every element of a vector with every one of another."""
    _rank("outer", input, "self", 1), _rank("outer", vec2, "vec2", 1)
    return elementwise.mul(unsqueeze(input, 1), vec2, out=out)


def ger(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """Multiply every element of a vector with every one of another: another name of outer."""
    return outer(input, vec2, out=out)


# ---- beta * input + alpha * product ----


def _scaled(name: str, x: Any, factor: Any) -> Any:
    if x.dtype.kind in "bui" and not isinstance(factor, int):
        if name == "addr":
            raise RuntimeError("addr: For integral input tensors, argument alpha must not be a floating point number.")
        factor = int(factor)
    if isinstance(factor, complex) and x.dtype.kind != "c":
        raise DTypeError(f"{name}: expected alpha and beta to be real beside {x.dtype.name} operands; got {factor}.")
    return x if factor == 1 else elementwise.mul(x, factor)


def _plus(name: str, input: Any, product: Any, beta: Any, alpha: Any, out: Any) -> Any:
    """Return beta * input + alpha * product; what beta = 0 or alpha = 0 leaves out may hold nan."""
    if not isinstance(input, TensorBase):
        raise no_tensor(name, "input", input)
    beta, alpha = number_of(name, "beta", beta), number_of(name, "alpha", alpha)
    product = _scaled(name, product if alpha else zero(product), alpha)
    if input.dtype is not product.dtype:
        raise DTypeError(
            f"{name}: self and mat2 must have the same dtype, but got {input.dtype.name} and {product.dtype.name}."
        )
    added = expand(input, product.shape) if input.shape != product.shape else input
    if beta == 0:
        if product._device is not input._device:  # of two sparse tensors perhaps, and `input` is dense
            product = product.to_dense()
        # The gradient of `input` is then zero rather than none.
        made = elementwise._add(zero(added), product) if input._rg else product.clone() if product is input else product
    else:
        made = named(elementwise._add(_scaled(name, added, beta), product), f"{name.title()}Backward0")
    return made if out is None else _call.WRITE_OUT(name, out, made)


def _by_position(fn: Any, args: tuple[Any, ...], out: Any) -> Any:
    """Compute what the forms that PyTorch gave up ask for, in which beta and alpha stand among the operands."""
    tensors = [a for a in args if isinstance(a, TensorBase)]
    numbers = [a for a in args[:-2] if is_number(a)]
    names = "Tensor input,{} Tensor {}, Tensor {}, *, {}Tensor out = None".format
    named = signature(fn)[0][1:3]
    new = names("", *named, "Number beta = 1, Number alpha = 1, ")
    if len(tensors) != 3 or not 4 <= 3 + len(numbers) == len(args) < 6:
        got = ", ".join([type(a).__name__ for a in args])
        raise TypeError(f"{fn.__name__}: expected ({new}); got ({got}). Give beta and alpha by name.")
    old = names(" Number alpha," * (len(numbers) - 1), *named, "")
    elementwise.deprecated(fn.__name__, f"Number beta, {old}", new)
    return fn(*tensors, out=out, **dict(zip(("beta", "alpha"), numbers)))


@autocasting
def addmm(input: Any, mat1: Any, mat2: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * (mat1 @ mat2)."""
    if old:
        return _by_position(addmm, (input, mat1, mat2, *old), out)
    _rank("addmm", mat1, "mat1", 2), _rank("addmm", mat2, "mat2", 2)
    return _plus("addmm", input, matmul(mat1, mat2), beta, alpha, out)


@autocasting
def addmv(input: Any, mat: Any, vec: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * (mat @ vec)."""
    if old:
        return _by_position(addmv, (input, mat, vec, *old), out)
    _rank("addmv", mat, "mat", 2), _rank("addmv", vec, "vec", 1)
    return _plus("addmv", input, matmul(mat, vec), beta, alpha, out)


@autocasting
def addr(input: Any, vec1: Any, vec2: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * outer(vec1, vec2); dtypes promote."""
    if old:
        return _by_position(addr, (input, vec1, vec2, *old), out)
    _rank("addr", vec1, "vec1", 1), _rank("addr", vec2, "vec2", 1)
    d = dtype_of_all((input, vec1, vec2))
    product = outer(cast(vec1, d), cast(vec2, d))
    beta, alpha = number_of("addr", "beta", beta), number_of("addr", "alpha", alpha)
    for argument, value in (("beta", beta), ("alpha", alpha)):
        if isinstance(value, bool) and d.kind != "b":
            raise RuntimeError(f"addr: Boolean {argument} only supported for Boolean results; got {d}.")
    if d.kind == "b":
        if not isinstance(beta, bool) and not isinstance(beta, int) or isinstance(alpha, float):
            raise RuntimeError("For boolean inputs, argument beta and alpha must not be floating point numbers.")
        both = elementwise.mul(product, bool(alpha))
        made = both if not beta else TENSOR_KERNELS.logical_or(expand(cast(input, d), both.shape), both)
        return made if out is None else _call.WRITE_OUT("addr", out, made)
    return _plus("addr", cast(input, d), _scaled("addr", product, alpha), beta, 1, out)


@autocasting
def baddbmm(input: Any, batch1: Any, batch2: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * (batch1 @ batch2)."""
    if old:
        return _by_position(baddbmm, (input, batch1, batch2, *old), out)
    return _plus("baddbmm", input, bmm(batch1, batch2), beta, alpha, out)


@autocasting
def addbmm(input: Any, batch1: Any, batch2: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * the sum of the products of two batches."""
    if old:
        return _by_position(addbmm, (input, batch1, batch2, *old), out)
    _rank("addbmm", batch1, "batch1", 3), _rank("addbmm", batch2, "batch2", 3)
    if batch1.shape[0] != batch2.shape[0]:
        raise ShapeError(
            f"addbmm: batch1 and batch2 must have same number of batches; got {batch1.shape[0]} and "
            f"{batch2.shape[0]}."
        )
    b, n, m = tuple(batch1.shape)
    if batch2.shape[1] != m:
        _product_shape("addbmm", batch1.shape, batch2.shape)  # says what differs
    # The sum over the batch is one product with the batch folded into the inner dim.
    left = reshape(permute(batch1, (1, 0, 2)), (n, b * m))
    return _plus("addbmm", input, matmul(left, reshape(batch2, (b * m, batch2.shape[2]))), beta, alpha, out)


addmm_, addmv_, addr_ = inplace(addmm, itself=None), inplace(addmv, itself=None), inplace(addr)
baddbmm_, addbmm_ = inplace(baddbmm, itself=None), inplace(addbmm, itself=None)

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
    return made if out is None else _call.WRITE_OUT("multi_dot", out, made)


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
    for x in matrices:
        _rank("chain_matmul", x, "each argument", 2)
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices, out=out)


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
                    f"contracted dimensions need to match, but first has size {n} in dim {p} and second has size {m} "
                    f"in dim {q}"
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
    return made if out is None else _call.WRITE_OUT("tensordot", out, made)


@lru_cache(4096)
def _kron_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Size, Size, Size]:
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    return Size([v for p in a for v in (p, 1)]), Size([v for q in b for v in (1, q)]), Size([p * q for p, q in zip(a, b)])


def kron(input: Any, other: Any, *, out: Any = None) -> Any:
    """Multiply every element of `input` with all of `other`: the Kronecker product."""
    spread, repeated, joined = _kron_shapes(input.shape, other.shape)
    made = reshape(elementwise.mul(reshape(input, spread), reshape(other, repeated)), joined)
    return made if out is None else _call.WRITE_OUT("kron", out, made)


@autocasting
def trace(input: Any) -> Any:
    """Add up the diagonal of a matrix."""
    if len(input.shape) != 2:
        raise ShapeError(f"trace: expected a matrix; got {list(input.shape)}.")
    return named(diagonal(input).sum(), "TraceBackward0")


@op(shape=same, kernel="cross", name="cross", dtypes="uifc", grad_name="LinalgCrossBackward0")
def _cross(k: Any, x: Any, y: Any, /, *, axis: int) -> Any:
    """Multiply 3-vectors along an axis."""
    return k.cross(x, y, axis=axis)


_cross.vjp(
    x=lambda k, g, y, axis: k.cross(y, g, axis=axis), y=lambda k, g, x, axis: k.cross(g, x, axis=axis), jvp="bilinear"
)


@numpy_names
def linalg_cross(input: Any, other: Any, *, dim: int = -1, out: Any = None) -> Any:
    """Multiply 3-vectors along a dim: the cross product."""
    if len(input.shape) != len(other.shape):
        raise ShapeError(
            f"linalg.cross: inputs must have the same number of dimensions; got {len(input.shape)} and "
            f"{len(other.shape)}."
        )
    axis = check_dim("linalg.cross", dim, len(input.shape))
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise ShapeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[axis]} and {other.shape[axis]}"
        )

    shape = broadcast("linalg.cross", input.shape, other.shape)
    made = _cross(expand(input, shape), expand(other, shape), axis=axis)
    return made if out is None else _call.WRITE_OUT("cross", out, made)


@numpy_names
@autocasting
def cross(input: Any, other: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """Multiply 3-vectors along a dim, by default the first of size 3: the cross product."""
    if dim is None:
        warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply "
            "use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release."
        )
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input; got {list(input.shape)}.")
    return linalg_cross(input, other, dim=dim, out=out)


# ---- distances ----


def _distance_shape(name: str, x: Size, y: Size) -> Size:
    return Size((*broadcast(name, tuple(x)[:-2], tuple(y)[:-2]), tuple(x)[-2], tuple(y)[-2]))


@op(shape=_distance_shape, name="euclidean_distance", dtypes="f", grad_name="EuclideanDistBackward0")
def _euclidean(k: Any, x: Any, y: Any, /) -> Any:
    """Return the distances of all pairs of rows by way of one matrix product."""
    xx = k.sum(k.square(x), axis=-1, keepdims=True)
    yy = k.matrix_transpose(k.sum(k.square(y), axis=-1, keepdims=True))
    # In PyTorch's order, in which what is left of near rows is never beside the larger sum of both squares.
    squares = k.add(k.subtract(xx, k.multiply(k.matmul(x, k.matrix_transpose(y)), 2.0)), yy)
    return k.sqrt(k.maximum(squares, 0.0))


def _euclidean_x(k: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    at_zero = k.equal(out, 0)
    ratio = k.where(at_zero, 0, k.divide(g, k.where(at_zero, 1, out)))
    pulled = k.subtract(k.multiply(x, k.sum(ratio, axis=-1, keepdims=True)), k.matmul(ratio, y))
    return unbroadcast(k, pulled, Size(k.shape_of(x)))


def _euclidean_y(k: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    return _euclidean_x(k, k.matrix_transpose(g), y, x, k.matrix_transpose(out))


_euclidean.vjp(x=_euclidean_x, y=_euclidean_y)


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
    return named(vector_norm(elementwise._sub(unsqueeze(x1, -2), unsqueeze(x2, -3)), p, -1), "CdistBackward0")


# ---- covariance ----


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Return the covariances of variables in rows, over observations in columns."""
    if len(input.shape) > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {len(input.shape)} "
            "dimensions"
        )
    if input.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = reshape(input, (1, -1) if prod(input.shape) else (1, 0)) if len(input.shape) < 2 else input
    n = x.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, n, "iu", "integral")
        if bool((fweights < 0).any().item()):
            raise RuntimeError("cov(): fweights cannot be negative")
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, n, "f", "floating point")
        if bool((aweights < 0).any().item()):
            raise RuntimeError("cov(): aweights cannot be negative")
        weights = aweights if weights is None else elementwise.mul(weights, aweights)
    total: Any = n if weights is None else weights.sum(0)
    if weights is None:
        average = x.sum(1, keepdim=True) / total
    else:
        average = (x * weights).sum(1, keepdim=True) / total
    if weights is not None and aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights).sum(0) / total
    else:
        norm = total - correction
    if isinstance(norm, TensorBase):
        norm = TENSOR_KERNELS.maximum(norm, 0)
    elif norm <= 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        norm = 0
    centred = x - average
    weighted = centred if weights is None else centred * weights
    if weighted.dtype is not centred.dtype:
        d = promote_types(weighted.dtype, centred.dtype)
        weighted, centred = cast(weighted, d), cast(centred, d)
    product = matmul(weighted, conj(centred.t()))
    made = product / norm if isinstance(norm, TensorBase) or norm else product * math.nan if n == 0 else product / 0.0
    return made.squeeze()


def _check_weights(name: str, w: Any, n: int, kinds: str, what: str) -> None:
    if len(w.shape) > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {len(w.shape)} dimensions"
        )
    if w.dtype.kind not in kinds:
        raise RuntimeError(f"cov(): expected {name} to have {what} dtype but got {name} with {w.dtype} dtype")
    if prod(w.shape) != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{prod(w.shape)} != {n}"
        )


def corrcoef(input: Any) -> Any:
    """Return the correlation coefficients of variables in rows."""
    if len(input.shape) > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {len(input.shape)} "
            "dimensions"
        )
    c = cov(input)
    if not c.shape:
        return c / c
    d = TENSOR_KERNELS.diagonal(c, offset=0, axis1=0, axis2=1)
    d = TENSOR_KERNELS.real(d) if d.dtype.is_complex else d
    s = TENSOR_KERNELS.sqrt(d)
    c = c / unsqueeze(s, -1) / unsqueeze(s, 0)
    if c.dtype.is_complex:
        from mortice.ops import complex as complex_ops

        return complex_ops.complex(TENSOR_KERNELS.real(c).clamp(-1, 1), TENSOR_KERNELS.imag(c).clamp(-1, 1))
    return c.clamp(-1, 1)
