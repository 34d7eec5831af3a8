"""Neural network kernels: the default bodies on opaque read-only buffers, and cpu_numpy's overrides, by the same tests.

The golden cases need no other library; the rest compare with PyTorch over many settings. A gradient kernel is also
held to be its kernel's adjoint, <g, A x> = <A' g, x>, which needs no oracle.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy_shim import Opaque, shim

from mortice.backends import nn_common
from mortice.backends.nn_common import pool_count, transposed_size, window_count

pytestmark = pytest.mark.any_backend


def _default(name, /, *args, **attributes):
    opened = [Opaque(np.array(a)) if isinstance(a, (np.ndarray, np.generic)) else a for a in args]
    found = getattr(shim, name)(*opened, **attributes)
    found = found if isinstance(found, tuple) else (found,)
    return tuple(f if f is None else f.array for f in found)


def _numpy(name, /, *args, **attributes):
    views = [np.asarray(a).view() if isinstance(a, (np.ndarray, np.generic)) else a for a in args]
    for a in views:
        if isinstance(a, np.ndarray):
            a.flags.writeable = False
    found = getattr(_overrides(), name)(*views, **attributes)
    return found if isinstance(found, tuple) else (found,)


def _overrides(made=[]):  # noqa: B006 (made once)
    if not made:
        backend = pytest.importorskip("mortice_cpu_numpy.backend")
        made.append(backend.NumPyBackend())
    return made[0]


@pytest.fixture(params=["default", "cpu_numpy"])
def run(request):
    """Call a kernel on arrays; one array comes back as itself, several as a tuple."""
    call = _default if request.param == "default" else _numpy

    def run(name, /, *args, **attributes):
        found = call(name, *args, **attributes)
        return found[0] if len(found) == 1 else found

    return run


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def rng():
    random.seed(0)
    return np.random.default_rng(0)


TOLERANCE = {"float64": 1e-10, "float32": 3e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def close(mine, theirs):
    """Compare shape, dtype and values; the tolerance is the dtype's."""
    theirs = theirs.detach().numpy() if hasattr(theirs, "detach") else np.asarray(theirs)
    assert mine.shape == theirs.shape
    assert mine.dtype == theirs.dtype
    bound = TOLERANCE.get(mine.dtype.name, 0)
    np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=bound, atol=bound)


def adjoint(x, forward, g, backward):
    """Check <g, A x> = <A' g, x>."""
    assert backward.shape == x.shape
    np.testing.assert_allclose((g * forward).sum(), (backward * x).sum(), rtol=1e-9, atol=1e-9)


def pulled(torch, out, inputs, g):
    return torch.autograd.grad(out, [t for t in inputs if t is not None], torch.tensor(g))


def leaf(torch, x):
    return None if x is None else torch.tensor(x, requires_grad=True)


# ---- golden cases ----


def test_conv_golden(run):
    x = np.arange(9.0).reshape(1, 1, 3, 3)
    w = np.array([[[[1.0, 2.0], [3.0, 4.0]]]])
    settings = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    close(run("conv", x, w, **settings), np.array([[[[27.0, 37.0], [57.0, 67.0]]]]))
    g = np.ones((1, 1, 2, 2))
    close(
        run("conv_input_grad", g, w, x_shape=x.shape, **settings),
        np.array([[[[1.0, 3.0, 2.0], [4.0, 10.0, 6.0], [3.0, 7.0, 4.0]]]]),
    )
    close(run("conv_weight_grad", g, x, w_shape=w.shape, **settings), np.array([[[[8.0, 12.0], [20.0, 24.0]]]]))


def test_transposed_conv_golden(run):
    x, w = np.array([[[1.0, 2.0]]]), np.array([[[1.0, 10.0]]])
    settings = {"stride": (3,), "padding": (0,), "dilation": (1,), "groups": 1}
    size = transposed_size(2, 2, 3, 0, 1, 1)
    out = run("conv_input_grad", x, w, x_shape=(1, 1, size), **settings)
    close(out, np.array([[[1.0, 10.0, 0.0, 2.0, 20.0, 0.0]]]))


def test_max_pool_golden(run):
    x = np.array([[[1.0, 5.0, 5.0, 2.0, 7.0]]])
    settings = {"kernel": (2,), "stride": (2,), "padding": (0,), "dilation": (1,)}
    values, indices = run("max_pool", x, ceil_mode=True, **settings)
    close(values, np.array([[[5.0, 5.0, 7.0]]]))
    close(indices, np.array([[[1, 2, 4]]]))
    close(run("max_pool", x, ceil_mode=False, **settings)[0], np.array([[[5.0, 5.0]]]))
    grad = run("max_pool_grad", np.array([[[1.0, 2.0, 4.0]]]), indices, x_shape=x.shape, ndim=1)
    close(grad, np.array([[[0.0, 1.0, 2.0, 0.0, 4.0]]]))


