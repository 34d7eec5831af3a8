"""The detectors: their parts, training and what they find, how they are made, and what they refuse."""

import pytest

import mortice as mt
from mortice.vision import models
from mortice.vision.models import detection, weights
from mortice.vision.models.detection import _utils, anchor_utils, backbone_utils, roi_heads, transform
from mortice.vision.models.detection.image_list import ImageList
from mortice.vision.ops import FrozenBatchNorm2d, MultiScaleRoIAlign, batched_nms, nms

nn = mt.nn


class Backbone(nn.Sequential):
    out_channels = 16

    def __init__(self):
        steps = [(3, 8, 2), (8, 16, 2), (16, 16, 2)]
        super().__init__(*(nn.Sequential(nn.Conv2d(i, o, 3, s, 1), nn.ReLU()) for i, o, s in steps))


def small(kind=detection.FasterRCNN, **kwargs):
    anchors = anchor_utils.AnchorGenerator(((16, 32),), ((1.0,),))
    pool = MultiScaleRoIAlign(["0"], 5, 2)
    mt.manual_seed(0)
    return kind(
        Backbone(), min_size=64, max_size=64, rpn_anchor_generator=anchors, box_roi_pool=pool,
        box_head=detection.faster_rcnn.TwoMLPHead(16 * 25, 32), box_predictor=detection.faster_rcnn.FastRCNNPredictor(32, 2),
        **kwargs,
    )  # fmt: skip


def squares(n):
    """Return images of noise with a white square each, and where it is."""
    images, targets = [], []
    for i in range(n):
        x, y, side = 4 + 7 * i % 30, 8 + 11 * i % 25, 18 + 3 * (i % 4)
        image = mt.rand(3, 64, 64) * 0.2
        image[:, y : y + side, x : x + side] = 1.0
        images.append(image)
        box = mt.tensor([[x, y, x + side, y + side]], dtype=mt.float32)
        mask = mt.zeros(1, 64, 64, dtype=mt.uint8)
        mask[0, y : y + side, x : x + side] = 1
        targets.append({"boxes": box, "labels": mt.tensor([1]), "masks": mask})
    return images, targets


def test_a_detector_learns_to_find_squares_and_their_masks():
    parts = detection.mask_rcnn
    model = small(
        detection.MaskRCNN, mask_roi_pool=MultiScaleRoIAlign(["0"], 7, 2), mask_head=parts.MaskRCNNHeads(16, (16,), 1),
        mask_predictor=parts.MaskRCNNPredictor(16, 8, 2),
    )  # fmt: skip
    images, targets = squares(2)
    optimizer = mt.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(80):
        losses = model.train()(images, targets)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert list(losses) == ["loss_classifier", "loss_box_reg", "loss_mask", "loss_objectness", "loss_rpn_box_reg"]
    assert loss.item() < 0.7
    with mt.no_grad():
        found = model.eval()(images)
    for here, true in zip(found, targets):
        assert here["masks"].shape == (len(here["boxes"]), 1, 64, 64) and here["labels"][0] == 1
        assert here["scores"][0] > 0.5 and mt.vision.ops.box_iou(here["boxes"][:1], true["boxes"]).item() > 0.5
        mask = here["masks"][0] > 0.5
        assert (mask & (true["masks"] > 0)).sum() > 0.6 * (mask | (true["masks"] > 0)).sum()


