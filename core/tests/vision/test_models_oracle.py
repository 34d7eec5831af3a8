"""The image classifiers beside torchvision: keys and shapes of all, outputs and gradients with the same weights."""

from __future__ import annotations

import pytest
from torchvision_side import torch, torchvision
from vision.models_table import TABLE, make, names, row

import mortice as mt
from mortice.vision import models

np = pytest.importorskip("numpy", reason="the oracle needs it")
pytestmark = pytest.mark.oracle


def test_the_table_is_torchvisions():
    with torch.device("meta"):
        rows = [row(name, make(torchvision.models, name)) for name in names()]
    assert torchvision.__version__.startswith("0.28")
    assert TABLE.read_text().splitlines() == rows


def test_published_weights_are_torchvisions():
    for name in names():
        if name == "vit_h_14":
            continue
        mine, theirs = models.get_model_weights(name), torchvision.models.get_model_weights(name)
        shared = [w for w in theirs.__members__ if w.startswith("IMAGENET1K_V") or w == "DEFAULT"]
        assert list(mine.__members__) == shared or set(mine.__members__) == set(shared), name
        assert [mine[w].url for w in shared] == [theirs[w].url for w in shared]
        assert getattr(models, theirs.__name__) is mine


# name: what its constructor is given, and the size of the images
CASES = {
    "alexnet": ({"dropout": 0.0}, 64), "vgg11": ({"dropout": 0.0}, 32), "vgg16_bn": ({"dropout": 0.0}, 32),
    "resnet18": ({}, 64), "resnet50": ({}, 64), "resnext50_32x4d": ({}, 64), "wide_resnet50_2": ({}, 64),
    "mobilenet_v2": ({"dropout": 0.0}, 64), "squeezenet1_0": ({"dropout": 0.0}, 64), "squeezenet1_1": ({"dropout": 0.0}, 64),
    "densenet121": ({}, 64), "densenet161": ({}, 64), "shufflenet_v2_x1_0": ({}, 64), "shufflenet_v2_x0_5": ({}, 64),
    "googlenet": ({"dropout": 0.0, "dropout_aux": 0.0, "transform_input": True}, 64), "vit_b_16": ({"image_size": 32}, 32),
    "vit_b_32": ({"image_size": 64, "representation_size": 16}, 64),
}  # fmt: skip


def fill(state):
    """Return weights of a sensible size for every key, drawn from the key's place."""
    draw, made = np.random.default_rng(0), {}
    for key, value in state.items():
        shape = tuple(value.shape)
        if key.endswith("num_batches_tracked"):
            made[key] = np.array(3)
        elif key.endswith(("running_var", "norm.weight", "bn.weight")) or (len(shape) == 1 and key.endswith("weight")):
            made[key] = draw.uniform(0.5, 1.5, shape).astype(np.float32)
        else:
            fan = max(1, int(np.prod(shape[1:])))
            made[key] = (draw.standard_normal(shape, dtype=np.float32) * (fan**-0.5 if len(shape) > 1 else 0.1)).astype(
                np.float32
            )
    return made


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_are_torchvisions(name):
    kwargs, size = CASES[name]
    mine, theirs = make(models, name, num_classes=7, **kwargs), make(torchvision.models, name, num_classes=7, **kwargs)
    state = fill(theirs.state_dict())
    mine.load_state_dict({k: mt.tensor(v) for k, v in state.items()})
    theirs.load_state_dict({k: torch.tensor(v) for k, v in state.items()})
    x = np.random.default_rng(1).standard_normal((4, 3, size, size), dtype=np.float32)
    found = []
    for library, model in ((mt, mine), (torch, theirs)):
        model.eval()
        with library.no_grad():
            outs = [model(library.tensor(x)).numpy()]
        model.train()
        out = model(library.tensor(x))
        outs += [v.detach().numpy() for v in (out if isinstance(out, tuple) else [out])]
        sum(
            library.nn.functional.cross_entropy(v, library.tensor([0, 1, 2, 3]))
            for v in (out if isinstance(out, tuple) else [out])
        ).backward()
        grads = dict(model.named_parameters())
        outs += [grads[k].grad.numpy() for k in (list(grads)[0], list(grads)[-1])]
        outs += [v.numpy() for k, v in model.state_dict().items() if k.endswith("running_var")][-1:]
        found.append(outs)
    for a, b in zip(*found):
        assert a.shape == b.shape and np.abs(a - b).max() <= 2e-3 * np.abs(b).max(), name
    assert np.abs(found[0][0] - found[1][0]).max() <= 1e-4 * np.abs(found[1][0]).max()
