"""Attention, transformers, grids, bags and the layers beside them: against formulas, identities and finite differences."""

from __future__ import annotations

import math

import pytest

import mortice as mt
from mortice import nn
from mortice.nn import functional as F

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


@pytest.fixture(autouse=True)
def seed():
    mt.manual_seed(0)


def close(a, b, atol=1e-10):
    mt.testing.assert_close(a, b, rtol=0, atol=atol, check_dtype=False)


def doubles(*shape):
    return mt.randn(*shape, dtype=mt.float64)


# ---- attention ----


@pytest.mark.parametrize("dtype", [mt.float64, mt.float16, mt.bfloat16])
def test_a_float32_mask_goes_with_every_query(dtype):
    q = mt.randn(1, 2, 3, 4).to(dtype).requires_grad_()
    # The lowest number is no -inf: a query whose keys all have it takes their mean.
    mask = mt.zeros(3, 3)
    mask[0], mask[1, 2] = mt.finfo(mt.float32).min, -mt.inf
    mask.requires_grad_()
    out = F.scaled_dot_product_attention(q, q, q, mask)
    scores = q.double() @ q.double().mT / 2 + mask.double()
    assert out.dtype is dtype
    close(out, mt.softmax(scores, -1) @ q.double(), 1e-7 if dtype is mt.float64 else 8 * mt.finfo(dtype).eps)
    close(out[..., 0, :], q.double().mean(-2), 1e-7 if dtype is mt.float64 else 8 * mt.finfo(dtype).eps)
    out.sum().backward()
    assert q.grad.dtype is dtype and mask.grad.dtype is mt.float32
    with pytest.raises(TypeError, match="to be bool or float or to match query dtype"):
        F.scaled_dot_product_attention(q, q, q, mask.to(mt.float16 if dtype is not mt.float16 else mt.float64))


def by_hand(layer, query, key, value):
    """Attention as its formula says, one head after the other; no masks, no batch."""
    width, size = layer.embed_dim, layer.head_dim
    w, b = layer.in_proj_weight, layer.in_proj_bias
    q, k, v = (
        x @ w[i * width : (i + 1) * width].T + b[i * width : (i + 1) * width] for i, x in enumerate((query, key, value))
    )
    heads, weights = [], []
    for h in range(layer.num_heads):
        part = slice(h * size, (h + 1) * size)
        p = mt.softmax(q[:, part] @ k[:, part].T / math.sqrt(size), -1)
        weights.append(p)
        heads.append(p @ v[:, part])
    return mt.cat(heads, -1) @ layer.out_proj.weight.T + layer.out_proj.bias, mt.stack(weights)


def test_multihead_attention_is_its_formula():
    layer = nn.MultiheadAttention(6, 3, dtype=mt.float64)
    nn.init.normal_(layer.in_proj_bias)
    q, k, v = doubles(4, 6), doubles(5, 6), doubles(5, 6)
    out, weights = layer(q, k, v, average_attn_weights=False)
    want, shares = by_hand(layer, q, k, v)
    close(out, want)
    close(weights, shares)
    close(layer(q, k, v)[1], shares.mean(0))
    close(layer(q, k, v, need_weights=False)[0], want)
    assert layer(q, k, v, need_weights=False)[1] is None


def test_batches_and_layouts_give_the_same():
    layer = nn.MultiheadAttention(4, 2, dtype=mt.float64)
    first = nn.MultiheadAttention(4, 2, batch_first=True, dtype=mt.float64)
    first.load_state_dict(layer.state_dict())
    x, memory = doubles(5, 3, 4), doubles(6, 3, 4)
    out, weights = layer(x, memory, memory)
    for n in range(3):
        alone, shares = layer(x[:, n], memory[:, n], memory[:, n])
        close(out[:, n], alone)
        close(weights[n], shares)
    swapped = memory.transpose(0, 1)
    close(first(x.transpose(0, 1), swapped, swapped)[0].transpose(0, 1), out)
    assert tuple(layer(x, memory, memory, average_attn_weights=False)[1].shape) == (3, 2, 5, 6)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("settings", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 5}])
