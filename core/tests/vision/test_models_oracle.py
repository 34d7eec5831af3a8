"""The image classifiers beside torchvision: keys and shapes of all, outputs and gradients with the same weights."""

from __future__ import annotations

import io
import warnings

import pytest
from torchvision_side import torch, torchvision
from vision.models_table import TABLE, make, names, row, undrawn

import mortice as mt
from mortice.vision import models
from mortice.vision.models.feature_extraction import create_feature_extractor, get_graph_node_names

np = pytest.importorskip("numpy", reason="the oracle needs it")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:The default weight initialization of")]


def test_the_table_is_torchvisions():
    with undrawn():
        rows = [row(name, make(torchvision.models, name)) for name in names()]
    assert torchvision.__version__.startswith("0.28")
    assert TABLE.read_text().splitlines() == rows


def test_published_weights_are_torchvisions():
    for name in names():
        mine, theirs = models.get_model_weights(name), torchvision.models.get_model_weights(name)
        shared = list(theirs.__members__)
        assert list(mine.__members__) == shared and mine.DEFAULT.name == theirs.DEFAULT.name, name
        assert [mine[w].url for w in shared] == [theirs[w].url for w in shared]
        assert mine.__name__ == theirs.__name__ and getattr(models, theirs.__name__) is mine


@pytest.mark.parametrize(
    "ask",
    [
        lambda models: models.resnet18(False),
        lambda models: models.resnet18(None, False),
        lambda models: models.alexnet(pretrained=False, num_classes=2),
        lambda models: models.squeezenet1_1(weights=False),
        lambda models: models.googlenet(num_classes=2),
        lambda models: models.segmentation.lraspp_mobilenet_v3_large(pretrained=False, pretrained_backbone=False),
    ],
)
def test_models_asked_for_as_at_first_warn_in_torchvisions_words(ask):
    told = []
    for library in (torchvision.models, models):
        with warnings.catch_warnings(record=True) as heard, undrawn():
            warnings.simplefilter("always")
            ask(library)
        told.append([(w.category, str(w.message)) for w in heard])
    assert told[1] == told[0] != []


@pytest.mark.parametrize("name", ["resnet18", "vgg11_bn", "shufflenet_v2_x0_5"])
def test_features_of_layers(name):
    from torchvision.models.feature_extraction import create_feature_extractor as theirs

    nodes = {
        "resnet18": {"layer1": "a", "layer4.1.relu_1": "b", "layer2.0.relu": "c", "avgpool": "d"},
        "vgg11_bn": ["features.4", "features.10"], "shufflenet_v2_x0_5": ["conv1", "stage2.1.branch2.7", "conv5"],
    }[name]  # fmt: skip
    other, model = make(torchvision.models, name).eval(), make(models, name).eval()
    model.load_state_dict({key: mt.tensor(value.numpy()) for key, value in other.state_dict().items()})
    x = np.random.default_rng(0).random((1, 3, 64, 64), dtype=np.float32)
    want, mine = theirs(other, nodes)(torch.from_numpy(x)), create_feature_extractor(model, nodes)(mt.tensor(x))
    assert list(mine) == list(want)
    for key in want:
        np.testing.assert_allclose(mine[key].detach().numpy(), want[key].detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenet_v3_small", "densenet121", "efficientnet_b0", "googlenet", "inception_v3", "convnext_tiny"]
)  # fmt: skip
def test_nodes_of_models_are_torchvisions(name):
    from torchvision.models.feature_extraction import get_graph_node_names as theirs

    more = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with torch.device("meta"):
        other = getattr(torchvision.models, name)(**more)
    model = getattr(models, name)(**more)
    assert get_graph_node_names(model, suppress_diff_warning=True) == theirs(other, suppress_diff_warning=True)
    mine, traced = mt.fx.Tracer().trace(model), torch.fx.Tracer().trace(other)
    assert [(n.op, n.name, str(n.args)) for n in mine.nodes] == [(n.op, n.name, str(n.args)) for n in traced.nodes]


