"""Products of vectors and matrices: matmul, its named cases and the add- forms."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mortice import call as _call
from mortice.backends.kernel_tools import is_number
from mortice.call import no_tensor
from mortice.dtype import dtype_of_all, float32, int8, int32
from mortice.errors import DTypeError, ShapeError
from mortice.formula import signature
from mortice.modes import autocasting, modes, special
from mortice.mutation import inplace
from mortice.node import TENSOR_KERNELS, named, unbroadcast
from mortice.op import op
from mortice.ops import elementwise
from mortice.ops.fill import zero
from mortice.ops.movement import cast, expand, expanded, is_row_major, permute, reshape, unsqueeze
from mortice.rules import number_of
from mortice.shape import Size, broadcast, prod
from mortice.tensor import TensorBase

__all__ = [
    "addbmm", "addmm", "addmv", "addmv_", "addr", "baddbmm", "bmm", "dot", "ger", "matmul", "mm", "mv",
    "outer", "vdot",
]  # fmt: skip

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
            f"{name}: both arguments to matmul need to be at least 1D; got {len(x)}D and {len(y)}D. Use mul for a 0-d tensor."
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
    if len(y_shape) < 3 and len(x_shape) > 1:
        if len(x_shape) > 2:  # one product of all rows instead of one per batch that would then be summed
            rows = prod(x_shape[:-1])
            x, g = k.reshape(x, (rows, x_shape[-1])), k.reshape(g, (rows, *y_shape[1:]))
        return k.matmul(k.permute_dims(x, (1, 0)), g)
    if len(x_shape) == 1:
        if len(y_shape) == 1:
            return k.multiply(x, g)
        pulled = k.multiply(k.expand_dims(x, -1), k.expand_dims(g, -2))
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
    """Multiply matrices, batches of matrices and vectors.

    Differs from torch: `@` promotes, as the array API standard has it; `matmul` refuses two dtypes.
    """


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
    told = special[0] and modes.dispatch  # of both, whatever they are
    if not told and (isinstance(y, TensorBase) or not hasattr(type(y), "__torch_function__")):  # whose class `slow` asks
        _one_dtype("matmul", x, y)
    return _call.slow(op, (x, y), {}, out)


matmul = _call.binary(_matmul.op, _fallback)
matmul.__name__ = matmul.__qualname__ = "matmul"
matmul.__module__ = __name__
matmul.__doc__ = """Multiply matrices: vectors count as rows or columns, leading dims broadcast. Dtypes must agree."""


def _rank(name: str, x: Any, what: str, ndim: int) -> None:
    if not isinstance(x, TensorBase):
        raise no_tensor(name, what, x)
    if len(x.shape) != ndim:
        wanted = {1: "1-D tensor", 2: "matrix", 3: "3D tensor"}[ndim]
        raise ShapeError(f"{name}: {what} must be a {wanted}, got {len(x.shape)}-D tensor of shape {list(x.shape)}.")


def _vectors(name: str, x: Any, second: str, y: Any) -> None:
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise ShapeError(f"{name}: 1D tensors expected, but got {len(x.shape)}D and {len(y.shape)}D tensors. Use matmul for others.")
    words = "dot : expected both vectors to have same dtype, but found {want} and {have}"
    elementwise.same_dtypes(name, ("input", x), (second, y), words=words)


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


@autocasting
def dot(input: Any, tensor: Any, *, out: Any = None) -> Any:
    """Add up the products of two vectors' elements."""
    _vectors("dot", input, "tensor", tensor)
    return matmul(input, tensor, out=out)


@autocasting
def vdot(input: Any, other: Any, *, out: Any = None) -> Any:
    """Add up the products of two vectors' elements, the first conjugated."""
    _vectors("vdot", input, "other", other)
    return named(matmul(conj(input), other, out=out), "VdotBackward0")


def conj(x: Any) -> Any:
    """Conjugate where the dtype is complex."""
    return TENSOR_KERNELS.conj(x) if x.dtype.is_complex else x


