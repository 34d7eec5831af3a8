"""Boxes, regions and shared blocks of mortice.vision.ops."""

import pytest

import mortice as mt
from mortice.vision import ops

A = [[0.0, 0.0, 4.0, 4.0], [2.0, 2.0, 6.0, 6.0]]


def test_forms_of_boxes_convert_into_each_other():
    corners = mt.tensor([[1.0, 2.0, 5.0, 10.0]])
    forms = {"xyxy": [[1, 2, 5, 10]], "xywh": [[1, 2, 4, 8]], "cxcywh": [[3, 6, 4, 8]]}
    for fmt, want in forms.items():
        assert ops.box_convert(corners, "xyxy", fmt).tolist() == want
        for other, back in forms.items():
            assert ops.box_convert(mt.tensor(want, dtype=mt.float32), fmt, other).tolist() == back
        assert ops.box_area(mt.tensor(want), fmt).tolist() == [32]
    with pytest.raises(ValueError, match="box_convert: expected a format of xyxy, xywh, cxcywh; got 'rot'."):
        ops.box_convert(corners, "rot", "xyxy")


def test_overlaps_of_pairs():
    boxes = mt.tensor(A)
    assert ops.box_iou(boxes, boxes).tolist() == [[1.0, pytest.approx(4 / 28)], [pytest.approx(4 / 28), 1.0]]
    # The box around both has 36, of which 8 are in neither.
    assert ops.generalized_box_iou(boxes, boxes)[0, 1].item() == pytest.approx(4 / 28 - 8 / 36)
    # Their centres are sqrt(8) apart, the hull's corners sqrt(72); their proportions are equal.
    assert ops.distance_box_iou(boxes, boxes)[0, 1].item() == pytest.approx(4 / 28 - 8 / 72)
    assert ops.complete_box_iou(boxes, boxes)[0, 1].item() == pytest.approx(4 / 28 - 8 / 72)


def test_suppression_keeps_the_best_of_those_that_overlap():
    boxes = mt.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9]])
    scores = mt.tensor([0.5, 0.9, 0.1, 0.6])
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert ops.nms(boxes, scores, 0.8).tolist() == [1, 3, 2]  # 0.9 of the fourth is in the first
    assert ops.batched_nms(boxes, scores, mt.tensor([0, 1, 0, 0]), 0.5).tolist() == [1, 3, 2]
    assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    with pytest.raises(RuntimeError, match=r"nms: scores should be a 1d tensor with one score a box \(4\); got \[2\]."):
        ops.nms(boxes, scores[:2], 0.5)


def test_boxes_at_the_edge_small_ones_and_those_of_masks():
    boxes = mt.tensor([[-2.0, 3.0, 5.0, 20.0], [1.0, 1.0, 2.0, 9.0]])
    assert ops.clip_boxes_to_image(boxes, (8, 4)).tolist() == [[0, 3, 4, 8], [1, 1, 2, 8]]
    assert ops.remove_small_boxes(boxes, 2).tolist() == [0]
    masks = mt.zeros(2, 5, 6)
    masks[0, 1:4, 2:] = 1
    assert ops.masks_to_boxes(masks).tolist() == [[2, 1, 5, 3], [0, 0, 0, 0]]


def test_regions_are_means_of_samples_between_pixels():
    x = mt.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
    # On a plane a bin's mean is the value at its centre.
    found = ops.roi_align(x, [mt.tensor([[0.0, 0.0, 2.0, 2.0]])], 2, sampling_ratio=2)
    assert found.tolist() == [[[[2.5, 3.5], [6.5, 7.5]]]]
    found.sum().backward()
    assert x.grad.sum().item() == 4
    beyond = ops.roi_align(x, mt.tensor([[0.0, 8.0, 8.0, 10.0, 10.0]]), (1, 1))
    assert beyond.tolist() == [[[[0.0]]]]
    with pytest.raises(IndexError, match=r"roi_align: expected images from 0 to 0; got \[3\]."):
        ops.roi_align(x, mt.tensor([[3.0, 0, 0, 1, 1]]), 1)


def test_shared_blocks():
    frozen = ops.FrozenBatchNorm2d(2)
    frozen.load_state_dict({**mt.nn.BatchNorm2d(2).state_dict(), "running_mean": mt.tensor([1.0, 0.0])})
    assert not list(frozen.parameters()) and repr(frozen) == "FrozenBatchNorm2d(2, eps=1e-05)"
    assert frozen(mt.ones(1, 2, 1, 1)).flatten().tolist() == pytest.approx([0.0, 1.0], abs=1e-4)
    assert ops.Conv3dNormActivation(1, 2)(mt.ones(1, 1, 3, 3, 3)).shape == (1, 2, 3, 3, 3)
    assert ops.SqueezeExcitation(4, 2)(mt.ones(1, 4, 2, 2)).shape == (1, 4, 2, 2)
    dropped = ops.StochasticDepth(0.5, "row")(mt.ones(64, 3))
    assert set(dropped.flatten().tolist()) == {0.0, 2.0} and (dropped == dropped[:, :1]).all()


def test_modules_have_torchvision_s_places():
    from mortice.vision.ops.boxes import box_area
    from mortice.vision.ops.misc import FrozenBatchNorm2d

    assert not mt.vision._is_tracing() and mt.vision.__version__.startswith("0.28")
    assert box_area is ops.box_area and FrozenBatchNorm2d is ops.FrozenBatchNorm2d


def test_intermediate_layers_of_a_model():
    from mortice.vision.models._utils import IntermediateLayerGetter

    model = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.ReLU(), mt.nn.Linear(3, 1))
    part = IntermediateLayerGetter(model, {"0": "a", "1": "b"})
    found = part(mt.ones(1, 2))
    assert list(part) == ["0", "1"] and list(found) == ["a", "b"]
    assert found["b"].tolist() == model[:2](mt.ones(1, 2)).tolist()
    with pytest.raises(ValueError, match=r"return_layers are not present in model: \['9'\]; it has \['0', '1', '2'\]."):
        IntermediateLayerGetter(model, {"9": "a"})
