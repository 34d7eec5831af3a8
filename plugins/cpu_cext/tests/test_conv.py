"""Convolution and its gradients against the default bodies on the same backend, and facts that need no other library."""

from __future__ import annotations

import itertools
import random

import pytest

pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")

import mortice  # noqa: E402
from mortice.backends import Backend  # noqa: E402
from mortice.testing import assert_close  # noqa: E402
from mortice_cpu_cext.backend import CextBackend  # noqa: E402

K = CextBackend()


def _array(shape, dtype=mortice.float64, seed=0):
    rng = random.Random(seed)
    size = 1
    for n in shape:
        size *= n
    values = mortice.tensor([rng.uniform(-1, 1) for _ in range(size)], dtype=mortice.float64, device="cpu")
    return values.reshape(shape).to(dtype)


def _raw(x):
    return x._data


def _close(got, want, tolerance):
    assert tuple(K.shape_of(got)) == tuple(K.shape_of(want))
    difference = K.abs(K.subtract(K.astype(got, mortice.float64), K.astype(want, mortice.float64)))
    size = K.abs(K.astype(want, mortice.float64))
    if 0 in K.shape_of(got):
        return
    worst = K.to_host(K.max(K.subtract(difference, K.multiply(K.add(size, 1.0), tolerance)))).view.cast("B").cast("d")[0]
    assert worst <= 0


