"""The image classifiers: what they are made of, training and evaluation, weights that are published."""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from vision.models_table import TABLE, make, names, row

import mortice as mt
from mortice.utils.fetch import DownloadError
from mortice.vision import models
from mortice.vision.models import weights
from mortice.vision.models.feature_extraction import create_feature_extractor, get_graph_node_names

nn = mt.nn
pytestmark = pytest.mark.filterwarnings("ignore:The default weight initialization of")
ROWS = {line.split()[0]: line for line in TABLE.read_text().splitlines()}
LARGE = 9_000_000  # parameters: what has more is made beside torchvision only


def image(n=2, size=64, channels=3, seed=0):
    return mt.randn(n, channels, size, size, generator=mt.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", [name for name in ROWS if int(ROWS[name].split()[1]) < LARGE])
def test_parameters_and_keys_are_torchvisions(name):
    assert row(name, make(models, name)) == ROWS[name]


def test_the_table_has_every_model():
    assert sorted(ROWS) == names()
    assert set(models.list_models()) == {*ROWS, "lenet"}


def test_models_are_listed_and_found_by_name():
    assert models.list_models(include="resnet*", exclude=["*1*"]) == ["resnet34", "resnet50"]
    parts = [models.list_models(part) for part in (models, models.segmentation, models.video, models.detection)]
    assert sorted(sum(parts, [])) == models.list_models() and models.list_models(mt) == []
    assert parts[1][-1] == "lraspp_mobilenet_v3_large" and "vgg11" in parts[0]
    assert models.get_model_builder("ResNet18") is models.resnet18 and models.resnet18.__name__ == "resnet18"
    assert models.get_model("squeezenet1_1", num_classes=3).num_classes == 3
    with pytest.raises(ValueError, match="^Unknown model resnet19$"):
        models.get_model("resnet19")
    assert list(inspect.signature(models.vgg11).parameters) == ["weights", "progress", "kwargs"]
    assert models.resnet18.__doc__ == "Make ResNet-18; keyword arguments go to ResNet."
    with pytest.raises(ValueError, match="resnext50_32x4d: groups is 32 by definition; got 1"):
        models.resnext50_32x4d(groups=1)


SMALL = {
    "lenet": 28, "squeezenet1_1": 64, "mobilenet_v2": 32, "shufflenet_v2_x0_5": 32, "resnet18": 32, "densenet121": 32,
    "googlenet": 32, "efficientnet_b0": 32, "mobilenet_v3_small": 32, "regnet_y_400mf": 32,
    "mnasnet0_5": 32,
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_a_model_trains_and_evaluates(name):
    trains_and_evaluates(name, models.get_model(name, num_classes=5))


# small networks of families whose smallest named member is large
OWN = {
    "vision_transformer": lambda: models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5),
    "convnext": lambda: models.ConvNeXt(
        [models.convnext.CNBlockConfig(8, 16, 1), models.convnext.CNBlockConfig(16, None, 2)], 0.1, num_classes=5
    ),
    "swin_transformer": lambda: models.SwinTransformer([2, 2], 8, [2, 2], [2, 4], [3, 3], num_classes=5),
    "maxvit": lambda: models.MaxVit((32, 32), 8, 4, [8, 12], [1, 2], 4, 0.1, num_classes=5),
}


@pytest.mark.parametrize("name", OWN)
def test_a_network_of_ones_own_trains_and_evaluates(name):
    trains_and_evaluates("resnet18", OWN[name]())


def trains_and_evaluates(name, model):
    x = image(size=SMALL[name], channels=1 if name == "lenet" else 3)
    model.train()
    out = model(x)
    loss = nn.functional.cross_entropy(out.logits if name == "googlenet" else out, mt.tensor([1, 3]))
    if name == "googlenet":
        loss = loss + out.aux_logits1.sum() + out.aux_logits2.sum()
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    model.eval()
    with mt.no_grad():
        first, again = model(x), model(x)
    assert first.shape == (2, 5) and mt.equal(first, again)


def test_lenet_takes_both_sizes_and_has_the_papers_layers():
    model = models.lenet()
    assert sum(p.numel() for p in model.parameters()) == 61706
    assert model(image(3, 28, 1)).shape == model(image(3, 32, 1)).shape == (3, 10)
    assert models.lenet(in_channels=3, num_classes=4)(image(1, 32)).shape == (1, 4)


def test_residual_blocks_begin_as_identities_where_told_to():
    model = models.resnet18(zero_init_residual=True)
    assert all(block.bn2.weight.abs().max() == 0 for block in model.layer1)
    model = models.resnet50(zero_init_residual=True, num_classes=2)
    assert all(block.bn3.weight.abs().max() == 0 for block in model.layer4)


def test_efficient_nets_of_ones_own_stages():
    from mortice.vision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig

    stages = [FusedMBConvConfig(1, 3, 1, 8, 8, 1), MBConvConfig(4, 5, 2, 8, 12, 2, depth_mult=1.2)]
    model = EfficientNet(stages, 0.1, num_classes=3, last_channel=24)
    assert [len(stage) for stage in model.features[1:3]] == [1, 3] and model.features[2][2].out_channels == 16
    assert [block.stochastic_depth.p for block in model.features[2]] == [0.05, 0.1, 0.15000000000000002]
    assert model(image()).shape == (2, 3)
    assert models.efficientnet_b0().classifier[0].p == 0.2
    assert models.efficientnet_b0(dropout=0.0).classifier[0].p == 0.0
    with pytest.raises(ValueError, match="^The inverted_residual_setting should not be empty$"):
        EfficientNet([], 0.1)
    with pytest.raises(TypeError, match="^The inverted_residual_setting should be List.MBConvConfig.$"):
        EfficientNet([(1, 3, 1, 8, 8, 1)], 0.1)
    with pytest.raises(ValueError, match="^illegal stride value$"):
        EfficientNet([MBConvConfig(1, 3, 3, 8, 8, 1)], 0.1)


def test_dilation_in_place_of_strides():
    model = models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 2], 3, replace_stride_with_dilation=[False, True, True])
    assert model.layer4[1].conv2.dilation == (4, 4) and model.layer4[0].conv2.dilation == (2, 2)
    assert model.layer4(model.layer3(mt.ones(1, 512, 8, 8))).shape[-2:] == (8, 8)
    with pytest.raises(ValueError, match="replace_stride_with_dilation should be None or a 3-element tuple"):
        models.resnet18(replace_stride_with_dilation=[True])
    with pytest.raises(NotImplementedError, match="Dilation > 1 not supported in BasicBlock"):
        models.resnet18(replace_stride_with_dilation=[True, True, True])


