"""Products of every shape, dtype and layout against NumPy's, and the sizes where another way is taken."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="the reference is NumPy's")
pytest.importorskip("mortice_cpu_numpy.backend", reason="the reference is cpu_numpy")
pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")

from products import TOLERANCE, Pair  # noqa: E402

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
SIZES = [1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 64, 65, 130]
SHAPES = [
    ((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((2, 3, 4, 5), (5,)), ((5,), (2, 3, 5, 4)), ((2, 1, 4, 5), (3, 5, 6)),
    ((7, 4, 5), (5, 6)), ((7, 1, 5), (5, 6)), ((7, 3, 1, 5), (5, 6)), ((4, 5), (7, 5, 6)), ((0, 5), (5, 3)),
    ((3, 0), (0, 4)), ((2, 3, 0), (0, 4)), ((0, 3, 2), (2, 4)), ((3, 1, 1, 5), (1, 4, 5, 1)), ((3, 70, 40), (3, 40, 50)),
    ((7, 1, 33), (7, 33, 1)), ((2, 1, 5000), (2, 5000, 1)),
]  # fmt: skip
LARGE = [((70000,), (70000,)), ((1, 9000), (9000, 3)), ((3, 9000), (9000, 1)), ((3, 200, 100), (3, 100, 150)),
         ((5, 200, 120), (120, 150)), ((300, 700), (700, 500)), ((2, 1500), (1500, 900))]  # fmt: skip


PART = "(sizes_and and (float32 or int16)) or (values_and and float32 and causal) or (test_gru and packed and 33)"


@pytest.fixture(scope="module")
def pair(k):
    return Pair(k)


def random(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 200, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


def in_order(x, y):
    """Return the products with each term rounded, and added to the sum of those before it."""
    total = np.zeros((*x.shape[:-1], y.shape[-1]), x.dtype)
    for i in range(x.shape[-1]):
        a, b = x[..., i : i + 1], y[..., i : i + 1, :]
        if x.dtype.kind == "c":
            total.real += a.real * b.real - a.imag * b.imag
            total.imag += a.real * b.imag + a.imag * b.real
        else:
            total += a * b
    return total


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("m, n, steps", [(2, 2, 2), (3, 3, 3), (1, 2, 17), (5, 8, 9), (7, 7, 7), (3, 13, 2), (1, 1, 399), (30, 13, 1)])
def test_few_steps_are_taken_in_order(pair, dtype, m, n, steps):
    """As PyTorch's `bmm` takes them below 400."""
    x, y = random(dtype, (6, m, steps), m), random(dtype, (6, steps, n), n)
    for right in (y, np.ascontiguousarray(y.swapaxes(1, 2)).swapaxes(1, 2)):
        np.testing.assert_array_equal(pair.numpy(pair.own.matmul(pair.array(x), pair.array(right))), in_order(x, right))
        if m * n > 1:
            np.testing.assert_array_equal(pair.numpy(pair.own.matmul(pair.array(x[0]), pair.array(right[0]))), in_order(x[0], right[0]))


def check(pair, x, y, own_x=None, own_y=None):
    found = pair.numpy(pair.own.matmul(pair.array(x) if own_x is None else own_x, pair.array(y) if own_y is None else own_y))
    if x.dtype.kind not in "fc":
        expected = np.matmul(x, y)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
        return
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    expected = np.matmul(x.astype(wide), y.astype(wide))
    assert found.shape == expected.shape and found.dtype == x.dtype
    limit = TOLERANCE[str(x.dtype)] * max(1.0, x.shape[-1] ** 0.5)
    np.testing.assert_allclose(found, expected, rtol=limit, atol=limit * max(1.0, float(np.abs(expected).max(initial=0)) / 10))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_and_transposed_operands(pair, dtype):
    draw = np.random.default_rng(0)
    for _ in range(40):
        m, n, inner = draw.choice(SIZES, 3)
        x, y = random(dtype, (m, inner), 1), random(dtype, (inner, n), 2)
        for turn_x, turn_y in itertools.product((False, True), (False, True)):
            check(pair, np.asfortranarray(x) if turn_x else x, np.asfortranarray(y) if turn_y else y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES)