def test_max_pool_takes_integers(run):
    x = np.array([[[-5, -3, -4, -9]]], np.int8)
    settings = {"kernel": (2,), "stride": (2,), "padding": (1,), "dilation": (1,)}
    values, indices = run("max_pool", x, **settings)
    close(values, np.array([[[-5, -3, -9]]], np.int8))
    close(indices, np.array([[[0, 1, 3]]]))


def test_avg_pool_golden(run):
    x = np.array([[[2.0, 4.0, 6.0]]])
    settings = {"kernel": (2,), "stride": (2,), "padding": (1,), "ceil_mode": True}
    close(run("avg_pool", x, count_include_pad=True, **settings), np.array([[[1.0, 5.0]]]))
    close(run("avg_pool", x, count_include_pad=False, **settings), np.array([[[2.0, 5.0]]]))
    close(run("avg_pool", x, divisor_override=1, **settings), np.array([[[2.0, 10.0]]]))


def test_adaptive_pool_golden(run):
    x = np.arange(5.0).reshape(1, 1, 5)
    close(run("adaptive_avg_pool", x, output_size=(3,)), np.array([[[0.5, 2.0, 3.5]]]))
    values, indices = run("adaptive_max_pool", x, output_size=(3,))
    close(values, np.array([[[1.0, 3.0, 4.0]]]))
    close(indices, np.array([[[1, 3, 4]]]))


def test_softmax_golden(run):
    x = np.array([[0.0, np.log(3.0)], [-np.inf, 2.0]])
    close(run("softmax", x, axis=1), np.array([[0.25, 0.75], [0.0, 1.0]]))
    close(run("log_softmax", x, axis=-1), np.array([[np.log(0.25), np.log(0.75)], [-np.inf, 0.0]]))


def test_softmax_does_not_overflow(run):
    close(run("softmax", np.array([1000.0, 1000.0], np.float32), axis=0), np.array([0.5, 0.5], np.float32))


def test_layer_norm_golden(run):
    out, mean, rstd = run("layer_norm", np.array([[1.0, 3.0]]), ndim=1, eps=0.0)
    close(out, np.array([[-1.0, 1.0]]))
    close(mean, np.array([[2.0]]))
    close(rstd, np.array([[1.0]]))


def test_batch_norm_keeps_digits_far_from_zero(run, rng):
    x = rng.standard_normal((8, 2, 5)) + 1e7
    close(run("batch_norm", x, eps=0.0)[2], x.var(axis=(0, 2)))


def test_embedding_grad_golden(run):
    g = np.array([[1.0], [2.0], [4.0], [8.0]])
    indices = np.array([1, 0, 1, 2])
    close(run("embedding_grad", g, indices, num_weights=4), np.array([[2.0], [5.0], [8.0], [0.0]]))
    close(run("embedding_grad", g, indices, num_weights=4, padding_idx=1), np.array([[2.0], [0.0], [8.0], [0.0]]))


def test_nll_loss_golden(run):
    logp = np.array([[-1.0, -2.0], [-3.0, -4.0]])
    losses, weights = run("nll_loss", logp, np.array([1, -100]), np.array([10.0, 100.0]))
    close(losses, np.array([200.0, 0.0]))
    close(weights, np.array([100.0, 0.0]))


def test_relu_grad_keeps_infinities_out(run):
    g = np.array([np.inf, np.nan, 3.0, 4.0, 5.0])
    out = np.array([0.0, 0.0, 1.0, np.nan, -0.0])
    close(run("relu_grad", g, out), np.array([0.0, 0.0, 3.0, 4.0, 0.0]))


def test_pad_border_golden(run):
    x = np.array([[[1.0, 2.0, 3.0]]])
    widths = ((0, 0), (0, 0), (2, 1))
    close(run("pad_border", x, widths=widths, mode="reflect"), np.array([[[3.0, 2, 1, 2, 3, 2]]]))
    close(run("pad_border", x, widths=widths, mode="replicate"), np.array([[[1.0, 1, 1, 2, 3, 3]]]))
    close(run("pad_border", x, widths=widths, mode="circular"), np.array([[[2.0, 3, 1, 2, 3, 1]]]))
    close(run("pad_border", x, widths=widths, mode="constant", value=9), np.array([[[9.0, 9, 1, 2, 3, 9]]]))