def test_other_norms():
    model = models.resnet18(norm_layer=partial(nn.GroupNorm, 4))
    assert not [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)] and model.bn1.weight.min() == 1


def test_first_weights_follow_the_scheme():
    """Means and deviations of the layers' first weights, as torchvision documents them."""
    mt.manual_seed(0)
    conv = models.resnet18().layer3[0].conv2.weight
    assert abs(conv.std().item() - (2 / (256 * 9)) ** 0.5) < 2e-4 and abs(conv.mean().item()) < 1e-4
    net = models.squeezenet1_0()
    assert abs(net.classifier[1].weight.std().item() - 0.01) < 1e-4 and net.features[0].bias.abs().max() == 0
    net = models.mobilenet_v2()
    assert abs(net.classifier[1].weight.std().item() - 0.01) < 1e-4 and net.classifier[1].bias.abs().max() == 0
    net = models.VisionTransformer(32, 32, 1, 12, 768, 64, representation_size=64)
    assert net.heads.head.weight.abs().max() == 0 and abs(net.encoder.pos_embedding.std().item() - 0.02) < 2e-3
    assert abs(net.conv_proj.weight.std().item() - (1 / 3072) ** 0.5) < 1e-3
    net = models.googlenet(num_classes=3)
    assert abs(net.conv3.conv.weight.std().item() - 0.01) < 1e-4 and net.fc.bias.abs().max() > 0


