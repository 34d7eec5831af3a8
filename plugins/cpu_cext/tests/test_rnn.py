"""Recurrent layers against the bodies that cpu_numpy runs: values and gradients, packed sequences, both directions."""


import pytest

np = pytest.importorskip("numpy", reason="the reference is NumPy's")
cpu_numpy = pytest.importorskip("mortice_cpu_numpy.backend", reason="the reference is cpu_numpy")
extension = pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")
if not hasattr(extension, "partial_rnn_layer"):
    pytest.skip("a processor without AVX2 takes the default bodies", allow_module_level=True)

from products import Pair  # noqa: E402

SIZES = {"even": [5] * 7, "packed": [6, 6, 4, 3, 3, 1], "one": [1] * 4, "wide": [40] * 3, "ending": [3, 0]}


@pytest.fixture(scope="module")
def pair(k):
    return Pair(k)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def made(rng, dtype, *shapes):
    return [None if s is None else (rng.standard_normal(s) * 0.5).astype(dtype) for s in shapes]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("size", [3, 16, 33])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_rnn(pair, dtype, name, reverse, size, activation):
    sizes, rng = SIZES[name], np.random.default_rng(1)
    rows, batch = sum(sizes), sizes[0]
    x, h, wi, wh, b = made(rng, dtype, (rows, 4), (batch, size), (size, 4), (size, size), (size,))
    attributes = {"batch_sizes": sizes, "reverse": reverse, "activation": activation}
    out, _ = pair.agree("rnn_layer", x, h, wi, wh, b, **attributes)
    pair.agree("rnn_layer", x, h, wi, wh, **attributes)
    g, g_h = made(rng, dtype, (rows, size), (batch, size))
    pair.agree("rnn_layer_grad", g, g_h, wh, out, **attributes)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("size", [3, 16, 33])
@pytest.mark.parametrize("projected", [0, 5])
def test_lstm(pair, dtype, name, reverse, size, projected):
    sizes, rng = SIZES[name], np.random.default_rng(2)
    rows, batch, width = sum(sizes), sizes[0], projected or size
    x, h, c, wi, wh, b, fold = made(
        rng, dtype, (rows, 4), (batch, width), (batch, size), (4 * size, 4), (4 * size, width), (4 * size,),
        (width, size) if projected else None,
    )  # fmt: skip
    attributes = {"batch_sizes": sizes, "reverse": reverse}
    pair.agree("lstm_layer", x, h, c, wi, wh, None, fold, **attributes)
    out, _, _, cells, gates = pair.agree("lstm_layer", x, h, c, wi, wh, b, fold, **attributes)
    g, g_h, g_c = made(rng, dtype, (rows, width), (batch, width), (batch, size))
    pair.agree("lstm_layer_grad", g, g_h, g_c, x, h, c, wi, wh, b, fold, out, cells, gates, **attributes)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("size", [3, 16, 33])
@pytest.mark.parametrize("biased", [False, True])
def test_gru(pair, dtype, name, reverse, size, biased):
    sizes, rng = SIZES[name], np.random.default_rng(3)
    rows, batch = sum(sizes), sizes[0]
    x, h, wi, wh = made(rng, dtype, (rows, 4), (batch, size), (3 * size, 4), (3 * size, size))
    bi, bh = made(rng, dtype, (3 * size,), (3 * size,)) if biased else (None, None)
    attributes = {"batch_sizes": sizes, "reverse": reverse}
    out, _, gates = pair.agree("gru_layer", x, h, wi, wh, bi, bh, **attributes)
    g, g_h = made(rng, dtype, (rows, size), (batch, size))
    pair.agree("gru_layer_grad", g, g_h, x, h, wi, wh, bi, bh, out, gates, **attributes)


def test_inputs_are_not_modified(pair):
    rng = np.random.default_rng(4)
    operands = made(rng, "float32", (10, 4), (5, 8), (5, 8), (32, 4), (32, 8), (32,))
    arrays = [pair.array(x) for x in operands]
    pair.own.lstm_layer(*arrays, batch_sizes=[5, 5], reverse=False)
    for array, operand in zip(arrays, operands):
        np.testing.assert_array_equal(pair.numpy(array), operand)


def test_wrong_shapes_are_refused(pair):
    rng = np.random.default_rng(5)
    x, h, wi, wh = (pair.array(a) for a in made(rng, "float32", (10, 4), (5, 8), (24, 4), (24, 7)))
    with pytest.raises(ValueError, match="w_hh"):
        pair.own.gru_layer(x, h, wi, wh, batch_sizes=[5, 5])
    with pytest.raises(ValueError, match="batch_sizes"):
        pair.own.gru_layer(x, h, wi, wh, batch_sizes=[5, 6])
