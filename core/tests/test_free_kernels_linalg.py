"""The default bodies of linear algebra: residuals in eps times the size of the problem, and NumPy's results.

A factorisation is right when it multiplies back and its factors are orthonormal or triangular: that is what is
measured, in units of eps, and bounded by a small multiple of n.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy_shim import run, shim

from mortice.backends.linalg import LinalgKernels

pytestmark = pytest.mark.any_backend
TYPES = [np.float32, np.float64, np.complex64, np.complex128]
SQUARE = [(0, 0), (1, 1), (2, 2), (3, 3), (6, 6), (2, 3, 5, 5), (0, 4, 4), (3, 0, 0), (17, 17)]
OBLONG = [(3, 5), (5, 3), (1, 4), (4, 1), (2, 7, 3), (2, 3, 7), (0, 3), (3, 0), (2, 0, 3), (9, 8)]


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(n, dtype, kind):
    """Make a Hermitian matrix with a spectrum that is easy or hard."""
    a = sample((n, n), np.complex128 if np.dtype(dtype).kind == "c" else np.float64, n)
    q, _ = np.linalg.qr(a)
    rng = np.random.default_rng(1)
    spectra = {
        "graded": 10.0 ** np.linspace(0, -14, n),
        "clustered": np.where(np.arange(n) < n // 2, 1.0, 1 + 1e-8 * np.arange(n)),
        "low rank": np.concatenate([[1.0, -2.0], np.zeros(n)])[:n],
    }
    made = {
        "random": a + adjoint(a),
        "ones": np.ones((n, n)),
        "zero": np.zeros((n, n)),
        "diagonal": np.diag(rng.permutation(10.0 ** -np.arange(n))),
        "path": np.eye(n, k=1) + np.eye(n, k=-1),
        "hilbert": 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0),
        "swaps": np.kron(np.eye(n // 2 + 1), [[0.0, 1.0], [1.0, 0.0]])[:n, :n],
        "scaled": (10.0 ** rng.uniform(-6, 0, n))[:, None] * (a + adjoint(a)) * 10.0 ** rng.uniform(-6, 0, n),
    }
    made["scaled"] = made["scaled"] + adjoint(made["scaled"])
    made |= {name: (q * w) @ adjoint(q) for name, w in spectra.items()}
    return made[kind].astype(dtype)


KINDS = "random ones zero diagonal path hilbert swaps scaled graded clustered".split() + ["low rank"]


def off(difference, size, dtype):
    """Return the largest difference in eps of what it is compared with."""
    if difference.size == 0:
        return 0.0
    assert np.isfinite(difference).all()
    return float(np.abs(difference).max() / max(size, np.finfo(dtype).tiny) / np.finfo(dtype).eps)


def exactly(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# ---- Cholesky and triangular systems ----


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_multiplies_back(dtype, shape, upper):
    a = sample(shape, dtype)
    n = shape[-1]
    a = (a @ adjoint(a) + n * np.eye(n)).astype(dtype)
    # The other triangle holds nothing and must not be read.
    hidden = np.tril(np.full((n, n), np.nan), -1) if upper else np.triu(np.full((n, n), np.nan), 1)
    factor, info = run("cholesky_ex", (a + hidden).astype(dtype), upper=upper)
    assert factor.dtype == dtype and info.dtype == np.int32 and info.shape == shape[:-2] and not info.any()
    np.testing.assert_array_equal(factor, np.triu(factor) if upper else np.tril(factor))
    f = exactly(factor)
    back = adjoint(f) @ f if upper else f @ adjoint(f)
    assert off(back - a, np.abs(a).max(initial=0), dtype) <= 4 * n


def test_cholesky_tells_the_first_leading_minor_that_is_not_positive():
    a = np.stack([np.eye(5)] * 5)
    a[1, 0, 0] = -1
    a[2, 3, 3] = 0
    a[3, 4, 4] = np.nan
    a[4, 2, 2] = a[4, 4, 4] = -1
    factor, info = run("cholesky_ex", a)
    np.testing.assert_array_equal(info, [0, 1, 4, 5, 3])
    np.testing.assert_array_equal(factor[0], np.eye(5))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_triangular_systems_are_solved(dtype, n, upper, left, unit_diagonal):
    a = sample((3, n, n), dtype) / np.float32(2) + 3 * np.eye(n, dtype=dtype)
    b = sample((3, n, 4) if left else (3, 4, n), dtype, 1)
    x = run("solve_triangular", a, b, upper=upper, left=left, unit_diagonal=unit_diagonal)
    t = exactly(np.triu(a) if upper else np.tril(a))
    if unit_diagonal:
        t = t - t * np.eye(n) + np.eye(n)
    back = t @ x if left else x @ t
    size = max(np.abs(t).max(initial=0), 1) * max(np.abs(x).max(initial=0), 1)
    assert x.dtype == dtype and off(back - b, size, dtype) <= 2 * n + 2


def test_triangular_systems_broadcast_and_divide_by_zero():
    a, b = sample((2, 1, 3, 3), np.float64), sample((4, 3, 2), np.float64)
    x = run("solve_triangular", a, b, upper=False)
    assert x.shape == (2, 4, 3, 2)
    np.testing.assert_allclose(np.tril(a) @ x, np.broadcast_to(b, x.shape), atol=1e-12)
    assert np.isinf(run("solve_triangular", np.zeros((1, 1)), np.ones((1, 1)), upper=True)).all()


# ---- LU ----


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE + OBLONG)
def test_lu_multiplies_back_and_pivots_agree_with_the_order(dtype, shape):
    a = sample(shape, dtype)
    m, n = shape[-2:]
    packed, pivots, order, info = run("lu_ex", a)
    size = min(m, n)
    assert pivots.dtype == info.dtype == np.int32 and order.dtype == np.int64 and packed.dtype == dtype
    assert pivots.shape == (*shape[:-2], size) and order.shape == (*shape[:-2], m) and info.shape == shape[:-2]
    assert not info.any()
    lower = exactly(np.tril(packed[..., :size], -1) + np.eye(m, size, dtype=dtype))
    upper = exactly(np.triu(packed[..., :size, :]))
    assert not lower.size or np.abs(lower).max() <= 1.5
    back = np.take_along_axis(a, np.broadcast_to(order[..., None], shape), -2) - lower @ upper
    assert off(back, np.abs(a).max(initial=0), dtype) <= 4 * (size + 1)
    np.testing.assert_array_equal(run("pivots_to_order", pivots, m), order)


def test_lu_takes_the_pivots_of_lapack():
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
    packed, pivots, order, _ = run("lu_ex", a)
    np.testing.assert_array_equal(pivots, [3, 3, 3])
    np.testing.assert_array_equal(order, [2, 0, 1])
    np.testing.assert_allclose(packed, [[7, 8, 10], [1 / 7, 6 / 7, 11 / 7], [4 / 7, 0.5, -0.5]], rtol=1e-14)
    # By the sum of parts' sizes, not by their length: |3 + 3j| is below 5, and 3 + 3 above it.
    _, pivots, _, _ = run("lu_ex", np.array([[5.0, 0.0], [3 + 3j, 1.0]]))
    np.testing.assert_array_equal(pivots, [2, 2])


def test_lu_tells_the_first_zero_pivot():
    a = np.stack([np.eye(4), np.zeros((4, 4)), np.diag([1.0, 2.0, 0.0, 3.0]), np.ones((4, 4))])
    packed, _, _, info = run("lu_ex", a)
    np.testing.assert_array_equal(info, [0, 1, 3, 2])
    assert np.isfinite(packed).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_systems_are_solved_and_matrices_inverted(dtype, shape):
    n = shape[-1]
    a = sample(shape, dtype) + 2 * np.eye(n, dtype=dtype)
    b = sample((*shape[:-1], 3), dtype, 1)
    x, info = run("solve_ex", a, b)
    assert x.dtype == dtype and info.shape == shape[:-2] and not info.any()
    size = np.abs(a).max(initial=1) * np.abs(x).max(initial=1)
    assert off(exactly(a) @ x - b, size, dtype) <= 8 * (n + 1)
    inverse, info = run("inv_ex", a)
    size = np.abs(a).max(initial=1) * np.abs(inverse).max(initial=1)
    assert inverse.shape == shape and not info.any()
    assert off(exactly(a) @ inverse - np.eye(n), size, dtype) <= 8 * (n + 1)
    packed, _, order, _ = run("lu_ex", a)
    x = run("lu_solve", packed, order, b, adjoint=True)
    size = np.abs(a).max(initial=1) * np.abs(x).max(initial=1)
    assert off(adjoint(exactly(a)) @ x - b, size, dtype) <= 8 * (n + 1)


def test_solve_broadcasts_and_tells_singular_matrices():
    a, b = sample((3, 1, 4, 4), np.float64), sample((2, 4, 5), np.float64)
    x, info = run("solve_ex", a, b)
    assert x.shape == (3, 2, 4, 5) and info.shape == (3, 1)
    np.testing.assert_allclose(a @ x, np.broadcast_to(b, x.shape), atol=1e-11)
    _, info = run("inv_ex", np.stack([np.eye(3), np.zeros((3, 3)), np.arange(9.0).reshape(3, 3) * 0 + 1]))
    np.testing.assert_array_equal(info, [0, 1, 2])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_determinants_equal_numpy(dtype, shape):
    a = sample(shape, dtype)
    expected = np.linalg.det(exactly(a))
    got = run("det", a)
    assert got.dtype == dtype and got.shape == shape[:-2]
    np.testing.assert_allclose(got, expected, rtol=2000 * np.finfo(dtype).eps)
    sign, size = run("slogdet", a)
    assert sign.dtype == dtype and size.dtype == np.finfo(dtype).dtype
    np.testing.assert_allclose(sign, expected / np.abs(expected), rtol=2000 * np.finfo(dtype).eps)
    np.testing.assert_allclose(size, np.log(np.abs(expected)), atol=2000 * np.finfo(dtype).eps)


def test_determinants_of_singular_matrices_and_permutations():
    a = np.stack([np.zeros((3, 3)), np.ones((3, 3)), np.eye(3)[[1, 0, 2]], np.eye(3)[[1, 2, 0]]])
    np.testing.assert_array_equal(run("det", a), [0.0, 0.0, -1.0, 1.0])
    sign, size = run("slogdet", a)
    np.testing.assert_array_equal(sign, [0.0, 0.0, -1.0, 1.0])
    np.testing.assert_array_equal(size, [-np.inf, -np.inf, 0.0, 0.0])
    # Its size is out of range, its logarithm is not.
    sign, size = run("slogdet", -1e200 * np.eye(3))
    assert sign == -1 and abs(size - 600 * np.log(10)) < 1e-11


# ---- QR ----


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", SQUARE + OBLONG)
def test_qr_multiplies_back_with_the_signs_of_lapack(dtype, mode, shape):
    a = sample(shape, dtype)
    m, n = shape[-2:]
    q, r = run("qr", a, mode=mode)
    size = m if mode == "complete" else min(m, n)
    assert r.shape == (*shape[:-2], size, n) and r.dtype == q.dtype == dtype
    np.testing.assert_array_equal(r, np.triu(r))
    if mode == "r":
        assert q.shape == (0,)
    else:
        assert q.shape == (*shape[:-2], m, size)
        assert off(exactly(q) @ exactly(r) - a, np.abs(a).max(initial=0), dtype) <= 4 * (m + 1)
        assert off(adjoint(exactly(q)) @ q - np.eye(size), 1, dtype) <= 4 * (m + 1)
    if 0 not in shape:
        reference = np.linalg.qr(exactly(a), "r")
        np.testing.assert_allclose(r[..., : min(m, n), :], reference, atol=40 * m * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", TYPES)
def test_qr_of_columns_that_are_zero_tiny_or_huge(dtype):
    limits = np.finfo(dtype)
    columns = [np.zeros(5), np.ones(5) * limits.tiny / 8, np.ones(5) * limits.max / 8, np.arange(5.0) * limits.tiny]
    a = np.stack(columns, axis=-1).astype(dtype)
    q, r = run("qr", a)
    assert np.isfinite(r).all()
    assert off(adjoint(exactly(q)) @ q - np.eye(4), 1, dtype) <= 20
    scale = np.abs(a).max(axis=0) + float(limits.tiny)
    assert off((exactly(q) @ exactly(r) - a) / scale, 1, dtype) <= 20 / limits.eps * 2.0**-10


# ---- eigenvalues and singular values ----


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_eigh_and_svd_of_hard_matrices(dtype, kind, n):
    a = hermitian(n, dtype, kind)
    w, v = run("eigh", a)
    exact = exactly(a)
    norm = np.linalg.norm(exact, 2)
    assert w.dtype == np.finfo(dtype).dtype and v.dtype == dtype
    assert off(w - np.linalg.eigvalsh(exact), norm, dtype) <= n + 5
    assert off(exact @ v - v * w, norm, dtype) <= n + 5
    assert off(adjoint(exactly(v)) @ v - np.eye(n), 1, dtype) <= 6
    u, s, vh = run("svd", a)
    assert s.dtype == np.finfo(dtype).dtype and (np.diff(s) <= 0).all() and (s >= 0).all()
    assert off(s - np.linalg.svd(exact, compute_uv=False), norm, dtype) <= n + 5
    assert off((exactly(u) * s) @ vh - exact, norm, dtype) <= n + 5
    for x in (exactly(u), exactly(vh)):
        assert off(adjoint(x) @ x - np.eye(n), 1, dtype) <= n + 5


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("upper", [False, True])
def test_eigh_of_batches_reads_one_triangle(dtype, shape, upper):
    a = sample(shape, dtype)
    n = shape[-1]
    a = a + adjoint(a)
    hidden = np.tril(np.full((n, n), np.nan), -1) if upper else np.triu(np.full((n, n), np.nan), 1)
    w, v = run("eigh", (a + hidden).astype(dtype), upper=upper)
    assert w.shape == shape[:-1] and v.shape == shape and (np.diff(w) >= 0).all()
    assert off(exactly(a) @ v - v * w[..., None, :], np.abs(a).max(initial=0) * max(n, 1), dtype) <= n + 5


def test_eigh_of_a_diagonal_is_exact_at_any_scale():
    d = np.array([3.0, -1.0, 0.125, 7.0, 0.0])
    for scale in (1.0, 1e300, 1e-300, 5e-324 * 2**20):
        w, v = run("eigh", np.diag(d * scale))
        np.testing.assert_array_equal(w, np.sort(d * scale))
        np.testing.assert_array_equal(np.abs(v), np.eye(5)[:, np.argsort(d)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", SQUARE + OBLONG)
def test_svd_of_any_shape(dtype, full_matrices, shape):
    a = sample(shape, dtype)
    m, n = shape[-2:]
    size = min(m, n)
    u, s, vh = run("svd", a, full_matrices=full_matrices)
    assert s.shape == (*shape[:-2], size)
    assert u.shape == (*shape[:-2], m, m if full_matrices else size)
    assert vh.shape == (*shape[:-2], n if full_matrices else size, n)
    norm = np.abs(a).max(initial=0)
    assert off((exactly(u)[..., :size] * s[..., None, :]) @ vh[..., :size, :] - a, norm, dtype) <= 4 * (m + n)
    assert off(adjoint(exactly(u)) @ u - np.eye(u.shape[-1]), 1, dtype) <= 3 * (m + n)
    assert off(exactly(vh) @ adjoint(vh) - np.eye(vh.shape[-2]), 1, dtype) <= 3 * (m + n)
    if 0 not in shape:
        np.testing.assert_allclose(s, np.linalg.svd(exactly(a), compute_uv=False), atol=20 * norm * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", TYPES)
def test_svd_fills_in_directions_of_zero_singular_values(dtype):
    low = (sample((6, 2), dtype) @ sample((2, 4), dtype, 1)).astype(dtype)
    for a in (low, np.zeros((5, 3), dtype), np.ones((4, 4), dtype), np.diag([1.0, 0.0, 2.0, 0.0]).astype(dtype)):
        u, s, vh = run("svd", a)
        assert off(adjoint(exactly(u)) @ u - np.eye(len(u)), 1, dtype) <= 20
        assert off(exactly(vh) @ adjoint(vh) - np.eye(len(vh)), 1, dtype) <= 20
        assert off((exactly(u)[:, : len(s)] * s) @ vh[: len(s)] - a, np.abs(a).max() + 1, dtype) <= 20


def general(n):
    companion = np.eye(n, k=-1)
    companion[0] = -np.poly(np.arange(1, n + 1))[1:]
    return {
        "random": sample((n, n), np.float64), "symmetric": hermitian(n, np.float64, "random"),
        "skew": sample((n, n), np.float64) - sample((n, n), np.float64).T, "cycle": np.roll(np.eye(n), 1, 0),
        "nilpotent": np.eye(n, k=1), "jordan": np.eye(n) + np.eye(n, k=1), "zero": np.zeros((n, n)),
        "triangular": np.triu(sample((n, n), np.float64)), "companion": companion, "ones": np.ones((n, n)),
        "tiny": sample((n, n), np.float64) * 1e-300, "huge": sample((n, n), np.float64) * 1e300,
    }  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("kind", general(1))
def test_eig_of_general_matrices(kind, n):
    a = general(n)[kind]
    w, v = run("eig", a)
    scale = np.abs(a).max() or 1.0
    norm = np.linalg.norm(a / scale, 2)
    assert w.dtype == v.dtype == np.complex128
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1.0, rtol=1e-14)
    assert off((a / scale) @ v - v * (w / scale), norm, np.float64) <= 5 * n + 5
    assert abs(w.sum() / scale - np.trace(a / scale)) <= 1e-14 * n * n * norm


@pytest.mark.parametrize("dtype", TYPES)
def test_eig_of_batches(dtype):
    a = sample((2, 3, 6, 6), dtype)
    w, v = run("eig", a)
    assert w.shape == (2, 3, 6) and v.shape == a.shape
    assert off(exactly(a) @ v - v * w[..., None, :], np.abs(a).max() * 6, dtype) <= 30
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        w, v = run("eig", np.zeros(shape, dtype))
        assert w.shape == shape[:-1] and v.shape == shape


def test_nan_in_gives_nan_out_and_spares_the_rest_of_the_batch():
    a = np.stack([np.eye(4), np.full((4, 4), np.nan), 2 * np.eye(4)])
    for kernel in ("eigh", "svd", "eig", "qr"):
        found = run(kernel, a)
        for part in found:
            assert np.isfinite(part[[0, 2]]).all()
        assert any(np.isnan(part[1]).any() for part in found)


def test_no_kernel_reads_the_host():
    before = shim.reads
    a = sample((4, 4), np.float64)
    for kernel in ("cholesky_ex", "lu_ex", "inv_ex", "det", "slogdet", "qr", "eigh", "svd", "eig"):
        run(kernel, a)
    assert shim.reads == before


def test_every_kernel_has_a_docstring():
    for base in LinalgKernels.__mro__[:-1]:
        for name, method in vars(base).items():
            assert name.startswith("_") or method.__doc__.split("\n")[0].endswith("."), name