def test_interpolate_golden(run):
    x = np.array([[[0.0, 4.0]]])
    close(run("interpolate", x, size=(4,), mode="nearest"), np.array([[[0.0, 0, 4, 4]]]))
    close(run("interpolate", x, size=(4,), mode="linear"), np.array([[[0.0, 1, 3, 4]]]))
    close(run("interpolate", x, size=(3,), mode="linear", align_corners=True), np.array([[[0.0, 2, 4]]]))


def test_attention_of_a_query_that_sees_nothing_is_zero(run):
    q, k, v = np.ones((2, 1)), np.ones((3, 1)), np.arange(3.0).reshape(3, 1)
    mask = np.array([[True, False, True], [False, False, False]])
    out, lse = run("attention", q, k, v, mask)
    close(out, np.array([[1.0], [0.0]]))
    close(lse, np.array([1 + np.log(2.0), -np.inf]))


def test_window_arithmetic_agrees_with_itself():
    for size in range(1, 12):
        for kernel, stride, padding, dilation in ((3, 2, 1, 1), (2, 3, 0, 2), (1, 1, 0, 1)):
            count = window_count(size, kernel, stride, padding, dilation)
            if count > 0:
                rest = size - transposed_size(count, kernel, stride, padding, dilation, 0)
                assert 0 <= rest < stride
            assert pool_count(size, kernel, stride, padding, dilation, True) >= count


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), ()])
def test_softmax_of_empty_and_0d(run, name, shape):
    out = run(name, np.zeros(shape), axis=0)
    close(out, np.full(shape, 1.0 if name == "softmax" else 0.0))
    close(run(f"{name}_grad", np.ones(shape), out, axis=0), np.zeros(shape))


# ---- convolution ----


