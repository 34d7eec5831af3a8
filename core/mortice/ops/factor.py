"""The ops of linear algebra that have kernels: factorisations, solves, determinants, eigenvalues, with gradients.

With several outputs the formulas take and give true gradients (the conjugate of J^T g): the engine leaves them alone.
The public functions, with their checks and named results, are in `ops.linalg`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.backends.linalg_tools import adjoint, columns, diagonal, eye, gather_rows, rows
from mortice.dtype import DType, bfloat16, finfo, float16, int32, int64
from mortice.errors import DTypeError
from mortice.node import TENSOR_KERNELS, unbroadcast
from mortice.op import Op, op
from mortice.shape import Size, broadcast, prod


def _first(name: str, shape: Size, *rest: Any, **attrs: Any) -> Size:
    return shape


def _embed(k: Any, x: Any) -> Any:
    """Put vectors on the diagonals of matrices."""
    n = k.shape_of(x)[-1]
    return k.multiply(k.expand_dims(x, -1), eye(k, x, n))


def _mask_divide(k: Any, x: Any, by: Any) -> Any:
    """Divide, giving 0 for 0 / 0: equal eigenvalues only matter where something depends on their vectors."""
    nothing = k.logical_and(k.equal(x, 0), k.equal(by, 0))
    return k.where(nothing, 0, k.divide(x, k.where(nothing, 1, by)))


def _check_phases(k: Any, name: str, vectors: str, x: Any, y: Any = None) -> None:
    """Refuse a loss that depends on the phases of complex vectors, which are any: where it does not, imag(x) is -imag(y)."""
    if k is TENSOR_KERNELS:
        k, x, y = x._device.backend, x._buffer, y._buffer if y is not None else None
    if not k.has_values or hasattr(k, "inner"):  # inside a transform of `func` there is nothing to read yet
        return
    x = k.imag(x)
    y = k.imag(y) if y is not None else k.multiply(x, 0.0)
    close = k.less_equal(k.abs(k.add(x, y)), k.add(k.multiply(k.abs(y), 1e-2), 1e-2))  # PyTorch's tolerance
    if not k.item(k.all(close)):
        raise RuntimeError(
            f"{name}: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
            "loss function depends on this phase term, making it ill-defined. Use what no phase changes, such as abs()."
        )


def _gaps(k: Any, s: Any) -> Any:
    """Return the differences s_j - s_i, with 1 on the diagonal."""
    gaps = k.subtract(k.expand_dims(s, -2), k.expand_dims(s, -1))
    return k.add(gaps, eye(k, s, k.shape_of(s)[-1]))


def full_precision(op: Op, d: DType) -> tuple[DType, Any]:
    """The operand's dtype; half precision is refused, as LAPACK has none."""
    if d is float16 or d is bfloat16:
        raise DTypeError(f"{op.name}: Low precision dtypes not supported. Got {d}. Use .float().")
    return d, d


def results(*parts: Callable[[DType], DType]) -> Callable[[Op, DType], tuple[DType, Any]]:
    """Return the dtype rule of an op in full precision with several outputs."""
    return lambda op, d: (full_precision(op, d)[0], tuple([part(d) for part in parts]))


def by_columns(k: Any, x: Any) -> Any:
    """Return x with its matrices column by column in memory, where PyTorch has LAPACK's results."""
    return k.matrix_transpose(k.contiguous(k.matrix_transpose(x)))


_SAME, _REAL, _COMPLEX = (lambda d: d), DType.to_real, DType.to_complex
_INT32, _INT64 = (lambda d: int32), (lambda d: int64)

# ---- Cholesky ----

_with_info = results(_SAME, _INT32)


def _matrix_and_info(name: str, shape: Size, **attrs: Any) -> tuple[Size, Size]:
    return shape, Size(tuple(shape)[:-2])


