"""mortice.linalg: factorisations rebuild their matrix, gradients hold, failures raise LinAlgError."""

import math

import pytest

import mortice as mt
from mortice.autograd import gradcheck, gradgradcheck

A = mt.tensor([[4.0, 1.0, 2.0], [0.5, 3.0, -1.0], [1.0, -2.0, 5.0]], dtype=mt.float64)
TALL = mt.tensor([[2.0, 1.0], [0.5, -3.0], [1.0, 2.0]], dtype=mt.float64)
POSITIVE = A @ A.mT
COMPLEX = mt.complex(A, A.flip(0))


@pytest.mark.parametrize("x", [A, TALL, TALL.mT, COMPLEX], ids=["square", "tall", "wide", "complex"])
def test_factors_rebuild_the_matrix(x):
    q, r = mt.linalg.qr(x)
    assert mt.allclose(q @ r, x)
    u, s, vh = mt.linalg.svd(x, full_matrices=False)
    assert mt.allclose((u * s) @ vh, x)
    p, low, up = mt.linalg.lu(x)
    assert mt.allclose(p @ low @ up, x)
    assert mt.allclose(x @ mt.linalg.pinv(x) @ x, x)


@pytest.mark.parametrize("x", [POSITIVE, COMPLEX @ COMPLEX.mH], ids=["real", "complex"])
def test_hermitian_factors(x):
    low = mt.linalg.cholesky(x)
    assert mt.allclose(low @ low.mH, x)
    values, vectors = mt.linalg.eigh(x)
    assert mt.allclose((vectors * values) @ vectors.mH, x)


def test_solves_and_inverses():
    b = TALL
    for x in (mt.linalg.solve(A, b), mt.linalg.inv(A) @ b, mt.linalg.lu_solve(*mt.linalg.lu_factor(A), b)):
        assert mt.allclose(A @ x, b)
    assert mt.allclose(mt.linalg.solve(A, b[:, 0]), mt.linalg.solve(A, b)[:, 0])
    assert mt.allclose(mt.linalg.solve_triangular(A, b, upper=True), mt.linalg.solve(A.triu(), b))
    values, vectors = mt.linalg.eig(A)
    assert mt.allclose(A.to(mt.complex128) @ vectors, vectors * values)
    assert mt.allclose(mt.linalg.lstsq(TALL, A).solution, mt.linalg.pinv(TALL) @ A)


def test_determinants_and_norms():
    assert math.isclose(mt.det(A).item(), 40.5)
    sign, log = mt.slogdet(-A)
    assert sign.item() == -1 and math.isclose(log.item(), math.log(40.5))
    x = mt.tensor([[3.0, -4.0], [0.0, 0.0]])
    assert mt.linalg.vector_norm(x).item() == 5 and mt.linalg.matrix_norm(x, 1).item() == 4
    assert mt.linalg.norm(x, "nuc").item() == pytest.approx(5) and mt.linalg.matrix_rank(x).item() == 1
    assert mt.linalg.vector_norm(x, math.inf).item() == 4 and mt.linalg.vector_norm(x, 0).item() == 2
    for dims in ([], (0, 1, 2)):
        with pytest.raises(RuntimeError, match="linalg.norm: If dim is specified, it must be of length 1 or 2"):
            mt.linalg.norm(mt.ones(2, 2, 2), dim=dims)


@pytest.mark.parametrize("size", [2, 3])
def test_a_real_determinant_of_complex_numbers_has_no_negative_zero(size):
    swapped = mt.eye(size, dtype=mt.complex128).flip(0)  # libraries halve the angle, and ask which of the two roots it is
    for matrices in (swapped, swapped.expand(2, size, size)):
        assert (mt.linalg.det(matrices).angle() == math.pi).all()
        assert (mt.linalg.slogdet(matrices).sign.angle() == math.pi).all()