def test_shapes(pair, dtype, shapes):
    check(pair, random(dtype, shapes[0], 1), random(dtype, shapes[1], 2))


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shapes", LARGE)
def test_large(pair, dtype, shapes):
    check(pair, random(dtype, shapes[0], 1), random(dtype, shapes[1], 2))
    if len(shapes[1]) == 2:
        check(pair, random(dtype, shapes[0], 1), np.asfortranarray(random(dtype, shapes[1], 2)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_views(pair, dtype):
    x, y = random(dtype, (6, 20, 30), 1), random(dtype, (6, 30, 40), 2)
    own_x, own_y, every = pair.array(x), pair.array(y), slice(None)
    of_x = [(slice(None, None, 2),), (every, slice(None, None, -1)), (every, every, slice(None, None, -1)), (0,), (2, 3),
            (slice(0, 3), slice(3, 9))]  # fmt: skip
    of_y = [(slice(None, None, 2),), (every, every, slice(None, None, 2)), (every, every, slice(None, None, -1)), (1,),
            (1, every, 2), (slice(0, 3), every, slice(None, None, 3))]  # fmt: skip
    for p, q in itertools.product(of_x, of_y):
        if x[p].ndim < 3 or y[q].ndim < 3 or len(x[p]) == len(y[q]):
            check(pair, x[p], y[q], pair.own.getitem(own_x, p), pair.own.getitem(own_y, q))


@pytest.mark.parametrize("dtype", DTYPES)
def test_expanded_arrays(pair, dtype):
    y, k = random(dtype, (30, 40), 1), pair.own
    for small, shape in [((20, 1, 30), (20, 4, 30)), ((1, 30), (4, 30)), ((30,), (7, 1, 30)), ((1, 1, 1), (2, 3, 30))]:
        x = random(dtype, small, 2)
        check(pair, np.broadcast_to(x, shape), y, k.broadcast_to(pair.array(x), shape))
    column = random(dtype, (30, 1), 3)
    check(pair, random(dtype, (5, 30), 4), np.broadcast_to(column, (30, 9)), None, k.broadcast_to(pair.array(column), (30, 9)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, depth, n", [(1, 1, 1), (2, 2, 2), (3, 3, 1), (1, 4, 4), (4, 4, 1), (2, 4, 2), (5, 1, 3), (3, 2, 3)])
def test_batches_of_very_small_matrices(pair, dtype, m, depth, n):
    x, y, k = random(dtype, (300, 2, m, depth), 0), random(dtype, (300, 2, depth, n), 1), pair.own
    check(pair, x, y)
    check(pair, x[:, :1], y)
    check(pair, x, y, *[k.matrix_transpose(k.contiguous(k.matrix_transpose(pair.array(v)))) for v in (x, y)])
    check(pair, x, y, *[k.permute_dims(pair.array(np.ascontiguousarray(v.swapaxes(0, 1))), (1, 0, 2, 3)) for v in (x, y)])


@pytest.mark.parametrize("batch, m, depth, n", [((), 64, 64, 64), ((), 33, 65, 47), ((), 9, 4097, 9), ((200,), 40, 32, 40)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_bfloat16_of_sizes_for_a_matrix_unit(pair, batch, m, depth, n, turned):
    from mortice.dtype import bfloat16, float32

    own = pair.own
    halves = [own.astype(pair.array(random("float32", (*batch, *s), i)), bfloat16) for i, s in enumerate(((m, depth), (depth, n)))]
    x, y = [pair.numpy(own.astype(h, float32)) for h in halves]
    laid = [own.matrix_transpose(own.contiguous(own.matrix_transpose(h))) if t else h for h, t in zip(halves, turned)]
    made = [own.matmul(*laid), own.linear(laid[0], own.matrix_transpose(laid[1]))] if not batch else [own.matmul(*laid)]
    for found in made:
        assert own.dtype_of(found) is bfloat16
        np.testing.assert_allclose(pair.numpy(own.astype(found, float32)), x @ y, rtol=2**-8, atol=1e-5 * depth)


# Strips of 14 and of 12 rows, panels of one vector and of two, depths up to which and beyond which they go in one pass.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, depth, n", [(79, 320, 417), (150, 160, 129), (83, 641, 130), (33, 1537, 40), (70, 4000, 2100)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_sizes_whose_right_side_is_packed(pair, dtype, m, depth, n, turned):
    x, y = random(dtype, (m, depth), 0), random(dtype, (depth, n), 1)
    left, right = (
        pair.own.permute_dims(pair.array(np.ascontiguousarray(v.T)), (1, 0)) if t else None
        for v, t in zip((x, y), turned, strict=True)
    )
    check(pair, x, y, left, right)


# Few columns that are turned round, up to as many as are and beyond; the bias lies below short rows before the product.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, depth, n", [(7, 8, 8), (8, 1, 512), (40, 512, 1), (333, 3, 3), (1200, 16, 32), (50, 19, 27), (3000, 4, 5)])
def test_many_rows_by_few_columns(pair, dtype, m, depth, n):
    x, w, b = random(dtype, (m, depth), 0), random(dtype, (n, depth), 1), random(dtype, (n,), 2)
    own, (rows, weight, bias) = pair.own, (pair.array(v) for v in (x, w, b))
    check(pair, x, w.T, rows, own.matrix_transpose(weight))
    turned = pair.array(np.asfortranarray(x))
    for left in (rows, turned):
        found, wanted = pair.numpy(own.linear(left, weight, bias)), x.astype("float64") @ w.T + b
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(wanted).max())


def test_bfloat16_is_rounded_once(pair):
    from mortice.dtype import bfloat16, float32

    k = pair.own
    x = k.astype(pair.array(np.full((3, 300), 1.0, "float32")), bfloat16)
    found = k.matmul(x, k.matrix_transpose(x))
    assert k.dtype_of(found) is bfloat16
    assert (pair.numpy(k.astype(found, float32)) == 300).all()


def test_integers_wrap_around(pair):
    x = pair.array(np.full((2, 2), 200, "uint8"))
    assert pair.numpy(pair.own.matmul(x, x)).tolist() == [[(2 * 200 * 200) % 256] * 2] * 2


def test_nan_and_infinity_come_through(pair):
    for n in (3, 40, 300):
        x, y = np.zeros((n, n), "float32"), np.zeros((n, n), "float32")
        x[0, 0], y[1, 1] = np.nan, np.inf
        x[1, 1] = 2
        found = pair.numpy(pair.own.matmul(pair.array(x), pair.array(y)))
        assert np.isnan(found[0]).all() and found[1, 1] == np.inf and found[1, 0] == 0


def test_what_does_not_fit_is_refused(pair):
    x, y = pair.array(np.ones((2, 3), "float32")), pair.array(np.ones((2, 3), "float32"))
    with pytest.raises(ValueError, match="multiplied"):
        pair.own.matmul(x, y)
    with pytest.raises(TypeError, match="one dtype"):
        pair.own.matmul(x, pair.array(np.ones((3, 2), "float64")))
    with pytest.raises(ValueError, match="at least one axis"):
        pair.own.matmul(x, pair.array(np.array(1, "float32")))


@pytest.mark.parametrize("level", ["avx2", "baseline"])
def test_the_other_instruction_sets(level):
    """A part of the tests on kernels that this machine would not choose."""
    here = Path(__file__).parent
    files = [str(here / name) for name in ("test_matmul.py", "test_attention.py", "test_rnn.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files, "-k", PART]
    done = subprocess.run(command, env={**os.environ, "MORTICE_ISA": level}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_an_interrupt_while_the_blas_library_is_looked_for_stays_one() -> None:
    program = (
        "import sys, types\nimport mortice as mt\nmt.set_backend('cpu_cext')\nx = mt.ones(300, 300)\n"
        "def pressed():\n    raise KeyboardInterrupt\n"
        "sys.modules['scipy_openblas32'] = types.SimpleNamespace(get_lib_dir=pressed)\n"
        "try:\n    x @ x\nexcept KeyboardInterrupt:\n    del sys.modules['scipy_openblas32']\n    print((x @ x).sum().item())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "27000000.0\n", done.stderr[-500:]