def test_a_vision_transformer_refuses_other_sizes():
    model = models.VisionTransformer(64, 32, 1, 1, 4, 4)
    assert model.seq_length == 5
    with pytest.raises(AssertionError, match="^Wrong image height! Expected 64 but got 32!$"):
        model(image(size=32))
    with pytest.raises(AssertionError, match="^Input shape indivisible by patch size!$"):
        models.vit_b_16(image_size=30)


def test_a_stem_of_convolutions():
    stem = [models.vision_transformer.ConvStemConfig(8, 3, 2), models.vision_transformer.ConvStemConfig(16, 3, 2)]
    model = models.VisionTransformer(16, 4, 1, 2, 8, 16, num_classes=3, conv_stem_configs=stem)
    assert model(image(size=16)).shape == (2, 3) and "conv_proj.conv_bn_relu_1.0.weight" in model.state_dict()


def test_keys_of_older_files_are_read():
    model = models.DenseNet(4, (2,), 8, num_classes=2)
    old = {k.replace("norm1.", "norm.1.").replace("conv2.", "conv.2."): v + 1 for k, v in model.state_dict().items()}
    assert "features.denseblock1.denselayer2.norm.1.weight" in old
    model.load_state_dict(old)
    assert mt.equal(
        model.features.denseblock1.denselayer2.conv2.weight, old["features.denseblock1.denselayer2.conv.2.weight"]
    )
    model = models.VisionTransformer(8, 4, 1, 1, 4, 4)
    old = {
        k.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): v + 1
        for k, v in model.state_dict().items()
    }
    model.load_state_dict(old)
    assert mt.equal(model.encoder.layers[0].mlp[3].bias, old["encoder.layers.encoder_layer_0.mlp.linear_2.bias"])


def test_inception_listens_to_its_auxiliary_classifier_in_training_alone():
    model = models.inception_v3(num_classes=3)
    model.Mixed_6e.register_forward_hook(lambda module, args, out: nn.functional.interpolate(out, (17, 17)))
    out = model.train()(image(size=75))
    assert isinstance(out, models.InceptionOutputs) and out.logits.shape == out.aux_logits.shape == (2, 3)
    assert model.eval()(image(size=75)).shape == (2, 3)
    with pytest.raises(ValueError, match="^length of inception_blocks should be 7 instead of 1$"):
        models.inception_v3(inception_blocks=[nn.Conv2d])


def test_segmentation_gives_each_pixel_its_classes():
    x = image(size=48)[:, :, :40]
    model = models.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=3).train()
    out = model(x)
    out["out"].sum().backward()
    assert list(out) == ["out"] and out["out"].shape == (2, 3, 40, 48)
    assert all(p.grad is not None for p in model.parameters())
    model = models.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, aux_loss=True)
    assert {name: y.shape for name, y in model(x).items()} == {"out": (2, 21, 40, 48), "aux": (2, 21, 40, 48)}
    model = models.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None)
    assert model.aux_classifier is None and model.backbone["15"].block[1][0].dilation == (2, 2)
    with pytest.raises(NotImplementedError, match="^This model does not use auxiliary loss$"):
        models.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, aux_loss=True)


@pytest.mark.parametrize("conv", ["Conv3DSimple", "Conv2Plus1D", "Conv3DNoTemporal"])
def test_a_residual_network_of_films_trains(conv):
    parts = models.video.resnet
    model = parts.VideoResNet(
        parts.Bottleneck, [getattr(parts, conv)] * 4, [1, 2, 1, 1], parts.BasicStem, 5, zero_init_residual=True
    )
    assert model.layer2[1].conv3[1].weight.abs().max() == 0
    out = model(mt.randn(2, 3, 8, 16, 16))
    out.sum().backward()
    assert out.shape == (2, 5) and all(p.grad is not None for p in model.parameters())
    assert model.layer2(model.layer1(mt.ones(1, 64, 4, 8, 8))).shape[2:] == (4 if "No" in conv else 2, 4, 4)


