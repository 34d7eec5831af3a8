"""Linear algebra: what factors must multiply to, solutions put back in, LAPACK's codes, batches and strides."""


import pytest

np = pytest.importorskip("numpy", reason="the reference is NumPy's")
pytest.importorskip("mortice_cpu_numpy.backend", reason="the reference is cpu_numpy")
extension = pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")

from products import TOLERANCE, Pair  # noqa: E402

SQUARE = [(1, 1), (3, 3), (2, 3, 5, 5), (70, 70), (0, 4, 4), (2, 0, 0)]
ANY = [(4, 4), (6, 3), (3, 6), (2, 2, 5, 3), (2, 3, 5), (1, 4), (4, 1), (80, 40), (0, 3, 2), (3, 0)]


@pytest.fixture(scope="module")
def pair(k):
    return Pair(k)


@pytest.fixture(params=["float32", "float64", "complex64", "complex128"])
def dtype(request):
    return request.param


def random(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(dtype, shape):
    x = random(dtype, shape)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def close(x, y, dtype, loose=1):
    limit = TOLERANCE[dtype] * loose
    assert x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=limit, atol=limit * max(1.0, float(np.abs(y).max(initial=0))))


def both_layouts(x):
    """The array as it is and as the transposed view of its transposed copy."""
    return [x, np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2)]


@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_one_triangle(pair, dtype, shape, upper):
    x = positive(dtype, shape)
    half = np.triu(x) if upper else np.tril(x)
    for operand in both_layouts(half + (np.tril(random(dtype, shape), -1) if upper else np.triu(random(dtype, shape), 1))):
        factor, info = (pair.numpy(a) for a in pair.own.cholesky_ex(pair.array(operand), upper=upper))
        close(adjoint(factor) @ factor if upper else factor @ adjoint(factor), x, dtype)
        assert not info.any() and info.shape == shape[:-2] and info.dtype == np.int32
        np.testing.assert_array_equal(factor, np.triu(factor) if upper else np.tril(factor))


def test_cholesky_says_where_it_stopped(pair, dtype):
    x = np.stack([np.eye(3), np.diag([1, 1, -1])]).astype(dtype)
    _, info = pair.own.cholesky_ex(pair.array(x))
    assert pair.numpy(info).tolist() == [0, 3]


@pytest.mark.parametrize("shape", [s for s in SQUARE if s != (0, 4, 4)])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles(pair, dtype, shape, upper, left, unit):
    n = shape[-1]
    a = (random(dtype, shape) / max(n, 1) + 2 * np.eye(n)).astype(dtype)
    b = random(dtype, (*shape[:-2], n, 4) if left else (*shape[:-2], 4, n), 1)
    part = np.triu(a) if upper else np.tril(a)
    if unit:
        part[..., range(n), range(n)] = 1
    for operand in both_layouts(a):
        x = pair.numpy(pair.own.solve_triangular(pair.array(operand), pair.array(b), upper=upper, left=left, unit_diagonal=unit))
        close(part @ x if left else x @ part, b, dtype, 10)


def test_a_singular_triangle_gives_infinity(pair, dtype):
    a, b = np.diag([1.0, 0.0]).astype(dtype), np.ones((2, 1), dtype)
    x = pair.numpy(pair.own.solve_triangular(pair.array(a), pair.array(b), upper=True))
    assert x[0, 0] == 1 or not np.isfinite(x[0, 0])
    assert not np.isfinite(x[1, 0])


@pytest.mark.parametrize("shape", ANY)
def test_lu(pair, dtype, shape):
    x = random(dtype, shape)
    m, n = shape[-2:]
    size = min(m, n)
    for operand in both_layouts(x):
        packed, pivots, order, info = (pair.numpy(a) for a in pair.own.lu_ex(pair.array(operand)))
        low = np.tril(packed[..., :, :size], -1)
        low[..., range(size), range(size)] = 1
        close(low @ np.triu(packed[..., :size, :]), np.take_along_axis(x, order[..., None], -2), dtype)
        assert pivots.dtype == np.int32 and order.dtype == np.int64 and not info.any()
        again = pair.own.pivots_to_order(pair.array(pivots), m)
        np.testing.assert_array_equal(pair.numpy(again), order)


@pytest.mark.parametrize("adjoint_too", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 5, 5), (40, 40)])
def test_lu_solve(pair, dtype, shape, adjoint_too):
    x, b = random(dtype, shape), random(dtype, (*shape[:-1], 3), 1)
    packed, _, order, _ = pair.own.lu_ex(pair.array(x))
    whole = np.ascontiguousarray(pair.numpy(packed))
    for lu in (packed, pair.array(whole)):
        y = pair.numpy(pair.own.lu_solve(lu, order, pair.array(b), adjoint=adjoint_too))
        close((adjoint(x) if adjoint_too else x) @ y, b, dtype, 100)