def conv_settings(seed):
    random.seed(seed)
    nd, groups = random.choice([1, 2, 2, 3]), random.choice([1, 1, 2, 3])
    pick = lambda *values: tuple(random.choice(values) for _ in range(nd))
    channels = groups * random.choice([1, 2]), groups * random.choice([1, 2, 4])
    strides = random.choice([(1,) * nd, pick(1, 2, 3)])
    settings = {"stride": strides, "padding": pick(0, 1, 2), "dilation": pick(1, 2), "groups": groups}
    return random.choice([0, 1, 2, 5]), channels, pick(5, 6, 12), pick(1, 2, 3), settings


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(60))
def test_conv_and_gradients(run, torch, rng, seed):
    n, (inputs, outputs), sizes, kernel, settings = conv_settings(seed)
    dtype = random.choice([np.float32, np.float64])
    groups = settings["groups"]
    x = rng.standard_normal((n, inputs, *sizes)).astype(dtype)
    w = rng.standard_normal((outputs, inputs // groups, *kernel)).astype(dtype)
    tx, tw = leaf(torch, x), leaf(torch, w)
    convolve = getattr(torch.nn.functional, f"conv{len(sizes)}d")
    out = convolve(tx, tw, None, settings["stride"], settings["padding"], settings["dilation"], groups)
    close(run("conv", x, w, **settings), out)
    g = rng.standard_normal(out.shape).astype(dtype)
    gx, gw = pulled(torch, out, (tx, tw), g)
    close(run("conv_input_grad", g, w, x_shape=x.shape, **settings), gx)
    close(run("conv_weight_grad", g, x, w_shape=w.shape, **settings), gw)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(30))
def test_transposed_conv(run, torch, rng, seed):
    n, (inputs, outputs), sizes, kernel, settings = conv_settings(seed)
    groups = settings["groups"]
    extra = [random.randrange(max(s, d)) for s, d in zip(settings["stride"], settings["dilation"])]
    windows = zip(sizes, kernel, settings["stride"], settings["padding"], settings["dilation"], extra)
    shape = (n, outputs, *[transposed_size(*a) for a in windows])
    x = rng.standard_normal((n, inputs, *sizes))
    w = rng.standard_normal((inputs, outputs // groups, *kernel))
    spread = getattr(torch.nn.functional, f"conv_transpose{len(sizes)}d")
    attributes = (settings["stride"], settings["padding"], extra, groups, settings["dilation"])
    out = spread(torch.tensor(x), torch.tensor(w), None, *attributes)
    close(run("conv_input_grad", x, w, x_shape=shape, **settings), out)


@pytest.mark.parametrize("seed", range(20))
def test_convolutions_are_each_others_adjoints(run, rng, seed):
    n, (inputs, outputs), sizes, kernel, settings = conv_settings(seed)
    x = rng.standard_normal((n, inputs, *sizes))
    w = rng.standard_normal((outputs, inputs // settings["groups"], *kernel))
    out = run("conv", x, w, **settings)
    g = rng.standard_normal(out.shape)
    adjoint(x, out, g, run("conv_input_grad", g, w, x_shape=x.shape, **settings))
    adjoint(w, out, g, run("conv_weight_grad", g, x, w_shape=w.shape, **settings))


def test_conv_in_blocks(rng, monkeypatch):
    settings = {"stride": (1, 2), "padding": (1, 1), "dilation": (1, 1), "groups": 2}
    x, w = rng.standard_normal((5, 4, 7, 6)), rng.standard_normal((6, 2, 3, 2))
    whole = _default("conv", x, w, **settings)[0]
    g = rng.standard_normal(whole.shape)
    calls = [
        ("conv", (x, w), {}),
        ("conv_input_grad", (g, w), {"x_shape": x.shape}),
        ("conv_weight_grad", (g, x), {"w_shape": w.shape}),
    ]
    wholes = [_default(name, *args, **extra, **settings)[0] for name, args, extra in calls]
    monkeypatch.setattr(nn_common, "BLOCK_BYTES", 500)
    for (name, args, extra), expected in zip(calls, wholes):
        close(_default(name, *args, **extra, **settings)[0], expected)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.int64, np.complex128])
def test_conv_of_other_kinds(run, torch, rng, dtype):
    x, w = rng.integers(-5, 5, (2, 2, 6)).astype(dtype), rng.integers(-5, 5, (3, 2, 2)).astype(dtype)
    out = run("conv", x, w, stride=(2,), padding=(1,), dilation=(1,), groups=1)
    expected = torch.nn.functional.conv1d(torch.tensor(x), torch.tensor(w), None, 2, 1)
    np.testing.assert_allclose(out, expected.numpy())
    assert out.dtype == dtype


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(20))
def test_unfold_and_fold(run, torch, rng, seed):
    random.seed(seed)
    pair = lambda *values: (random.choice(values), random.choice(values))
    settings = {"kernel": pair(1, 2, 3), "stride": pair(1, 2), "padding": pair(0, 1), "dilation": pair(1, 2)}
    order = [settings[n] for n in ("kernel", "dilation", "padding", "stride")]
    sizes = pair(5, 6, 8)
    x = rng.standard_normal((random.choice([1, 3]), 2, *sizes))
    out = run("unfold", x, **settings)
    close(out, torch.nn.functional.unfold(torch.tensor(x), *order))
    g = rng.standard_normal(out.shape)
    back = run("fold", g, output_size=sizes, **settings)
    close(back, torch.nn.functional.fold(torch.tensor(g), sizes, *order))
    adjoint(x, out, g, back)


# ---- pooling ----


def pool_settings(seed):
    random.seed(seed)
    nd = random.choice([1, 2, 2, 3])
    kernel = tuple(random.choice([1, 2, 3, 4]) for _ in range(nd))
    stride = kernel if random.random() < 0.3 else tuple(random.choice([1, 2, 3, 4]) for _ in range(nd))
    padding = tuple(random.randrange(k // 2 + 1) for k in kernel)
    shape = (random.choice([1, 2]), 2, *[random.choice([7, 8, 9]) for _ in range(nd)])
    return nd, shape, {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": random.random() < 0.5}


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(60))
def test_max_pool(run, torch, rng, seed):
    nd, shape, settings = pool_settings(seed)
    # Few different numbers, so that there are ties; sometimes nan, or windows of nothing but -inf.
    x = rng.integers(-3, 3, shape).astype(random.choice([np.float32, np.float64]))
    if seed % 3 == 0:
        x[rng.random(shape) < 0.1] = np.nan
    if seed % 4 == 0:
        x[rng.random(shape) < 0.5] = -np.inf
    dilation = random.choice([(1,) * nd, (2,) * nd]) if seed % 2 else (1,) * nd
    tx = leaf(torch, x)
    arguments = (settings["kernel"], settings["stride"], settings["padding"], dilation, settings["ceil_mode"])
    expected, places = getattr(torch.nn.functional, f"max_pool{nd}d")(tx, *arguments, return_indices=True)
    values, indices = run("max_pool", x, dilation=dilation, **settings)
    close(values, expected)
    close(run("max_pool_values", x, dilation=dilation, **settings), expected)
    close(run("max_pool_take", x, indices, ndim=nd), values)
    if dilation == (1,) * nd:
        close(indices, places)
    if not np.isnan(x).any():
        g = rng.standard_normal(values.shape).astype(x.dtype)
        back = run("max_pool_grad", g, places.numpy(), x_shape=shape, ndim=nd)
        close(back, pulled(torch, expected, [tx], g)[0])


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(60))
def test_avg_pool(run, torch, rng, seed):
    nd, shape, settings = pool_settings(seed)
    include, divisor = random.random() < 0.5, random.choice([None, None, 3]) if nd > 1 else None
    x = rng.standard_normal(shape)
    tx = leaf(torch, x)
    order = [settings[n] for n in ("kernel", "stride", "padding", "ceil_mode")]
    extra = {"divisor_override": divisor} if nd > 1 else {}
    expected = getattr(torch.nn.functional, f"avg_pool{nd}d")(tx, *order, include, **extra)
    settings |= {"count_include_pad": include, "divisor_override": divisor}
    out = run("avg_pool", x, **settings)
    close(out, expected)
    g = rng.standard_normal(out.shape)
    back = run("avg_pool_grad", g, x_shape=shape, **settings)
    close(back, pulled(torch, expected, [tx], g)[0])
    adjoint(x, out, g, back)


@pytest.mark.oracle
@pytest.mark.parametrize("output_size", [(1,), (3,), (8,), (16,), (11,), (3, 5), (1, 1), (4, 8), (2, 3, 10)])
def test_adaptive_pool(run, torch, rng, output_size):
    nd = len(output_size)
    shape = (2, 2, *[8, 9, 7][:nd])
    x = rng.standard_normal(shape)
    tx = leaf(torch, x)
    expected = getattr(torch.nn.functional, f"adaptive_avg_pool{nd}d")(tx, output_size)
    out = run("adaptive_avg_pool", x, output_size=output_size)
    close(out, expected)
    g = rng.standard_normal(out.shape)
    back = run("adaptive_avg_pool_grad", g, x_shape=shape, output_size=output_size)
    close(back, pulled(torch, expected, [tx], g)[0])
    expected, places = getattr(torch.nn.functional, f"adaptive_max_pool{nd}d")(tx, output_size, return_indices=True)
    values, indices = run("adaptive_max_pool", x, output_size=output_size)
    close(values, expected)
    close(indices, places)


def test_pools_keep_nan_in_its_window(run):
    x = np.ones((1, 1, 7))
    x[0, 0, 0] = np.nan
    assert np.isnan(run("adaptive_avg_pool", x, output_size=(3,))).sum() == 1
    pooled = run("avg_pool", x, kernel=(2,), stride=(2,), padding=(0,))
    assert np.isnan(pooled).sum() == 1


def test_pools_of_no_sample(run):
    settings = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0)}
    x = np.zeros((0, 3, 4, 6))
    values, indices = run("max_pool", x, dilation=(1, 1), **settings)
    assert values.shape == indices.shape == (0, 3, 2, 3)
    assert run("max_pool_grad", values, indices, x_shape=x.shape, ndim=2).shape == x.shape
    assert run("avg_pool", x, **settings).shape == (0, 3, 2, 3)
    assert run("avg_pool_grad", values, x_shape=x.shape, **settings).shape == x.shape


# ---- normalisation ----


@pytest.mark.oracle
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize(("shape", "ndim"), [((4, 6), 1), ((2, 3, 5), 2), ((2, 0, 5), 1), ((0, 5), 1)])
def test_layer_norm_and_rms_norm(run, torch, rng, shape, ndim, affine):
    functional = torch.nn.functional
    row = shape[len(shape) - ndim :]
    x, g = rng.standard_normal(shape) * 3 + 5, rng.standard_normal(shape)
    weight, bias = (rng.standard_normal(row), rng.standard_normal(row)) if affine else (None, None)
    tx, tw, tb = leaf(torch, x), leaf(torch, weight), leaf(torch, bias)
    settings = {"ndim": ndim, "eps": 1e-3}

    expected = functional.layer_norm(tx, row, tw, tb, 1e-3)
    out, mean, rstd = run("layer_norm", x, weight, bias, **settings)
    close(out, expected)
    grads = pulled(torch, expected, (tx, tw, tb), g)
    for cache in ((mean, rstd), (None, None)):
        close(run("layer_norm_grad", g, x, weight, *cache, **settings), grads[0])
        if affine:
            close(run("layer_norm_weight_grad", g, x, *cache, **settings), grads[1])

    expected = functional.rms_norm(tx, row, tw, 1e-3)
    out, rrms = run("rms_norm", x, weight, **settings)
    close(out, expected)
    grads = pulled(torch, expected, (tx, tw), g)
    for cached in (rrms, None):
        close(run("rms_norm_grad", g, x, weight, cached, **settings), grads[0])
        if affine:
            close(run("rms_norm_weight_grad", g, x, cached, **settings), grads[1])


@pytest.mark.oracle
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(4, 6), (2, 6, 5), (3, 6, 2, 3)])
def test_batch_norm_and_group_norm(run, torch, rng, shape, affine):
    functional = torch.nn.functional
    x, g = rng.standard_normal(shape) * 3 + 5, rng.standard_normal(shape)
    weight, bias = (rng.standard_normal(6), rng.standard_normal(6)) if affine else (None, None)
    tx, tw, tb = leaf(torch, x), leaf(torch, weight), leaf(torch, bias)
    others = (0, *range(2, len(shape)))

    expected = functional.batch_norm(tx, None, None, tw, tb, True, 0.1, 1e-3)
    out, mean, var = run("batch_norm", x, weight, bias, eps=1e-3)
    close(out, expected)
    close(mean, x.mean(others))
    close(var, x.var(others))
    grads = pulled(torch, expected, (tx, tw, tb), g)
    for cache in ((mean, var), (None, None)):
        close(run("batch_norm_grad", g, x, weight, *cache, eps=1e-3), grads[0])
        if affine:
            close(run("batch_norm_weight_grad", g, x, *cache, eps=1e-3), grads[1])

    mean, var = rng.standard_normal(6), rng.random(6) + 0.1
    expected = functional.batch_norm(tx, torch.tensor(mean), torch.tensor(var), tw, tb, False, 0.1, 1e-3)
    close(run("batch_norm_eval", x, mean, var, weight, bias, eps=1e-3), expected)
    grads = pulled(torch, expected, (tx, tw, tb), g)
    close(run("batch_norm_eval_grad", g, var, weight, eps=1e-3), grads[0])
    if affine:
        close(run("batch_norm_eval_weight_grad", g, x, mean, var, eps=1e-3), grads[1])

    for groups in (1, 2, 6):
        expected = functional.group_norm(tx, groups, tw, tb, 1e-3)
        out, mean, rstd = run("group_norm", x, weight, bias, groups=groups, eps=1e-3)
        close(out, expected)
        assert mean.shape == rstd.shape == (shape[0], groups)
        grads = pulled(torch, expected, (tx, tw, tb), g)
        for cache in ((mean, rstd), (None, None)):
            close(run("group_norm_grad", g, x, weight, *cache, groups=groups, eps=1e-3), grads[0])
            if affine:
                close(run("group_norm_weight_grad", g, x, *cache, groups=groups, eps=1e-3), grads[1])


