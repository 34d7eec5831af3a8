"""Every class of torch.nn beside PyTorch's: repr, state_dict, then outputs, gradients and buffers, in training and in eval.

A class is in `CASES` or `LOSSES`, or in `ELSEWHERE` with the reason why not; the last test says so of all of them.
"""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest

import mortice
from mortice import nn

torch = pytest.importorskip("torch", reason="PyTorch is not installed: no layer is compared with it")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# ---- inputs: a shape stands for normal numbers, a function draws others ----


def above(low, *shape):
    """Numbers away from zero and positive."""
    return lambda rng: np.abs(rng.normal(size=shape)) + low


def below(high, *shape):
    """Integers in [0, high)."""
    return lambda rng: rng.integers(0, high, size=shape)


def fixed(values):
    return lambda rng: np.array(values)


def sign(*shape):
    """-1 and 1, as integers: no gradient is asked for."""
    return lambda rng: np.sign(rng.normal(size=shape)).astype(np.int64)


def bits(*shape):
    return lambda rng: (rng.random(shape) > 0.5).astype(float)


def shares(*shape):
    """Rows of probabilities."""
    return lambda rng: (lambda x: x / x.sum(1, keepdims=True))(rng.random(shape) + 0.05)


def logs(*shape):
    """Rows of log-probabilities."""
    return lambda rng: np.log(shares(*shape)(rng))


def maxima(nd, *shape):
    """Values and positions, as max pooling by 2 returns them."""

    def draw(rng):
        pool = getattr(torch.nn.functional, f"max_pool{nd}d")
        return [t.numpy() for t in pool(torch.from_numpy(rng.normal(size=shape)), 2, return_indices=True)]

    return [lambda rng: draw(np.random.default_rng(5))[0], lambda rng: draw(np.random.default_rng(5))[1]]


class Built:
    """A module made of others: `make(nn)` makes it on either side."""

    def __init__(self, name, make):
        self.name, self.make = name, make

    def __repr__(self):
        return self.name


def layer(name, *args, **settings):
    """How to make a module with those arguments; an array among them becomes a tensor of the side."""

    def make(side):
        tensor = torch.from_numpy if side is torch.nn else mortice.tensor
        given = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in settings.items()}
        return getattr(side, name)(*args, **given)

    said = ", ".join([*map(repr, args), *(f"{k}={'...' if isinstance(v, np.ndarray) else v!r}" for k, v in settings.items())])
    return Built(f"{name}({said})", make)


def built(name, make):
    return Built(name, make)


_SAMPLES = np.random.default_rng(3).random((2, 3, 3))
_WEIGHTS = np.random.default_rng(4).random(4)
_BAGS = [below(7, 9), fixed([0, 3, 3, 7])]
_CAUSAL = fixed(np.triu(np.full((5, 5), -np.inf), 1))