def test_masked_keys_have_no_influence(settings, need_weights):
    layer = nn.MultiheadAttention(4, 2, dtype=mt.float64, **settings)
    q, k, v = doubles(3, 2, 4), doubles(5, 2, settings.get("kdim", 4)), doubles(5, 2, settings.get("vdim", 4))
    padding = mt.tensor([[False, False, False, True, True], [False, True, False, False, False]])
    out, weights = layer(q, k, v, key_padding_mask=padding, need_weights=need_weights)
    hidden = padding.T.unsqueeze(2)
    other = layer(q, mt.where(hidden, 100.0, k), mt.where(hidden, -7.0, v), key_padding_mask=padding)[0]
    close(out, other)
    added = mt.zeros(2, 5, dtype=mt.float64).masked_fill(padding, -math.inf)
    close(layer(q, k, v, key_padding_mask=added, need_weights=need_weights)[0], out)
    mask = padding.unsqueeze(1).expand(2, 3, 5).repeat_interleave(2, 0)
    close(layer(q, k, v, attn_mask=mask, need_weights=need_weights)[0], out)
    if need_weights:
        close(weights.sum(-1), mt.ones(2, 3))
        assert weights[..., :5][padding.unsqueeze(1).expand(2, 3, 5)].tolist() == [0.0] * 9


def test_causal_attention_sees_no_later_position():
    layer = nn.MultiheadAttention(4, 2, dtype=mt.float64)
    x = doubles(6, 1, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(6, dtype=mt.float64)
    assert mask[0].tolist() == [0.0] + [-math.inf] * 5
    full = layer(x, x, x, attn_mask=mask)[0]
    close(layer(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0], full)
    for n in range(1, 6):
        close(layer(x[:n], x[:n], x[:n], attn_mask=mask[:n, :n])[0], full[:n])
    extra = nn.MultiheadAttention(4, 2, add_bias_kv=True, dtype=mt.float64)
    close(
        extra(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0],
        extra(x, x, x, attn_mask=mask, is_causal=True)[0],
    )


def test_attention_gradients_agree_with_finite_differences():
    layer = nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, dtype=mt.float64)
    q, k = doubles(3, 2, 4).requires_grad_(), doubles(2, 2, 4).requires_grad_()
    mask = doubles(3, 2).requires_grad_()
    for weights in (False, True):
        f = lambda q, k, mask, weights=weights: layer(q, k, k, attn_mask=mask, need_weights=weights)[0]
        assert mt.autograd.gradcheck(f, (q, k, mask))


@pytest.mark.parametrize("batches", [((4, 1), (1, 1), (4, 2)), ((2,), (2,), (3, 1)), ((), (), (2, 3)), ((1, 2), (4, 1), (2,))])
def test_values_may_have_more_dims_than_queries_and_keys(batches):
    q, k, v = (doubles(*b, *s).requires_grad_() for b, s in zip(batches, ((3, 4), (5, 4), (5, 2))))
    assert mt.autograd.gradcheck(F.scaled_dot_product_attention, (q, k, v))
    close(F.scaled_dot_product_attention(q, k, v), mt.softmax(q @ k.mT / 2, -1) @ v)


def test_attention_dropout_acts_in_training_only():
    layer = nn.MultiheadAttention(4, 2, dropout=0.5)
    x = mt.randn(8, 2, 4)
    assert not mt.equal(layer(x, x, x)[0], layer(x, x, x)[0])
    layer.eval()
    assert mt.equal(layer(x, x, x)[0], layer(x, x, x)[0])