@op(
    result=_with_info, shape=_matrix_and_info, dtypes="fc", outputs=("factor", "info"),
    differentiable=1, grad_name="LinalgCholeskyExBackward0",
)  # fmt: skip
def cholesky_ex(k: Any, x: Any, /, *, upper: bool) -> Any:
    """Factor Hermitian matrices into L and its adjoint."""
    factor, info = k.cholesky_ex(k.matrix_transpose(x), upper=not upper)
    return k.matrix_transpose(factor), info  # column by column


def _cholesky_back(k: Any, g: Any, factor: Any, upper: bool) -> Any:
    low = adjoint(k, factor) if upper else factor
    g = adjoint(k, g) if upper else g
    inner = k.tril(k.matmul(adjoint(k, low), g), diagonal=0)
    below = k.tril(inner, diagonal=-1)
    mid = k.subtract(inner, below)
    mid = k.multiply(k.add(mid, adjoint(k, mid)), 0.5)
    inner = k.add(k.add(below, adjoint(k, below)), mid)
    inner = k.solve_triangular(adjoint(k, low), inner, upper=True)
    return k.multiply(k.solve_triangular(low, inner, upper=False, left=False), 0.5)


cholesky_ex.vjp(x=_cholesky_back)

# ---- triangular systems ----


def solved(name: str, a: Size, b: Size, **attrs: Any) -> Size:
    return Size((*broadcast(name, tuple(a)[:-2], tuple(b)[:-2]), *tuple(b)[-2:]))


@op(result=full_precision, shape=solved, dtypes="fc", grad_name="LinalgSolveTriangularBackward0")
def solve_triangular(k: Any, a: Any, b: Any, /, *, upper: bool, left: bool = True, unit_diagonal: bool = False) -> Any:
    """Solve with one triangle of a."""
    return by_columns(k, k.solve_triangular(a, b, upper=upper, left=left, unit_diagonal=unit_diagonal))


def _triangular_b(k: Any, g: Any, a: Any, b_shape: Any, upper: bool, left: bool, unit_diagonal: bool) -> Any:
    turned = k.matrix_transpose(a)
    pulled = k.solve_triangular(turned, g, upper=not upper, left=left, unit_diagonal=unit_diagonal)
    return unbroadcast(k, pulled, Size(b_shape))


def _triangular_a(k: Any, g: Any, a: Any, out: Any, a_shape: Any, upper: bool, left: bool, unit_diagonal: bool) -> Any:
    turned = k.matrix_transpose(a)
    pulled = k.solve_triangular(turned, g, upper=not upper, left=left, unit_diagonal=unit_diagonal)
    full = k.matmul(pulled, k.matrix_transpose(out)) if left else k.matmul(k.matrix_transpose(out), pulled)
    full = k.triu(full, diagonal=int(unit_diagonal)) if upper else k.tril(full, diagonal=-int(unit_diagonal))
    return unbroadcast(k, k.negative(full), Size(a_shape))


solve_triangular.vjp(a=_triangular_a, b=_triangular_b)


def _kernel_solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unit_diagonal: bool = False) -> Any:
    return solve_triangular(a, b, upper=upper, left=left, unit_diagonal=unit_diagonal)


TENSOR_KERNELS.replace("solve_triangular", _kernel_solve_triangular)


def _from_factor(k: Any, b: Any, factor: Any, upper: bool) -> Any:
    turned = adjoint(k, factor)
    first, second = (turned, factor) if upper else (factor, turned)
    return k.solve_triangular(second, k.solve_triangular(first, b, upper=False), upper=True)


def _solved_from_factor(name: str, b: Size, factor: Size, *, upper: bool) -> Size:
    return solved(name, factor, b)


@op(
    result=full_precision, shape=_solved_from_factor, dtypes="fc", holomorphic=False, grad_name="CholeskySolveBackward0",
)  # fmt: skip
def cholesky_solve(k: Any, b: Any, factor: Any, /, *, upper: bool) -> Any:
    """Solve A @ x = b given A's Cholesky factor. An op, since in its gradient the whole factor counts, as in PyTorch."""
    return by_columns(k, _from_factor(k, b, factor, upper))