def test_norms_of_no_sample(run):
    x = np.zeros((0, 4, 3), np.float32)
    for name, settings in (("batch_norm", {}), ("group_norm", {"groups": 2}), ("layer_norm", {"ndim": 1})):
        assert run(name, x, eps=1e-5, **settings)[0].shape == x.shape
        assert run(f"{name}_grad", x, x, eps=1e-5, **settings).shape == x.shape


# ---- activations, lookups ----


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [7, 5000])
def test_activations(run, torch, rng, dtype, size):
    functional = torch.nn.functional
    x, g = (rng.standard_normal(size) * 3).astype(dtype), rng.standard_normal(size).astype(dtype)
    tx = leaf(torch, x)
    relu = run("relu", x)
    close(relu, functional.relu(tx))
    close(run("relu_grad", g, relu), pulled(torch, functional.relu(tx), [tx], g)[0])
    for name, fn in (("sigmoid", torch.sigmoid), ("tanh", torch.tanh)):
        out = fn(tx)
        close(run(f"{name}_grad", g, out.detach().numpy()), pulled(torch, out, [tx], g)[0])
    close(run("silu", x), functional.silu(tx))
    close(run("silu_grad", g, x), pulled(torch, functional.silu(tx), [tx], g)[0])
    for approximate in ("none", "tanh"):
        out = functional.gelu(tx, approximate=approximate)
        close(run("gelu", x, approximate=approximate), out)
        close(run("gelu_grad", g, x, approximate=approximate), pulled(torch, out, [tx], g)[0])