def test_failures_name_the_matrix():
    with pytest.raises(mt.linalg.LinAlgError, match="diagonal element 1 is zero"):
        mt.linalg.inv(mt.zeros(2, 2))
    with pytest.raises(mt.linalg.LinAlgError, match=r"\(Batch element 1\)"):
        mt.linalg.cholesky(mt.stack([mt.eye(2), -mt.eye(2)]))
    assert mt.linalg.inv_ex(mt.zeros(2, 2)).info.item() == 1
    with pytest.raises(RuntimeError, match="batches of square matrices, but they are 3 by 2"):
        mt.linalg.det(TALL)
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor"):
        mt.linalg.inv(mt.ones(2, 2, dtype=mt.int64))


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: mt.linalg.inv(x), A),
        (lambda x: mt.linalg.det(x), A),
        (lambda x: mt.linalg.slogdet(x)[1], A),
        (lambda x: mt.linalg.solve(x, TALL), A),
        (lambda x: mt.linalg.cholesky(x @ x.mH), A),
        (lambda x: mt.linalg.eigvalsh(x + x.mT), A),
        (lambda x: mt.linalg.svdvals(x), TALL),
        (lambda x: mt.linalg.svd(x, full_matrices=False)[0].abs(), TALL),
        (lambda x: mt.linalg.qr(x)[1], TALL),
        (lambda x: mt.linalg.qr(x)[0], TALL.mT),
        (lambda x: mt.linalg.lu_factor(x)[0], TALL),
        (lambda x: mt.linalg.pinv(x), TALL),
        (lambda x: mt.linalg.eigvals(x).abs(), A),
        (lambda x: mt.linalg.vector_norm(x, 3), TALL),
        (lambda x: mt.linalg.matrix_exp(x / 3), A),
    ],
)
def test_gradients(fn, x):
    x = x.clone().requires_grad_()
    assert gradcheck(fn, (x,)) and gradgradcheck(fn, (x,))


def test_gradient_of_det_at_a_singular_matrix():
    x = mt.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=mt.float64, requires_grad=True)
    mt.det(x).backward()
    assert mt.allclose(x.grad, mt.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=mt.float64))


@pytest.mark.parametrize("shape", [(2, 2), (3, 5, 5)], ids=["matrix", "batch"])
@pytest.mark.parametrize("dtype", [mt.float32, mt.complex128], ids=["real", "complex"])
def test_matrices_with_nan_are_refused(shape, dtype):
    x = mt.ones(shape, dtype=dtype)
    x[..., 1, 0] = math.nan
    made_of_svd = (mt.linalg.svd, mt.linalg.svdvals, mt.svd, mt.linalg.matrix_rank, mt.linalg.cond, mt.linalg.pinv)
    for fn in (*made_of_svd, lambda x: mt.svd_lowrank(x, 1)):
        with pytest.raises(mt.linalg.LinAlgError, match="non-finite"):
            fn(x)
    with pytest.raises(mt.linalg.LinAlgError, match="not positive-definite"):
        mt.linalg.cholesky(x)
    for value in (math.nan, math.inf):
        x[..., 1, 0] = value
        for fn in (mt.linalg.eig, mt.linalg.eigvals):
            with pytest.raises(RuntimeError, match="infs or NaNs"):
                fn(x)


def test_cholesky_ex_tells_where_nan_begins():
    x = mt.eye(4).repeat(2, 1, 1)
    x[1, 2, 0] = math.nan
    assert mt.linalg.cholesky_ex(x).info.tolist() == [0, 3]
    assert mt.linalg.cholesky_ex(x.mT, upper=True).info.tolist() == [0, 3]


def test_the_inverse_of_a_singular_factor_is_refused():
    for upper in (False, True):
        with pytest.raises(mt.linalg.LinAlgError, match="diagonal element 2 is zero"):
            mt.cholesky_inverse(mt.tensor([[1.0, 3.0], [1.0, 0.0]]), upper=upper)
    assert mt.cholesky_inverse(mt.empty(0, 0)).shape == (0, 0)


@pytest.mark.parametrize("bad", [0, 3])
def test_pivots_beyond_the_matrix_are_refused(bad):
    packed, pivots = mt.linalg.lu_factor(A[:2, :2])
    pivots[0] = bad
    with pytest.raises(RuntimeError, match=rf"greater or equal to 1, .* LU.size\(-2\) = 2; got {bad}"):
        mt.linalg.lu_solve(packed, pivots, A[:2])
    with pytest.raises(RuntimeError, match=rf"greater or equal to 1, .* LU.size\(-2\) = 2; got {bad}"):
        mt.lu_unpack(packed, pivots)