def _cholesky_factor(k: Any, g: Any, factor: Any, out: Any, factor_shape: Any, upper: bool) -> Any:
    common = k.matmul(_from_factor(k, g, factor, upper), adjoint(k, out))
    common = k.negative(k.add(common, adjoint(k, common)))
    pulled = k.matmul(factor, common) if upper else k.matmul(common, factor)
    return unbroadcast(k, pulled, Size(factor_shape))


cholesky_solve.vjp(
    b=lambda k, g, factor, b_shape, upper: unbroadcast(k, _from_factor(k, g, factor, upper), Size(b_shape)),
    factor=_cholesky_factor,
)


# ---- solving and inverting ----


def _solved_and_info(name: str, a: Size, b: Size) -> tuple[Size, Size]:
    lead = broadcast(name, tuple(a)[:-2], tuple(b)[:-2])
    return Size((*lead, *tuple(b)[-2:])), Size(tuple(a)[:-2])


@op(
    result=_with_info, shape=_solved_and_info, dtypes="fc", outputs=("solution", "info"),
    differentiable=1, grad_name="LinalgSolveExBackward0",
)  # fmt: skip
def solve_ex(k: Any, a: Any, b: Any, /) -> Any:
    """Solve a @ x = b."""
    solution, info = k.solve_ex(a, b)
    return by_columns(k, solution), info


def _solve_a(k: Any, g: Any, a: Any, solution: Any, a_shape: Any) -> Any:
    pulled = k.solve_ex(adjoint(k, a), g)[0]
    return unbroadcast(k, k.negative(k.matmul(pulled, adjoint(k, solution))), Size(a_shape))


solve_ex.vjp(
    a=_solve_a, b=lambda k, g, a, b_shape: unbroadcast(k, k.solve_ex(adjoint(k, a), g)[0], Size(b_shape))
)


@op(
    result=_with_info, shape=_matrix_and_info, dtypes="fc", outputs=("inverse", "info"),
    differentiable=1, grad_name="LinalgInvExBackward0",
)  # fmt: skip
def inv_ex(k: Any, x: Any, /) -> Any:
    """Invert."""
    inverse, info = k.inv_ex(x)  # not turned: what det factors, so that det(x) * inv(x) is good where x is nearly singular
    return by_columns(k, inverse), info


def _inv_back(k: Any, g: Any, inverse: Any) -> Any:
    turned = adjoint(k, inverse)
    return k.negative(k.matmul(turned, k.matmul(g, turned)))


inv_ex.vjp(x=_inv_back)

# ---- LU ----


def _lu_shapes(name: str, shape: Size) -> tuple[Size, ...]:
    *batch, m, n = tuple(shape)
    return shape, Size((*batch, min(m, n))), Size((*batch, m)), Size(batch)


@op(
    result=results(_SAME, _INT32, _INT64, _INT32), shape=_lu_shapes, kernel="lu_ex", dtypes="fc",
    outputs=("packed", "pivots", "order", "info"), differentiable=1, grad_name="LinalgLuFactorExBackward0",
)  # fmt: skip
def lu_ex(k: Any, x: Any, /) -> Any:
    """Factor with partial pivoting."""


def unit_lower(k: Any, packed: Any) -> Any:
    """Return L of a packed LU: (m, k), with ones on its diagonal."""
    m, n = k.shape_of(packed)[-2:]
    left = columns(k, packed, None, min(m, n))
    return k.add(k.tril(left, diagonal=-1), eye(k, packed, m, min(m, n)))


def upper_part(k: Any, packed: Any) -> Any:
    """Return U of a packed LU: (k, n)."""
    m, n = k.shape_of(packed)[-2:]
    return k.triu(rows(k, packed, None, min(m, n)), diagonal=0)