def _with_bias_and_static_keys(m, x):
    extra, static = mt.zeros(1, 1, 4), mt.zeros(4, 5, 2)
    return mt.nn.functional.multi_head_attention_forward(
        x, x, x, 4, 2, m.in_proj_weight, m.in_proj_bias, extra, extra, False, 0.0, m.out_proj.weight, m.out_proj.bias,
        static_k=static, static_v=static,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda m, x: m(x, x, x, is_causal=True), RuntimeError),
        (lambda m, x: m(x, x[0], x[0]), AssertionError),
        (lambda m, x: m(x, x[:2], x), AssertionError),
        (lambda m, x: m(x[..., :3], x, x), AssertionError),
        (lambda m, x: m(x, x, x, attn_mask=mt.zeros(x.shape[1])), AssertionError),
        (lambda m, x: m(x, x, x, attn_mask=mt.zeros(2, 2)), RuntimeError),
        (lambda m, x: m(x, x, x, attn_mask=mt.zeros(5, 3, 3)), RuntimeError),
        (lambda m, x: m(x[:, 0], x[:, 0], x[:, 0], attn_mask=mt.zeros(5, 3, 3)), AssertionError),
        (lambda m, x: m(x, x, x, attn_mask=mt.zeros(3, 3, dtype=mt.int64)), AssertionError),
        (lambda m, x: m(x, x, x, key_padding_mask=mt.zeros(2, 2)), AssertionError),
        (lambda m, x: m(x, x, x, key_padding_mask=mt.zeros(3)), AssertionError),
        (lambda m, x: _with_bias_and_static_keys(m, x), AssertionError),
        (lambda m, x: nn.MultiheadAttention(5, 2), AssertionError),
        (lambda m, x: nn.MultiheadAttention(0, 2), ValueError),
        (lambda m, x: nn.TransformerEncoderLayer(4, 2, activation="tanh"), RuntimeError),
    ],
)
def test_wrong_attention_is_refused(call, error):
    with pytest.raises(error):
        call(nn.MultiheadAttention(4, 2), mt.zeros(3, 2, 4))


def test_sdpa_kernel_is_accepted():
    from mortice.nn.attention import SDPBackend, sdpa_kernel

    x = mt.randn(1, 2, 3, 4)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        assert F.scaled_dot_product_attention(x, x, x).shape == x.shape
    for wrong in ("math", 3, None, [SDPBackend.MATH, 3]):
        words = "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        with pytest.raises(AssertionError, match=words), sdpa_kernel(wrong):
            pass


# ---- transformers ----


def test_encoder_layer_is_its_parts():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, dtype=mt.float64)
    x = doubles(5, 3, 4)
    middle = layer.norm1(x + layer.self_attn(x, x, x)[0])
    close(layer(x), layer.norm2(middle + layer.linear2(F.relu(layer.linear1(middle)))))
    before = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=F.gelu, norm_first=True, dtype=mt.float64)
    y = before.norm1(x)
    middle = x + before.self_attn(y, y, y)[0]
    close(before(x), middle + before.linear2(F.gelu(before.linear1(before.norm2(middle)))))


def test_encoder_recognises_causal_masks():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, dtype=mt.float64), 2)
    x = doubles(5, 3, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=mt.float64)
    seen = []
    encoder.layers[0].register_forward_pre_hook(lambda m, a, kw: seen.append(kw["is_causal"]), with_kwargs=True)
    results = [encoder(x, mask), encoder(x, mask < 0), encoder(x, mask, is_causal=False)]
    assert seen == [True, True, False]
    close(results[0], results[2])
    close(results[1], results[2])
    encoder(x, mt.zeros(5, 5, dtype=mt.float64))
    encoder(x)
    assert seen[3:] == [False, False]


def test_decoding_step_by_step_gives_the_whole():
    model = nn.Transformer(
        8, 2, num_encoder_layers=1, num_decoder_layers=2, dim_feedforward=8, dropout=0.0, batch_first=True,
        dtype=mt.float64,
    )  # fmt: skip
    source, target = doubles(2, 4, 8), doubles(2, 5, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=mt.float64)
    whole = model(source, target, tgt_mask=mask)
    assert tuple(whole.shape) == (2, 5, 8)
    for n in range(1, 5):
        close(model(source, target[:, :n], tgt_mask=mask[:n, :n]), whole[:, :n])
    with pytest.raises(RuntimeError, match="batch number"):
        model(source[:1], target)
    with pytest.raises(RuntimeError, match="d_model"):
        model(source[..., :4], target)


def test_transformer_takes_other_encoders():
    class Double(nn.Module):
        def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
            return src * 2

    model = nn.Transformer(4, 2, num_decoder_layers=1, dim_feedforward=4, dropout=0.0, custom_encoder=Double())
    source, target = mt.randn(3, 4), mt.randn(2, 4)
    close(model(source, target), model.decoder(target, source * 2), atol=1e-6)
    assert not any(name.startswith("encoder.") for name in model.state_dict())


# ---- grids ----