def test_films_are_prepared():
    chosen = models.video.R2Plus1D_18_Weights.DEFAULT
    film = mt.randint(256, (4, 3, 60, 80), dtype=mt.uint8)
    assert chosen.transforms()(film).shape == (3, 4, 112, 112)
    assert chosen.transforms(crop_size=(20, 30), resize_size=(40, 50))(film[None]).shape == (1, 3, 4, 20, 30)
    assert repr(chosen) == "R2Plus1D_18_Weights.KINETICS400_V1" and len(chosen.meta["categories"]) == 400
    assert models.video.S3D_Weights.DEFAULT.meta["min_temporal_size"] == 14


def test_files_of_the_first_mnasnet_are_read():
    model = models.mnasnet0_5(num_classes=2)
    old = models.mnasnet0_5(num_classes=2)
    old.layers = nn.Sequential(*models.mnasnet._beginning(32, 16, 16), *list(old.layers)[9:])
    state = old.state_dict()
    state._metadata[""] = {"version": 1}
    with pytest.warns(UserWarning, match="first version of MNASNet"):
        model.load_state_dict(state)
    assert mt.equal(model.eval()(image()), old.eval()(image()))
    model.load_state_dict(model.state_dict())
    state._metadata[""] = {"version": 3}
    with pytest.raises(ValueError, match="^version should be set to 1 or 2 instead of 3$"):
        model.load_state_dict(state)


def test_a_dense_net_that_saves_memory_gives_the_same_gradients():
    plain, saving = (models.DenseNet(4, (2, 2), 8, num_classes=2, memory_efficient=m) for m in (False, True))
    saving.load_state_dict(plain.state_dict())
    for model in (plain, saving):
        model(image(size=32)).sum().backward()
    assert mt.allclose(plain.features.conv0.weight.grad, saving.features.conv0.weight.grad, atol=1e-5)


def test_fine_tuning_with_frozen_layers(tmp_path):
    """The notes' way: load weights, freeze them, replace the last layer."""
    mt.save(models.squeezenet1_1().state_dict(), tmp_path / "weights.pth")
    model = models.squeezenet1_1()
    model.load_state_dict(mt.load(tmp_path / "weights.pth"))
    for p in model.parameters():
        p.requires_grad = False
    model.classifier[1] = nn.Conv2d(512, 3, 1)
    model(image()).sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is not None] == [
        "classifier.1.weight",
        "classifier.1.bias",
    ]


# ---- weights ----


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Serve weights of SqueezeNet 1.1 as they are published, and keep what is fetched in a folder of the test's."""
    (tmp_path / "served").mkdir()
    model = models.squeezenet1_1()
    mt.save(model.state_dict(), tmp_path / "served" / "file")
    data = (tmp_path / "served" / "file").read_bytes()
    checksum = hashlib.sha256(data).hexdigest()[:8]
    (tmp_path / "served" / "file").rename(tmp_path / "served" / f"squeezenet1_1-{checksum}.pth")
    monkeypatch.setitem(weights.PUBLISHED, "squeezenet1_1", checksum)
    monkeypatch.setattr(weights, "_made", {})
    monkeypatch.setenv("MORTICE_HOME", str(tmp_path / "home"))
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *args: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=tmp_path / "served")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(weights, "BASE", f"http://127.0.0.1:{server.server_address[1]}/")
        yield model
        server.shutdown()
        thread.join()


