"""The default bodies of MovementKernels against NumPy's own indexing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_shim import run

import mortice as mt
from mortice.backends import plugins

pytestmark = pytest.mark.any_backend


def _positions(indices, axis):
    where = list(np.ix_(*[np.arange(n) for n in indices.shape]))
    where[axis] = indices
    return tuple(where)


@pytest.mark.parametrize("offset", [-4, -1, 0, 2, 7])
def test_diagonals_are_read_and_written(offset):
    x = np.arange(60).reshape(3, 4, 5)
    expected = np.diagonal(x, offset, 2, 0)
    np.testing.assert_array_equal(run("diagonal", x, offset=offset, axis1=2, axis2=0), expected)
    written = run("diagonal_write", x, -expected, offset=offset, axis1=2, axis2=0)
    np.testing.assert_array_equal(np.diagonal(written, offset, 2, 0), -expected)
    assert (written != x).sum() == (expected != 0).sum()


def test_windows_and_strides():
    x = np.arange(12).reshape(3, 4)
    expected = np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(run("sliding_window", x, axis=1, size=2, step=2), expected)
    got = run("strided", x.reshape(-1), shape=(2, 3), strides=(1, 4), offset=2)
    np.testing.assert_array_equal(got, [[2, 6, 10], [3, 7, 11]])


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("axis", [0, 1])
def test_scattered_writes_with_repeated_positions(dtype, axis):
    rng = np.random.default_rng(0)
    x, values = rng.integers(0, 3, (4, 5)).astype(dtype), rng.integers(0, 3, (3, 4)).astype(dtype)
    indices = rng.integers(0, x.shape[axis], (3, 4))
    expected = x.copy()
    expected[_positions(indices, axis)] = values
    np.testing.assert_array_equal(run("scatter_write", x, indices, values, axis=axis), expected)
    for how, ufunc in {"prod": np.multiply, "max": np.maximum, "min": np.minimum}.items():
        expected = x.copy()
        ufunc.at(expected, _positions(indices, axis), values)
        np.testing.assert_array_equal(run("scatter_combine", x, indices, values, axis=axis, how=how), expected)


def test_extremes_let_nan_through():
    x, values = np.zeros(3), np.array([1.0, np.nan, -1.0, 2.0])
    got = run("scatter_combine", x, np.array([0, 0, 1, 2]), values, axis=0, how="max")
    np.testing.assert_array_equal(got, [np.nan, 0, 2])


def test_triangles_keep_the_dtype():
    x = np.ones((2, 3, 3), bool)
    np.testing.assert_array_equal(run("tril", x, diagonal=-1), np.tril(x, -1))
    np.testing.assert_array_equal(run("triu", x.astype(np.int8), diagonal=1), np.triu(x.astype(np.int8), 1))


def test_a_flip_that_is_a_view_is_copied(monkeypatch):
    """A plugin's own `flip` may be its library's, which shows the same memory."""
    if "cpu_numpy" not in plugins.list_backends():
        pytest.skip("cpu_numpy is not installed")
    with mt.use_backend("cpu_numpy"):
        x = mt.arange(6.0).reshape(2, 3)
    backend = x._device.backend
    with monkeypatch.context() as patched:
        patched.setattr(type(backend), "flip", lambda self, a, axis: np.flip(a, axis), raising=False)
        backend.table.clear()  # of compiled kernels
        y = x.flip(0)
        y[0] = 9
    backend.table.clear()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and y.tolist() == [[9, 9, 9], [0, 1, 2]]