@pytest.mark.parametrize("align", [False, True])
def test_bicubic_points_far_outside_read_the_border_or_the_reflection(align):
    image = mt.tensor([[[[1.0, 2, 3, 4, 5]]]])
    sample = lambda padding, *x: F.grid_sample(
        image, mt.tensor([[[[x, 0.0] for x in x]]]), "bicubic", padding, align
    ).flatten().tolist()
    assert sample("border", -3000.0, -9.0, 9.0, 3000.0) == pytest.approx([1, 1, 5, 5])
    near, far = sample("reflection", 0.3, -0.7), sample("reflection", 8.3, -8.7)  # two whole turns further
    assert far == pytest.approx(near, abs=1e-4)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
def test_the_identity_grid_gives_the_image(mode, padding, align):
    image = doubles(2, 3, 4, 5)
    theta = mt.eye(2, 3, dtype=mt.float64).expand(2, 2, 3)
    close(F.grid_sample(image, F.affine_grid(theta, image.shape, align), mode, padding, align), image)


def test_affine_maps_turn_and_flip_images():
    image = doubles(1, 2, 3, 3)
    turn = mt.tensor([[[0.0, 1, 0], [-1, 0, 0]]], dtype=mt.float64)
    turned = F.grid_sample(image, F.affine_grid(turn, image.shape, False), align_corners=False)
    close(turned, mt.rot90(image, -1, (2, 3)))
    volume = doubles(1, 1, 2, 3, 4)
    flip = mt.tensor([[[-1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0]]], dtype=mt.float64)
    flipped = F.grid_sample(volume, F.affine_grid(flip, volume.shape, True), align_corners=True)
    close(flipped, volume.flip(4).flip(2))


def test_points_outside_follow_the_padding():
    image = mt.tensor([[[[1.0, 2, 3, 4]]]])
    grid = mt.tensor([[[[-1.4, 0.0], [1.4, 0.0], [math.inf, 0.0]]]])
    sample = lambda padding: F.grid_sample(image, grid, "nearest", padding, False).flatten().tolist()
    assert sample("zeros") == [0, 0, 0]
    assert sample("border")[:2] == [1, 4]
    assert sample("reflection")[:2] == [1, 4]
    half = F.grid_sample(image, mt.tensor([[[[-1.0, 0.0]]]]), align_corners=False)
    assert half.item() == 0.5  # half of the pixel lies outside
    nowhere = mt.full((1, 1, 1, 2), math.nan)  # what is not a number is not taken for zeros outside, as in PyTorch
    assert F.grid_sample(image, nowhere, align_corners=False).isnan().all()
    assert F.grid_sample(image, nowhere, padding_mode="border", align_corners=False).item() == image[0, 0, 0, 0].item()


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
def test_grid_sample_gradients_agree_with_finite_differences(mode, padding, align):
    image = doubles(1, 2, 3, 4).requires_grad_()
    grid = (mt.rand(1, 2, 3, 2, dtype=mt.float64) * 2.6 - 1.3).requires_grad_()
    f = lambda x, p: F.grid_sample(x, p, mode, padding, align)
    assert mt.autograd.gradcheck(f, (image, grid))
    assert mt.autograd.gradgradcheck(f, (image, grid))


def test_volume_gradients_agree_with_finite_differences():
    volume = doubles(1, 1, 2, 3, 2).requires_grad_()
    grid = (mt.rand(1, 1, 2, 2, 3, dtype=mt.float64) * 2.4 - 1.2).requires_grad_()
    assert mt.autograd.gradcheck(lambda x, p: F.grid_sample(x, p, "bilinear", "border", False), (volume, grid))
    theta = doubles(2, 2, 3).requires_grad_()
    assert mt.autograd.gradcheck(lambda t: F.affine_grid(t, (2, 1, 2, 3), False), (theta,))


def test_a_grid_sampler_has_its_modes_by_number():
    image, points = mt.arange(16.0).reshape(1, 1, 4, 4), mt.tensor([[[[-0.9, 0.3], [1.4, -0.2]]]])
    for i, mode in enumerate(MODES):
        for j, padding in enumerate(("zeros", "border", "reflection")):
            assert mt.equal(mt.grid_sampler(image, points, i, j, True), F.grid_sample(image, points, mode, padding, True))
    with pytest.raises(ValueError, match="shape Nx2x3 for size"):
        F.affine_grid(mt.ones(3, 2, 3), (1, 1, 2, 2), False)