def _lu_back(k: Any, g: Any, packed: Any, order: Any) -> Any:
    m, n = k.shape_of(packed)[-2:]
    size = min(m, n)
    low, up = unit_lower(k, packed), upper_part(k, packed)
    top, square = rows(k, low, None, size), columns(k, up, None, size)
    g_top = rows(k, g, None, size)
    inner_low = k.matmul(adjoint(k, top), k.tril(columns(k, g_top, None, size), diagonal=-1))
    inner_up = k.matmul(k.triu(columns(k, g_top, None, size), diagonal=0), adjoint(k, square))
    if n > m:
        beyond = columns(k, g, size, None)
        inner_low = k.subtract(inner_low, k.matmul(beyond, adjoint(k, columns(k, up, size, None))))
    if m > n:
        beyond = rows(k, g, size, None)
        inner_up = k.subtract(inner_up, k.matmul(adjoint(k, rows(k, low, size, None)), beyond))
    inner = k.add(k.tril(inner_low, diagonal=-1), k.triu(inner_up, diagonal=0))
    first = k.solve_triangular(adjoint(k, top), inner, upper=True, unit_diagonal=True)
    first = k.solve_triangular(adjoint(k, square), first, upper=False, left=False)
    if n > m:
        more = k.solve_triangular(adjoint(k, top), beyond, upper=True, unit_diagonal=True)
        first = k.concat([first, more], axis=-1)
    if m > n:
        more = k.solve_triangular(adjoint(k, square), beyond, upper=False, left=False)
        first = k.concat([first, more], axis=-2)
    return gather_rows(k, first, k.argsort(order, axis=-1))


lu_ex.vjp(x=_lu_back)

# ---- determinants ----


def _batch_only(name: str, shape: Size) -> Size:
    return Size(tuple(shape)[:-2])


@op(result=full_precision, shape=_batch_only, kernel="det", dtypes="fc", grad_name="LinalgDetBackward0")
def det(k: Any, x: Any, /) -> Any:
    """Return the determinants."""


def _det_back(k: Any, g: Any, x: Any) -> Any:
    if not prod(k.shape_of(x)):
        return k.zeros_like(x)
    # det is smooth where the inverse is not: a singular matrix is moved by a little more than rounding takes away.
    d, fixed = k.dtype_of(x), k.constant(x)
    packed, _, order, _ = k.lu_ex(fixed)
    size = k.max(k.abs(fixed), axis=(-2, -1), keepdims=True)
    step = k.multiply(k.where(k.equal(size, 0), 1.0, size), 8 * finfo(d).eps)
    still = k.astype(k.expand_dims(k.equal(diagonal(k, packed), 0), -2), d)
    moved = k.multiply(unit_lower(k, packed), k.multiply(still, k.astype(step, d)))
    x = k.add(x, k.constant(gather_rows(k, moved, k.argsort(order, axis=-1))))
    scale = k.expand_dims(k.expand_dims(k.multiply(g, k.det(x)), -1), -1)
    return k.multiply(scale, k.matrix_transpose(k.inv_ex(x)[0]))


det.vjp(x=_det_back)


@op(
    result=results(_SAME, _REAL), shape=lambda name, shape: (Size(tuple(shape)[:-2]),) * 2,
    kernel="slogdet", dtypes="fc", outputs=("sign", "logabsdet"), grad_name="LinalgSlogdetBackward0",
)  # fmt: skip
def slogdet(k: Any, x: Any, /) -> Any:
    """Return the sign and the logarithm of the size of determinants."""


def _slogdet_back(k: Any, g: Any, x: Any, sign: Any) -> Any:
    g_sign, g_log = g
    d = k.dtype_of(x)
    scale = k.astype(g_log, d)
    if d.is_complex:
        turned = k.imag(k.multiply(k.conj(g_sign), sign))
        scale = k.subtract(scale, k.multiply(k.astype(turned, d), 1j))
    n = k.shape_of(x)[-1]
    scale = k.expand_dims(k.expand_dims(scale, -1), -1)
    return k.solve_ex(adjoint(k, x), k.multiply(scale, eye(k, x, n)))[0]


slogdet.vjp(x=_slogdet_back)

# ---- QR ----


def _qr_shapes(name: str, shape: Size, *, mode: str) -> tuple[Size, Size]:
    *batch, m, n = tuple(shape)
    size = m if mode == "complete" else min(m, n)
    return Size((0,)) if mode == "r" else Size((*batch, m, size)), Size((*batch, size, n))