@pytest.mark.parametrize("count", [1, 3])
def test_pivots_of_another_number_are_refused(count):
    packed, pivots = mt.linalg.lu_factor(A[:2, :2])
    pivots = mt.ones(count, dtype=mt.int32)
    for call in (lambda: mt.linalg.lu_solve(packed, pivots, A[:2]), lambda: mt.lu_unpack(packed, pivots)):
        with pytest.raises(RuntimeError, match=rf"expected pivots of shape \[2\] for LU of \[2, 2\]; got \[{count}\]"):
            call()


@pytest.mark.parametrize("bad", [0, 3, -3])
def test_pivots_of_ldl_beyond_the_matrix_are_refused(bad):
    packed, pivots = mt.linalg.ldl_factor(mt.eye(2))
    pivots[0] = bad
    with pytest.raises(RuntimeError, match=rf"ldl_solve: .* or equal to LD.size\(-2\) = 2; got {abs(bad)}"):
        mt.linalg.ldl_solve(packed, pivots, mt.ones(2, 1))


def test_lstsq_reads_rcond_as_lapack_does():
    a, b = mt.diag(mt.tensor([2.0, 1.0])), mt.ones(2, 1)
    singular = mt.diag(mt.tensor([2.0, 0.0]))
    for rcond, driver, x, expected in [
        (1.0, "gelsd", a, [0.5, 1.0]), (1.0, "gelss", a, [0.0, 0.0]), (0.6, "gelsd", a, [0.5, 0.0]),
        (-1, "gelsd", singular, [0.5, 0.0]), (-1, "gelss", singular, [0.5, 0.0]),
    ]:  # fmt: skip
        got = mt.linalg.lstsq(x, b, rcond=rcond, driver=driver)
        assert got.solution.flatten().tolist() == expected
        assert got.rank.item() == sum(v != 0 for v in expected)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_gradient_of_eigenvectors_is_hermitian(dtype):
    x = mt.tensor([[2.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]], dtype=getattr(mt, dtype), requires_grad=True)
    (mt.linalg.eigh(x)[1].abs() * mt.arange(9.0).reshape(3, 3)).sum().backward()
    assert mt.allclose(x.grad, x.grad.mH) and not mt.allclose(x.grad, mt.zeros_like(x.grad))


@pytest.mark.parametrize("uplo", ["L", "U", "l"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0), (2, 0, 0), (0, 3, 3)])
def test_eigenvalues_alone_are_those_beside_the_vectors(shape, dtype, uplo):
    mt.manual_seed(0)
    x = mt.randn(*shape, dtype=getattr(mt, dtype))  # of which one triangle is read
    values, _ = mt.linalg.eigh(x, uplo)
    alone = mt.linalg.eigvalsh(x, uplo)
    assert alone.dtype is mt.float64 and alone.shape == values.shape
    mt.testing.assert_close(alone, values)
    kept = x.clone().requires_grad_()
    mt.linalg.eigvalsh(kept, uplo).pow(3).sum().backward()
    mt.testing.assert_close(mt.func.grad(lambda x: mt.linalg.eigvalsh(x, uplo).pow(3).sum())(x), kept.grad)


@pytest.mark.parametrize("p", [1, -1, math.inf, "fro", "nuc"])
def test_the_condition_of_a_singular_matrix_among_others_is_infinite(p):
    x = mt.eye(3, dtype=mt.float64).repeat(3, 1, 1)
    x[1, 2, 2] = 0
    first, singular, last = mt.linalg.cond(x, p).tolist()
    assert singular == math.inf and first == last == pytest.approx({"fro": 3, "nuc": 9}.get(p, 1))


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
@pytest.mark.parametrize("again", [False, True])
def test_a_loss_that_depends_on_the_phases_of_complex_vectors_is_refused(name, again):
    mt.manual_seed(0)
    x = mt.randn(2, 3, 3, dtype=mt.complex128)
    x = (x + x.mH).requires_grad_()
    made = getattr(mt.linalg, name)(x)
    vectors = made[0 if name == "svd" else 1]
    with pytest.raises(RuntimeError, match=r"backward: The .* specified up to multiplication by e\^{i phi}"):
        mt.autograd.grad(vectors.real.sum(), x, create_graph=again, retain_graph=True)
    (grad,) = mt.autograd.grad((vectors * 1).abs().pow(3).sum(), x, create_graph=again, retain_graph=True)
    assert mt.isfinite(grad.abs()).all()
    mt.autograd.grad(vectors.real.sum() * 1e-4, x, retain_graph=True)  # within the tolerance
    if name == "svd":  # the phases of both sides cancel
        mt.autograd.grad((made[0] @ made[2]).real.sum(), x)