def test_unsaid_corners_warn():
    with pytest.warns(UserWarning, match="align_corners"):
        F.affine_grid(mt.zeros(1, 2, 3), (1, 1, 2, 2))
    with pytest.warns(UserWarning, match="align_corners"):
        F.grid_sample(mt.zeros(1, 1, 2, 2), mt.zeros(1, 1, 1, 2))
    with pytest.warns(UserWarning, match="Since version 1.3.0, affine_grid"):
        F.affine_grid(mt.zeros(1, 2, 3), (1, 1, 2, 1), align_corners=True)


# ---- bags ----

TABLE = [[1.0, 5.0], [2.0, -1.0], [4.0, 0.0], [-3.0, 2.0]]
BAGS = [[0, 2], [], [3, 1, 3]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1, -1])
def test_bags_are_what_loops_make_of_them(mode, padding):
    table = mt.tensor(TABLE)
    indices = mt.tensor([i for bag in BAGS for i in bag])
    got = F.embedding_bag(indices, table, mt.tensor([0, 2, 2]), mode=mode, padding_idx=padding)
    skip = None if padding is None else padding % 4
    for row, bag in zip(got.tolist(), BAGS):
        rows = [TABLE[i] for i in bag if i != skip]
        reduce = {"sum": sum, "mean": lambda c: sum(c) / len(c), "max": max}[mode]
        assert row == pytest.approx([reduce(c) for c in zip(*rows)] if rows else [0, 0])
    last = F.embedding_bag(indices, table, mt.tensor([0, 2, 2, 5]), mode=mode, padding_idx=padding, include_last_offset=True)
    assert mt.equal(last, got)
    if padding is not None:  # the last bag goes on to the end, as in PyTorch
        short = F.embedding_bag(indices, table, mt.tensor([0, 2, 2, 3]), mode=mode, padding_idx=padding, include_last_offset=True)
        assert mt.equal(short, got)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_rows_of_a_matrix_are_bags(mode):
    table, indices = doubles(5, 3).requires_grad_(), mt.tensor([[0, 1, 4], [2, 2, 3]])
    rows = F.embedding(indices, table)
    want = {"sum": rows.sum(1), "mean": rows.mean(1), "max": rows.amax(1)}[mode]
    close(F.embedding_bag(indices, table, mode=mode), want)
    assert mt.autograd.gradcheck(lambda t: F.embedding_bag(indices, t, mode=mode), (table,))


def test_samples_weigh_in_a_bag():
    table, weights = doubles(4, 2).requires_grad_(), doubles(5).requires_grad_()
    indices, offsets = mt.tensor([3, 0, 1, 1, 2]), mt.tensor([0, 3])
    f = lambda t, w: F.embedding_bag(indices, t, offsets, mode="sum", per_sample_weights=w)
    close(f(table, weights)[1], weights[3] * table[1] + weights[4] * table[2])
    assert mt.autograd.gradcheck(f, (table, weights))


def test_embedding_bag_shortens_long_rows():
    layer = nn.EmbeddingBag(3, 2, max_norm=1.0, mode="sum", _weight=mt.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]]))
    close(layer(mt.tensor([[0, 1]])), mt.tensor([[0.9, 1.2]]), atol=1e-5)
    close(layer.weight[2], mt.tensor([6.0, 8.0]))


def test_embedding_bag_starts_and_loads():
    layer = nn.EmbeddingBag(4, 3, padding_idx=-1)
    assert layer.padding_idx == 3 and layer.weight[3].tolist() == [0, 0, 0]
    frozen = nn.EmbeddingBag.from_pretrained(mt.tensor(TABLE), mode="max", padding_idx=0)
    assert not frozen.weight.requires_grad
    assert repr(frozen) == "EmbeddingBag(4, 2, mode='max', padding_idx=0)"
    assert frozen(mt.tensor([[0, 1, 2]])).tolist() == [[4.0, 0.0]]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"offsets": None}, ValueError),
        ({"offsets": [1, 2]}, RuntimeError),
        ({"offsets": [0, 9]}, RuntimeError),
        ({"offsets": [0, 2, 1]}, RuntimeError),
        ({"mode": "median"}, ValueError),
        ({"mode": "mean", "per_sample_weights": mt.ones(3)}, NotImplementedError),
        ({"per_sample_weights": mt.ones(2)}, ValueError),
        ({"padding_idx": 4}, RuntimeError),
        ({"mode": "max", "scale_grad_by_freq": True}, ValueError),
    ],
)
def test_wrong_bags_are_refused(settings, error):
    settings = {"offsets": [0, 1], "mode": "sum", **settings}
    if settings["offsets"] is not None:
        settings["offsets"] = mt.tensor(settings["offsets"])
    with pytest.raises(error):
        F.embedding_bag(mt.tensor([0, 1, 2]), mt.tensor(TABLE), **settings)