def test_gelu_at_the_ends(run):
    x = np.repeat(np.array([np.inf, 60.0, 0.0, -60.0, np.nan], np.float32), 1000)
    close(run("gelu", x)[::1000], np.array([np.inf, 60.0, 0.0, 0.0, np.nan], np.float32))
    close(run("gelu_grad", np.ones_like(x), x)[1000::1000], np.array([1.0, 0.5, 0.0, np.nan], np.float32))


@pytest.mark.oracle
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(run, torch, rng, name, axis):
    x, g = rng.standard_normal((3, 4, 5)) * 10, rng.standard_normal((3, 4, 5))
    tx = leaf(torch, x)
    expected = getattr(torch.nn.functional, name)(tx, axis)
    out = run(name, x, axis=axis)
    close(out, expected)
    close(run(f"{name}_grad", g, out, axis=axis), pulled(torch, expected, [tx], g)[0])


def test_dropout_scales_what_it_keeps(run):
    keep = np.array([True, False, True])
    close(run("dropout", np.array([1.0, 2.0, 3.0]), keep, p=0.75), np.array([4.0, 0.0, 12.0]))
    close(run("dropout", np.array([1.0, 2.0, 3.0]), np.zeros(3, bool), p=1.0), np.zeros(3))


@pytest.mark.oracle
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("padding_idx", [None, 2])
@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (0,)])
def test_embedding(run, torch, rng, shape, padding_idx, scaled):
    weight, indices = rng.standard_normal((6, 4)), rng.integers(0, 6, shape)
    tw = leaf(torch, weight)
    expected = torch.nn.functional.embedding(torch.tensor(indices), tw, padding_idx, scale_grad_by_freq=scaled)
    close(run("embedding", weight, indices), expected)
    settings = {"padding_idx": padding_idx, "scale_grad_by_freq": scaled}
    g, h = rng.standard_normal((*shape, 4)), rng.standard_normal((6, 4))
    back = run("embedding_grad", g, indices, num_weights=6, **settings)
    close(back, pulled(torch, expected, [tw], g)[0])
    adjoint(g, back, h, run("embedding_grad_take", h, indices, **settings))