# name: what its constructor is given, and the size of the images
CASES = {
    "alexnet": ({"dropout": 0.0}, 64), "vgg11_bn": ({"dropout": 0.0}, 32), "resnet18": ({}, 32), "resnet50": ({}, 32),
    "resnext50_32x4d": ({}, 32), "mobilenet_v2": ({"dropout": 0.0}, 32), "squeezenet1_0": ({"dropout": 0.0}, 64),
    "squeezenet1_1": ({"dropout": 0.0}, 64), "densenet121": ({}, 32), "shufflenet_v2_x1_0": ({}, 32),
    "efficientnet_b0": ({"dropout": 0.0, "stochastic_depth_prob": 0.0}, 32),
    "efficientnet_v2_s": ({"dropout": 0.0, "stochastic_depth_prob": 0.0}, 32),
    "mobilenet_v3_large": ({"dropout": 0.0, "width_mult": 0.5, "reduced_tail": True, "dilated": True}, 64),
    "mobilenet_v3_small": ({"dropout": 0.0}, 32),
    "convnext_tiny": ({"stochastic_depth_prob": 0.0, "layer_scale": 0.5}, 32),
    "regnet_x_400mf": ({}, 32), "regnet_y_400mf": ({}, 64),
    "mnasnet0_5": ({"dropout": 0.0}, 64),
    "inception_v3": ({"dropout": 0.0, "transform_input": True, "aux_logits": False}, 75),
    "swin_transformer": ({"patch_size": [4, 4], "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3],
                          "window_size": [7, 5], "stochastic_depth_prob": 0.0}, 52),
    "swin_transformer of version 2": ({"patch_size": [2, 2], "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3],
                                       "window_size": [8, 8], "stochastic_depth_prob": 0.0}, 38),
    "maxvit": ({"input_size": (40, 40), "stem_channels": 8, "partition_size": 5, "block_channels": [8, 12],
                "block_layers": [2, 1], "head_dim": 4, "stochastic_depth_prob": 0.0}, 40),
    "googlenet": ({"dropout": 0.0, "dropout_aux": 0.0, "transform_input": True}, 64),
    "vision_transformer": ({"image_size": 48, "patch_size": 16, "num_layers": 2, "num_heads": 4, "hidden_dim": 64,
                            "mlp_dim": 128, "representation_size": 16}, 48),
    "vision_transformer of patches of 14": ({"image_size": 56, "patch_size": 14, "num_layers": 3, "num_heads": 8,
                                             "hidden_dim": 80, "mlp_dim": 320}, 56),
    "wide": ({"width_per_group": 128, "block": "Bottleneck", "layers": [1, 1, 1, 1]}, 32),
}  # fmt: skip


def _second(library):
    kinds = library.swin_transformer
    return {"block": kinds.SwinTransformerBlockV2, "downsample_layer": kinds.PatchMergingV2}


def both(name, **kwargs):
    """Make a model in both libraries, with the same weights: torchvision's first ones, none of them zero or one."""
    if name == "wide":  # as wide_resnet50_2 is, with fewer layers
        mine, theirs = (
            library.ResNet(getattr(library.resnet, kwargs["block"]), kwargs["layers"], 7, width_per_group=128)
            for library in (models, torchvision.models)
        )
    elif name.startswith("vision_transformer"):
        mine, theirs = (library.VisionTransformer(num_classes=7, **kwargs) for library in (models, torchvision.models))
    elif name == "maxvit":
        mine, theirs = (library.MaxVit(num_classes=7, **kwargs) for library in (models, torchvision.models))
    elif name.startswith("swin_transformer"):
        mine, theirs = (
            library.SwinTransformer(num_classes=7, **kwargs, **_second(library) if "2" in name else {})
            for library in (models, torchvision.models)
        )
    else:
        mine, theirs = (make(library, name, num_classes=7, **kwargs) for library in (models, torchvision.models))
    draw, state = np.random.default_rng(0), theirs.state_dict()
    for key, value in state.items():
        if value.ndim == 1 and value.is_floating_point() or key == "heads.head.weight":
            state[key] = torch.tensor(draw.uniform(0.5, 1.5, tuple(value.shape)).astype(np.float32))
    theirs.load_state_dict(state)
    mine.load_state_dict({key: mt.tensor(value.numpy()) for key, value in state.items()})
    return mine, theirs


def results(out):
    """Return what a model gave, by name."""
    if isinstance(out, dict):
        return out
    return dict(enumerate(out)) if isinstance(out, tuple) else {0: out}


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_are_torchvisions(name):
    kwargs, size = CASES[name]
    agree(*both(name, **kwargs), size)


@pytest.mark.parametrize("name", ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"])
def test_classes_of_pixels_and_their_gradients_are_torchvisions(name):
    mine, theirs = both(name, **{} if "lraspp" in name else {"aux_loss": True})
    agree(mine, theirs, 40)


@pytest.mark.parametrize("name", ["r3d_18", "mc3_18", "r2plus1d_18"])
def test_classes_of_films_are_torchvisions(name):
    mine, theirs = both(name)
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 32, 32), dtype=np.float32)
    with mt.no_grad(), torch.no_grad():
        a, b = mine.eval()(mt.tensor(x)).numpy(), theirs.eval()(torch.tensor(x)).numpy()
    assert a.shape == b.shape == (2, 7) and np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


