"""The detectors beside torchvision: what they find, losses and gradients with the same weights, and whole models."""

from __future__ import annotations

import io
import sys

import pytest

import mortice as mt

np = pytest.importorskip("numpy", reason="the oracle needs it")
from torchvision_side import torch, torchvision  # noqa: E402

from mortice.vision.models import detection  # noqa: E402

pytestmark = pytest.mark.oracle
SIDES = (mt, torch)


def suppressed(boxes, scores, iou_threshold):
    """Do what torchvision's compiled `nms` does, by the definition."""
    over, gone, kept = torchvision.ops.box_iou(boxes, boxes) > iou_threshold, set(), []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if i not in gone:
            kept.append(i)
            gone.update(torch.where(over[i])[0].tolist())
    return torch.tensor(kept, dtype=torch.int64)


def shares(start, length, bins, size, ratio):
    """Say how much each pixel counts in each bin of each region, sample by sample."""
    out = torch.zeros(len(start), bins, size, dtype=start.dtype)
    for n, (low, side) in enumerate(zip(start.tolist(), length.tolist())):
        count = ratio if ratio > 0 else -int(-side / bins // 1)
        for b in range(bins):
            for s in range(count):
                at = low + (b + (s + 0.5) / count) * side / bins
                if -1.0 <= at <= size:
                    at = min(max(at, 0.0), size - 1.0)
                    out[n, b, int(at)] += (1 - at % 1) / count
                    out[n, b, min(int(at) + 1, size - 1)] += at % 1 / count
    return out


def aligned(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1):
    """Do what torchvision's compiled `roi_align` does."""
    corners = (boxes[:, 1:].detach() * spatial_scale).unbind(1)
    sides = [(corners[i + 2] - corners[i]).clamp(min=1) for i in (0, 1)]
    down, across = (
        shares(corners[i], sides[i], output_size[1 - i], input.shape[3 - i], sampling_ratio) for i in (1, 0)
    )
    return torch.einsum("kph,kchw,kqw->kcpq", down, input[boxes[:, 0].long()], across)


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Let torchvision run without what it compiles, and both draw the same numbers."""
    modules = sys.modules
    monkeypatch.setattr(modules["torchvision.ops.boxes"], "nms", suppressed)
    for name in ("torchvision.ops.poolers", "torchvision.models.detection.roi_heads"):
        monkeypatch.setattr(modules[name], "roi_align", aligned)
    mt.random.set_engine("mt19937")
    yield
    mt.random.set_engine("philox")


def kinds(library):
    """Return the detectors of a library, and its operations."""
    return (detection, mt.vision.ops) if library is mt else (torchvision.models.detection, torchvision.ops)


def pyramid(library, **kwargs):
    make = kinds(library)[0].backbone_utils.resnet_fpn_backbone
    return make(backbone_name="resnet18", weights=None, **{"trainable_layers": 3, **kwargs})


def later(library):
    """Make the pyramid of networks of one stage."""
    extra = kinds(library)[1].feature_pyramid_network.LastLevelP6P7(256, 256)
    return pyramid(library, returned_layers=[2, 3, 4], extra_blocks=extra)


def boxes_of(library):
    parts = kinds(library)[0].faster_rcnn
    few = {f"rpn_{when}_nms_top_n_{mode}": n for when, n in (("pre", 90), ("post", 60)) for mode in ("train", "test")}
    heads = {"box_head": parts.TwoMLPHead(256 * 49, 16), "box_predictor": parts.FastRCNNPredictor(16, 4)}
    return {**heads, **few, **SIZES, "box_detections_per_img": 30, "box_batch_size_per_image": 40}


def faster(library):
    return kinds(library)[0].FasterRCNN(pyramid(library), **boxes_of(library))


def mask(library):
    parts = kinds(library)[0].mask_rcnn
    heads = {"mask_head": parts.MaskRCNNHeads(256, (8,), 2), "mask_predictor": parts.MaskRCNNPredictor(8, 8, 4)}
    return parts.MaskRCNN(pyramid(library, norm_layer=library.nn.BatchNorm2d), **heads, **boxes_of(library))


def keypoint(library):
    parts = kinds(library)[0].keypoint_rcnn
    heads = {
        "keypoint_head": parts.KeypointRCNNHeads(256, (8, 8)), "keypoint_predictor": parts.KeypointRCNNPredictor(8, 5)
    }  # fmt: skip
    return parts.KeypointRCNN(pyramid(library), **heads, **boxes_of(library))


def retinanet(library):
    return kinds(library)[0].RetinaNet(later(library), 4, **SIZES)


def retinanet_v2(library):
    parts = kinds(library)[0].retinanet
    head = parts.RetinaNetHead(256, 9, 4, norm_layer=lambda channels: library.nn.GroupNorm(32, channels))
    head.regression_head._loss_type = "giou"
    return parts.RetinaNet(later(library), 4, head=head, **SIZES)


def fcos(library):
    return kinds(library)[0].FCOS(later(library), 4, score_thresh=0.05, **SIZES)


def ssd(library):
    net = pyramid(library)
    net.out_channels = [256] * 5
    parts = kinds(library)[0]
    generator = parts.anchor_utils.DefaultBoxGenerator([[2], [2, 3], [2], [2], [3]], min_ratio=0.1)
    return parts.ssd.SSD(net, generator, (100, 80), 4)


SIZES = {"min_size": 96, "max_size": 128}
MODELS = [faster, mask, keypoint, retinanet, retinanet_v2, fcos, ssd]


def both(make):
    """Make a detector in both libraries, in float64 and with the same weights, of which none are near zero or one."""
    mine, theirs = (make(library).double() for library in SIDES)
    draw, state = np.random.default_rng(0), theirs.state_dict()
    assert list(mine.state_dict()) == list(state)
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [p.requires_grad for p in mine.parameters()] == [p.requires_grad for p in theirs.parameters()]
    for key, value in state.items():
        size = tuple(value.shape)
        if value.ndim == 1:
            value = draw.normal(0, 0.1, size) if key.endswith(("bias", "mean")) else draw.uniform(0.5, 1.5, size)
        elif value.ndim > 1:
            scale = {"cls": 1.5, "bbox": 0.4, "backbone.body": 0.6}
            value = draw.normal(0, next((x for part, x in scale.items() if part in key), 1.0), size) / np.prod(size[1:]) ** 0.5
        state[key] = torch.tensor(np.asarray(value)).double()
    theirs.load_state_dict(state)
    assert str(mine.load_state_dict({key: mt.tensor(value.numpy()) for key, value in state.items()})) == (
        "<All keys matched successfully>"
    )
    return mine, theirs


def examples(library, empty=False):
    """Return images and what is in them."""
    draw = np.random.default_rng(1)
    images = [draw.random((3, 90, 70)), draw.random((3, 80, 120))]
    boxes = [[[10.0, 12, 50, 60], [5, 30, 40, 80.5]], [[20.3, 10, 90, 70]]]
    targets = []
    for image, corners in zip(images, boxes):
        masks = np.zeros((len(corners), *image.shape[1:]), np.uint8)
        points = np.zeros((len(corners), 5, 3), np.float32)
        for here, at, (x1, y1, x2, y2) in zip(masks, points, corners):
            here[int(y1) : int(y2), int(x1) + 3 : int(x2) - 5] = 1
            at[:] = np.stack([draw.uniform(x1, x2, 5), draw.uniform(y1, y2, 5), [0, 1, 1, 2, 1]], 1)
            at[3, 0] = x2
        labels = np.arange(len(corners)) + 1
        targets.append({"boxes": np.array(corners), "labels": labels, "masks": masks, "keypoints": points})
    if empty:
        targets[1] = {name: values[:0] for name, values in targets[1].items()}
    return [library.tensor(x) for x in images], [{k: library.tensor(v) for k, v in t.items()} for t in targets]


def near(mine, theirs, allowed=1e-9):
    a, b = mine.detach().numpy(), theirs.detach().numpy()
    assert a.shape == b.shape and a.dtype == b.dtype
    allowed = max(allowed, 1e-6) if a.dtype == np.float32 else allowed  # as keypoints are
    assert np.abs(a - b).max(initial=0) <= allowed * max(1.0, np.abs(b).max(initial=0))


def agree(a, b):
    """Compare what was found in images; of equal scores, as padding gives them, the order is any."""
    for ours, its in zip(a, b):
        assert list(ours) == list(its)
        orders = [np.lexsort((*x["boxes"].numpy().round(6).T, x["scores"].numpy().round(9))) for x in (ours, its)]
        for name in its:
            near(ours[name][mt.tensor(orders[0])], its[name][orders[1]])


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_what_is_found_is_what_torchvision_finds(make):
    mine, theirs = (model.eval() for model in both(make))
    with mt.no_grad(), torch.no_grad():
        a, b = mine(examples(mt)[0]), theirs(examples(torch)[0])
    assert len(a) == len(b) == 2 and sum(len(found["boxes"]) for found in b) > 5
    agree(a, b)


@pytest.mark.parametrize("empty", [False, True], ids=["all", "one without boxes"])
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_losses_and_gradients_are_torchvisions(make, empty):
    models = both(make)
    found = []
    for library, model in zip(SIDES, models):
        images, targets = examples(library, empty)
        library.manual_seed(2)
        losses = model.train()(images, targets)
        sum(losses.values()).backward()
        assert targets[0]["boxes"].tolist() == examples(library)[1][0]["boxes"].tolist()  # they are left as they were
        found.append((losses, dict(model.named_parameters())))
    (losses, weights), (want, its) = found
    assert list(losses) == list(want)
    for name in want:
        # PyTorch's binary cross entropy with float32 labels is float32's, where ours is float64's.
        assert abs(losses[name].item() - want[name].item()) <= (1e-6 if name == "loss_objectness" else 1e-9) * max(
            1, abs(want[name].item())
        )
    for name, p in its.items():
        assert (weights[name].grad is None) == (p.grad is None)
        if p.grad is not None:
            near(weights[name].grad, p.grad, 1e-6)


def test_first_weights_are_torchvisions():
    for make in (mask, retinanet_v2, fcos):
        made = []
        for library in SIDES:
            library.manual_seed(0)
            made.append(make(library).state_dict())
        for name, value in made[1].items():
            assert np.abs(made[0][name].numpy() - value.numpy()).max() <= 1e-6, name


def test_ssdlite_and_the_layers_of_a_vgg_are_torchvisions():
    mine, theirs = both(
        lambda library: kinds(library)[0].ssdlite320_mobilenet_v3_large(num_classes=3, weights_backbone=None)
    )
    with mt.no_grad(), torch.no_grad():
        a, b = mine.eval()(examples(mt)[0]), theirs.eval()(examples(torch)[0])
        for ours, its in zip(a, b):
            near(ours["scores"], its["scores"])  # many are equal, and in any order
            assert ours["labels"].bincount().tolist() == its["labels"].bincount().tolist()
    mine, theirs = (
        kinds(library)[0].ssd._vgg_extractor(models.vgg11(init_weights=False), False, 2).double()
        for library, models in ((mt, mt.vision.models), (torch, torchvision.models))
    )
    mine.load_state_dict({key: mt.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    x = np.random.default_rng(0).random((1, 3, 300, 300))
    with mt.no_grad(), torch.no_grad():
        a, b = mine(mt.tensor(x)), theirs(torch.tensor(x))
    assert list(a) == list(b) and len(a) == 6
    for name in b:
        near(a[name], b[name])


def test_whole_models_of_torchvision_run_as_mortices():
    for make in (mask, retinanet, fcos, ssd):
        theirs, file = both(make)[1].eval(), io.BytesIO()
        torch.save(theirs, file)
        file.seek(0)
        mine = mt.load(file, weights_only=False)
        assert type(mine).__module__ == type(theirs).__module__.replace("torchvision", "mortice.vision")
        with mt.no_grad(), torch.no_grad():
            agree(mine(examples(mt)[0]), theirs(examples(torch)[0]))


def test_many_boxes_of_classes_are_suppressed_as_torchvision_suppresses_them():
    draw = np.random.default_rng(0)
    for n in (300, 1500):  # from a thousand on a class at a time
        low = draw.uniform(0, 200, (n, 2))
        boxes, scores = np.concatenate([low, low + draw.uniform(5, 60, (n, 2))], 1), draw.random(n)
        classes = draw.integers(0, 4, n)
        mine, want = (
            kinds(t)[1].batched_nms(t.tensor(boxes), t.tensor(scores), t.tensor(classes), 0.4).tolist() for t in SIDES
        )
        assert mine == want and 100 < len(want) < n