CASES = [
    # ---- linear ----
    (layer("Linear", 3, 4), (2, 3)),
    (layer("Linear", 3, 4, bias=False), (2, 5, 3)),
    (layer("Linear", 3, 4), (3,)),
    (layer("LazyLinear", 4), (2, 3)),
    (layer("Bilinear", 3, 4, 5), (2, 3), (2, 4)),
    (layer("Identity", 1, 2), (2, 3)),
    # ---- convolution ----
    (layer("Conv1d", 4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9)),
    (layer("Conv2d", 2, 4, 3, padding="same", dilation=2), (2, 2, 7, 6)),
    (layer("Conv2d", 2, 4, (2, 3), padding="same"), (2, 2, 7, 6)),
    (layer("Conv2d", 2, 4, 3, padding=(1, 2), padding_mode="reflect", bias=False), (2, 2, 7, 6)),
    (layer("Conv2d", 2, 4, 3, padding=1, padding_mode="circular"), (2, 7, 6)),
    (layer("Conv2d", 2, 4, 3, padding="same", padding_mode="replicate"), (1, 2, 7, 6)),
    (layer("Conv3d", 2, 4, 2, stride=(1, 2, 1)), (1, 2, 4, 5, 4)),
    (layer("ConvTranspose1d", 4, 6, 3, stride=2, output_padding=1), (2, 4, 5)),
    (layer("ConvTranspose2d", 4, 6, 3, 2, 1, 1, 2, True, 2), (2, 4, 5, 4)),
    (layer("ConvTranspose3d", 2, 3, 2, stride=2, bias=False), (1, 2, 3, 2, 3)),
    (layer("LazyConv1d", 4, 3), (2, 3, 7)),
    (layer("LazyConv2d", 4, 3, padding=1, groups=2), (2, 2, 5, 6)),
    (layer("LazyConv3d", 2, 2, bias=False), (1, 2, 3, 4, 3)),
    (layer("LazyConvTranspose1d", 4, 3), (2, 3, 5)),
    (layer("LazyConvTranspose2d", 4, 3, stride=2), (2, 3, 4, 3)),
    (layer("LazyConvTranspose3d", 2, 2), (1, 2, 3, 2, 3)),
    # ---- normalisation ----
    (layer("BatchNorm1d", 4), (5, 4)),
    (layer("BatchNorm1d", 4, momentum=None), (5, 4, 3)),
    (layer("BatchNorm2d", 4, affine=False), (3, 4, 2, 3)),
    (layer("BatchNorm2d", 4, track_running_stats=False), (3, 4, 2, 3)),
    (layer("BatchNorm3d", 2, eps=1e-2, momentum=0.3), (3, 2, 2, 3, 2)),
    (layer("SyncBatchNorm", 4), (5, 4, 3)),
    (layer("InstanceNorm1d", 4), (3, 4, 5)),
    (layer("InstanceNorm2d", 4, affine=True, track_running_stats=True), (3, 4, 2, 3)),
    (layer("InstanceNorm2d", 4, affine=True), (4, 2, 3)),
    (layer("InstanceNorm3d", 2), (3, 2, 2, 3, 2)),
    (layer("LazyBatchNorm1d"), (5, 4)),
    (layer("LazyBatchNorm2d", momentum=0.2), (5, 4, 2, 3)),
    (layer("LazyBatchNorm3d"), (3, 2, 2, 3, 2)),
    (layer("LazyInstanceNorm1d", affine=True), (3, 4, 5)),
    (layer("LazyInstanceNorm2d", affine=True, track_running_stats=True), (3, 4, 2, 3)),
    (layer("LazyInstanceNorm3d", affine=True), (3, 2, 2, 3, 2)),
    (layer("LayerNorm", 5), (3, 5)),
    (layer("LayerNorm", (2, 5), bias=False), (3, 2, 5)),
    (layer("LayerNorm", 5, elementwise_affine=False, eps=1e-3), (3, 2, 5)),
    (layer("RMSNorm", 5), (3, 5)),
    (layer("RMSNorm", (2, 5), eps=1e-3, elementwise_affine=False), (3, 2, 5)),
    (layer("GroupNorm", 2, 4), (3, 4, 5)),
    (layer("GroupNorm", 2, 4, affine=False), (3, 4, 5)),
    (layer("LocalResponseNorm", 3), (2, 5, 3, 3)),
    # ---- pooling ----
    (layer("MaxPool1d", 3, stride=2, padding=1, ceil_mode=True), (2, 3, 8)),
    (layer("MaxPool2d", 2), (2, 3, 8, 7)),
    (layer("MaxPool2d", (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), (2, 3, 8, 7)),
    (layer("MaxPool3d", 2, stride=1, return_indices=True), (2, 4, 3, 4)),
    (layer("MaxUnpool1d", 2), *maxima(1, 2, 3, 8)),
    (layer("MaxUnpool2d", 2), *maxima(2, 2, 3, 4, 6)),
    (layer("MaxUnpool3d", 2), *maxima(3, 2, 3, 4, 2, 4)),
    (layer("AvgPool1d", 3, stride=2, padding=1, count_include_pad=False), (2, 3, 8)),
    (layer("AvgPool2d", 3, stride=2, ceil_mode=True, divisor_override=2), (2, 3, 8, 7)),
    (layer("AvgPool3d", 2), (2, 4, 4, 4)),
    (layer("LPPool1d", 2, 3, stride=2), (2, 3, 8)),
    (layer("LPPool2d", 1.5, 2), above(0.1, 1, 2, 4, 4)),
    (layer("LPPool3d", 2, 2), (1, 2, 4, 4, 2)),
    (layer("AdaptiveAvgPool1d", 3), (2, 3, 8)),
    (layer("AdaptiveAvgPool2d", (3, None)), (2, 3, 8, 5)),
    (layer("AdaptiveAvgPool3d", 1), (2, 3, 4, 5)),
    (layer("AdaptiveMaxPool1d", 3), (2, 3, 8)),
    (layer("AdaptiveMaxPool2d", (3, 2), return_indices=True), (2, 3, 8, 5)),
    (layer("AdaptiveMaxPool3d", 2), (2, 3, 4, 5)),
    (layer("FractionalMaxPool2d", 2, output_size=(3, 4), return_indices=True, _random_samples=_SAMPLES[..., :2].copy()), (2, 3, 7, 9)),
    (layer("FractionalMaxPool3d", (2, 1, 2), output_ratio=0.5, _random_samples=_SAMPLES), (2, 3, 6, 7, 8)),
    # ---- activations ----
    *[(layer(name), (3, 5)) for name in (
        "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "SiLU", "Mish", "GELU", "Sigmoid", "Tanh", "Hardtanh",
        "Hardswish", "Hardsigmoid", "Hardshrink", "Softshrink", "Softplus", "Softsign", "Tanhshrink", "LogSigmoid",
    )],
    (layer("LeakyReLU", 0.2, inplace=False), (3, 5)),
    (layer("ELU", 0.5), (3, 5)),
    (layer("CELU", 2.0), (3, 5)),
    (layer("Hardtanh", -0.5, 0.7), (3, 5)),
    (layer("Hardshrink", 0.3), (3, 5)),
    (layer("Softshrink", 0.3), (3, 5)),
    (layer("Softplus", 2.0, 1.0), (3, 5)),
    (layer("GELU", "tanh"), (3, 5)),
    (layer("RReLU", 0.25, 0.25), (3, 5)),
    (layer("GLU", 1), (3, 4)),
    (layer("PReLU", 4), (2, 4, 3)),
    (layer("PReLU", init=0.1), (2, 3)),
    (layer("Threshold", 0.1, 20), (3, 5)),
    (layer("Softmax", 1), (3, 5)),
    (layer("LogSoftmax", 0), (3, 5)),
    (layer("Softmin", -1), (3, 5)),
    (layer("Softmax2d"), (2, 3, 2, 2)),
    # ---- dropout: with p=0 and p=1 nothing is left to chance ----
    *[(layer(name, 0.0), shape) for name, shape in (
        ("Dropout", (3, 5)), ("Dropout1d", (3, 5, 2)), ("Dropout2d", (3, 5, 2, 2)), ("Dropout3d", (3, 5, 2, 1, 2)),
        ("AlphaDropout", (3, 5)), ("FeatureAlphaDropout", (3, 5, 2)),
    )],
    (layer("Dropout", 1.0), (3, 5)),
    (layer("Dropout2d", 1.0, inplace=False), (3, 5, 2, 2)),
    # ---- shaping ----
    (layer("Flatten"), (2, 3, 4)),
    (layer("Flatten", 0, 1), (2, 3, 4)),
    (layer("Unflatten", 1, (2, 3)), (2, 6, 4)),
    (layer("Unfold", (2, 3), padding=1, stride=2), (2, 3, 5, 6)),
    (layer("Fold", (4, 5), 2), (2, 12, 12)),
    (layer("PixelShuffle", 2), (2, 8, 3, 2)),
    (layer("PixelUnshuffle", 2), (2, 2, 4, 6)),
    (layer("ChannelShuffle", 2), (2, 4, 3, 3)),
    *[(layer(f"{mode}Pad{nd}d", 1 if nd > 1 else (2, 1), *value), (1, 2, 4, 3, 5)[: nd + 2])
      for mode, value in (("Zero", ()), ("Constant", (3.5,)), ("Reflection", ()), ("Replication", ()), ("Circular", ()))
      for nd in (1, 2, 3)],
    (layer("ZeroPad2d", (1, 2, 0, -1)), (1, 2, 4, 4)),
    (layer("CosineSimilarity"), (3, 5), (3, 5)),
    (layer("PairwiseDistance", keepdim=True), (3, 5), (3, 5)),
    (layer("Upsample", scale_factor=2, mode="nearest"), (1, 2, 3, 3)),
    (layer("Upsample", 16, mode="bilinear"), (1, 2, 3, 3)),
    (layer("Upsample", scale_factor=1.5, mode="bicubic", align_corners=True), (1, 2, 4, 4)),
    (layer("Upsample", scale_factor=(2.0, 1.0, 3.0), mode="trilinear"), (1, 2, 3, 3, 2)),
    (layer("UpsamplingBilinear2d", scale_factor=2), (1, 2, 3, 3)),
    (layer("UpsamplingNearest2d", size=(5, 4)), (1, 2, 3, 3)),
    # ---- tables ----
    (layer("Embedding", 7, 3), below(7, 4, 2)),
    (layer("Embedding", 7, 3, padding_idx=-2, scale_grad_by_freq=True), below(7, 20)),
    (layer("Embedding", 7, 3, max_norm=1.0, norm_type=1.5), below(7, 4)),
    (layer("EmbeddingBag", 7, 3), *_BAGS),
    (layer("EmbeddingBag", 7, 3, mode="sum", padding_idx=2), below(7, 4, 5)),
    (layer("EmbeddingBag", 7, 3, mode="max", include_last_offset=True, max_norm=2.0), below(7, 7), fixed([0, 3, 3, 7])),
    (layer("EmbeddingBag", 7, 3, mode="sum"), *_BAGS, (9,)),
    # ---- attention ----
    (layer("MultiheadAttention", 4, 2), (5, 3, 4), (6, 3, 4), (6, 3, 4)),
    (layer("MultiheadAttention", 4, 2, bias=False, batch_first=True), (3, 5, 4), (3, 6, 4), (3, 6, 4)),
    (layer("MultiheadAttention", 4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5), (5, 4), (6, 3), (6, 5)),
    (layer("TransformerEncoderLayer", 4, 2, 6, 0.0), (5, 3, 4)),
    (layer("TransformerEncoderLayer", 4, 2, 6, 0.0, "gelu", 1e-3, True, True, False), (3, 5, 4)),
    (layer("TransformerDecoderLayer", 4, 2, 6, 0.0), (5, 3, 4), (6, 3, 4)),
    (layer("TransformerDecoderLayer", 4, 2, 6, 0.0, "gelu", 1e-3, True, True, False), (3, 5, 4), (3, 6, 4)),
    (built("TransformerEncoder", lambda m: m.TransformerEncoder(
        m.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True), 2, m.LayerNorm(4))), (3, 5, 4), _CAUSAL),
    (built("TransformerDecoder", lambda m: m.TransformerDecoder(
        m.TransformerDecoderLayer(4, 2, 6, 0.0, norm_first=True), 2)), (5, 3, 4), (6, 3, 4), _CAUSAL),
    (layer("Transformer", 4, 2, 1, 2, 6, 0.0), (5, 3, 4), (6, 3, 4)),
    # ---- recurrence ----
    *[(layer(name, 3, 4, 2, batch_first=True, bidirectional=True), (2, 5, 3)) for name in ("RNN", "LSTM", "GRU")],
    (layer("RNN", 3, 4, nonlinearity="relu", bias=False), (5, 2, 3), (1, 2, 4)),
    (layer("LSTM", 3, 4, proj_size=2), (5, 2, 3)),
    (layer("GRU", 3, 4), (5, 3)),
    *[(layer(name, 3, 4), (2, 3)) for name in ("RNNCell", "LSTMCell", "GRUCell")],
    (layer("GRUCell", 3, 4, bias=False), (2, 3), (2, 4)),
    # ---- containers ----
    (built("Sequential", lambda m: m.Sequential(m.Linear(3, 4), m.ReLU(), m.Linear(4, 2))), (2, 3)),
    (built("ModuleList", lambda m: m.ModuleList([m.Linear(3, 4), m.Linear(3, 4), m.ReLU()])),),
    (built("ModuleDict", lambda m: m.ModuleDict({"a": m.Linear(3, 4), "b": m.Conv1d(1, 2, 3)})),),
    (layer("AdaptiveLogSoftmaxWithLoss", 8, 12, [3, 6], 2.0, head_bias=True), (6, 8), below(12, 6)),
    (layer("LinearCrossEntropyLoss", 4, 3, bias=True), (5, 4), below(3, 5)),
    (layer("LinearCrossEntropyLoss", 4, 3, out_features=(2,), reduction="sum", weight=_WEIGHTS[:3].copy()), (5, 4), below(3, 5, 2)),
]  # fmt: skip

