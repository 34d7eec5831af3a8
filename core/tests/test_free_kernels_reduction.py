"""The default bodies of reductions, scans, sorting and searching, against NumPy and plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy_shim import native, run, shim

from mortice.backends.reduction import ReductionKernels
from mortice.dtype import bfloat16, float16

pytestmark = pytest.mark.any_backend
NUMBERS = [np.uint8, np.int32, np.int64, np.uint64, np.float32, np.float64]
AXES = [None, 0, 1, -1, (0, 2), (0, 1, 2)]


def sample(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def quiet(fn, *args, **attributes):
    with np.errstate(all="ignore"):
        return fn(*args, **attributes)


# ---- truth and averages ----


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_truth_equals_numpy(axis, keepdims):
    for dtype in (bool, np.int8, np.float32, np.complex64):
        x = sample((2, 3, 4), dtype) * (sample((2, 3, 4), bool, 1))
        x[0, 0] = 0
        x[1, :, 1] = 1
        for kernel in ("any", "all", "count_nonzero"):
            got = run(kernel, x, axis=axis, keepdims=keepdims)
            expected = getattr(np, kernel)(x, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == (np.int64 if kernel == "count_nonzero" else np.bool_)


@pytest.mark.parametrize("axis", AXES)
def test_nansum_equals_numpy(axis):
    x = sample((2, 3, 4))
    x[0, 1], x[1, :, 2] = np.nan, np.nan
    np.testing.assert_allclose(run("nansum", x, axis=axis, keepdims=True), np.nansum(x, axis=axis, keepdims=True))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, np.inf])
def test_row_distances_are_norms_of_differences(p):
    for x, y in ((sample((5, 3)), sample((4, 3), seed=1)), (sample((2, 5, 3)), sample((4, 3), seed=1))):
        expected = np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, -1)
        np.testing.assert_allclose(run("row_distances", x, y, p=p), expected)


def test_truth_of_nothing_and_of_nan():
    nothing = np.zeros((0, 3))
    np.testing.assert_array_equal(run("any", nothing, axis=0), [False] * 3)
    np.testing.assert_array_equal(run("all", nothing, axis=0), [True] * 3)
    assert run("all", np.array([np.nan, 1.0])) and run("any", np.array([np.nan]))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_averages_equal_numpy(axis, keepdims, dtype):
    x = sample((3, 4, 5), dtype) + dtype(100)
    eps = np.finfo(dtype).eps
    got = run("mean", x, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(got, np.mean(x, axis, keepdims=keepdims), rtol=8 * eps)
    for correction in (0, 1, 1.5):
        # Two passes: that the mean is large does not show.
        exact = np.var(x.astype(np.complex128), axis, ddof=correction, keepdims=keepdims)
        got = run("var", x, axis=axis, correction=correction, keepdims=keepdims)
        assert got.dtype == np.finfo(dtype).dtype
        np.testing.assert_allclose(got, exact, rtol=64 * eps)
        got = run("std", x, axis=axis, correction=correction, keepdims=keepdims)
        np.testing.assert_allclose(got, np.sqrt(exact), rtol=64 * eps)


def test_averages_of_too_few_are_nan():
    assert np.isnan(run("mean", np.zeros((0,))))
    assert np.isnan(run("var", np.array([3.0])))
    assert run("var", np.array([3.0]), correction=0) == 0
    assert np.isnan(run("std", np.array([3.0]), correction=2))


@pytest.mark.parametrize("d", [float16, bfloat16])
def test_averages_of_half_precision_are_added_in_float32(d):
    x = np.full((5000,), 1.5).astype(native(d))
    assert run("mean", x) == 1.5 and run("var", x) == 0
    x = np.linspace(0, 300, 4001).astype(native(d))
    expected = np.var(x.astype(np.float64), ddof=1)
    np.testing.assert_allclose(float(run("var", x)), expected, rtol=2 * 2.0 ** -(10 if d is float16 else 7))


# ---- logarithms of sums ----


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_does_not_overflow(axis, keepdims):
    x = sample((3, 4, 5)) * 3
    exact = np.log(np.sum(np.exp(x), axis, keepdims=keepdims))
    for shift in (0.0, 5000.0, -5000.0):
        got = run("logsumexp", x + shift, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(got, exact + shift, rtol=1e-13)
    z = sample((3, 4, 5), np.complex128)
    exact = np.log(np.sum(np.exp(z), axis, keepdims=keepdims))
    np.testing.assert_allclose(run("logsumexp", z, axis=axis, keepdims=keepdims), exact, rtol=1e-12)


def test_logsumexp_of_infinities_and_of_nothing():
    inf = math.inf
    x = np.array([[-inf, -inf], [inf, 0.0], [inf, -inf], [np.nan, 1.0], [-inf, 2.0]])
    np.testing.assert_array_equal(run("logsumexp", x, axis=1), [-inf, inf, inf, np.nan, 2.0])
    np.testing.assert_array_equal(run("logsumexp", np.zeros((2, 0)), axis=1), [-inf, -inf])


def test_logcumsumexp_equals_accumulated_logaddexp():
    x = sample((3, 17)) * 40
    np.testing.assert_allclose(run("logcumsumexp", x, axis=1), np.logaddexp.accumulate(x, axis=1), rtol=1e-13)
    np.testing.assert_allclose(run("logcumsumexp", x, axis=-2), np.logaddexp.accumulate(x, axis=0), rtol=1e-13)
    x = np.array([-np.inf, -np.inf, 1.0, np.inf, 2.0, np.nan, 1.0])
    np.testing.assert_array_equal(run("logcumsumexp", x, axis=0), quiet(np.logaddexp.accumulate, x))


# ---- scans ----


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scans_equal_numpy(n, axis):
    for dtype in (np.int32, np.uint8, np.float64, np.complex128):
        x = sample((n, 4) if axis == 0 else (4, n), dtype)
        np.testing.assert_allclose(run("cumulative_prod", x, axis=axis), np.cumprod(x, axis, dtype), rtol=1e-14)
    for dtype in NUMBERS:
        x = sample((n, 4) if axis == 0 else (4, n), dtype)
        for kernel, fn in (("cumulative_max", np.maximum), ("cumulative_min", np.minimum)):
            values, indices = run(kernel, x, axis=axis)
            np.testing.assert_array_equal(values, fn.accumulate(x, axis))
            np.testing.assert_array_equal(np.take_along_axis(x, indices, axis), values)
            assert values.dtype == dtype and indices.dtype == np.int64


def test_running_extremes_take_the_last_of_equals_and_keep_nan():
    x = np.array([1.0, 3.0, 3.0, 2.0, np.nan, 5.0, np.nan, 1.0])
    values, indices = run("cumulative_max", x, axis=0)
    np.testing.assert_array_equal(values, [1, 3, 3, 3] + [np.nan] * 4)
    np.testing.assert_array_equal(indices, [0, 1, 2, 2, 4, 4, 6, 6])
    values, indices = run("cumulative_min", x, axis=0)
    np.testing.assert_array_equal(values, [1, 1, 1, 1] + [np.nan] * 4)
    np.testing.assert_array_equal(indices, [0, 0, 0, 0, 4, 4, 6, 6])
    values, indices = run("cumulative_max", np.array([False, True, False, True]), axis=0)
    np.testing.assert_array_equal(values, [False, True, True, True])
    np.testing.assert_array_equal(indices, [0, 1, 1, 3])


def test_products_after_a_zero_stay_zero_although_groups_overflow():
    cases = [[0.0, 1e200, 1e200, 1e200], [2.0, 0.0, 1e200, 1e200], [1e200, 1e200, 0.0, 1.0], [0.0, np.inf, 1.0, 2.0],
             [1.0, np.nan, 0.0, 2.0], [3.0, 0.0, 5.0, np.nan]]  # fmt: skip
    for case in cases:
        x = np.array(case)
        np.testing.assert_array_equal(run("cumulative_prod", x, axis=0), quiet(np.cumprod, x))
    x = np.array([1e200, 0.0, 1e200, 1e200]).astype(np.complex128)
    np.testing.assert_array_equal(run("cumulative_prod", x, axis=0), [1e200, 0, 0, 0])


def test_diff_equals_numpy():
    for dtype in (bool, *NUMBERS):
        x = sample((3, 5), dtype)
        for axis in (0, -1):
            for n in (0, 1, 2):
                np.testing.assert_array_equal(run("diff", x, axis=axis, n=n), np.diff(x, n, axis))


# ---- positions ----


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_argmin_equals_numpy(axis):
    for dtype in (bool, *NUMBERS):
        x = sample((4, 6), dtype)
        if np.dtype(dtype).kind in "iu":
            x[1, 2], x[2, 3] = np.iinfo(dtype).min, np.iinfo(dtype).max
        for keepdims in (False, True):
            got = run("argmin", x, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(got, np.argmin(x, axis, keepdims=keepdims))
    x = np.array([3.0, np.nan, -np.inf, np.nan])
    assert run("argmin", x) == 1


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 4)])
def test_flat_nonzero_equals_numpy_with_one_read(shape):
    for dtype in (bool, np.int32, np.float64):
        for x in (sample(shape, dtype) * sample(shape, bool, 1), np.zeros(shape, dtype), np.ones(shape, dtype)):
            x = np.asarray(x).astype(dtype)
            before = shim.reads
            got = run("flat_nonzero", x)
            assert shim.reads - before <= 1
            np.testing.assert_array_equal(got, np.flatnonzero(x))
            assert got.dtype == np.int64


# ---- sorting and searching ----


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_sort_equals_numpy(axis, descending):
    for dtype in NUMBERS:
        x = sample((5, 7), dtype)
        expected = np.sort(x, axis)
        expected = np.flip(expected, axis) if descending else expected
        np.testing.assert_array_equal(run("sort", x, axis=axis, descending=descending), expected)


def test_kthvalue_gives_value_and_position():
    x = sample((4, 7))
    x[1, 3] = np.nan
    for nth in (1, 3, 7):
        values, indices = run("kthvalue", x, nth, axis=1)
        np.testing.assert_array_equal(values, np.sort(x, 1)[:, nth - 1])
        np.testing.assert_array_equal(np.take_along_axis(x, indices[:, None], 1)[:, 0], values)
    values, indices = run("kthvalue", x, 2, axis=0, keepdims=True)
    assert values.shape == indices.shape == (1, 7)


def test_median_is_the_lower_one_and_meets_nan():
    x = np.array([[4.0, 1.0, 3.0, 2.0], [np.nan, 1.0, 2.0, np.nan], [1.0, 5.0, np.nan, 3.0]])
    values, indices = run("median", x, axis=1)
    np.testing.assert_array_equal(values, [2.0, np.nan, np.nan])
    np.testing.assert_array_equal(indices, [3, 0, 2])
    values, indices = run("median", x, axis=1, ignore_nan=True)
    np.testing.assert_array_equal(values, [2.0, 1.0, 3.0])
    np.testing.assert_array_equal(indices, [3, 1, 3])
    values, _ = run("median", np.full((2, 3), np.nan), axis=1, ignore_nan=True)
    assert np.isnan(values).all()
    for n in (1, 2, 5, 6):
        for dtype in (np.int64, np.float32):
            x = sample((3, n), dtype, n)
            values, indices = run("median", x, axis=-1, keepdims=True)
            np.testing.assert_array_equal(values, np.sort(x, 1)[:, (n - 1) // 2, None])
            np.testing.assert_array_equal(np.take_along_axis(x, indices, 1), values)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 33])
def test_searchsorted_equals_numpy(side, n):
    for dtype in (np.int64, np.uint8, np.float64):
        row = np.sort(sample((n,), dtype))
        values = np.concatenate([row, sample((6,), dtype, 1)]).astype(dtype)
        np.testing.assert_array_equal(run("searchsorted", row, values, side=side), np.searchsorted(row, values, side))
        rows = np.sort(sample((2, 3, n), dtype), -1)
        values = sample((2, 3, 5), dtype, 2)
        got = run("searchsorted", rows, values, side=side)
        for i in np.ndindex(2, 3):
            np.testing.assert_array_equal(got[i], np.searchsorted(rows[i], values[i], side))
    assert run("searchsorted", np.array([1.0, 2.0]), np.float64(1.5), side=side) == 1


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_puts_nan_last(side):
    row, values = np.array([-1.0, 0.0, 2.0, np.inf, np.nan, np.nan]), np.array([np.nan, np.inf, 1.0, -5.0])
    np.testing.assert_array_equal(run("searchsorted", row, values, side=side), np.searchsorted(row, values, side))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (50,), (4, 0), (6, 5)])
def test_unique_all_equals_numpy(shape):
    for dtype in (np.int32, np.uint8, np.float64):
        x = (sample(shape, dtype) if dtype is not np.float64 else np.round(sample(shape) * 2)).astype(dtype)
        got, expected = run("unique_all", x), np.unique_all(x)
        for a, b in zip(got, expected):
            np.testing.assert_array_equal(a, b)
        assert got[2].shape == shape


def test_unique_all_keeps_each_nan_apart():
    x = np.array([np.nan, 2.0, np.nan, 2.0, -0.0, 0.0])
    values, positions, inverse, counts = run("unique_all", x)
    np.testing.assert_array_equal(values, [0.0, 2.0, np.nan, np.nan])
    np.testing.assert_array_equal(positions, [4, 1, 0, 2])
    np.testing.assert_array_equal(inverse, [2, 1, 3, 1, 0, 0])
    np.testing.assert_array_equal(counts, [2, 2, 1, 1])


def test_nothing_but_the_two_kernels_with_open_shapes_reads_the_host():
    before = shim.reads
    x = sample((4, 5))
    for kernel in ("mean", "var", "std", "any", "all", "argmin", "logsumexp", "count_nonzero"):
        run(kernel, x)
    for kernel in ("cumulative_prod", "cumulative_max", "cumulative_min", "logcumsumexp", "sort", "diff", "median"):
        run(kernel, x, axis=0)
    assert shim.reads == before


def test_every_kernel_has_a_docstring():
    for name, method in vars(ReductionKernels).items():
        assert name.startswith("_") or method.__doc__.split("\n")[0].endswith((".", ":")), name
