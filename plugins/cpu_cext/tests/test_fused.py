"""Kernels that do a layer's or a loss's work in one call: against the default bodies of the same backend."""

from __future__ import annotations

import math

import pytest

import mortice as mt
from mortice.backends import Backend

pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")


@pytest.fixture
def k():
    with mt.use_backend("cpu_cext"):
        mt.manual_seed(0)
        yield mt.ones(1)._device.backend


def numbers(k, x):
    return k.to_host(k.astype(k.reshape(x, (-1,)), mt.float64)).tolist()


def near(a, b, tolerance):
    return a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(1, abs(b))


def same(k, name, *args, tolerance=1e-5, **attributes):
    made, wanted = getattr(k, name)(*args, **attributes), getattr(Backend, name)(k, *args, **attributes)
    pairs = zip(made, wanted) if isinstance(made, tuple) else [(made, wanted)]
    for a, b in pairs:
        assert k.shape_of(a) == k.shape_of(b) and k.dtype_of(a) is k.dtype_of(b)
        assert all(near(u, v, tolerance) for u, v in zip(numbers(k, a), numbers(k, b)))


LAYOUTS = {
    "plain": lambda x: x, "transposed": lambda x: x.transpose(0, 1), "steps": lambda x: x[:, ::2], "back": lambda x: x.flip(1)[:, 1:],
    "expanded": lambda x: x[:1].expand(5, *x.shape[1:]),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.bfloat16, mt.complex64, mt.int32], ids=str)
@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 6), (1, 6), (0, 6)], ids=str)
def test_linear(k, layout, dtype, shape):
    x = LAYOUTS[layout]((mt.randn(shape) * 4).to(dtype)) if shape[0] or layout == "plain" else mt.zeros(shape, dtype=dtype)
    w, b = (mt.randn(5, x.shape[-1]) * 4).to(dtype), (mt.randn(5) * 4).to(dtype)
    tolerance = 0.3 if dtype is mt.bfloat16 else 1e-4
    for bias in (None, b._buffer):
        same(k, "linear", x._buffer, w._buffer, bias, tolerance=tolerance)
        same(k, "linear", x._buffer, (mt.randn(x.shape[-1], 5) * 4).to(dtype).t()._buffer, bias, tolerance=tolerance)
    g = (mt.randn(*x.shape[:-1], 5) * 4).to(dtype)
    same(k, "linear_weight_grad", g._buffer, x._buffer, tolerance=tolerance)


def test_linear_refuses_other_shapes(k):
    x, w = mt.ones(2, 3)._buffer, mt.ones(4, 3)._buffer
    for bad in (
        lambda: k.linear(x, mt.ones(4, 2)._buffer), lambda: k.linear(x, w, mt.ones(3)._buffer),
        lambda: k.linear(x, mt.ones(4, 3, dtype=mt.float64)._buffer), lambda: k.linear_weight_grad(x, mt.ones(3, 3)._buffer),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            bad()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (40, 300), (2, 7, 3), (3, 4, 20, 17), (0, 3)], ids=str)
def test_cross_entropy(k, reduction, smoothing, weighted, shape):
    for dtype, tolerance in ((mt.float32, 1e-4), (mt.float64, 1e-9), (mt.float16, 0.05)):
        x = (mt.randn(shape) * 3).to(dtype)
        t = mt.randint(0, shape[1], (shape[0], *shape[2:]))
        if shape[0]:
            t[0] = -100
        weight = (mt.rand(shape[1]) + 0.5).to(dtype)._buffer if weighted else None
        given = {"reduction": reduction, "ignore_index": -100, "smoothing": smoothing}
        if dtype is mt.float16 and reduction == "sum":
            continue
        same(k, "cross_entropy", x._buffer, t._buffer, weight, tolerance=tolerance, **given)
        loss, logs = k.cross_entropy(x._buffer, t._buffer, weight, **given)
        g = mt.randn(k.shape_of(loss)).to(dtype)._buffer
        same(k, "cross_entropy_grad", g, x._buffer, t._buffer, weight, logs, tolerance=tolerance, **given)


@pytest.mark.usefixtures("modern")
def test_cross_entropy_refuses_wrong_labels(k):
    x = mt.ones(2, 3)._buffer
    for bad, error in (
        (lambda: k.cross_entropy(x, mt.tensor([0, 3])._buffer, reduction="mean"), IndexError),
        (lambda: k.cross_entropy(x, mt.tensor([0])._buffer, reduction="mean"), RuntimeError),
        (lambda: k.cross_entropy(x, mt.tensor([0, 1])._buffer, reduction="most"), ValueError),
        (lambda: k.cross_entropy(mt.ones(2, 0)._buffer, mt.tensor([-100, -100])._buffer, reduction="sum"), RuntimeError),
        (lambda: k.cross_entropy_grad(mt.ones(())._buffer, x, mt.tensor([0, 1])._buffer, None, x, reduction="sum"), RuntimeError),
    ):
        with pytest.raises(error):
            bad()