@pytest.mark.oracle
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (0, 5), (2, 5, 3, 2)])
def test_nll_loss(run, torch, rng, shape, weighted):
    logp, target = rng.standard_normal(shape), rng.integers(0, 5, (shape[0], *shape[2:]))
    if target.size:
        target.flat[0] = -100
    weight = rng.random(5) if weighted else None
    tl, tw = leaf(torch, logp), None if weight is None else torch.tensor(weight)
    expected = torch.nn.functional.nll_loss(tl, torch.tensor(target), tw, reduction="none")
    losses, weights = run("nll_loss", logp, target, weight)
    close(losses, expected)
    g = rng.standard_normal(losses.shape)
    close(run("nll_loss_grad", g, target, weight, x_shape=shape), pulled(torch, expected, [tl], g)[0])
    if target.size:
        mean = torch.nn.functional.nll_loss(tl, torch.tensor(target), tw)
        np.testing.assert_allclose(losses.sum() / weights.sum(), mean.item())


# ---- attention ----


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [None, "causal", "bool", "number", "row"])
@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("limit", [None, 200])
def test_attention(run, torch, rng, monkeypatch, batch, kind, limit):
    if limit:
        monkeypatch.setattr(nn_common, "BLOCK_BYTES", limit)
    for length, keys in ((5, 5), (7, 3), (1, 6)):
        shapes = [(*batch, length, 4), (*batch, keys, 4), (*batch, keys, 3)]
        arrays = [rng.standard_normal(s) for s in shapes]
        mask = {
            "bool": rng.random((length, keys)) < 0.6,
            "number": rng.standard_normal((*batch, length, keys)),
            "row": rng.random((1, keys)) < 0.5,
        }.get(kind)
        leaves = [leaf(torch, a) for a in arrays]
        number = kind == "number"
        tm = None if mask is None else torch.tensor(mask, requires_grad=number)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            expected = torch.nn.functional.scaled_dot_product_attention(*leaves, tm, 0.0, kind == "causal")
        out, lse = run("attention", *arrays, mask, causal=kind == "causal")
        close(out, expected)
        assert lse.shape == out.shape[:-1]
        g = rng.standard_normal(out.shape)
        grads = run("attention_grad", g, *arrays, mask, None, out, lse, causal=kind == "causal", needs_mask=number)
        for mine, theirs in zip(grads, pulled(torch, expected, [*leaves, *([tm] if number else [])], g)):
            close(mine, theirs)


def test_attention_with_dropout_is_linear_in_value(run, rng):
    q, k, v = rng.standard_normal((4, 2)), rng.standard_normal((5, 2)), rng.standard_normal((5, 3))
    keep = rng.random((4, 5)) < 0.5
    out, _ = run("attention", q, k, v, None, keep, dropout_p=0.5)
    scores = q @ k.T * 2**-0.5
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    close(out, (weights * keep * 2) @ v)
    g = rng.standard_normal(out.shape)
    adjoint(v, out, g, run("attention_grad", g, q, k, v, None, keep, dropout_p=0.5)[2])


# ---- padding and interpolation ----


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("seed", range(15))
def test_pad_border(run, torch, rng, mode, seed):
    random.seed(seed)
    nd = random.choice([1, 2, 3])
    x = rng.standard_normal((2, 2, *[random.choice([4, 5, 6]) for _ in range(nd)]))
    widths = [(random.randint(-1, 3), random.randint(-1, 3)) for _ in range(nd)]
    flat = [n for pair in reversed(widths) for n in pair]
    tx = leaf(torch, x)
    extra = {"value": 2.5} if mode == "constant" else {}
    expected = torch.nn.functional.pad(tx, flat, mode, **extra)
    widths = ((0, 0), (0, 0), *widths)
    close(run("pad_border", x, widths=widths, mode=mode, **extra), expected)
    g = rng.standard_normal(expected.shape)
    close(run("pad_border_grad", g, widths=widths, mode=mode), pulled(torch, expected, [tx], g)[0])