@pytest.mark.parametrize(
    ("a", "b"), [((3, 3), (3, 2)), ((2, 1, 4, 4), (3, 4, 1)), ((70, 70), (70, 5)), ((4, 4), (6, 4, 2)), ((0, 2, 2), (0, 2, 1))]
)
def test_solve(pair, dtype, a, b):
    a, b = random(dtype, a), random(dtype, b, 1)
    x, info = (pair.numpy(v) for v in pair.own.solve_ex(pair.array(a), pair.array(b)))
    close(a @ x, np.broadcast_to(b, (a @ x).shape), dtype, 100)
    assert not info.any() and info.shape == a.shape[:-2]


@pytest.mark.parametrize("shape", SQUARE)
def test_inverse_and_determinant(pair, dtype, shape):
    x = positive(dtype, shape)
    inverse, info = (pair.numpy(a) for a in pair.own.inv_ex(pair.array(x)))
    close(x @ inverse, np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape), dtype, 10)
    assert not info.any()
    sign, log = (pair.numpy(a) for a in pair.own.slogdet(pair.array(x)))
    expected_sign, expected_log = np.linalg.slogdet(x.astype("complex128" if dtype.startswith("c") else "float64"))
    close(sign, expected_sign, dtype)
    close(log, expected_log, dtype, 10)
    if shape[-1] < 10:
        pair.agree("det", random(dtype, shape), tolerance=TOLERANCE[dtype] * 10)


@pytest.mark.parametrize("size", range(1, 17))
def test_few_rows_are_swapped_and_solved_without_lapack(pair, dtype, size):
    """Up to 12; more, and complex ones, are LAPACK's."""
    whole = random(dtype, (4, size, size), size)
    if size > 1:
        whole[1, 0, 0] = whole[2, :-1, 0] = 0  # a row has to be swapped, and one from the very end
    wide = whole.astype("complex128" if dtype.startswith("c") else "float64")
    good = np.linalg.cond(wide) < 1e3
    assert good.sum() >= 2
    for x in both_layouts(whole[good]):
        b, given = random(dtype, (*x.shape[:-1], 3), 1), pair.array(x)
        inverse, info = (pair.numpy(v) for v in pair.own.inv_ex(given))
        assert not info.any()
        close(inverse, np.linalg.inv(wide[good]).astype(dtype), dtype, 1000)
        close(x @ pair.numpy(pair.own.solve_ex(given, pair.array(b))[0]), b, dtype, 1000)
        close(pair.numpy(pair.own.det(given)), np.linalg.det(wide[good]).astype(dtype), dtype, 1000)
    lost = whole[:1].copy()
    lost[..., -1] = 0
    assert pair.numpy(pair.own.inv_ex(pair.array(lost))[1]).tolist() == [size]
    assert pair.numpy(pair.own.det(pair.array(lost))).tolist() == [0]


def test_singular_matrices_have_a_code_and_no_determinant(pair, dtype):
    x = np.stack([np.eye(3), np.ones((3, 3))]).astype(dtype)
    assert pair.numpy(pair.own.inv_ex(pair.array(x))[1]).tolist() == [0, 2]
    assert pair.numpy(pair.own.solve_ex(pair.array(x), pair.array(x))[1]).tolist() == [0, 2]
    assert pair.numpy(pair.own.det(pair.array(x))).tolist() == [1, 0]
    sign, log = pair.own.slogdet(pair.array(x))
    assert pair.numpy(sign).tolist() == [1, 0] and pair.numpy(log).tolist() == [0, -np.inf]


@pytest.mark.parametrize("shape", ANY)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(pair, dtype, shape, mode):
    for x in both_layouts(random(dtype, shape)):
        q, r = (pair.numpy(a) for a in pair.own.qr(pair.array(x), mode=mode))
        np.testing.assert_array_equal(r, np.triu(r))
        if mode == "r":
            assert q.shape == (0,)
            close(adjoint(r) @ r, adjoint(x) @ x, dtype, 10)
        else:
            close(q @ r, x, dtype)
            close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), (*shape[:-2], *q.shape[-1:] * 2)), dtype)