LOSSES = [
    (layer("L1Loss"), (5, 4), (5, 4)),
    (layer("MSELoss"), (5, 4), (5, 4)),
    (layer("SmoothL1Loss", beta=0.5), (5, 4), (5, 4)),
    (layer("HuberLoss", delta=0.5), (5, 4), (5, 4)),
    (layer("KLDivLoss"), logs(5, 4), shares(5, 4)),
    (layer("KLDivLoss", reduction="batchmean", log_target=True), logs(5, 4), logs(5, 4)),
    (layer("PoissonNLLLoss", full=True), (5, 4), above(0.1, 5, 4)),
    (layer("PoissonNLLLoss", log_input=False), above(0.1, 5, 4), above(0.1, 5, 4)),
    (layer("GaussianNLLLoss", full=True), (5, 4), (5, 4), above(0.1, 5, 4)),
    (layer("BCELoss"), shares(5, 4), bits(5, 4)),
    (layer("BCELoss", weight=_WEIGHTS), shares(5, 4), shares(5, 4)),
    (layer("BCEWithLogitsLoss", pos_weight=_WEIGHTS), (5, 4), bits(5, 4)),
    (layer("SoftMarginLoss"), (5, 4), sign(5, 4)),
    (layer("HingeEmbeddingLoss", 0.7), (5, 4), sign(5, 4)),
    (layer("MarginRankingLoss", 0.3), (5,), (5,), sign(5)),
    (layer("CosineEmbeddingLoss", 0.1), (5, 4), (5, 4), sign(5)),
    (layer("TripletMarginLoss", swap=True), (5, 4), (5, 4), (5, 4)),
    (layer("TripletMarginWithDistanceLoss", margin=0.5), (5, 4), (5, 4), (5, 4)),
    (layer("MultiLabelMarginLoss"), (3, 4), fixed([[3, 0, -1, 1], [0, 1, 2, 3], [-1, 0, 0, 0]])),
    (layer("MultiLabelSoftMarginLoss", weight=_WEIGHTS), (5, 4), bits(5, 4)),
    (layer("MultiMarginLoss"), (5, 4), below(4, 5)),
    (layer("MultiMarginLoss", p=2, margin=0.5, weight=_WEIGHTS), (5, 4), below(4, 5)),
    (layer("CrossEntropyLoss"), (5, 4), below(4, 5)),
    (layer("CrossEntropyLoss", label_smoothing=0.1, ignore_index=1, weight=_WEIGHTS), (5, 4), below(4, 5)),
    (layer("CrossEntropyLoss", label_smoothing=0.2), (5, 4), shares(5, 4)),
    (layer("NLLLoss", ignore_index=2, weight=_WEIGHTS), logs(5, 4), below(4, 5)),
    (layer("NLLLoss2d"), (2, 3, 4, 4), below(3, 2, 4, 4)),
    (layer("CTCLoss", blank=1), logs(6, 2, 4), fixed([[2, 3, 0], [3, 3, 2]]), fixed([6, 6]), fixed([3, 2])),
]  # fmt: skip

