"""Attention and its gradient in tiles against the default body, which makes whole scores."""


import pytest

np = pytest.importorskip("numpy", reason="the reference is NumPy's")
pytest.importorskip("mortice_cpu_numpy.backend", reason="the reference is cpu_numpy")
extension = pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")

if not hasattr(extension, "partial_attention"):
    pytest.skip("a processor without AVX2 takes the default body", allow_module_level=True)

from products import Pair  # noqa: E402

# leading axes, queries, keys, their size, the values' size
SHAPES = [
    ((2, 3), 7, 9, 8, 8), ((), 5, 5, 3, 4), ((2,), 130, 1, 16, 16), ((4,), 300, 1100, 8, 4), ((1,), 1100, 300, 4, 16),
    ((2, 2), 256, 256, 16, 16), ((3,), 17, 33, 1, 1), ((1, 2), 513, 1030, 8, 8), ((2,), 0, 4, 3, 3), ((2,), 4, 0, 3, 3),
    ((0,), 4, 4, 3, 3),
]  # fmt: skip
WAYS = ["plain", "causal", "mask", "mask_each", "numbers", "keys", "rows", "dropped", "causal_dropped"]


@pytest.fixture(scope="module")
def pair(k):
    return Pair(k)


def operands(way, shape, dtype, moved=False):
    lead, length, keys, size, values = shape
    rng = np.random.default_rng(7)

    def draw(*last):
        x = rng.standard_normal((*lead, *last)).astype(dtype)
        # Heads that were moved in front of the positions, as layers do.
        return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) if moved and len(lead) == 2 else x

    query, key, value, g = draw(length, size), draw(keys, size), draw(keys, values), draw(length, values)
    mask = {
        "mask": lambda: rng.random((length, keys)) < 0.7,
        "mask_each": lambda: rng.random((*lead, length, keys)) < 0.7,
        "numbers": lambda: rng.standard_normal((*lead[-1:], length, keys)).astype(dtype),
        "keys": lambda: rng.random((keys,)) < 0.7,
        "rows": lambda: rng.standard_normal((length, 1)).astype(dtype),
    }.get(way, lambda: None)()
    keep = rng.random((*lead, length, keys)) < 0.75 if "dropped" in way else None
    attributes = {"causal": "causal" in way, "scale": 0.4 if way == "rows" else None, "dropout_p": 0.25 if keep is not None else 0.0}
    return (query, key, value, mask, keep), g, attributes


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients(pair, way, shape, dtype):
    given, g, attributes = operands(way, shape, dtype, moved=way in ("causal", "mask_each"))
    assert served("partial_attention", pair, *given, **attributes)
    out, lse = pair.agree("attention", *given, **attributes)
    assert served("partial_attention_grad", pair, g, *given, out, lse, needs_mask=False, **attributes)
    pair.agree("attention_grad", g, *given, out, lse, needs_mask=False, **attributes)


def served(kernel, pair, *arrays, **attributes):
    return getattr(extension, kernel)(*[pair.array(x) for x in arrays], **attributes) is not NotImplemented


def test_half_precision_adds_up_in_float(pair):
    given, g, attributes = operands("causal", ((2,), 50, 60, 8, 8), "float16")
    out, lse = pair.own.attention(*[pair.array(x) for x in given], **attributes)
    wide, wide_lse = pair.other.attention(*[None if x is None else x.astype("float32") for x in given], **attributes)
    np.testing.assert_allclose(pair.numpy(out), wide, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(pair.numpy(lse), wide_lse, rtol=1e-5, atol=1e-5)
    assert pair.numpy(out).dtype == np.float16 and pair.numpy(lse).dtype == np.float32


def test_a_query_that_sees_nothing_gets_zeros(pair):
    given, g, attributes = operands("mask", ((2,), 6, 5, 4, 4), "float32")
    mask = np.ones((6, 5), bool)
    mask[2] = False
    arrays = [pair.array(x) for x in (*given[:3], mask)]
    out, lse = pair.own.attention(*arrays, None, **attributes)
    assert (pair.numpy(out)[:, 2] == 0).all() and np.isneginf(pair.numpy(lse)[:, 2]).all()
    grads = pair.own.attention_grad(pair.array(g), *arrays, None, out, lse, needs_mask=False, **attributes)
    assert all(np.isfinite(pair.numpy(a)).all() for a in grads[:3])
    assert (pair.numpy(grads[0])[:, 2] == 0).all()


@pytest.mark.parametrize("scale", [0.0, -0.5, 1e-3, 30.0])
def test_any_scale(pair, scale):
    given, _, attributes = operands("causal", ((2,), 20, 30, 4, 4), "float32")
    pair.agree("attention", *given, **{**attributes, "scale": scale})


def test_leading_axes_broadcast(pair):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(s).astype("float32") for s in ((2, 3, 6, 4), (3, 5, 4), (1, 5, 4)))
    pair.agree("attention", q, k, v, causal=True)
    pair.agree("attention", q[:1, :1], k[:1], np.repeat(v, 4, 0), causal=False)


def test_nan_stays_in_its_row(pair):
    given, _, attributes = operands("plain", ((2,), 40, 600, 4, 4), "float32")
    given[0][0, 1] = np.nan
    out = pair.numpy(pair.own.attention(*[pair.array(x) for x in given], **attributes)[0])
    assert np.isnan(out[0, 1]).all() and np.isnan(out).sum() == 4


def test_the_number_of_threads_changes_nothing(pair):
    given, g, attributes = operands("causal", ((1,), 700, 1100, 16, 16), "float32")
    arrays = [pair.array(x) for x in given]
    found = []
    before = extension._get_num_threads()
    try:
        for threads in (1, 2, 5):
            extension._set_num_threads(threads)
            out, lse = pair.own.attention(*arrays, **attributes)
            grads = pair.own.attention_grad(pair.array(g), *arrays, out, lse, needs_mask=False, **attributes)
            found.append([pair.numpy(a) for a in (out, lse, *grads[:3])])
    finally:
        extension._set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)