@op(
    result=full_precision, shape=_qr_shapes, dtypes="fc", outputs=("q", "r"),
    grad_name="LinalgQrBackward0",
)  # fmt: skip
def qr(k: Any, x: Any, /, *, mode: str) -> Any:
    """Factor into Q, orthonormal, and R, upper triangular."""
    q, r = k.qr(x, mode=mode)
    return q, by_columns(k, r)


def _qr_back(k: Any, g: Any, q: Any, r: Any, x_shape: Any, mode: str) -> Any:
    g_q, g_r = g
    m, n = x_shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients."
        )
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    wide = n > m
    if wide:
        beyond = columns(k, g_r, m, None)
        rest = columns(k, r, m, None)
        # The columns beyond the square part are Q @ R2: their gradient reaches Q too.
        g_q = k.add(g_q, k.matmul(k.matmul(q, rest), adjoint(k, beyond)))
        g_r, r = columns(k, g_r, None, m), columns(k, r, None, m)
    inner = k.subtract(k.matmul(g_r, adjoint(k, r)), k.matmul(adjoint(k, q), g_q))
    inner = k.triu(inner, diagonal=0)
    both = k.add(inner, adjoint(k, inner))
    size = k.shape_of(r)[-1]
    both = k.multiply(both, k.subtract(1, k.multiply(eye(k, both, size), 0.5)))
    pulled = k.add(k.matmul(q, both), g_q)
    pulled = k.solve_triangular(adjoint(k, r), pulled, upper=False, left=False)
    return k.concat([pulled, k.matmul(q, beyond)], axis=-1) if wide else pulled


qr.vjp(x=_qr_back)

# ---- eigenvalues ----


def _eigen_shapes(name: str, shape: Size, **attrs: Any) -> tuple[Size, Size]:
    return Size(tuple(shape)[:-1]), shape


@op(
    result=results(_REAL, _SAME), shape=_eigen_shapes, kernel="eigh", dtypes="fc",
    outputs=("values", "vectors"), grad_name="LinalgEighBackward0",
)  # fmt: skip
def eigh(k: Any, x: Any, /, *, upper: bool) -> Any:
    """Return the eigenvalues and eigenvectors of Hermitian matrices."""


def _eigh_back(k: Any, g: Any, values: Any, vectors: Any, upper: bool) -> Any:
    g_values, g_vectors = g
    d = k.dtype_of(vectors)
    turned = adjoint(k, vectors)
    n = k.shape_of(values)[-1]
    on = k.equal(eye(k, values, n), 1)
    inner = k.matmul(turned, g_vectors)
    if d.is_complex:
        _check_phases(k, "linalg_eigh_backward", "eigenvectors", diagonal(k, inner))
    # Vectors only turn: what is left of their gradient gives a Hermitian one, as in PyTorch.
    inner = k.multiply(k.where(on, 0, k.subtract(inner, adjoint(k, inner))), 0.5)
    inner = _mask_divide(k, inner, k.astype(_gaps(k, values), d))
    inner = k.add(inner, k.astype(_embed(k, g_values), d))
    return k.matmul(vectors, k.matmul(inner, turned))


eigh.vjp(x=_eigh_back)


@op(
    result=results(_COMPLEX, _COMPLEX), shape=_eigen_shapes, kernel="eig", dtypes="fc",
    outputs=("values", "vectors"), grad_name="LinalgEigBackward0",
)  # fmt: skip
def eig(k: Any, x: Any, /) -> Any:
    """Return the complex eigenvalues and eigenvectors of any square matrices."""


def _eig_back(k: Any, g: Any, x: Any, values: Any, vectors: Any) -> Any:
    g_values, g_vectors = g
    d = k.dtype_of(vectors)
    turned = adjoint(k, vectors)
    n = k.shape_of(values)[-1]
    on = k.equal(k.real(eye(k, values, n)), 1)
    inner = k.matmul(turned, g_vectors)
    _check_phases(k, "linalg_eig_backward", "eigenvectors", diagonal(k, inner))
    along = k.astype(k.real(diagonal(k, inner)), d)
    inner = k.subtract(inner, k.matmul(turned, k.multiply(vectors, k.expand_dims(along, -2))))
    inner = _mask_divide(k, k.where(on, 0, inner), k.conj(_gaps(k, values)))
    inner = k.add(inner, _embed(k, g_values))
    pulled = k.solve_ex(turned, k.matmul(inner, turned))[0]
    return pulled if k.dtype_of(x).is_complex else k.real(pulled)