def test_blocks_of_s3d_are_torchvisions():
    """The network itself takes no less than 14 frames of 224 by 224, for seconds; its beginning takes anything."""
    mine, theirs = both("s3d")
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 32, 32), dtype=np.float32)
    with mt.no_grad(), torch.no_grad():
        a, b = mine.eval().features[:9](mt.tensor(x)).numpy(), theirs.eval().features[:9](torch.tensor(x)).numpy()
        assert a.shape == b.shape and np.abs(a - b).max() <= 1e-4 * np.abs(b).max()
        end = np.resize(a, (1, 1024, 3, 8, 9))
        a, b = ((m.classifier(m.avgpool(lib.tensor(end)))).numpy() for lib, m in ((mt, mine), (torch, theirs)))
    assert a.shape == b.shape == (1, 7, 2, 2, 3) and np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


def agree(mine, theirs, size):
    """Compare what two models of the same weights give in evaluation and training, with their gradients."""
    for library, model in ((mt, mine), (torch, theirs)):
        for module in model.modules():
            if isinstance(module, library.nn.Dropout):
                module.p = 0.0
    x = np.random.default_rng(1).standard_normal((4, 3, size, size), dtype=np.float32)
    with mt.no_grad(), torch.no_grad():
        a, b = results(mine.eval()(mt.tensor(x))), results(theirs.eval()(torch.tensor(x)))
    assert list(a) == list(b)
    for ours, its in ((a[key].numpy(), b[key].numpy()) for key in a):
        assert ours.shape == its.shape and ours.shape[:2] == (4, 7)
        assert np.abs(ours - its).max() <= 1e-4 * np.abs(its).max()
    if sum(p.numel() for p in mine.parameters()) > 30_000_000:  # more of the same, for minutes
        return
    found = []
    for library, model in ((mt, mine), (torch, theirs)):
        # In float64, since the statistics of four small images magnify what rounding does.
        out = model.double().train()(library.tensor(x.astype(np.float64)))
        outs = results(out).values()
        target = library.tensor([0, 1, 2, 3])
        sum(library.nn.functional.cross_entropy(v.flatten(2).sum(2) if v.ndim > 2 else v, target) for v in outs).backward()
        values = [v.detach() for v in outs] + [p.grad for p in model.parameters()] + list(model.buffers())
        found.append([v.numpy() for v in values])
    # PyTorch's gradient of hardsigmoid is float32's sixth in float64 as well.
    allowed = 1e-6 if any(isinstance(m, mt.nn.Hardsigmoid) for m in mine.modules()) else 1e-8
    for a, b in zip(*found):
        assert a.shape == b.shape and np.abs(a - b).max() <= allowed * max(1e-3, np.abs(b).max())


def test_the_auxiliary_classifier_of_inception_is_torchvisions():
    mine, theirs = (library.inception.InceptionAux(768, 7).eval() for library in (models, torchvision.models))
    mine.load_state_dict({key: mt.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    x = np.random.default_rng(1).standard_normal((2, 768, 17, 17), dtype=np.float32)
    a, b = mine(mt.tensor(x)).numpy(force=True), theirs(torch.tensor(x)).numpy(force=True)
    assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()


def test_whole_models_of_torchvision_run_as_mortices():
    """What ours compute by must be in what torchvision keeps: modules, and attributes by its names."""
    kinds = torchvision.models
    swin = {"patch_size": [4, 4], "embed_dim": 8, "depths": [2], "num_heads": [2], "window_size": [3, 3], "num_classes": 3}
    stage = kinds.convnext.CNBlockConfig(8, None, 2)
    for theirs in (
        kinds.efficientnet.EfficientNet([kinds.efficientnet.MBConvConfig(4, 3, 1, 8, 8, 1)], 0.0, num_classes=3),
        kinds.mobilenet_v3_small(num_classes=3), kinds.ConvNeXt([stage], num_classes=3), kinds.mnasnet0_5(num_classes=3),
        kinds.inception.InceptionE(3), kinds.SwinTransformer(**swin), kinds.SwinTransformer(**swin, **_second(kinds)),
        kinds.MaxVit((32, 32), 8, 4, [8], [1], 4, 0.1, num_classes=3), kinds.regnet_y_400mf(num_classes=3),
        kinds.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None), torchvision.ops.DropBlock2d(0.1, 3),
    ):  # fmt: skip
        file = io.BytesIO()
        torch.save(theirs.eval(), file)
        file.seek(0)
        mine = mt.load(file, weights_only=False)
        assert type(mine).__module__ == type(theirs).__module__.replace("torchvision", "mortice.vision")
        x = np.random.default_rng(1).standard_normal((2, 3, 32, 32), dtype=np.float32)
        with mt.no_grad(), torch.no_grad():
            a, b = results(mine(mt.tensor(x))), results(theirs(torch.tensor(x)))
        for key in b:
            assert np.abs(a[key].numpy() - b[key].numpy()).max() <= 1e-4 * np.abs(b[key].numpy()).max()