@pytest.mark.parametrize("x", [POSITIVE, COMPLEX @ COMPLEX.mH], ids=["real", "complex"])
@pytest.mark.parametrize("upper", [False, True])
def test_in_the_gradient_of_a_cholesky_factor_all_of_it_counts(x, upper):
    factor = mt.linalg.cholesky(x, upper=upper).requires_grad_()
    b = x.detach()[:, :2].clone().requires_grad_()
    whole = mt.linalg.inv(factor.mH @ factor if upper else factor @ factor.mH)
    for made, same in [(mt.cholesky_solve(b, factor, upper), whole @ b), (mt.cholesky_inverse(factor, upper), whole)]:
        weights = mt.arange(made.numel()).reshape(made.shape)
        found, expected = (mt.autograd.grad((y * weights).sum().abs(), (factor, b), allow_unused=True, retain_graph=True)
                           for y in (made, same))  # fmt: skip
        assert all(f is e is None or mt.allclose(f, e) for f, e in zip(found, expected, strict=True))
    assert made.grad_fn.name() == "CholeskyInverseBackward0"
    assert gradgradcheck(lambda low, c: mt.cholesky_solve(c, low.triu() if upper else low.tril(), upper), (factor, b))


@pytest.mark.parametrize("norm", [mt.norm, mt.linalg.vector_norm])
def test_the_gradient_of_a_maximum_norm_is_nan_at_nan_alone(norm):
    x = mt.tensor([[float("nan"), 1.0], [2.0, -2.0]], requires_grad=True)
    norm(x, float("inf"), 1).sum().backward()
    assert x.grad[0].isnan().tolist() == [True, False] and x.grad[0, 1] == 0 and x.grad[1].tolist() == [0.5, -0.5]


def test_svd_lowrank_of_a_matrix_smaller_than_q_gives_all_there_is():
    for shape in ((3, 4), (4, 3)):
        a = mt.randn(*shape, dtype=mt.float64)
        u, s, v = mt.svd_lowrank(a)
        assert s.shape == (3,) and mt.allclose(u * s @ v.mT, a)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_vander_of_integers_is_int64_for_every_number_of_powers(n):
    for dtype in (mt.int32, mt.uint8, mt.bool):
        assert mt.vander(mt.ones(2, dtype=dtype), n).dtype is mt.int64
    assert mt.vander(mt.ones(1, dtype=mt.int16)).dtype is mt.int64
    assert mt.vander(mt.ones(2), n).dtype is mt.float32


def test_the_determinant_times_the_inverse_is_good_where_a_matrix_is_nearly_singular():
    # Both are of one factorisation, so that what each loses by rounding cancels: kornia takes cofactors so.
    a = mt.tensor([[0.2057, -3.8266, 3.1615], [4.5417, -1.0707, -2.2023], [-1.0975, 1.6386, -0.6590]], dtype=mt.float32)
    (p, q, r), (s, t, u), (v, w, x) = a.tolist()
    exact = [[t * x - u * w, r * w - q * x, q * u - r * t], [u * v - s * x, p * x - r * v, r * s - p * u]]
    for one in (a, a.mT.contiguous().mT, mt.stack([a, a])[1]):
        mt.testing.assert_close((mt.linalg.det(one) * mt.linalg.inv(one))[:2], mt.tensor(exact, dtype=mt.float32), rtol=1e-5, atol=1e-5)