def test_published_weights_are_fetched_once_and_loaded(published, tmp_path, monkeypatch):
    for wanted in (
        "DEFAULT",
        "IMAGENET1K_V1",
        models.SqueezeNet1_1_Weights.DEFAULT,
        "SqueezeNet1_1_Weights.IMAGENET1K_V1",
    ):
        model = models.squeezenet1_1(weights=wanted)
        assert mt.equal(model.features[0].weight, published.features[0].weight)
        monkeypatch.setattr(weights, "BASE", "http://127.0.0.1:9/")  # from now on from the folder
    meant = "equivalent to passing `weights=SqueezeNet1_1_Weights.IMAGENET1K_V1`. You can also use"
    with pytest.warns(UserWarning, match="'pretrained' is deprecated"), pytest.warns(UserWarning, match=meant):
        model = models.squeezenet1_1(pretrained=True)
    assert mt.equal(model.features[0].weight, published.features[0].weight)
    assert len(list((tmp_path / "home" / "checkpoints").iterdir())) == 1


def test_weights_that_cannot_be_fetched_say_what_to_put_where(published, tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "BASE", "http://127.0.0.1:9/")
    with pytest.raises(DownloadError) as caught:
        models.squeezenet1_1(weights="DEFAULT")
    text = str(caught.value)
    assert text.startswith("SqueezeNet1_1_Weights.IMAGENET1K_V1: could not fetch squeezenet1_1-") or text.startswith(
        "squeezenet1_1_Weights"
    )
    assert (
        f"put it at {tmp_path / 'home' / 'checkpoints'}" in text and "model.load_state_dict(mortice.load(path))" in text
    )


def test_a_file_that_is_not_the_published_one_is_named(published, tmp_path, monkeypatch):
    models.squeezenet1_1(weights="DEFAULT")
    (path,) = (tmp_path / "home" / "checkpoints").iterdir()
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(RuntimeError, match=r"DEFAULT|IMAGENET1K_V1: .*\.pth is not the published file: .* Remove it"):
        models.squeezenet1_1(weights="DEFAULT")
    path.unlink()
    models.squeezenet1_1(weights="DEFAULT")
    assert path.exists()


def test_weights_are_found_in_the_models_own_modules():
    from mortice.vision.models.resnet import ResNet18_Weights, resnet18  # noqa: F401

    assert ResNet18_Weights is models.ResNet18_Weights and models.vgg.VGG16_Weights is models.VGG16_Weights
    with pytest.raises(AttributeError, match="module 'mortice.vision.models.resnet' has no attribute 'resnet19'"):
        models.resnet.resnet19  # noqa: B018


def test_weights_say_how_images_are_prepared_and_what_the_outputs_mean():
    """The manual's example: from a picture to the name of what is in it."""
    chosen = models.ResNet50_Weights.DEFAULT
    prepare = chosen.transforms()
    batch = prepare(mt.randint(256, (3, 300, 400), dtype=mt.uint8)).unsqueeze(0)
    assert batch.shape == (1, 3, 224, 224) and batch.dtype is mt.float32 and prepare.resize_size == [232]
    assert chosen.transforms(crop_size=64, resize_size=64)(mt.rand(2, 3, 80, 90)).shape == (2, 3, 64, 64)
    assert len(chosen.meta["categories"]) == 1000 and chosen.meta["num_params"] == 25557032
    assert [chosen.meta["categories"][i] for i in (0, 281, 999)] == ["tench", "tabby", "toilet tissue"]
    assert models.ViT_L_16_Weights.DEFAULT.meta["min_size"] == (224, 224)