eig.vjp(x=_eig_back)

# ---- singular values ----


def _svd_shapes(name: str, shape: Size, *, full_matrices: bool) -> tuple[Size, ...]:
    *batch, m, n = tuple(shape)
    size = min(m, n)
    u, v = (m, n) if full_matrices else (size, size)
    return Size((*batch, m, u)), Size((*batch, size)), Size((*batch, v, n))


@op(
    result=results(_SAME, _REAL, _SAME), shape=_svd_shapes, kernel="svd", dtypes="fc",
    outputs=("u", "s", "vh"), grad_name="LinalgSvdBackward0",
)  # fmt: skip
def svd(k: Any, x: Any, /, *, full_matrices: bool) -> Any:
    """Return U, the singular values and V^H."""


def _svd_back(k: Any, g: Any, u: Any, s: Any, vh: Any, x_shape: Any, full_matrices: bool) -> Any:
    g_u, g_s, g_vh = g
    m, n = x_shape[-2:]
    size = min(m, n)
    if full_matrices:
        u, g_u = columns(k, u, None, size), columns(k, g_u, None, size)
        vh, g_vh = rows(k, vh, None, size), rows(k, g_vh, None, size)
    d = k.dtype_of(u)
    wide = k.astype(s, d)
    down, across = k.expand_dims(wide, -1), k.expand_dims(wide, -2)
    gaps = k.astype(_gaps(k, k.square(s)), d)
    on = k.equal(eye(k, s, size), 1)
    u_part = k.matmul(adjoint(k, u), g_u)
    v_part = k.matmul(vh, adjoint(k, g_vh))
    u_skew, v_skew = k.subtract(u_part, adjoint(k, u_part)), k.subtract(v_part, adjoint(k, v_part))
    inner = k.add(
        k.multiply(_mask_divide(k, k.where(on, 0, u_skew), gaps), across),
        k.multiply(_mask_divide(k, k.where(on, 0, v_skew), gaps), down),
    )
    inner = k.add(inner, k.astype(_embed(k, g_s), d))
    if d.is_complex:
        _check_phases(k, "svd_backward", "singular vectors", diagonal(k, u_part), diagonal(k, v_part))
        phase = _mask_divide(k, diagonal(k, u_skew), k.multiply(wide, 2))
        inner = k.add(inner, _embed(k, phase))
    if m > size:
        pulled = k.matmul(u, inner)
        scaled = _mask_divide(k, g_u, across)
        pulled = k.add(pulled, k.subtract(scaled, k.matmul(u, k.matmul(adjoint(k, u), scaled))))
        return k.matmul(pulled, vh)
    pulled = k.matmul(inner, vh)
    if n > size:
        scaled = _mask_divide(k, g_vh, down)
        pulled = k.add(pulled, k.subtract(scaled, k.matmul(k.matmul(scaled, adjoint(k, vh)), vh)))
    return k.matmul(u, pulled)


svd.vjp(x=_svd_back)
TENSOR_KERNELS.replace("svd", lambda x, *, full_matrices=True: svd(x, full_matrices=full_matrices))
TENSOR_KERNELS.replace("qr", lambda x, *, mode="reduced": qr(x, mode=mode))
TENSOR_KERNELS.replace("eigh", lambda x, *, upper=False: eigh(x, upper=upper))
TENSOR_KERNELS.replace("cholesky_ex", lambda x, *, upper=False: cholesky_ex(x, upper=upper))


def _real_values(op: Op, d: DType) -> tuple[DType, DType]:
    return full_precision(op, d)[0], d.to_real()


def _values_shape(name: str, shape: Size, **attrs: Any) -> Size:
    *batch, m, n = tuple(shape)
    return Size((*batch, min(m, n)))


