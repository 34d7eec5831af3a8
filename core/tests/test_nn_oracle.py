"""Layers beside PyTorch's: the same state_dict in both, then the same outputs, gradients, buffers, names and repr."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import mortice
from mortice import nn
from mortice.nn import functional

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:Using padding='same'")]

LAYERS = [
    ("Linear", (3, 4), {}, (2, 3)),
    ("Linear", (3, 4), {"bias": False}, (2, 5, 3)),
    ("Linear", (3, 4), {}, (3,)),
    ("Bilinear", (3, 4, 5), {}, [(2, 3), (2, 4)]),
    ("Identity", (1, 2), {}, (2, 3)),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 4, 9)),
    ("Conv2d", (2, 4, 3), {"padding": "same", "dilation": 2}, (2, 2, 7, 6)),
    ("Conv2d", (2, 4, (2, 3)), {"padding": "same"}, (2, 2, 7, 6)),
    ("Conv2d", (2, 4, 3), {"padding": (1, 2), "padding_mode": "reflect", "bias": False}, (2, 2, 7, 6)),
    ("Conv2d", (2, 4, 3), {"padding": 1, "padding_mode": "circular"}, (2, 7, 6)),
    ("Conv2d", (2, 4, 3), {"padding": "same", "padding_mode": "replicate"}, (1, 2, 7, 6)),
    ("Conv3d", (2, 4, 2), {"stride": (1, 2, 1)}, (1, 2, 4, 5, 4)),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, (2, 4, 5)),
    ("ConvTranspose2d", (4, 6, 3, 2, 1, 1, 2, True, 2), {}, (2, 4, 5, 4)),
    ("ConvTranspose3d", (2, 3, 2), {"stride": 2, "bias": False}, (1, 2, 3, 2, 3)),
    ("BatchNorm1d", (4,), {}, (5, 4)),
    ("BatchNorm1d", (4,), {"momentum": None}, (5, 4, 3)),
    ("BatchNorm2d", (4,), {"affine": False}, (3, 4, 2, 3)),
    ("BatchNorm2d", (4,), {"track_running_stats": False}, (3, 4, 2, 3)),
    ("BatchNorm3d", (2,), {"eps": 1e-2, "momentum": 0.3}, (3, 2, 2, 3, 2)),
    ("InstanceNorm1d", (4,), {}, (3, 4, 5)),
    ("InstanceNorm2d", (4,), {"affine": True, "track_running_stats": True}, (3, 4, 2, 3)),
    ("InstanceNorm2d", (4,), {"affine": True}, (4, 2, 3)),
    ("InstanceNorm3d", (2,), {}, (3, 2, 2, 3, 2)),
    ("LayerNorm", (5,), {}, (3, 5)),
    ("LayerNorm", ((2, 5),), {"bias": False}, (3, 2, 5)),
    ("RMSNorm", (5,), {}, (3, 5)),
    ("GroupNorm", (2, 4), {}, (3, 4, 5)),
    ("LocalResponseNorm", (3,), {}, (2, 5, 3, 3)),
    ("PReLU", (4,), {}, (2, 4, 3)),
    ("PReLU", (), {"init": 0.1}, (2, 3)),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 8)),
    ("MaxPool2d", (2,), {}, (2, 3, 8, 7)),
    ("MaxPool2d", ((3, 2),), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}, (2, 3, 8, 7)),
    ("MaxPool3d", (2,), {"stride": 1}, (2, 4, 3, 4)),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}, (2, 3, 8)),
    ("AvgPool2d", (3,), {"stride": 2, "ceil_mode": True, "divisor_override": 2}, (2, 3, 8, 7)),
    ("AvgPool3d", (2,), {}, (2, 4, 4, 4)),
    ("LPPool1d", (2, 3), {"stride": 2}, (2, 3, 8)),
    ("LPPool2d", (1.5, 2), {}, (1, 2, 4, 4), 0.1),
    ("AdaptiveAvgPool1d", (3,), {}, (2, 3, 8)),
    ("AdaptiveAvgPool2d", ((3, None),), {}, (2, 3, 8, 5)),
    ("AdaptiveAvgPool3d", (1,), {}, (2, 3, 4, 5)),
    ("AdaptiveMaxPool1d", (3,), {}, (2, 3, 8)),
    ("AdaptiveMaxPool2d", ((3, 2),), {}, (2, 3, 8, 5)),
    ("AdaptiveMaxPool3d", (2,), {}, (2, 3, 4, 5)),
    *[(name, (), {}, (3, 5)) for name in (
        "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "SiLU", "Mish", "GELU", "Sigmoid", "Tanh", "Hardtanh",
        "Hardswish", "Hardsigmoid", "Hardshrink", "Softshrink", "Softplus", "Softsign", "Tanhshrink", "LogSigmoid",
    )],
    ("LeakyReLU", (0.2,), {"inplace": False}, (3, 5)),
    ("GELU", ("tanh",), {}, (3, 5)),
    ("GLU", (1,), {}, (3, 4)),
    ("Threshold", (0.1, 20), {}, (3, 5)),
    ("Softmax", (1,), {}, (3, 5)),
    ("LogSoftmax", (0,), {}, (3, 5)),
    ("Softmin", (-1,), {}, (3, 5)),
    ("Softmax2d", (), {}, (2, 3, 2, 2)),
    ("Flatten", (), {}, (2, 3, 4)),
    ("Flatten", (0, 1), {}, (2, 3, 4)),
    ("Unflatten", (1, (2, 3)), {}, (2, 6, 4)),
    ("Unfold", ((2, 3),), {"padding": 1, "stride": 2}, (2, 3, 5, 6)),
    ("Fold", ((4, 5), 2), {}, (2, 12, 12)),
    ("PixelShuffle", (2,), {}, (2, 8, 3, 2)),
    ("PixelUnshuffle", (2,), {}, (2, 2, 4, 6)),
    ("ChannelShuffle", (2,), {}, (2, 4, 3, 3)),
    ("ZeroPad2d", ((1, 2, 0, -1),), {}, (1, 2, 4, 4)),
    ("ConstantPad1d", (2, 3.5), {}, (1, 2, 4)),
    ("ReflectionPad1d", ((2, 1),), {}, (2, 4)),
    ("ReflectionPad3d", (1,), {}, (1, 2, 3, 3, 3)),
    ("ReplicationPad2d", ((1, 2, 3, 0),), {}, (1, 2, 4, 4)),
    ("CircularPad2d", (2,), {}, (1, 2, 4, 4)),
    ("CosineSimilarity", (), {}, [(3, 5), (3, 5)]),
    ("PairwiseDistance", (), {"keepdim": True}, [(3, 5), (3, 5)]),
    ("Upsample", (), {"scale_factor": 2, "mode": "nearest"}, (1, 2, 3, 3)),
    ("Upsample", (16,), {"mode": "bilinear"}, (1, 2, 3, 3)),
    ("Upsample", (), {"scale_factor": 1.5, "mode": "bicubic", "align_corners": True}, (1, 2, 4, 4)),
    ("Upsample", (), {"scale_factor": (2.0, 1.0, 3.0), "mode": "trilinear"}, (1, 2, 3, 3, 2)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (1, 2, 3, 3)),
]  # fmt: skip

LOSSES = [
    ("L1Loss", {}, "real"), ("MSELoss", {}, "real"), ("SmoothL1Loss", {"beta": 0.5}, "real"),
    ("HuberLoss", {"delta": 0.5}, "real"), ("KLDivLoss", {"reduction": "batchmean"}, "share"),
    ("KLDivLoss", {"log_target": True, "reduction": "sum"}, "real"), ("PoissonNLLLoss", {"full": True}, "share"),
    ("BCEWithLogitsLoss", {}, "share"), ("SoftMarginLoss", {}, "sign"), ("HingeEmbeddingLoss", {}, "sign"),
    ("MultiLabelSoftMarginLoss", {}, "bit"), ("MultiLabelMarginLoss", {}, "labels"), ("MultiMarginLoss", {}, "class"),
    ("MultiMarginLoss", {"p": 2, "margin": 0.5}, "class"), ("CrossEntropyLoss", {}, "class"),
    ("CrossEntropyLoss", {"label_smoothing": 0.1, "ignore_index": 1}, "class"), ("CrossEntropyLoss", {}, "share"),
    ("CrossEntropyLoss", {"label_smoothing": 0.2}, "share"), ("NLLLoss", {"ignore_index": 2}, "class"),
]  # fmt: skip


def pair(array, grad=True):
    """Return a tensor of each side with the same values."""
    theirs = torch.from_numpy(np.array(array))
    ours = mortice.tensor(np.array(array))
    if grad and theirs.is_floating_point():
        theirs.requires_grad_()
        ours.requires_grad_()
    return ours, theirs


def close(ours, theirs, tolerance=1e-10):
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def load(ours, theirs):
    """Give our layer the weights of theirs; check names and order on the way."""
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    for name, value in state.items():
        assert tuple(ours.state_dict()[name].shape) == tuple(value.shape)
    ours.load_state_dict({name: mortice.tensor(value.numpy()) for name, value in state.items()})


@pytest.mark.parametrize("case", LAYERS, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_layer_gives_what_torch_gives(case):
    name, args, settings, shapes, *low = case
    ours, theirs = getattr(nn, name)(*args, **settings).double(), getattr(torch.nn, name)(*args, **settings).double()
    assert repr(ours) == repr(theirs)
    load(ours, theirs)
    rng = np.random.default_rng(0)
    draw = lambda shape: np.abs(rng.normal(size=shape)) + low[0] if low else rng.normal(size=shape)
    for training in (True, True, False):
        ours.train(training)
        theirs.train(training)
        inputs = [pair(draw(s)) for s in (shapes if isinstance(shapes, list) else [shapes])]
        a, b = ours(*[x for x, _ in inputs]), theirs(*[y for _, y in inputs])
        close(a, b)
        g = rng.normal(size=tuple(b.shape))
        a.backward(mortice.tensor(g))
        b.backward(torch.from_numpy(g))
        for x, y in inputs:
            close(x.grad, y.grad, 1e-8)
        for p, q in zip(ours.parameters(), theirs.parameters()):
            close(p.grad, q.grad, 1e-8)
        for p, q in zip(ours.buffers(), theirs.buffers()):
            close(p, q)


def target_of(kind, rng, shape):
    if kind == "class":
        return rng.integers(0, shape[1], size=shape[0])
    if kind == "labels":
        return np.array([[3, 0, -1, 1], [0, 1, 2, 3], [-1, 0, 0, 0], [2, -1, -1, -1], [1, 0, 2, -1]])
    if kind == "sign":
        return np.sign(rng.normal(size=shape))
    if kind == "bit":
        return (rng.random(shape) > 0.5).astype(float)
    values = rng.random(shape)
    return values / values.sum(1, keepdims=True) if kind == "share" else rng.normal(size=shape)


@pytest.mark.parametrize("case", LOSSES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_loss_gives_what_torch_gives(case, reduction):
    name, settings, kind = case
    settings = {"reduction": reduction, **settings}
    if settings["reduction"] == "mean" and name == "KLDivLoss":
        pytest.skip("warns")
    rng = np.random.default_rng(1)
    x, y = pair(rng.normal(size=(5, 4)))
    t, u = pair(target_of(kind, rng, (5, 4)), grad=kind in ("real", "share"))
    ours, theirs = getattr(nn, name)(**settings), getattr(torch.nn, name)(**settings)
    assert repr(ours) == repr(theirs)
    a, b = ours(x, t), theirs(y, u)
    close(a, b)
    g = rng.normal(size=tuple(b.shape))
    a.backward(mortice.tensor(g))
    b.backward(torch.from_numpy(g))
    close(x.grad, y.grad, 1e-8)
    if t.requires_grad and u.grad is not None:
        close(t.grad, u.grad, 1e-8)


@pytest.mark.parametrize("weighted", ["CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"])
def test_class_weights_weigh_the_mean(weighted):
    rng = np.random.default_rng(2)
    x, y = pair(rng.normal(size=(5, 4)))
    w, v = pair(rng.random(4), grad=False)
    t, u = pair(rng.integers(0, 4, size=5))
    close(getattr(nn, weighted)(weight=w)(x, t), getattr(torch.nn, weighted)(weight=v)(y, u))
    settings = {"label_smoothing": 0.3} if weighted == "CrossEntropyLoss" else {}
    close(getattr(nn, weighted)(weight=w, **settings)(x, t), getattr(torch.nn, weighted)(weight=v, **settings)(y, u))


ERRORS = [
    ("Linear", (3, 4), (2, 5)), ("Conv2d", (3, 4, 3), (1, 2, 8, 8)), ("Conv2d", (3, 4, 4), (1, 3, 2, 2)),
    ("Conv2d", (3, 4, 3), (8, 8)), ("BatchNorm2d", (3,), (3, 4, 4)), ("BatchNorm1d", (3,), (1, 3)),
    ("BatchNorm2d", (3,), (2, 4, 3, 3)), ("LayerNorm", (5,), (2, 4)), ("GroupNorm", (2, 4), (2, 6, 3)),
    ("MaxPool2d", (4,), (1, 1, 2, 2)), ("MaxPool2d", (2, 2, 2), (1, 1, 4, 4)), ("Upsample", (), (1, 1, 4, 4)),
    ("ReflectionPad2d", (4,), (1, 1, 3, 3)), ("PixelShuffle", (2,), (1, 3, 2, 2)), ("Unflatten", (1, (2, 2)), (2, 6)),
    ("Softmax2d", (), (2, 2)), ("PReLU", (3,), (2, 4)), ("InstanceNorm1d", (3,), (2, 3, 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", ERRORS, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_misuse_raises_what_torch_raises(case):
    name, args, shape = case
    with pytest.raises(Exception) as theirs:  # noqa: B017
        getattr(torch.nn, name)(*args)(torch.zeros(shape))
    with pytest.raises(theirs.type):
        getattr(nn, name)(*args)(mortice.zeros(shape))


MADE_WRONG = [
    ("Conv2d", (3, 4, 3), {"groups": 2}), ("Conv2d", (4, 3, 3), {"groups": 2}), ("Conv2d", (2, 2, 3), {"groups": 0}),
    ("Conv2d", (2, 2, 3), {"padding": "same", "stride": 2}), ("Conv2d", (2, 2, 3), {"padding": "all"}),
    ("Conv2d", (2, 2, 3), {"padding_mode": "none"}), ("ConvTranspose2d", (2, 2, 3), {"padding_mode": "reflect"}),
    ("Dropout", (1.5,), {}), ("GroupNorm", (3, 4), {}), ("Hardtanh", (1, -1), {}), ("Embedding", (3, 2), {"padding_idx": 3}),
    ("MultiMarginLoss", (3,), {}), ("Bilinear", (0, 1, 1), {}), ("Unflatten", (1, 3), {}),
]  # fmt: skip


@pytest.mark.parametrize("case", MADE_WRONG, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_wrong_settings_raise_what_torch_raises(case):
    name, args, settings = case
    with pytest.raises(Exception) as theirs:  # noqa: B017
        getattr(torch.nn, name)(*args, **settings)
    with pytest.raises(theirs.type):
        getattr(nn, name)(*args, **settings)


def test_every_layer_takes_torch_arguments():
    for name in dir(nn):
        ours, theirs = getattr(nn, name), getattr(torch.nn, name, None)
        if not (inspect.isclass(ours) and inspect.isclass(theirs)) or name in ("Parameter", "Buffer", "Module"):
            continue
        mine, want = (inspect.signature(c.__init__).parameters for c in (ours, theirs))
        if [p for p in want.values() if p.kind is p.VAR_POSITIONAL]:
            continue
        assert list(mine) == list(want), name
        for key in want:
            assert mine[key].default == want[key].default or want[key].default is inspect._empty, (name, key)


def test_functional_takes_torch_arguments():
    for name in dir(functional):
        ours, theirs = getattr(functional, name), getattr(torch.nn.functional, name, None)
        if not inspect.isfunction(ours) or not inspect.isfunction(theirs):
            continue
        mine, want = (inspect.signature(f).parameters for f in (ours, theirs))
        if any(p.kind is p.VAR_POSITIONAL for p in want.values()):
            continue
        assert [n for n in mine if n != "out"] == [n for n in want if n != "out"], name
        for key in want:
            assert mine[key].default == want[key].default, (name, key)