# ---- fractional pooling ----


@pytest.mark.parametrize("nd", [2, 3])
def test_fractional_pooling_takes_maxima_of_its_windows(nd):
    pool = getattr(F, f"fractional_max_pool{nd}d")
    x = doubles(2, 3, *(7, 6, 5)[:nd]).requires_grad_()
    count, kernel = (3, 4, 2)[:nd], (3, 2, 2)[:nd]
    out, places = pool(x, kernel, output_size=count, return_indices=True)
    flat = x.flatten(2)
    close(out.flatten(2), flat.gather(2, places.flatten(2)))
    last = x[(..., *(slice(n - k, n) for n, k in zip(x.shape[2:], kernel)))].flatten(2).amax(2)
    close(out[(..., *([-1] * nd))], last)
    out.sum().backward()
    assert x.grad.sum().item() == out.numel() and int((x.grad != 0).sum()) <= out.numel()
    mt.manual_seed(3)
    first = pool(x, kernel, output_ratio=0.5 if nd == 1 else (0.5,) * nd)
    mt.manual_seed(3)
    assert mt.equal(first, pool(x, kernel, output_ratio=(0.5,) * nd))
    one = pool(x, tuple(x.shape[2:]), output_size=(1,) * nd)
    close(one.flatten(), x.flatten(2).amax(2).flatten())


def test_fractional_pooling_layer():
    samples = mt.rand(2, 3, 2)
    layer = nn.FractionalMaxPool2d(2, output_size=3, return_indices=True, _random_samples=samples)
    x = mt.randn(2, 3, 6, 6)
    out, places = layer(x)
    assert mt.equal(out, F.fractional_max_pool2d(x, 2, 3, _random_samples=samples)) and places.shape == out.shape
    for settings in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        with pytest.raises(ValueError):
            nn.FractionalMaxPool2d(2, **settings)
    with pytest.raises(RuntimeError, match="too large relative to input height"):
        F.fractional_max_pool2d(x, 2, output_size=6)


# ---- losses with layers, the rest ----


def test_adaptive_softmax_is_a_distribution():
    loss = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6, 10], div_value=2.0, head_bias=True, dtype=mt.float64)
    x, target = doubles(20, 8), mt.randint(0, 12, (20,))
    logp = loss.log_prob(x)
    close(logp.exp().sum(1), mt.ones(20))
    out = loss(x, target)
    close(out.output, logp.gather(1, target.unsqueeze(1)).squeeze(1))
    close(out.loss, -out.output.mean())
    assert loss.predict(x).tolist() == logp.argmax(1).tolist()
    close(loss(x[0], target[0]).output, out.output[0])
    x.requires_grad_()
    assert mt.autograd.gradcheck(lambda x: loss(x, target).loss, (x,))
    with pytest.raises(RuntimeError, match="Target values"):
        loss(x, target + 12)
    with pytest.raises(ValueError, match="cutoffs"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 12, [6, 3])