def _of_values(k: Any, g: Any, left: Any, right: Any) -> Any:
    # Without the vectors' own gradients equal values do no harm; the vectors again cost less than keeping them.
    return k.matmul(k.multiply(left, k.expand_dims(k.astype(g, k.dtype_of(left)), -2)), right)


@op(
    result=_real_values, shape=_values_shape, kernel="eigvalsh", name="eigvalsh", dtypes="fc", holomorphic=False,
    grad_name="LinalgEighBackward0",
)  # fmt: skip
def eigvalsh(k: Any, x: Any, /, *, upper: bool) -> Any:
    """Return the eigenvalues of Hermitian matrices."""


def _eigvalsh_back(k: Any, g: Any, x: Any, upper: bool) -> Any:
    _, vectors = k.eigh(x, upper=upper)
    return _of_values(k, g, vectors, adjoint(k, vectors))


eigvalsh.vjp(x=_eigvalsh_back)


@op(
    result=_real_values, shape=_values_shape, kernel="svdvals", name="svdvals", dtypes="fc", holomorphic=False,
    grad_name="LinalgSvdBackward0",
)  # fmt: skip
def svdvals(k: Any, x: Any, /) -> Any:
    """Return the singular values."""


def _svdvals_back(k: Any, g: Any, x: Any) -> Any:
    u, _, vh = k.svd(x, full_matrices=False)
    return _of_values(k, g, u, vh)


svdvals.vjp(x=_svdvals_back)

# ---- pseudo-inverse ----


def _turned_shape(name: str, shape: Size, *rest: Any, **attrs: Any) -> Size:
    *batch, m, n = tuple(shape)
    return Size((*batch, n, m))


@op(
    result=full_precision, shape=_turned_shape, name="linalg_pinv", dtypes="fc", holomorphic=False, fixed=("atol", "rtol"),
    grad_name="LinalgPinvBackward0",
)  # fmt: skip
def pinv(k: Any, x: Any, atol: Any, rtol: Any, /, *, hermitian: bool) -> Any:
    """Invert what can be inverted: singular values up to max(atol, rtol * largest) count as zero."""
    d = k.dtype_of(x)
    *batch, m, n = k.shape_of(x)
    if 0 in (m, n):
        return k.new_full(x, (*batch, n, m), 0)
    if hermitian:
        s, u = k.eigh(x, upper=False)
        size = k.abs(s)
        vh = adjoint(k, u)
    else:
        u, s, vh = k.svd(x, full_matrices=False)
        size = s
    limit = k.maximum(k.expand_dims(atol, -1), k.multiply(k.expand_dims(rtol, -1), k.max(size, axis=-1, keepdims=True)))
    kept = k.less(limit, size)
    back = k.astype(k.where(kept, k.divide(1, k.where(kept, s, 1)), 0), d)
    return k.matmul(k.multiply(adjoint(k, vh), k.expand_dims(back, -2)), adjoint(k, u))


def _pinv_back(k: Any, g: Any, x: Any, out: Any) -> Any:
    m, n = k.shape_of(x)[-2:]
    out_h, g_h = adjoint(k, out), adjoint(k, g)
    if m <= n:
        inner = k.matmul(g_h, out)
        turned = k.matmul(inner, out_h)
        pulled = k.subtract(turned, adjoint(k, k.matmul(out, inner)))
        pulled = k.subtract(pulled, k.matmul(k.matmul(x, out), turned))
        return k.add(pulled, k.matmul(k.matmul(out_h, out), k.subtract(g_h, k.matmul(inner, x))))
    inner = k.matmul(out, g_h)
    turned = k.matmul(out_h, inner)
    pulled = k.subtract(turned, adjoint(k, k.matmul(inner, out)))
    pulled = k.add(pulled, k.matmul(k.matmul(k.subtract(g_h, k.matmul(x, inner)), out), out_h))
    return k.subtract(pulled, k.matmul(k.matmul(turned, out), x))


pinv.vjp(x=_pinv_back)