def test_what_a_detector_refuses():
    model = small().train()
    images, targets = squares(1)
    for bad, message in (
        (None, "^targets should not be none when in training mode$"),
        ([{**targets[0], "boxes": [[0, 0, 1, 1]]}], "^Expected target boxes to be of type Tensor, got <class 'list'>.$"),
        ([{**targets[0], "boxes": mt.zeros(4)}], r"Expected target boxes to be a tensor of shape \[N, 4\], got "),
        ([{**targets[0], "boxes": mt.tensor([[5.0, 5, 5, 9]])}],
         r"positive height and width. Found invalid box \[5.0, 5.0, 5.0, 9.0\] for target at index 0.$"),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match=message):
            model(images, bad)
    with pytest.raises(TypeError, match="^target labels must of int64 type, instead got mortice.int32$"):
        model(images, [{**targets[0], "labels": targets[0]["labels"].int()}])
    with pytest.raises(TypeError, match="^Expected input images to be of floating type"):
        model([images[0].byte()], targets)
    with pytest.raises(ValueError, match="^images is expected to be a list of 3d tensors of shape "):
        model([images[0][None]], targets)
    with pytest.raises(ValueError, match="^backbone should contain an attribute out_channels "):
        detection.FasterRCNN(nn.Identity(), 2)
    with pytest.raises(ValueError, match="^num_classes should not be None when box_predictor is not specified$"):
        detection.FasterRCNN(Backbone())
    with pytest.raises(ValueError, match="^num_classes should be None when box_predictor is specified$"):
        small(num_classes=2)
    with pytest.raises(TypeError, match="^mask_roi_pool should be of type MultiScaleRoIAlign or None instead of <class 'int'>$"):
        detection.MaskRCNN(Backbone(), 2, mask_roi_pool=1)
    with pytest.raises(ValueError, match=r"num_anchors_per_location\(\)\[0\] should be 1 instead of 2$"):
        detection.FCOS(Backbone(), 2, anchor_generator=anchor_utils.AnchorGenerator(((8, 9),), ((1.0,),)))


def test_boxes_are_coded_as_shifts_of_others_and_back():
    boxes, anchors = mt.tensor([[2.0, 3, 10, 9], [0, 0, 4, 8]]), mt.tensor([[0.0, 0, 8, 8], [0, 0, 4, 4]])
    coder = _utils.BoxCoder((10.0, 10.0, 5.0, 5.0))
    codes = coder.encode_single(boxes, anchors)
    assert codes[0].tolist() == pytest.approx([2.5, 2.5, 0, 5 * mt.log(mt.tensor(0.75)).item()])
    assert mt.allclose(coder.decode_single(codes, anchors), boxes, atol=1e-5)
    assert coder.decode(mt.cat([codes, codes], 1), [anchors]).shape == (2, 2, 4)
    assert coder.decode(codes[:0], [anchors[:0]]).shape == (0, 1, 4)
    assert coder.decode_single(mt.tensor([[0.0, 0, 99, 0]]), anchors[:1])[0, 2].item() == pytest.approx(4 + 4 * 62.5)
    for sized in (True, False):
        linear = _utils.BoxLinearCoder(sized)
        codes = linear.encode(anchors, boxes)
        assert mt.allclose(linear.decode(codes, anchors), boxes) and codes[0, 0] == (0.25 if sized else 2)


def test_predictions_are_matched_with_true_boxes():
    quality = mt.tensor([[0.9, 0.5, 0.2, 0.1], [0.3, 0.45, 0.4, 0.0]])
    assert _utils.Matcher(0.7, 0.3)(quality).tolist() == [0, -2, -2, -1]
    assert _utils.Matcher(0.7, 0.3, allow_low_quality_matches=True)(quality).tolist() == [0, 0, -2, -1]
    assert _utils.SSDMatcher(0.5)(quality).tolist() == [0, 1, -1, -1]
    for shape, kind in (((0, 3), "ground-truth"), ((3, 0), "proposal")):
        with pytest.raises(ValueError, match=f"^No {kind} boxes available for one of the images during training$"):
            _utils.Matcher(0.7, 0.3)(mt.zeros(*shape))
    with pytest.raises(AssertionError, match="^low_threshold should be <= high_threshold$"):
        _utils.Matcher(0.3, 0.7)
    labels = mt.tensor([1.0, 0, -1, 0, 1, 1, 0])
    positive, negative = _utils.BalancedPositiveNegativeSampler(4, 0.5)([labels])
    assert positive[0].sum() == 2 and negative[0].sum() == 2
    assert (labels[positive[0].bool()] == 1).all() and (labels[negative[0].bool()] == 0).all()