ELSEWHERE = {
    "Module": "the base, tests of its own", "Parameter": "no module", "Buffer": "no module", "Container": "a bare base",
    "UninitializedParameter": "no module", "UninitializedBuffer": "no module", "ParameterList": "below",
    "ParameterDict": "below", "DataParallel": "takes devices; tests of its own", "RNNBase": "a base", "RNNCellBase": "a base",
    "LinearCrossEntropyOptions": "no module", "CrossMapLRN2d": "PyTorch's sums one channel too many from the third one on",
}  # fmt: skip


def both(value, grad):
    """Return a tensor of each side with the same values."""
    ours, theirs = mortice.tensor(value.copy()), torch.from_numpy(value.copy())
    if grad and value.dtype == np.float64 and np.isfinite(value).all():
        ours.requires_grad_()
        theirs.requires_grad_()
    return ours, theirs


def tensors(result):
    """Return the tensors of nested tuples, in order."""
    if result is None:
        return []
    return [t for part in result for t in tensors(part)] if isinstance(result, (tuple, list)) else [result]


def close(ours, theirs, tolerance=1e-9):
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def load(ours, theirs):
    """Give our module the state of theirs; names, order, shapes and dtypes agree."""
    mine, state = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(state)
    assert [tuple(v.shape) for v in mine.values()] == [tuple(v.shape) for v in state.values()]
    assert [str(v.dtype).split(".")[-1] for v in mine.values()] == [str(v.dtype).split(".")[-1] for v in state.values()]
    ours.load_state_dict({name: mortice.tensor(value.numpy()) for name, value in state.items()})
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]