CASES = [
    # sizes, kernel, stride, padding, dilation, (samples, inputs, outputs, groups)
    ((9,), (3,), (1,), (1,), (1,), (2, 3, 4, 1)),
    ((700,), (5,), (3,), (2,), (2,), (1, 2, 9, 1)),
    ((7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (5, 16, 16, 1)),
    ((8, 8), (1, 1), (1, 1), (0, 0), (1, 1), (3, 64, 9, 1)),
    ((9, 7), (1, 1), (2, 2), (1, 2), (1, 1), (2, 8, 8, 2)),
    ((17, 19), (7, 7), (2, 2), (3, 3), (1, 1), (2, 3, 10, 1)),
    ((16, 16), (3, 3), (1, 1), (1, 1), (1, 1), (2, 1, 1, 6)),
    ((16, 15), (5, 3), (2, 3), (2, 0), (1, 2), (2, 1, 2, 5)),
    ((10, 10), (3, 2), (1, 2), (4, 3), (2, 3), (1, 5, 3, 3)),
    ((4, 4), (4, 4), (1, 1), (0, 0), (1, 1), (3, 6, 5, 1)),
    ((6, 5, 7), (3, 2, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), (2, 3, 7, 1)),
    ((5, 5, 5), (1, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), (2, 2, 4, 2)),
    ((3, 3), (3, 3), (3, 3), (2, 2), (1, 1), (2, 4, 4, 1)),
    # few windows of large filters
    ((3, 4), (3, 2), (2, 3), (1, 1), (1, 2), (3, 48, 60, 1)),
    ((2, 3, 3), (2, 1, 2), (1, 2, 1), (1, 0, 0), (1, 1, 1), (1, 70, 70, 1)),
    # taps that see nothing but padding: at both ends, at one, all
    ((1, 1), (3, 3), (1, 1), (1, 1), (1, 1), (3, 9, 10, 1)),
    ((4, 5), (3, 3), (1, 1), (6, 12), (6, 12), (2, 5, 6, 1)),
    ((2, 9), (5, 4), (2, 3), (2, 0), (1, 1), (2, 3, 4, 2)),
    ((3,), (2,), (5,), (4,), (1,), (1, 4, 4, 1)),
    ((1, 2, 1), (3, 3, 5), (1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 4, 3, 1)),
    ((1, 1), (5, 3), (1, 1), (2, 1), (1, 1), (4, 1, 1, 20)),
    # one channel a group, in blocks
    ((9, 11), (3, 3), (1, 1), (1, 1), (1, 1), (3, 1, 1, 16)),
    ((9, 7), (5, 2), (2, 3), (2, 0), (1, 1), (2, 1, 1, 37)),
    ((12, 12), (3, 3), (2, 1), (4, 4), (3, 2), (2, 1, 1, 8)),
    ((7, 6), (7, 7), (1, 1), (5, 8), (1, 1), (1, 1, 1, 33)),
    ((90, 40), (3, 3), (3, 2), (0, 1), (1, 1), (1, 1, 1, 17)),
    ((300,), (4,), (1,), (3,), (1,), (2, 1, 1, 19)),
    ((9000,), (3,), (2,), (1,), (1,), (1, 1, 1, 16)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv_and_gradients_are_those_of_the_default_bodies(case, dtype):
    sizes, kernel, stride, padding, dilation, (samples, inputs, outputs, groups) = case
    kind = getattr(mortice, dtype)
    tolerance = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 2e-2, "float16": 2e-3}[dtype]
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x = _raw(_array((samples, inputs * groups, *sizes), kind, 1))
    w = _raw(_array((outputs * groups, inputs, *kernel), kind, 2))
    want = Backend.conv(K, x, w, **settings)
    _close(K.conv(x, w, **settings), want, tolerance)
    g = _raw(_array(K.shape_of(want), kind, 3))
    shape = K.shape_of(x)
    _close(
        K.conv_input_grad(g, w, x_shape=shape, **settings), Backend.conv_input_grad(K, g, w, x_shape=shape, **settings),
        tolerance,
    )  # fmt: skip
    shape = K.shape_of(w)
    _close(
        K.conv_weight_grad(g, x, w_shape=shape, **settings), Backend.conv_weight_grad(K, g, x, w_shape=shape, **settings),
        4 * tolerance,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("x", "w", "stride", "groups"),
    [
        ((6, 8, 20, 20), (12, 8, 3, 3), 1, 1),
        ((2, 20, 70, 60), (20, 1, 3, 3), 2, 20),
        ((3, 130, 3, 3), (150, 130, 3, 3), 1, 1),
        ((4, 130, 1, 1), (150, 130, 3, 3), 1, 1),
        ((2, 150, 4, 4), (600, 150, 1, 1), 2, 1),
    ],
)
def test_a_convolution_is_the_same_whatever_the_number_of_threads(x, w, stride, groups):
    x, w = _array(x, mortice.float32, 1), _array(w, mortice.float32, 2)
    before = mortice.get_num_threads()
    results = []
    for threads in (1, 2, 3):
        mortice.set_num_threads(threads)
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        out = mortice.conv2d(a, b, padding=1, stride=stride, groups=groups)
        (out * out).sum().backward()
        results.append([t.tolist() for t in (out, a.grad, b.grad)])
    mortice.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_nan_and_inf_stay_in_the_windows_that_see_them():
    for fill in (float("nan"), float("inf")):
        x = mortice.zeros(1, 1, 9, 9)
        x[0, 0, 4, 4] = fill
        out = mortice.conv2d(x, mortice.ones(1, 1, 3, 3), padding=1)
        for i, j in itertools.product(range(9), repeat=2):
            near = abs(i - 4) <= 1 and abs(j - 4) <= 1
            value = float(out[0, 0, i, j])
            assert (value != 0) == near


def test_strided_and_transposed_inputs_are_read_as_they_are():
    x, w = _array((4, 6, 12, 10)), _array((5, 6, 3, 3))
    want = mortice.conv2d(x.transpose(2, 3).contiguous()[:, :, ::2], w)
    assert_close(mortice.conv2d(x.transpose(2, 3)[:, :, ::2], w), want)


def test_empty_batches_give_empty_outputs():
    assert tuple(mortice.conv2d(mortice.zeros(0, 3, 8, 8), mortice.zeros(4, 3, 3, 3)).shape) == (0, 4, 6, 6)


def test_wrong_shapes_are_refused():
    x, w = _raw(mortice.zeros(1, 3, 5, 5)), _raw(mortice.zeros(4, 2, 3, 3))
    with pytest.raises(RuntimeError):
        K.conv(x, w, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)
    with pytest.raises(RuntimeError):
        K.conv_weight_grad(x, x, w_shape=(3, 3, 9, 9), stride=(1, 1), padding=(0, 0), dilation=(1, 1))