def test_anchors_lie_around_each_pixel():
    generator = anchor_utils.AnchorGenerator(((4, 8),), ((1.0, 4.0),))
    images = ImageList(mt.zeros(2, 3, 6, 8), [(6, 8), (5, 7)])
    anchors = generator(images, [mt.zeros(2, 1, 3, 2)])
    assert len(anchors) == 2 and anchors[0].shape == (24, 4) and generator.num_anchors_per_location() == [4]
    assert anchors[0][:4].tolist() == [[-2, -2, 2, 2], [-4, -4, 4, 4], [-1, -4, 1, 4], [-2, -8, 2, 8]]
    assert anchors[0][-4].tolist() == [2, 2, 6, 6]  # 4 to the right, and twice 2 down
    with pytest.raises(AssertionError, match="^Anchors should be Tuple"):
        generator(images, [mt.zeros(2, 1, 3, 2)] * 2)
    boxes = anchor_utils.DefaultBoxGenerator([[4]], scales=[0.5, 0.5], clip=False)
    assert boxes(images, [mt.zeros(2, 1, 1, 1)])[0].tolist() == [
        [2, 1.5, 6, 4.5], [2, 1.5, 6, 4.5], [0, 2.25, 8, 3.75], [3, 0, 5, 6]
    ]  # fmt: skip
    with pytest.raises(ValueError, match="^aspect_ratios and steps should have the same length$"):
        anchor_utils.DefaultBoxGenerator([[2]], steps=[8, 16])


def test_images_are_prepared_and_results_brought_back():
    prepared = transform.GeneralizedRCNNTransform(8, 12, [0.5] * 3, [0.25] * 3, size_divisible=8).eval()
    target = {"boxes": mt.tensor([[0.0, 1, 2, 4]]), "masks": mt.ones(1, 4, 4, dtype=mt.uint8)}
    target["keypoints"] = mt.tensor([[[1.0, 2.0, 1.0]]])
    images, targets = prepared([mt.ones(3, 4, 4), mt.ones(3, 4, 8)], [target, target])
    assert images.image_sizes == [(8, 8), (6, 12)] and images.tensors.shape == (2, 3, 8, 16)
    assert images.tensors[1, 0, :, 11].tolist() == [2] * 6 + [0] * 2
    assert targets[0]["boxes"].tolist() == [[0, 2, 4, 8]] and targets[0]["masks"].shape == (1, 8, 8)
    assert targets[0]["keypoints"].tolist() == [[[2, 4, 1]]] and target["boxes"].tolist() == [[0, 1, 2, 4]]
    found = prepared.postprocess([{"boxes": targets[0]["boxes"], "masks": mt.ones(1, 1, 28, 28)}], [(8, 8)], [(4, 4)])
    assert found[0]["boxes"].tolist() == target["boxes"].tolist() and found[0]["masks"].shape == (1, 1, 4, 4)
    assert found[0]["masks"][0, 0, 1:3, :2].min() > 0.4 and found[0]["masks"][0, 0, :, 3].max() < 0.1
    assert roi_heads.paste_masks_in_image(mt.zeros(0, 1, 28, 28), mt.zeros(0, 4), (4, 5)).shape == (0, 1, 4, 5)


def test_keypoints_are_pixels_of_maps_and_back():
    boxes, points = mt.tensor([[2.0, 2, 10, 10]]), mt.tensor([[[2.0, 2, 1], [10, 10, 2], [5, 7, 1], [5, 7, 0], [0, 5, 1]]])
    at, valid = roi_heads.keypoints_to_heatmap(points, boxes, 4)
    assert at.tolist() == [[0, 15, 9, 0, 0]] and valid.tolist() == [[1, 1, 1, 0, 0]]
    maps = mt.zeros(1, 1, 8, 8)
    maps[0, 0, 5, 3] = 7.0
    found, scores = roi_heads.heatmaps_to_keypoints(maps, boxes)
    assert found.tolist() == [[[5.5, 7.5, 1]]] and scores.tolist() == [[7]]


def test_many_boxes_are_suppressed_block_by_block():
    # Each overlaps its neighbours by half: every second stays, through blocks and chains of any length.
    low = mt.arange(700.0)
    boxes = mt.stack([low, low * 0, low + 2.0, low * 0 + 1], 1)
    scores = 1 - low / 1000
    assert nms(boxes, scores, 0.3).tolist() == list(range(0, 700, 2))
    assert nms(boxes.flip(0), scores.flip(0), 0.3).tolist() == list(range(699, -1, -2))
    classes = mt.arange(1400) % 2
    found = batched_nms(boxes.repeat_interleave(2, 0), scores.repeat_interleave(2) - classes * 1e-4, classes, 0.3)
    assert found.tolist() == [i for k in range(0, 1400, 4) for i in (k, k + 1)]