TORCH_MODES = {
    "linear": ("linear", "bilinear", "trilinear"), "cubic": (None, "bicubic", None), "lanczos": (None, "lanczos", None)
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "cubic", "area", "lanczos"])
@pytest.mark.parametrize("seed", range(25))
def test_interpolate(run, torch, rng, mode, seed):
    random.seed(seed)
    nd = 2 if mode in ("cubic", "lanczos") else random.choice([1, 2, 3])
    smooth = mode in TORCH_MODES
    name = TORCH_MODES[mode][nd - 1] if smooth else mode
    settings = {"align_corners": smooth and random.random() < 0.5, "antialias": False}
    # PyTorch's antialiasing of images one element wide mixes their rows, so these are left out.
    settings["antialias"] = smooth and nd == 2 and random.random() < 0.4
    if mode == "lanczos":
        settings = {"align_corners": False, "antialias": True}
    x = rng.standard_normal((2, 2, *[random.randint(1, 9) for _ in range(nd)]))
    if random.random() < 0.5 or mode == "area":
        size, scales = tuple(random.randint(2, 14) for _ in range(nd)), None
    else:
        scales = tuple(random.choice([0.5, 0.77, 1.0, 1.5, 2.0, 2.6, 3.0]) for _ in range(nd))
        size = tuple(int(n * s) for n, s in zip(x.shape[2:], scales))
        if min(size) == 0 or (settings["antialias"] and size[-1] == 1):
            return
    tx = leaf(torch, x)
    expected = torch.nn.functional.interpolate(
        tx,
        size=None if scales else size,
        scale_factor=scales,
        mode=name,
        align_corners=settings["align_corners"] if smooth else None,
        antialias=settings["antialias"],
    )
    out = run("interpolate", x, size=size, mode=mode, scales=scales, **settings)
    close(out, expected)
    g = rng.standard_normal(out.shape)
    back = run("interpolate_grad", g, x_shape=x.shape, mode=mode, scales=scales, **settings)
    close(back, pulled(torch, expected, [tx], g)[0])
    adjoint(x, out, g, back)


# ---- half precision ----


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_adds_up_in_float32(run, rng, name):
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    x, w = rng.standard_normal((2, 8, 8, 8)).astype(dtype), rng.standard_normal((4, 8, 3, 3)).astype(dtype)
    conv = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    pool = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0)}
    for kernel, args, settings in (
        ("conv", (x, w), conv),
        ("conv_input_grad", (x[:, :4], w), {"x_shape": x.shape, **conv}),
        ("conv_weight_grad", (x[:, :4], x), {"w_shape": w.shape, **conv}),
        ("softmax", (x,), {"axis": 1}),
        ("log_softmax", (x,), {"axis": 1}),
        ("gelu", (x,), {}),
        ("gelu_grad", (x, x), {}),
        ("silu", (x,), {}),
        ("layer_norm", (x,), {"ndim": 2}),
        ("batch_norm", (x,), {}),
        ("avg_pool", (x,), pool),
        ("max_pool", (x,), {"dilation": (1, 1), **pool}),
        ("adaptive_avg_pool", (x,), {"output_size": (3, 1)}),
        ("interpolate", (x,), {"size": (5, 13), "mode": "linear"}),
        ("attention", (x, x, x), {}),
    ):
        narrow = run(kernel, *args, **settings)
        wide = run(kernel, *[a.astype(np.float32) for a in args], **settings)
        narrow, wide = (r[0] if isinstance(r, tuple) else r for r in (narrow, wide))
        # Rounded once at the end: the same bits as the float32 result, rounded, but for one unit where sums differ.
        assert narrow.dtype == dtype
        bound = 2.0**-10 if name == "float16" else 2.0**-7
        np.testing.assert_allclose(narrow.astype(np.float32), wide, rtol=bound, atol=bound * 2**-4, err_msg=kernel)


def test_mixed_norm_parameters_keep_their_precision(run, rng):
    x = rng.standard_normal((4, 8)).astype(np.float16)
    weight = rng.standard_normal(8).astype(np.float32)
    out, mean, _ = run("layer_norm", x, weight, ndim=1, eps=1e-5)
    assert (out.dtype, mean.dtype) == (np.float16, np.float32)
    wide = run("layer_norm", x.astype(np.float32), weight, ndim=1, eps=1e-5)[0]
    close(out, wide.astype(np.float16))