def test_weights_decide_what_their_models_are(monkeypatch):
    """Files hold auxiliary classifiers and are for images of one scale; nothing else is fetched beside them."""
    asked = []

    def kept(chosen, progress=True):
        asked.append(repr(chosen))
        return {}

    monkeypatch.setattr(weights.Weights, "get_state_dict", kept)
    monkeypatch.setattr(nn.Module, "load_state_dict", lambda module, state: asked.append(type(module).__name__))
    model = models.segmentation.deeplabv3_mobilenet_v3_large(weights="DEFAULT")
    assert model.aux_classifier is not None and asked == [
        "DeepLabV3_MobileNet_V3_Large_Weights.COCO_WITH_VOC_LABELS_V1", "DeepLabV3",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="^The parameter 'aux_loss' expected value True but got False instead"):
        models.segmentation.deeplabv3_mobilenet_v3_large(weights="DEFAULT", aux_loss=False)
    with pytest.raises(ValueError, match="^The parameter 'num_classes' expected value 21 but got 1000 instead"):
        models.segmentation.deeplabv3_mobilenet_v3_large(weights="DEFAULT", num_classes=1000)
    del asked[:]
    models.segmentation.lraspp_mobilenet_v3_large()
    assert asked == ["MobileNet_V3_Large_Weights.IMAGENET1K_V1", "MobileNetV3"]
    model = models.googlenet(weights="DEFAULT")
    assert model.transform_input and not model.aux_logits and model.aux1 is None
    model = models.inception_v3(weights="DEFAULT", transform_input=False)
    assert not model.transform_input and model.aux_logits and model.AuxLogits is not None
    sizes = []
    for entry in ("IMAGENET1K_V1", "IMAGENET1K_SWAG_E2E_V1", "IMAGENET1K_SWAG_LINEAR_V1", "DEFAULT"):
        weights.pretrained("vit_b_16", lambda **given: sizes.append(given["image_size"]) or nn.Module(), entry, False, {})
    assert sizes == [224, 384, 224, 224] and models.RegNet_Y_128GF_Weights.DEFAULT.name == "IMAGENET1K_SWAG_E2E_V1"


def test_images_are_prepared_for_segmentation():
    chosen = models.segmentation.LRASPP_MobileNet_V3_Large_Weights.DEFAULT
    assert chosen.transforms()(mt.zeros(3, 260, 520, dtype=mt.uint8)).shape == (3, 520, 1040)
    found = chosen.transforms(resize_size=None, mean=(0.5,) * 3, std=(0.25,) * 3)(mt.full((1, 3, 4, 5), 255, dtype=mt.uint8))
    assert found.shape == (1, 3, 4, 5) and found.min() == found.max() == 2
    assert chosen.meta["categories"][:2] == ["__background__", "aeroplane"] and len(chosen.meta["categories"]) == 21


def test_names_of_weights():
    assert repr(models.ResNet50_Weights.DEFAULT) == "ResNet50_Weights.IMAGENET1K_V2"
    assert isinstance(models.get_weight("ResNet50_Weights.DEFAULT"), importlib.import_module("mortice.vision.models._api").WeightsEnum)
    assert models.get_weight("ResNet50_Weights.IMAGENET1K_V1").url.endswith("/models/resnet50-0676ba61.pth")
    assert models.get_model_weights(models.vgg16_bn) is models.VGG16_BN_Weights
    with pytest.raises(ValueError, match="expected weights among IMAGENET1K_V1, DEFAULT; got 'IMAGENET22K'"):
        models.resnet18(weights="IMAGENET22K")
    with pytest.raises(TypeError, match="Invalid Weight class provided; expected .* but received Weights|expected"):
        models.resnet18(weights=1)
    with pytest.raises(ValueError, match="The parameter 'num_classes' expected value 1000 but got 5 instead."):
        models.resnet18(weights="DEFAULT", num_classes=5)
    with pytest.raises(ValueError, match="lenet: no weights are published for it."):
        models.lenet(weights="DEFAULT")
    with pytest.raises(AttributeError, match="module 'mortice.vision.models' has no attribute 'Other_Weights'"):
        models.Other_Weights  # noqa: B018