def test_layers_of_a_backbone_are_frozen():
    net = backbone_utils.resnet_fpn_backbone("resnet18", trainable_layers=2)
    trained = {name.split(".")[1] for name, p in net.body.named_parameters(prefix="body") if p.requires_grad}
    assert trained == {"layer3", "layer4"} and isinstance(net.body.bn1, FrozenBatchNorm2d)
    assert list(net(mt.zeros(1, 3, 64, 64))) == ["0", "1", "2", "3", "pool"]
    one = backbone_utils.mobilenet_backbone("mobilenet_v2", fpn=False, trainable_layers=0)
    assert not any(p.requires_grad for p in one[0].parameters()) and one(mt.zeros(1, 3, 64, 64)).shape[1] == 256
    for make, message in (
        (lambda: backbone_utils.resnet_fpn_backbone("resnet18", trainable_layers=6), r"in the range \[0,5\], got 6$"),
        (lambda: backbone_utils.resnet_fpn_backbone("resnet18", returned_layers=[0]), r"in the range \[1,4\]. Got \[0\]$"),
        (lambda: backbone_utils.mobilenet_backbone("mobilenet_v2", trainable_layers=9), r"in the range \[0,6\], got 9 $"),
        (lambda: backbone_utils._validate_trainable_layers(True, 7, 5, 3), r"in the range \[0,5\], got 7 $"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.warns(UserWarning, match="^Changing trainable_backbone_layers has no effect"):
        detection.ssdlite320_mobilenet_v3_large(weights_backbone=None, num_classes=2, trainable_backbone_layers=3)


def test_detectors_are_made_with_published_weights(monkeypatch):
    asked = []
    monkeypatch.setattr(weights.Weights, "get_state_dict", lambda chosen, progress: asked.append(str(chosen)))
    monkeypatch.setattr(nn.Module, "load_state_dict", lambda module, state: asked.append(type(module).__name__))
    model = detection.keypointrcnn_resnet50_fpn(weights="DEFAULT")
    assert asked == ["KeypointRCNN_ResNet50_FPN_Weights.COCO_V1", "KeypointRCNN"]
    assert model.backbone.body.bn1.eps == 0.0 and not model.backbone.body.layer1[0].conv1.weight.requires_grad
    assert model.roi_heads.keypoint_predictor.out_channels == 17 and model.backbone.body.layer2[0].conv1.weight.requires_grad
    del asked[:]
    model = detection.ssdlite320_mobilenet_v3_large(num_classes=3)
    assert asked == ["MobileNet_V3_Large_Weights.IMAGENET1K_V1", "MobileNetV3"] and model.score_thresh == 0.001
    with pytest.raises(ValueError, match="^The parameter 'num_classes' expected value 91 but got 2 instead"):
        detection.fcos_resnet50_fpn(weights=detection.FCOS_ResNet50_FPN_Weights.DEFAULT, num_classes=2)
    chosen = detection.FasterRCNN_MobileNet_V3_Large_320_FPN_Weights.DEFAULT
    assert chosen.transforms()(mt.full((3, 2, 2), 255, dtype=mt.uint8)).tolist() == mt.ones(3, 2, 2).tolist()
    assert len(chosen.meta["categories"]) == 91 and chosen.meta["categories"][90] == "toothbrush"
    assert models.VGG16_Weights.DEFAULT.name == "IMAGENET1K_V1"
    assert models.VGG16_Weights.IMAGENET1K_FEATURES.meta["categories"] is None


def test_names_of_earlier_releases_are_read():
    head = detection.rpn.RPNHead(4, 2)
    old = {key.replace("conv.0.0", "conv"): value + 1 for key, value in head.state_dict().items()}
    assert "conv.weight" in old
    head.load_state_dict(old)
    assert mt.equal(head.conv[0][0].weight, old["conv.weight"])
    head = detection.mask_rcnn.MaskRCNNHeads(4, (4, 4), 1)
    head.load_state_dict({f"mask_fcn{i + 1}.{k}": head.state_dict()[f"{i}.0.{k}"] for i in (0, 1) for k in ("weight", "bias")})