@pytest.mark.parametrize("shape", ANY)
def test_reflections(pair, dtype, shape):
    packed, tau = (pair.numpy(a) for a in pair.own.geqrf(pair.array(random(dtype, shape))))
    _, r = (pair.numpy(a) for a in pair.own.qr(pair.array(random(dtype, shape))))
    close(np.triu(packed)[..., : min(shape[-2:]), :], r, dtype)
    assert tau.shape == (*shape[:-2], min(shape[-2:]))


@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("upper", [False, True])
def test_hermitian_eigenvalues(pair, dtype, shape, upper):
    x = random(dtype, shape)
    half = np.triu(x, 1) if upper else np.tril(x, -1)
    whole = half + adjoint(half) + np.eye(shape[-1]) * np.real(x)  # the diagonal counts as real
    for operand in both_layouts(x):
        w, v = (pair.numpy(a) for a in pair.own.eigh(pair.array(operand), upper=upper))
        close(v * w[..., None, :].astype(dtype) @ adjoint(v), whole.astype(dtype), dtype, 10)
        assert (np.diff(w) >= 0).all() and w.dtype == np.real(x).dtype
        alone = pair.numpy(pair.own.eigvalsh(pair.array(operand), upper=upper))
        assert alone.dtype == w.dtype and alone.shape == w.shape
        close(alone, w, dtype)


@pytest.mark.parametrize("shape", SQUARE)
def test_eigenvalues(pair, dtype, shape):
    for x in both_layouts(random(dtype, shape)):
        w, v = (pair.numpy(a) for a in pair.own.eig(pair.array(x)))
        assert w.dtype == v.dtype == np.result_type(dtype, np.complex64)
        close(x @ v, v * w[..., None, :], str(w.dtype), 20)
        close(np.linalg.norm(v, axis=-2), np.ones(w.shape), dtype)


@pytest.mark.parametrize("shape", ANY)
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(pair, dtype, shape, full):
    for x in both_layouts(random(dtype, shape)):
        u, s, vh = (pair.numpy(a) for a in pair.own.svd(pair.array(x), full_matrices=full))
        m, n = shape[-2:]
        size = min(m, n)
        assert u.shape[-2:] == (m, m if full else size) and vh.shape[-2:] == (n if full else size, n)
        close(u[..., :size] * s[..., None, :].astype(dtype) @ vh[..., :size, :], x, dtype, 10)
        close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1], dtype=dtype), (*shape[:-2], *u.shape[-1:] * 2)), dtype)
        assert (np.diff(s) <= 0).all() and s.dtype == np.real(x).dtype
        alone = pair.numpy(pair.own.svdvals(pair.array(x)))
        assert alone.dtype == s.dtype and alone.shape == s.shape
        close(alone, s, dtype)


def test_nan_is_not_lost_below_a_zero(pair, dtype):
    for x in ([[0, np.nan], [1, 1]], [[np.nan, 0], [0, 1]], [[0, 1], [np.nan, 1]], [[1, 2], [2, np.nan]]):
        assert np.isnan(pair.numpy(pair.own.det(pair.array(np.array(x, dtype)))))


def test_nan_in_one_matrix_leaves_the_others(pair):
    x = random("float64", (2, 3, 3))
    x[0, 1, 1] = np.nan
    for kernel in ("svd", "eigh", "svdvals", "eigvalsh"):
        made = getattr(pair.own, kernel)(pair.array(x))
        found = [pair.numpy(a) for a in (made if isinstance(made, tuple) else (made,))]
        assert all(np.isfinite(a[1]).all() for a in found)


@pytest.mark.parametrize(("rows", "columns"), [(16384, 200), (50000, 2), (2, 50000)])
def test_lapack_takes_matrices_with_a_long_side(pair, rows, columns):
    x = random("float32", (rows, columns))
    a = pair.array(x)
    for kernel, settings in (("qr", {"mode": "reduced"}), ("geqrf", {}), ("svd", {"full_matrices": False}), ("svdvals", {}), ("lu_ex", {})):
        assert getattr(extension, f"partial_{kernel}")(a, **settings) is not NotImplemented, kernel
    q, r = (pair.numpy(part) for part in pair.own.qr(a, mode="reduced"))
    close(q @ r, x, "float32", loose=10)
    u, sizes, vh = (pair.numpy(part) for part in pair.own.svd(a, full_matrices=False))
    close((u * sizes) @ vh, x, "float32", loose=10)


def test_results_too_long_for_lapack_are_left_to_the_default_body(pair):
    a = pair.array(np.zeros((20000, 1), np.float32))
    assert extension.partial_qr(a, mode="complete") is NotImplemented is extension.partial_svd(a, full_matrices=True)