def test_models_need_neither_pillow_nor_numpy():
    code = """
import sys
sys.modules["PIL"] = None
from mortice import vision
vision.models.lenet, vision.utils.make_grid, vision.datasets.ImageFolder, vision.io.read_image
assert "numpy" not in sys.modules or "mortice_cpu_numpy" in sys.modules
try:
    vision.datasets.FakeData()[0]
except ModuleNotFoundError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert out.stdout.strip() == (
        "mortice.vision: image files and PIL images need Pillow, which is not installed (pip install 'mortice[vision]')."
    ), out.stderr


def test_models_give_what_their_layers_give():
    model = models.resnet18().eval()
    x = image()
    part = create_feature_extractor(model, {"layer2": "late", "layer1.0.relu": "first", "layer1.0.relu_1": "second"})
    model.fc.register_forward_hook(lambda *args: pytest.fail("what is not needed is left out"))
    found = part(x)
    assert list(found) == ["first", "second", "late"]
    h = model.maxpool(model.relu(model.bn1(model.conv1(x))))
    first = model.layer1[0]
    near = partial(mt.testing.assert_close, rtol=1e-5, atol=1e-5)
    near(found["first"], first.relu(first.bn1(first.conv1(h))))
    near(found["second"], first(h))
    near(found["late"], model.layer2(model.layer1(h)))
    left_out = {key for key in model.state_dict() if key.startswith(("layer3", "layer4", "fc"))}
    assert set(part.state_dict()) == set(model.state_dict()) - left_out and not part.training
    assert part.layer1 is not model.layer1 and getattr(part.layer1, "0").conv1 is model.layer1[0].conv1
    part.train()
    assert not model.training and model.bn1.training  # the layers are the model's own
    part.eval()
    near(copy.deepcopy(part.eval()).double()(x.double())["late"].float(), found["late"])
    found["late"].sum().backward()
    assert part.conv1.weight.grad is model.conv1.weight.grad is not None and model.fc.weight.grad is None


def test_normalisations_of_a_resnet_are_folded_and_layers_give_what_hooks_see():
    from mortice.fx.optimization import fuse

    model = models.resnet18()
    model(mt.randn(4, 3, 64, 64))  # the statistics are no longer 0 and 1
    made, x = fuse(model.eval()), mt.randn(2, 3, 64, 64)
    assert not [m for m in made.modules() if isinstance(m, nn.BatchNorm2d)] and isinstance(model.bn1, nn.BatchNorm2d)
    mt.testing.assert_close(made(x), model(x), rtol=1e-3, atol=1e-4)
    seen, names = {}, ["layer1", "layer2", "layer3", "layer4", "avgpool"]
    part = create_feature_extractor(model, [*names, "flatten"])
    for name in names:
        getattr(model, name).register_forward_hook(lambda m, args, out, name=name: seen.update({name: out}))
    model(x)
    found = part(x)
    assert list(found) == [*names, "flatten"] and mt.equal(found["flatten"], seen["avgpool"].flatten(1))
    assert all(mt.equal(found[name], seen[name]) for name in names)


def test_layers_to_return_are_there_and_run():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert get_graph_node_names(model) == (["input", "0", "1"], ["input", "0", "1"])
    modes = create_feature_extractor(model, train_return_nodes=["0"], eval_return_nodes=["1"])
    assert list(modes(mt.ones(1, 2))) == ["0"] and list(modes.eval()(mt.ones(1, 2))) == ["1"]
    with pytest.raises(ValueError, match="node: 'flatten' is not present in model"):
        create_feature_extractor(model, ["flatten"])
    with pytest.raises(ValueError, match="node: '1_1' is not present in model"):
        create_feature_extractor(model, ["0", "1_1"])
    with pytest.raises(ValueError, match="Either `return_nodes`"):
        create_feature_extractor(model)


def test_pictures_are_read_with_pillow():
    from mortice import vision

    vision.set_image_backend("PIL")
    assert vision.get_image_backend() == "PIL"
    with pytest.raises(ValueError, match="Invalid backend 'cv2'"):
        vision.set_image_backend("cv2")