def outer(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """Multiply every element of a vector with every one of another."""
    _rank("outer", input, "self", 1), _rank("outer", vec2, "vec2", 1)
    return elementwise.mul(unsqueeze(input, 1), vec2, out=out)


def ger(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """Multiply every element of a vector with every one of another: another name of outer."""
    return outer(input, vec2, out=out)


# ---- beta * input + alpha * product ----


def _scaled(name: str, x: Any, factor: Any, what: str = "beta") -> Any:
    if x.dtype.kind in "bui" and not isinstance(factor, int):
        if name == "addr":
            raise RuntimeError(f"addr: For integral input tensors, argument {what} must not be a floating point number. Got {factor}.")
        factor = int(factor)
    if isinstance(factor, complex) and x.dtype.kind != "c":
        raise DTypeError(f"{name}: expected alpha and beta to be real beside {x.dtype.name} operands; got {factor}.")
    return x if factor == 1 else elementwise.mul(x, factor)


def _wide(x: Any, y: Any) -> Any:
    """Return the operands of a product that something is added to: of 16 bits they are float32, so that the sum alone is rounded."""
    half = isinstance(x, TensorBase) and x.dtype.itemsize == 2 and x.dtype.kind == "f" and getattr(y, "dtype", 0) is x.dtype
    return (cast(x, float32), cast(y, float32)) if half else (x, y)


def _plus(name: str, input: Any, factor: Any, product: Any, beta: Any, alpha: Any, out: Any) -> Any:
    """Return beta * input + alpha * product in the dtype of `factor`; what beta = 0 or alpha = 0 leaves out may hold nan."""
    if not isinstance(input, TensorBase):
        raise no_tensor(name, "input", input)
    beta, alpha = number_of(name, "beta", beta), number_of(name, "alpha", alpha)
    product = _scaled(name, product if alpha else zero(product), alpha)
    d = factor.dtype
    if input.dtype is not d:
        told = "Input dtypes must be the same" if name == "baddbmm" else "self and mat2 must have the same dtype"
        raise DTypeError(f"{name}: {told}, but got {input.dtype.name} and {d.name}.")
    input = cast(input, product.dtype)
    added = expanded(name, input, product.shape) if input.shape != product.shape else input
    if beta == 0:
        if product._device is not input._device:  # of two sparse tensors perhaps, and `input` is dense
            product = product.to_dense()
        # The gradient of `input` is then zero rather than none.
        made = elementwise._add(zero(added), product) if input._rg else product.clone() if product is input else product
    else:
        both = _scaled(name, added, beta), product
        # The result lies as the first operand does; as in PyTorch that is row by row.
        both = both if added is not input or is_row_major(input) else both[::-1]
        made = elementwise._add(*both)
    made = cast(made, d)
    if beta and made._rg:
        named(made, f"{name.title()}Backward0")
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
    return _plus("addmm", input, mat2, matmul(*_wide(mat1, mat2)), beta, alpha, out)


@autocasting
def addmv(input: Any, mat: Any, vec: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * (mat @ vec)."""
    if old:
        return _by_position(addmv, (input, mat, vec, *old), out)
    _rank("addmv", mat, "mat", 2), _rank("addmv", vec, "vec", 1)
    return _plus("addmv", input, vec, matmul(*_wide(mat, vec)), beta, alpha, out)


@autocasting
def addr(input: Any, vec1: Any, vec2: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * outer(vec1, vec2); dtypes promote."""
    if old:
        return _by_position(addr, (input, vec1, vec2, *old), out)
    _rank("addr", vec1, "vec1", 1), _rank("addr", vec2, "vec2", 1)
    d = dtype_of_all((input, vec1, vec2))
    vec1, vec2 = cast(vec1, d), cast(vec2, d)
    beta, alpha = number_of("addr", "beta", beta), number_of("addr", "alpha", alpha)
    for argument, value in (("beta", beta), ("alpha", alpha)):
        if isinstance(value, bool) and d.kind != "b":
            raise RuntimeError(f"addr: Boolean {argument} only supported for Boolean results; got {d}.")
    if d.kind == "b":
        if not isinstance(beta, bool) and not isinstance(beta, int) or isinstance(alpha, float):
            raise RuntimeError("For boolean inputs, argument beta and alpha must not be floating point numbers.")
        both = outer(elementwise.mul(vec1, bool(alpha)), vec2)
        made = both if not beta else TENSOR_KERNELS.logical_or(expand(cast(input, d), both.shape), both)
        return made if out is None else _call.WRITE_OUT("addr", out, made)
    return _plus("addr", cast(input, d), vec1, outer(_scaled("addr", vec1, alpha, "alpha"), vec2), beta, 1, out)


@autocasting
def baddbmm(input: Any, batch1: Any, batch2: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * (batch1 @ batch2)."""
    if old:
        return _by_position(baddbmm, (input, batch1, batch2, *old), out)
    return _plus("baddbmm", input, batch2, bmm(*_wide(batch1, batch2)), beta, alpha, out)


@autocasting
def addbmm(input: Any, batch1: Any, batch2: Any, *old: Any, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Compute beta * input + alpha * the sum of the products of two batches."""
    if old:
        return _by_position(addbmm, (input, batch1, batch2, *old), out)
    _rank("addbmm", batch1, "batch1", 3), _rank("addbmm", batch2, "batch2", 3)
    if batch1.shape[0] != batch2.shape[0]:
        raise ShapeError(
            f"addbmm: batch1 and batch2 must have same number of batches; got {batch1.shape[0]} and {batch2.shape[0]}."
        )
    b, n, m = tuple(batch1.shape)
    if batch2.shape[1] != m:
        _product_shape("addbmm", batch1.shape, batch2.shape)  # says what differs
    # The sum over the batch is one product with the batch folded into the inner dim.
    left = reshape(permute(batch1, (1, 0, 2)), (n, b * m))
    right = reshape(batch2, (b * m, batch2.shape[2]))
    return _plus("addbmm", input, batch2, matmul(*_wide(left, right)), beta, alpha, out)


addmm_, addmv_, addr_ = inplace(addmm, itself=None), inplace(addmv, itself=None), inplace(addr)
baddbmm_, addbmm_ = inplace(baddbmm, itself=None), inplace(addbmm, itself=None)