def test_linear_cross_entropy_is_both():
    x, w, b = doubles(4, 3), doubles(5, 2, 3), doubles(5, 2)
    target = mt.randint(0, 5, (4, 2))
    logits = mt.einsum("ni,cdi->ncd", x, w) + b
    close(F.linear_cross_entropy(x, w, target, linear_bias=b), F.cross_entropy(logits, target))
    loss = nn.LinearCrossEntropyLoss(3, 5, out_features=(2,), options=nn.LinearCrossEntropyOptions(), dtype=mt.float64)
    assert list(loss.state_dict()) == ["linear.weight"] and loss(x, target).ndim == 0
    with pytest.raises(RuntimeError, match="ignore_index"):
        F.linear_cross_entropy(x, w[:, 0], mt.ones(4, 5), ignore_index=1)
    with pytest.raises(RuntimeError, match=r"expected weight shape to be \(5,\), got \(3,\)"):
        nn.LinearCrossEntropyLoss(3, 5, weight=mt.ones(3))
    with pytest.raises(RuntimeError, match=r"expected label_smoothing to be in range \[0, 1\], got 2.0"):
        nn.LinearCrossEntropyLoss(3, 5, label_smoothing=2.0)


@pytest.mark.parametrize("nd", [1, 2, 3])
def test_convolution_gradients_as_functions(nd):
    x, w = doubles(2, 4, *(6, 5, 4)[:nd]).requires_grad_(), doubles(6, 2, *[2] * nd).requires_grad_()
    settings = {"stride": 2, "padding": 1, "groups": 2}
    out = getattr(F, f"conv{nd}d")(x, w, **settings)
    g = mt.randn_like(out)
    out.backward(g)
    with mt.no_grad():
        close(getattr(nn.grad, f"conv{nd}d_input")(x.shape, w, g, **settings), x.grad)
        close(getattr(nn.grad, f"conv{nd}d_weight")(x, w.shape, g, **settings), w.grad)


def test_conv_tbc_is_a_convolution_along_time():
    x, w, b = doubles(6, 2, 3), doubles(3, 3, 4), doubles(4)
    close(F.conv_tbc(x, w, b, 1)[2, 0], sum(x[1 + t, 0] @ w[t] for t in range(3)) + b)


def test_grouped_products():
    a, b, ends = doubles(6, 4), doubles(2, 4, 3), mt.tensor([2, 5])
    close(F.grouped_mm(a, b, offs=ends), mt.cat([a[:2] @ b[0], a[2:5] @ b[1], mt.zeros(1, 3, dtype=mt.float64)]))
    rows = doubles(5, 3)
    close(F.grouped_mm(a[:5].T, rows, offs=ends), mt.stack([a[:2].T @ rows[:2], a[2:5].T @ rows[2:]]))
    close(F.grouped_mm(b.transpose(1, 2), a.T, offs=ends)[:, :5], mt.cat([b[0].T @ a[:2].T, b[1].T @ a[2:5].T], 1))
    close(F.grouped_mm(b, b.transpose(1, 2)), b @ b.transpose(1, 2))
    close(mt._grouped_mm(a, b, ends), F.grouped_mm(a, b, offs=ends))  # libraries call it
    with pytest.raises(RuntimeError, match="offs"):
        F.grouped_mm(a, b)


def test_sync_batchnorm_takes_over_the_state():
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.Sequential(nn.BatchNorm2d(3)))
    x = mt.randn(4, 2, 3, 3)
    model(x)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.eval()
    want = model(x)
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert isinstance(converted[1][0], nn.SyncBatchNorm) and not converted[1][0].training
    assert all(mt.equal(value, state[name]) for name, value in converted.state_dict().items())
    assert mt.equal(converted(x), want)


@pytest.mark.parametrize("keys", [4, 6])
def test_attention_joins_a_mask_and_causality(keys):
    q, k, v = doubles(2, 3, 5, 8).requires_grad_(), doubles(2, 3, keys, 8), doubles(2, 3, keys, 8)
    below = mt.ones(5, keys).tril().bool()
    seen, added = mt.rand(5, keys) > 0.3, doubles(5, keys)
    for mask, both in ((seen, seen & below), (added, added.masked_fill(~below, -math.inf))):
        out = F.scaled_dot_product_attention(q, k, v, mask, is_causal=True)
        want = F.scaled_dot_product_attention(q, k, v, both)
        close(out, want)
        close(*(mt.autograd.grad(y.square().sum(), q)[0] for y in (out, want)))
    for x, options, lead in ((q[0], {}, ()), (q, {"dropout_p": 0.1}, ()), (q, {}, (3,))):
        with pytest.raises(RuntimeError, match="attn_mask should not be set when is_causal"):
            F.scaled_dot_product_attention(x, x, x, mt.ones(*lead, 5, 5).bool(), is_causal=True, **options)
