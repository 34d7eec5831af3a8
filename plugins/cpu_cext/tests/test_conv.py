"""Convolution and its gradients against the default bodies on the same backend, and facts that need no other library."""

from __future__ import annotations

import itertools
import math
import random

import pytest

pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")

import mortice  # noqa: E402
from mortice.backends import Backend  # noqa: E402
from mortice.testing import assert_close  # noqa: E402
from mortice_cpu_cext.backend import CextBackend  # noqa: E402

K = CextBackend()
pytestmark = pytest.mark.skipif(
    getattr(K.conv, "__func__", None) is Backend.conv,
    reason="convolutions are the default bodies' on x86 processors without AVX2, and with MORTICE_ISA=baseline",
)


def _array(shape, dtype=mortice.float64, seed=0):
    rng = random.Random(seed)
    size = 1
    for n in shape:
        size *= n
    values = mortice.tensor([rng.uniform(-1, 1) for _ in range(size)], dtype=mortice.float64, device="cpu")
    return values.reshape(shape).to(dtype)


def _raw(x):
    return x._buffer


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
    # in tiles of four: even and odd sizes, any padding, channels that fill no panel, several blocks
    ((8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (2, 16, 16, 1)),
    ((9, 31), (3, 3), (1, 1), (0, 2), (1, 1), (3, 17, 19, 1)),
    ((7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (4, 48, 40, 1)),
    ((40, 5), (3, 3), (1, 1), (2, 3), (1, 1), (1, 16, 72, 1)),
    ((14, 13), (3, 3), (1, 1), (1, 0), (1, 1), (9, 33, 16, 1)),
    ((57, 58), (3, 3), (1, 1), (1, 1), (1, 1), (1, 20, 64, 1)),
    # windows of one place: products of matrices
    ((13, 11), (1, 1), (1, 1), (0, 0), (1, 1), (3, 60, 70, 1)),
    ((3, 7, 9), (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), (2, 50, 330, 1)),
    # windows that share nothing: products of matrices too
    ((33, 40), (8, 8), (8, 8), (2, 0), (1, 1), (2, 3, 50, 1)),
    ((6, 18, 17), (2, 3, 5), (3, 4, 5), (0, 1, 2), (1, 1, 1), (2, 2, 48, 1)),
    ((90,), (3,), (5,), (0,), (2,), (3, 4, 49, 1)),
    # rows of two or three whole vectors; many outputs
    ((32, 32), (4, 4), (2, 2), (1, 1), (1, 1), (1, 5, 9, 1)),
    ((6, 24), (3, 3), (1, 1), (1, 1), (1, 1), (2, 6, 9, 1)),
    ((10, 12), (4, 4), (2, 2), (1, 1), (1, 1), (2, 16, 70, 1)),
    # every other element of long rows, with some left over
    ((6, 69), (3, 4), (2, 2), (1, 1), (1, 1), (2, 9, 8, 1)),
    ((5, 102), (4, 3), (1, 2), (2, 2), (1, 1), (1, 8, 17, 1)),
    # long windows, in parts
    ((4, 32), (3, 3), (2, 2), (1, 1), (1, 1), (1, 70, 8, 1)),
    ((9, 33), (3, 3), (2, 2), (1, 1), (1, 1), (1, 70, 9, 1)),
    ((3, 5, 16), (2, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 60, 6, 1)),
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


def _last(x):
    return K.permute_dims(K.contiguous(K.permute_dims(x, (0, 2, 3, 1))), (0, 3, 1, 2))


LAST = [
    *[case for case in CASES if len(case[0]) == 2],
    ((40, 45), (3, 3), (1, 1), (1, 1), (1, 1), (2, 1, 1, 64)),  # in bands
    ((43, 40), (5, 3), (2, 1), (2, 1), (1, 1), (1, 1, 1, 67)),
    ((11, 11), (1, 1), (1, 1), (0, 0), (1, 1), (3, 5, 60, 1)),
    ((1, 1), (1, 1), (1, 1), (0, 0), (1, 1), (5, 24, 17, 1)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", LAST, ids=str)
def test_images_with_their_channels_last_give_the_same_and_keep_them_there(case, dtype):
    sizes, kernel, stride, padding, dilation, (samples, inputs, outputs, groups) = case
    tolerance = {"float64": 1e-12, "float32": 3e-5}[dtype]
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x = _raw(_array((samples, inputs * groups, *sizes), getattr(mortice, dtype), 1))
    w = _raw(_array((outputs * groups, inputs, *kernel), getattr(mortice, dtype), 2))
    want = K.conv(x, w, **settings)
    g = _raw(_array(K.shape_of(want), getattr(mortice, dtype), 3))
    made = K.conv(_last(x), w, **settings)
    _close(made, want, tolerance)
    back, shape = K.conv_input_grad(_last(g), w, x_shape=K.shape_of(x), **settings), K.shape_of(w)
    _close(back, K.conv_input_grad(g, w, x_shape=K.shape_of(x), **settings), tolerance)
    assert [K.strides_of(a) for a in (made, back)] == [K.strides_of(_last(a)) for a in (want, x)]
    want = K.conv_weight_grad(g, x, w_shape=shape, **settings)
    for a, b in ((_last(g), _last(x)), (g, _last(x)), (_last(g), x)):
        _close(K.conv_weight_grad(a, b, w_shape=shape, **settings), want, 4 * tolerance)


@pytest.mark.parametrize(
    ("x", "w", "stride", "groups"),
    [
        ((6, 8, 20, 20), (12, 8, 3, 3), 1, 1),
        ((3, 20, 15, 14), (136, 20, 3, 3), 1, 1),
        ((2, 32, 8, 8), (160, 32, 3, 3), 1, 1),
        ((2, 20, 70, 60), (20, 1, 3, 3), 2, 20),
        ((3, 130, 3, 3), (150, 130, 3, 3), 1, 1),
        ((4, 130, 1, 1), (150, 130, 3, 3), 1, 1),
        ((2, 150, 4, 4), (600, 150, 1, 1), 2, 1),
        ((5, 3, 62, 61), (50, 3, 8, 8), 8, 1),
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


# Sums of tiles (conv_winograd.hpp): what is not finite must be where it is when every window is summed by itself. In float64
# each is, and nothing overflows there that does not in float32.


def _tiled(x, w, g, padding=1):
    """Return a convolution and its gradients, as arrays of the backend."""
    x, w, g = _raw(x), _raw(w), _raw(g)
    settings = {"stride": (1, 1), "padding": (padding, padding), "dilation": (1, 1), "groups": 1}
    return (
        K.conv(x, w, **settings),
        K.conv_input_grad(g, w, x_shape=K.shape_of(x), **settings),
        K.conv_weight_grad(g, x, w_shape=K.shape_of(w), **settings),
    )


def _wrapped(data):
    return mortice.tensor(memoryview(K.to_host(data).view).tolist(), dtype=mortice.float64).reshape(K.shape_of(data))


def _check_kinds(x, w, g, limit=3.4028234e38):
    """Compare what is nan, infinite and finite with float64, where what float32 cannot hold is infinite."""
    for got, want in zip(_tiled(x, w, g), _tiled(*(t.double() for t in (x, w, g))), strict=True):
        got, want = _wrapped(got), _wrapped(want)
        assert mortice.equal(got.isnan(), want.isnan())
        sure = (want.abs() < 0.99 * limit) | (want.abs() > 1.01 * limit)
        assert mortice.equal(got.isfinite() & sure, (want.abs() < limit) & sure)
        infinite = got.isinf() & sure
        assert mortice.equal(got.sign()[infinite], want.sign()[infinite])
        fine = got.isfinite() & sure
        scale = want[fine].abs().max()
        assert float(((got - want)[fine].abs() / scale).max()) < 1e-5


@pytest.mark.parametrize("place", [(0, 0), (4, 7), (8, 9), (5, 5)])
@pytest.mark.parametrize("fill", ["nan", "inf", "-inf"])
def test_what_is_not_finite_stays_in_the_windows_that_see_it_in_tiles_too(fill, place):
    x, w, g = (
        _array(shape, mortice.float32, i) for i, shape in enumerate([(3, 16, 9, 10), (16, 16, 3, 3), (3, 16, 9, 10)])
    )
    for operand in (x, g):
        changed = operand.clone()
        changed[1, 3][place] = float(fill)
        _check_kinds(changed if operand is x else x, w, changed if operand is g else g)
    w[2, 3, 1, 2] = float(fill)
    _check_kinds(x, w, g)


@pytest.mark.parametrize("size", [1e38, 3e38])
def test_large_numbers_do_not_overflow_on_the_way(size):
    x, w, g = (
        _array(shape, mortice.float32, i) for i, shape in enumerate([(2, 16, 9, 10), (16, 16, 3, 3), (2, 16, 9, 10)])
    )
    large = x.clone()
    large[1] = size * large[1].sign()
    _check_kinds(large, w * 1e-3, g * 1e-3)
    large = g.clone()
    large[0, :, ::3, ::2] = size
    _check_kinds(x * 1e-3, w * 1e-3, large)
    _check_kinds(x * 1e-3, size * w.sign(), g * 1e-3)


def test_windows_of_one_place_are_the_same_alone_beside_others_and_on_any_number_of_threads():
    x, w, g = (_array(s, mortice.float32, i) for i, s in enumerate([(3, 340, 33, 31), (330, 340, 1, 1), (3, 330, 33, 31)]))
    settings = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}

    def both(n):
        own = x[n].clone()
        return [_wrapped(K.conv(_raw(own), _raw(w), **settings)),
                _wrapped(K.conv_input_grad(_raw(g[n].clone()), _raw(w), x_shape=tuple(own.shape), **settings))]  # fmt: skip

    before = mortice.get_num_threads()
    found = []
    for threads in (1, 2, 3):
        mortice.set_num_threads(threads)
        found += [both(slice(None)), [mortice.cat(parts) for parts in zip(both(slice(1)), both(slice(1, 3)))]]
    mortice.set_num_threads(before)
    for other in found[1:]:
        assert all(mortice.equal(a, b) for a, b in zip(found[0], other))


@pytest.mark.parametrize("size", [(7, 7), (9, 14)])
def test_a_sample_in_tiles_is_the_same_alone_and_beside_others(size):
    x, w, g = (
        _array(shape, mortice.float32, i) for i, shape in enumerate([(5, 24, *size), (40, 24, 3, 3), (5, 40, *size)])
    )
    x[3, 2, 1, 1] = g[3, 2, 1, 1] = float("inf")  # summed without tiles
    out, grad, _ = map(_wrapped, _tiled(x, w, g))
    for n in (0, 2, 4):
        own, own_grad, _ = map(_wrapped, _tiled(x[n : n + 1].clone(), w, g[n : n + 1].clone()))
        assert mortice.equal(own, out[n : n + 1])
        if size != (7, 7):  # so few windows alone are a product of matrices
            assert mortice.equal(own_grad, grad[n : n + 1])


def test_gradients_of_fewer_windows_than_there_is_room_for_in_tiles():
    x, w, g = (
        _raw(_array(shape, mortice.float32, i))
        for i, shape in enumerate([(2, 16, 11, 12), (24, 16, 3, 3), (2, 24, 9, 10)])
    )
    settings = {"stride": (1, 1), "padding": (1, 2), "dilation": (1, 1), "groups": 1}
    want = Backend.conv_input_grad(K, g, w, x_shape=K.shape_of(x), **settings)
    _close(K.conv_input_grad(g, w, x_shape=K.shape_of(x), **settings), want, 2e-5)
    want = Backend.conv_weight_grad(K, g, x, w_shape=K.shape_of(w), **settings)
    _close(K.conv_weight_grad(g, x, w_shape=K.shape_of(w), **settings), want, 8e-5)


def test_small_whole_numbers_and_zeros_are_exact_in_tiles():
    rng = random.Random(0)

    def draw(*shape):
        return mortice.tensor([float(rng.randint(-9, 9)) for _ in range(math.prod(shape))]).reshape(shape)

    x, w, g = draw(3, 16, 12, 11), draw(16, 16, 3, 3), draw(3, 16, 12, 11)
    x[:, :, 4:9] = 0
    for got, want in zip(_tiled(x, w, g), _tiled(x.double(), w.double(), g.double()), strict=True):
        assert mortice.equal(_wrapped(got), _wrapped(want))


@pytest.mark.parametrize(("channels", "size"), [(16, 32), (64, 12), (256, 7)])
def test_tiles_are_as_exact_as_sums_of_windows(channels, size):
    shapes = [(2, channels, size, size), (16, channels, 3, 3), (2, 16, size, size)]
    x, w, g = (_array(shape, mortice.float32, i) for i, shape in enumerate(shapes))
    x = x.relu()
    wide = _tiled(x.double(), w.double(), g.double())
    narrow = mortice.cat([w, mortice.zeros(4, channels, 3, 3)])[:9]  # fewer outputs than go in tiles
    direct = _wrapped(K.conv(_raw(x), _raw(narrow), (1, 1), (1, 1), (1, 1), 1))
    want = _wrapped(wide[0])
    error = (_wrapped(_tiled(x, w, g)[0]) - want)[:, :9].abs()
    assert float(error.mean()) < 1.2 * float((direct - want[:, :9]).abs().mean())
    for got, want in zip(_tiled(x, w, g), wide, strict=True):
        want = _wrapped(want)
        assert float((_wrapped(got) - want).abs().max() / want.std()) < 1e-5


def test_what_filters_leave_out_never_reaches_an_output():
    x, w, g = (_array(shape, mortice.float32, i) for i, shape in enumerate([(2, 16, 9, 10), (24, 16, 3, 3), (2, 24, 9, 10)]))
    w[:, :, 1, 2] = w[:, :, 2] = 0  # a masked convolution: of the pixels before, and itself
    out, grad, _ = map(_wrapped, _tiled(x, w, g))
    later, first = x.clone(), g.clone()
    later[:, :, 4, 6:] *= 1e6
    later[:, :, 5:] *= 1e6
    first[:, :, :4] *= 1e6
    first[:, :, 4, :5] *= 1e6
    assert mortice.equal(_wrapped(_tiled(later, w, g)[0])[:, :, :4], out[:, :, :4])
    assert mortice.equal(_wrapped(_tiled(later, w, g)[0])[:, :, 4, :6], out[:, :, 4, :6])
    assert mortice.equal(_wrapped(_tiled(x, w, first)[1])[:, :, 5:], grad[:, :, 5:])
    kept = mortice.nn.init.dirac_(mortice.empty(16, 16, 3, 3))
    assert mortice.equal(_wrapped(_tiled(x, kept, x)[0]), x.double())
    assert mortice.equal(_wrapped(_tiled(x, kept, x)[1]), x.double())


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
