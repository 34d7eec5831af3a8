"""Layers beside PyTorch's: class weights, misuse, settings and signatures; what they give is in test_nn_all_modules."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import mortice
from mortice import nn
from mortice.nn import functional

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


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
    np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


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


def plain(default):
    """Return a default that the two sides can share: of a function, its name."""
    return default.__name__ if inspect.isroutine(default) else default


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
            assert plain(mine[key].default) == plain(want[key].default) or want[key].default is inspect._empty, (name, key)


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


def test_reductions_are_numbered_and_take_old_arguments():
    from mortice.nn import _reduction as ours  # losses of others import it so

    theirs = torch.nn._reduction
    for reduction in ("none", "mean", "sum"):
        assert ours.get_enum(reduction) == theirs.get_enum(reduction)
    for size_average, reduce in itertools.product((None, True, False, 0, 1), repeat=2):
        assert ours.legacy_get_string(size_average, reduce, emit_warning=False) == theirs.legacy_get_string(
            size_average, reduce, emit_warning=False
        )
        with pytest.warns(UserWarning, match="size_average and reduce"):
            number = ours.legacy_get_enum(size_average, reduce)
        assert number == theirs.legacy_get_enum(size_average, reduce, emit_warning=False)
    with pytest.warns(UserWarning, match="use reduction='mean'"):
        assert nn.MSELoss(reduction="elementwise_mean")(mortice.ones(2), mortice.zeros(2)).item() == 1
    with pytest.warns(UserWarning, match="use reduction='mean'"):
        assert functional.huber_loss(mortice.ones(2), mortice.zeros(2), reduction="elementwise_mean").item() == 0.5
    with pytest.raises(ValueError, match="other is not a valid value for reduction"):
        ours.get_enum("other")


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [28, 100])
def test_a_spatial_transformer_that_starts_as_the_identity_has_its_gradient(size, corners):
    """Its points lie on elements, where the last bit of each says on which side the slope is taken."""
    image, other = pair(np.random.default_rng(0).random((1, 1, 2, size), dtype=np.float32), grad=False)
    theta, their_theta = pair(np.eye(2, 3, dtype=np.float32)[None])
    grid = functional.affine_grid(theta, image.shape, align_corners=corners)
    their_grid = torch.nn.functional.affine_grid(their_theta, other.shape, align_corners=corners)
    close(grid.cpu(), their_grid, 0)
    functional.grid_sample(image, grid, align_corners=corners).square().sum().backward()
    torch.nn.functional.grid_sample(other, their_grid, align_corners=corners).square().sum().backward()
    close(theta.grad.cpu(), their_theta.grad, 1e-3)


AT_THE_ROOT = {
    "kl_div": (("x", "y"), {"reduction": 2, "log_target": True}),
    "cosine_embedding_loss": (("x", "y", "sign", 0.2, 0), {}),
    "hinge_embedding_loss": (("x", "signs", 0.5), {}),
    "margin_ranking_loss": (("x", "y", "signs", 0.1, 2), {}),
    "poisson_nll_loss": (("x", "y", True, False, 1e-8, 1), {}),
    "triplet_margin_loss": (("x", "y", "z"), {"swap": True, "reduction": 0}),
    "binary_cross_entropy_with_logits": (("x", "y"), {}),
    "ctc_loss": (("times", "labels", (5, 5), (2, 1)), {}),
    "native_layer_norm": (("x", (4,), "w", None, 1e-5), {}),
    "native_group_norm": (("image", None, None, 2, 4, 3, 2, 1e-5), {}),
    "native_batch_norm": (("x", "w", "w", "w", "w", True, 0.1, 1e-5), {}),
    "embedding_renorm_": (("x", "rows", 1.0, 2.0), {}),
    "grid_sampler_2d": (("picture", "points", 0, 1, True), {}),
    "affine_grid_generator": (("maps", (2, 1, 3, 3), False), {}),
}


@pytest.mark.parametrize("name", AT_THE_ROOT)
def test_operators_are_at_the_root_with_reductions_and_modes_by_number(name):
    rng = np.random.default_rng(5)
    values = {n: rng.random((5, 4)) for n in "xyz"} | {
        "w": rng.random(4), "image": rng.random((2, 4, 3)), "picture": rng.random((2, 1, 3, 3)), "points": rng.random((2, 2, 2, 2)),
        "maps": rng.random((2, 2, 3)), "sign": np.array([1, -1, 1, 1, -1]), "signs": np.where(rng.random((5, 4)) < 0.5, -1, 1),
        "times": -rng.random((5, 2, 4)), "labels": np.array([[1, 2], [3, 1]]), "rows": np.array([0, 2, 2]),
    }  # fmt: skip
    given, more = AT_THE_ROOT[name]
    made = []
    for side, library in enumerate((mortice, torch)):
        made.append(getattr(library, name)(*[pair(values[v], False)[side] if isinstance(v, str) else v for v in given], **more))
    for ours, theirs in zip(*made) if isinstance(made[0], tuple) else [made]:
        close(ours, theirs)


def test_native_dropout_tells_what_it_kept():
    x = mortice.ones(1000)
    out, kept = mortice.native_dropout(x, 0.5, True)
    assert 300 < kept.sum() < 700 and mortice.equal(out, kept * 2.0)
    out, kept = mortice.native_dropout(x, 0.5, False)
    assert kept.all() and mortice.equal(out, x)
    assert not mortice.native_dropout(x, 1.0, True)[0].any()