ACTIVATIONS = {
    "leaky_relu": {"slope": 0.1}, "elu": {"alpha": 1.5, "scale": 1.1, "input_scale": 0.7}, "hardsigmoid": {}, "hardswish": {},
    "logsigmoid": {}, "mish": {}, "hardtanh": {"low": -1, "high": 2}, "softplus": {"beta": 2.0, "threshold": 5.0},
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16, mt.bfloat16], ids=str)
def test_activations(k, name, dtype):
    tolerance = 1e-2 if dtype.itemsize == 2 else 1e-5
    ends = mt.tensor([0.0, -0.0, 3.0, -3.0, math.inf, math.nan, -50.0, 60.0])
    x = mt.cat([mt.randn(1000) * 5, ends]).to(dtype)
    g = mt.randn(x.shape).to(dtype)
    if hasattr(k, name):
        same(k, name, x._buffer, tolerance=tolerance, **ACTIVATIONS[name])
    same(k, name + "_grad", g[:-4]._buffer, x[:-4]._buffer, tolerance=tolerance, **ACTIVATIONS[name])
    same(k, name + "_grad", g[:-4:3]._buffer, x[:-4:3]._buffer, tolerance=tolerance, **ACTIVATIONS[name])


@pytest.mark.parametrize("name", ["hardshrink", "softshrink"])
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16, mt.bfloat16], ids=str)
def test_shrinking_gives_the_default_body_s_bits(k, name, dtype):
    x = mt.cat([mt.randn(1000), mt.tensor([0.0, -0.0, 0.25, -0.25, math.inf, -math.inf, math.nan])]).to(dtype)
    for part in (x, x[::3], x[:5], x[:0]):
        for lambd in (0.25, 0.1, 0):
            made, wanted = getattr(k, name)(part._buffer, lambd=lambd), getattr(Backend, name)(k, part._buffer, lambd=lambd)
            assert repr(numbers(k, made)) == repr(numbers(k, wanted))


def test_a_diagonal_is_written_as_the_default_body_does_and_lies_like_its_matrix(k):
    for x in (mt.randn(3, 4, 5), mt.randn(5, 3, 4).permute(1, 2, 0), mt.randn(3, 4, 10)[..., ::2], mt.randn(0, 4, 5)):
        for place in ({"offset": 0, "axis1": 0, "axis2": 1}, {"offset": -1, "axis1": 2, "axis2": 1}, {"offset": 9, "axis1": 1, "axis2": 0}):
            part = mt.randn(k.shape_of(k.diagonal(x._buffer, **place)))
            same(k, "diagonal_write", x._buffer, part._buffer, tolerance=0, **place)
    y = mt.randn(5, 3, 4).permute(1, 2, 0)
    assert k.strides_of(k.diagonal_write(y._buffer, mt.ones(5, 3)._buffer, offset=0, axis1=0, axis2=1)) == y.stride()


@pytest.mark.parametrize("name", ["max_dim", "min_dim"])
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16, mt.int8, mt.uint8, mt.int64, mt.bool], ids=str)
def test_extremes_with_places(k, name, dtype):
    x = (mt.randn(5, 70, 6) * 3).to(dtype)
    for view in (x, x.transpose(0, 2), x[:, ::3], x[:1].expand(4, 70, 6)):
        for axis in (0, 1, 2):
            for keepdims in (False, True):
                same(k, name, view._buffer, axis=axis, keepdims=keepdims)
    same(k, name, mt.tensor([[1.0, math.nan, 2.0, math.nan]])._buffer, axis=1)
    with pytest.raises(IndexError):
        getattr(k, name)(mt.ones(())._buffer, axis=0)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf, 3.0, 0.0])
@pytest.mark.parametrize("shape", [(), (7,), (20, 30), (1, 70001), (2, 3, 40)], ids=str)
def test_vector_norm(k, p, shape):
    n = len(shape)
    for dtype in (mt.float32, mt.float64, mt.bfloat16):
        x = mt.randn(shape).to(dtype)
        for axis in {None, (0,), (n - 1,), tuple(range(1, n))} if n else {None}:
            if axis != ():
                same(k, "vector_norm", x._buffer, p=p, axis=axis, keepdims=True, tolerance=1e-2 if dtype.itemsize == 2 else 1e-4)
    assert math.isnan(mt.linalg.vector_norm(mt.tensor([math.nan, *[1.0] * 40]), p).item()) or p == 0


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("sizes", [((), 1, 1, 1), ((), 7, 33, 3), ((2, 3), 5, 70, 130), ((), 3, 200, 16)], ids=str)
def test_row_distances(k, p, sizes):
    lead, m, n, d = sizes
    for dtype in (mt.float32, mt.float64, mt.bfloat16):
        x, y = mt.randn(*lead, m, d).to(dtype), mt.randn(*lead, d, n).to(dtype).mT
        same(k, "row_distances", x._buffer, y._buffer, p=p, tolerance=2e-2 if dtype.itemsize == 2 else 1e-4)
        same(k, "row_distances", x._buffer, x._buffer, p=p, tolerance=2e-2 if dtype.itemsize == 2 else 1e-4)
    x = mt.ones(3, 80)
    x[1, 70], x[2, 3] = math.nan, math.inf
    found = mt.cdist(x, mt.zeros(40, 80), p, "donot_use_mm_for_euclid_dist").tolist()
    assert all(map(math.isnan, found[1])) and found[2] == [math.inf] * 40 and found[0][0] == found[0][39] > 0


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16, mt.bfloat16, mt.complex64, mt.complex128], ids=str)
def test_dropout(k, dtype):
    x, keep = mt.randn(6, 8, 5).to(dtype), mt.rand(6, 8, 5) > 0.5
    tolerance = 1e-2 if dtype.itemsize == 2 else 1e-6
    for a, b in ((x, keep), (x.transpose(0, 1), keep.transpose(0, 1)), (x, keep[:, :, :1]), (x[:, ::2], keep[:, ::2])):
        for p in (0.3, 1.0):
            same(k, "dropout", a._buffer, b._buffer, p=p, tolerance=tolerance)