def randomised(theirs):
    """Leave no weight at a start value that could hide an error."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.from_numpy(np.random.default_rng(7).normal(size=parameter.shape) * 0.5))
    return theirs


def compare(make, draws, grad_inputs):
    ours, theirs = make(nn).double(), make(torch.nn).double()
    assert repr(ours) == repr(theirs)
    rng = np.random.default_rng(0)
    draw = lambda: [rng.normal(size=d) if isinstance(d, tuple) else d(rng) for d in draws]
    if "Lazy" in type(ours).__name__:
        first = draw()
        ours(*map(mortice.tensor, first)), theirs(*map(torch.from_numpy, first))
        assert repr(ours) == repr(theirs)
    load(ours, randomised(theirs))
    for training in (True, True, False) if draws else ():
        ours.train(training)
        theirs.train(training)
        pairs = [both(value, i in grad_inputs) for i, value in enumerate(draw())]
        got, want = tensors(ours(*[x for x, _ in pairs])), tensors(theirs(*[y for _, y in pairs]))
        assert len(got) == len(want)
        ours.zero_grad(), theirs.zero_grad()
        left = right = 0
        for a, b in zip(got, want):
            close(a, b)
            assert a.requires_grad == b.requires_grad
            if b.requires_grad:
                g = rng.normal(size=tuple(b.shape))
                left, right = left + (a * mortice.tensor(g)).sum(), right + (b * torch.from_numpy(np.array(g))).sum()
        if isinstance(right, torch.Tensor):
            left.backward()
            right.backward()
        for x, y in (*pairs, *zip(ours.parameters(), theirs.parameters())):
            close(x.grad, y.grad, 1e-8)
        for x, y in zip(ours.buffers(), theirs.buffers()):
            close(x, y)


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0]))
def test_module_gives_what_torch_gives(case):
    make, *draws = case
    compare(make.make, draws, range(len(draws)))


@pytest.mark.parametrize("reduction", [None, "none", "sum"])
@pytest.mark.parametrize("case", LOSSES, ids=lambda case: repr(case[0]))
def test_loss_gives_what_torch_gives(case, reduction):
    make, *draws = case

    def reduced(side):
        loss = make.make(side)
        if reduction is not None:
            loss.reduction = reduction
        return loss

    compare(reduced, draws, range(1 if "CTC" in make.name else len(draws)))


@pytest.mark.parametrize("name", ["ParameterList", "ParameterDict"])
def test_parameter_containers_print_and_save_alike(name):
    values = [np.arange(3.0, dtype=np.float32), np.ones((2, 2), np.float32)]
    made = []
    for side, tensor in ((nn, mortice.tensor), (torch.nn, torch.tensor)):
        parameters = [side.Parameter(tensor(v)) for v in values]
        made.append(getattr(side, name)(parameters if name == "ParameterList" else dict(zip("ab", parameters))))
    load(*made)
    assert repr(made[0]).replace("mortice.", "torch.") == repr(made[1])


STARTS = [
    ("Linear", (30, 40)), ("Bilinear", (10, 10, 10)), ("Conv2d", (8, 8, 3)), ("ConvTranspose2d", (8, 8, 3)),
    ("Embedding", (60, 20)), ("EmbeddingBag", (60, 20)), ("LSTM", (16, 16)), ("GRUCell", (16, 16)),
    ("MultiheadAttention", (20, 2)), ("TransformerEncoderLayer", (20, 2, 30)), ("Transformer", (20, 2, 1, 1, 30)),
    ("AdaptiveLogSoftmaxWithLoss", (40, 60, [20, 40])), ("PReLU", (5,)), ("BatchNorm2d", (5,)), ("LayerNorm", (5,)),
    ("RMSNorm", (5,)), ("GroupNorm", (1, 5)),
]  # fmt: skip


@pytest.mark.parametrize("case", STARTS, ids=lambda case: case[0])
def test_weights_start_from_torchs_distributions(case):
    name, args = case
    settings = {"add_bias_kv": True} if name == "MultiheadAttention" else {}
    mortice.manual_seed(1)
    torch.manual_seed(1)
    ours = [getattr(nn, name)(*args, **settings).state_dict() for _ in range(4)]
    theirs = [getattr(torch.nn, name)(*args, **settings).state_dict() for _ in range(4)]
    for key in theirs[0]:
        a = np.concatenate([s[key].numpy().ravel() for s in ours]).astype(float)
        b = np.concatenate([s[key].numpy().ravel() for s in theirs]).astype(float)
        # Uniform or normal of one width: the spreads agree within their own scatter.
        room = 5 / np.sqrt(a.size)
        assert abs(a.mean() - b.mean()) <= room * (b.std() + 1e-12), key
        assert abs(a.std() - b.std()) <= room * b.std() + 1e-12, key
        assert abs(np.abs(a).max() - np.abs(b).max()) <= 1.5 * np.sqrt(3) * b.std() + 1e-12, key


def test_every_class_of_torch_nn_is_compared():
    compared = {repr(case[0]).split("(")[0] for case in (*CASES, *LOSSES)}
    public = {n for n, c in vars(torch.nn).items() if inspect.isclass(c) and not n.startswith("_")}
    assert public - compared - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) & compared == set()
    assert sorted(n for n in public if not hasattr(nn, n)) == []


def test_torchs_own_addresses_lead_to_the_same_classes():
    for name, place in vars(torch.nn.modules).items():
        if not inspect.ismodule(place) or name.startswith(("_", "linear_cross_entropy")):
            continue
        ours = importlib.import_module(f"mortice.nn.modules.{name}")
        for each in getattr(place, "__all__", []):
            if hasattr(nn, each):
                assert getattr(ours, each) is getattr(nn, each), (name, each)
    from mortice.nn.modules.batchnorm import _BatchNorm

    from mortice.nn.common_types import _size_2_t
    assert {*torch.nn.modules.__all__} - {*mortice.nn.modules.__all__} <= {"LinearCrossEntropyOptions"}
    from mortice.nn.modules import Linear
    from mortice.nn.modules.utils import _pair, _reverse_repeat_tuple

    assert Linear is nn.Linear and issubclass(nn.BatchNorm2d, _BatchNorm)
    assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2) and _size_2_t
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    names = [n for n in vars(torch.nn.common_types) if n.startswith(("_size", "_ratio", "_scalar", "_maybe", "_tensor"))]
    assert sorted(n for n in names if not hasattr(nn.common_types, n)) == []
