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


def test_forms_of_turned_boxes_convert_into_each_other():
    forms = {"xywhr": [[1, 8, 4, 2, 90]], "cxcywhr": [[2, 6, 4, 2, 90]], "xyxyxyxy": [[1, 8, 1, 4, 3, 4, 3, 8]]}
    for fmt, have in forms.items():
        for other, want in forms.items():
            assert ops.box_convert(mt.tensor(have), fmt, other).tolist() == want
            turned = ops.box_convert(mt.tensor(have, dtype=mt.float64), fmt, other)
            assert mt.allclose(turned, mt.tensor(want, dtype=mt.float64), atol=1e-12)
    with pytest.raises(NotImplementedError, match="box_convert: expected formats of the same kind; got 'xywhr' and 'xyxy'."):
        ops.box_convert(mt.tensor(forms["xywhr"]), "xywhr", "xyxy")


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


@pytest.mark.parametrize("kind", [ops.RoIAlign, ops.RoIPool, ops.PSRoIAlign, ops.PSRoIPool])
def test_pooling_of_regions_is_one_node_of_a_recorded_program(kind):
    layer = kind(2, 1.0, 2) if "Align" in kind.__name__ else kind(2, 1.0)
    x, boxes = mt.rand(1, 8, 6, 6), mt.tensor([[0.0, 0, 0, 5, 5], [0, 1, 2, 4, 3]])
    program = mt.fx.symbolic_trace(layer)
    assert [node.op for node in program.graph.nodes].count("call_function") == 1
    assert mt.equal(program(x, boxes), layer(x, boxes))


def test_a_moved_convolution_of_no_images_gives_none_and_gradients_of_zeros():
    x, offset, mask = (mt.zeros(0, c, 5, 5, requires_grad=True) for c in (6, 36, 18))
    weight = mt.ones(2, 6, 3, 3, requires_grad=True)
    out = ops.deform_conv2d(x, offset, weight, padding=1, mask=mask)
    out.sum().backward()
    assert out.shape == (0, 2, 5, 5) and x.grad.shape == x.shape and offset.grad.shape == offset.shape
    assert mask.grad.shape == mask.shape and not weight.grad.any()


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


def test_losses_of_boxes_that_agree_vanish():
    a, b = mt.tensor(A), mt.tensor(A[::-1])
    for name in ("generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss"):
        loss = getattr(ops, name)
        assert loss(a, a).tolist() == pytest.approx([0, 0], abs=1e-6) and loss(a, b, "mean").item() > 0.8
        assert loss(a[:0], b[:0], "mean").item() == 0
        with pytest.raises(ValueError, match="^Invalid Value for arg 'reduction': 'x "):
            loss(a, b, "x")
    # 4 of 28 in common, of 36 in the box around both
    assert ops.generalized_box_iou_loss(a, b)[0].item() == pytest.approx(1 - 4 / 28 + 8 / 36, rel=1e-5)
    assert ops.distance_box_iou_loss(a, b)[0].item() == pytest.approx(1 - 4 / 28 + 8 / 72, rel=1e-5)


@pytest.mark.parametrize("nd", [2, 3])
def test_blocks_are_dropped_whole(nd):
    mt.manual_seed(0)
    drop = (ops.drop_block2d, ops.drop_block3d)[nd - 2]
    x = mt.ones(64, 2, *[12] * nd, requires_grad=True)
    out = drop(x, 0.2, 3)
    out.sum().backward()
    zeros = (out == 0).float()
    assert out.mean().item() == pytest.approx(1, rel=1e-3) and 0.12 < zeros.mean().item() < 0.22
    assert len(out.unique()) == 2 and mt.equal(x.grad, out.detach())
    # Each zero is part of a block of them: what shrinking and growing by 3 pixels leaves.
    pool = (mt.nn.functional.max_pool2d, mt.nn.functional.max_pool3d)[nd - 2]
    assert mt.equal(pool(mt.nn.functional.pad(1 - pool(1 - zeros, 3, 1), [2] * 2 * nd), 3, 1), zeros)
    module = (ops.DropBlock2d, ops.DropBlock3d)[nd - 2](0.2, 3, inplace=True)
    given = mt.ones(2, 1, *[6] * nd)
    assert module(given) is given and module.eval()(x) is x
    assert repr(module) == f"DropBlock{nd}d(p=0.2, block_size=3, inplace=True)"
    with pytest.raises(ValueError, match="^block size should be odd. Got 4 which is even.$"):
        drop(x, 0.1, 4)
    with pytest.raises(ValueError, match=f"^input should be {nd + 2} dimensional. Got 1 dimensions.$"):
        drop(mt.ones(3), 0.1, 3)
    with pytest.raises(ValueError, match="^drop probability has to be between 0 and 1, but got 2.$"):
        drop(x, 2, 3)


def test_pyramids_have_maps_of_all_sizes():
    from mortice.vision.ops.feature_pyramid_network import LastLevelMaxPool, LastLevelP6P7

    net = ops.FeaturePyramidNetwork([2, 3], 4, LastLevelMaxPool())
    maps = {"a": mt.randn(1, 2, 8, 9), "b": mt.randn(1, 3, 4, 5)}
    out = net(maps)
    assert {name: tuple(y.shape[1:]) for name, y in out.items()} == {"a": (4, 8, 9), "b": (4, 4, 5), "pool": (4, 2, 3)}
    assert list(ops.FeaturePyramidNetwork([2, 3], 4, LastLevelP6P7(4, 4))(maps)) == ["a", "b", "p6", "p7"]
    old = {key.replace("s.0.0.", "s.0.").replace("s.1.0.", "s.1."): value + 1 for key, value in net.state_dict().items()}
    assert "inner_blocks.1.weight" in old
    net.load_state_dict(old)
    with pytest.raises(ValueError, match="^in_channels=0 is currently not supported$"):
        ops.FeaturePyramidNetwork([2, 0], 4)
    with pytest.raises(TypeError, match="^extra_blocks should be of type ExtraFPNBlock not "):
        ops.FeaturePyramidNetwork([2, 3], 4, mt.nn.ReLU())


def test_regions_come_from_the_map_of_their_size():
    pool = ops.MultiScaleRoIAlign(["a", "b"], 1, 2, canonical_scale=8, canonical_level=1)
    maps = {"a": mt.zeros(1, 1, 16, 16), "other": mt.full((1, 1, 9, 9), 5.0), "b": mt.ones(1, 1, 8, 8)}
    found = pool(maps, [mt.tensor([[0.0, 0, 4, 4], [0, 0, 16, 16]])], [(32, 32)])
    assert found.flatten().tolist() == [0, 1] and pool.scales == [0.5, 0.25]
    assert repr(pool) == "MultiScaleRoIAlign(featmap_names=['a', 'b'], output_size=(1, 1), sampling_ratio=2)"


def moved(x, offset, weight, mask, stride, padding, dilation):
    """Convolve by the definition, one number at a time; (C, H, W), one group of channels for each two of them."""
    channels, height, width = x.shape
    kernel = weight.shape[-1]

    def read(c, y, x_at):
        parts = 0.0
        for row in (int(y // 1), int(y // 1) + 1):
            for column in (int(x_at // 1), int(x_at // 1) + 1):
                if 0 <= row < height and 0 <= column < width:
                    parts += (1 - abs(y - row)) * (1 - abs(x_at - column)) * x[c, row, column].item()
        return parts

    out = mt.zeros(weight.shape[0], *offset.shape[1:], dtype=x.dtype)
    for row in range(out.shape[1]):
        for column in range(out.shape[2]):
            for c in range(channels):
                for i in range(kernel):
                    for j in range(kernel):
                        k = (c // 2 * kernel + i) * kernel + j
                        y = row * stride - padding + i * dilation + offset[2 * k, row, column].item()
                        at = column * stride - padding + j * dilation + offset[2 * k + 1, row, column].item()
                        value = read(c, y, at) * mask[k, row, column].item()
                        out[:, row, column] += weight[:, c, i, j] * value
    return out


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_deformable_convolutions_read_where_they_are_moved(stride, padding, dilation):
    draw = mt.Generator().manual_seed(0)
    side = (5 + 2 * padding - dilation - 1) // stride + 1
    sizes = (2, 4, 5, 5), (3, 4, 2, 2), (2, 16, side, side), (2, 8, side, side)
    x, weight, offset, mask = (mt.randn(*size, dtype=mt.float64, generator=draw) for size in sizes)
    args = stride, padding, dilation
    want = mt.stack([moved(x[n], 2 * offset[n], weight, mask[n], *args) for n in (0, 1)])
    assert mt.allclose(ops.deform_conv2d(x, 2 * offset, weight, None, *args, mask), want)
    plain = mt.nn.functional.conv2d(x, weight, mt.arange(3.0, dtype=mt.float64), *args)
    assert mt.allclose(ops.deform_conv2d(x, 0 * offset, weight, mt.arange(3.0, dtype=mt.float64), *args), plain)


def test_deformable_convolutions_differentiate_and_refuse():
    draw = mt.Generator().manual_seed(0)
    sizes = (1, 4, 3, 3), (1, 8, 2, 2), (4, 2, 2, 2), (1, 4, 2, 2)
    x, offset, weight, mask = (mt.randn(*size, dtype=mt.float64, generator=draw).requires_grad_() for size in sizes)
    assert mt.autograd.gradcheck(lambda a, o, w, m: ops.deform_conv2d(a, o, w, mask=m), (x, offset, weight, mask))
    layer = ops.DeformConv2d(4, 6, 2, stride=2, groups=2, bias=False)
    assert repr(layer) == "DeformConv2d(4, 6, kernel_size=(2, 2), stride=(2, 2), groups=2, bias=False)"
    assert layer(mt.ones(1, 4, 5, 5), mt.zeros(1, 8, 2, 2)).shape == (1, 6, 2, 2)
    with pytest.raises(RuntimeError, match=r"expected offset of \(1, a multiple of 8, 2, 2\); got \(1, 7, 2, 2\)."):
        ops.deform_conv2d(x, offset[:, :7], weight)
    with pytest.raises(RuntimeError, match=r"expected a multiple of 2 and of 3 channels, .*; got 4."):
        ops.deform_conv2d(x, mt.zeros(1, 24, 2, 2), weight)
    with pytest.raises(ValueError, match="^out_channels must be divisible by groups$"):
        ops.DeformConv2d(4, 5, 2, groups=2)


def averaged(x, roi, bins, at, ranges):
    """The mean of a bin's channel over the rows and columns of its place that `ranges` gives, as torchvision defines it."""
    (i, j), picked = at, x[int(roi[0]), at[0] * bins[1] + at[1] :: bins[0] * bins[1]]
    rows, columns = (ranges(roi[1 + o], roi[3 + o], n, p, x.shape[2 + (o == 0)]) for o, n, p in ((1, bins[0], i), (0, bins[1], j)))
    return picked[:, rows][:, :, columns].mean((1, 2)) if len(rows) and len(columns) else mt.zeros(len(picked))


def whole(start, end, bins, place, size):
    first, length = round(start), max(round(end) - round(start), 1)
    low, high = (min(max(first + n, 0), size - 1) for n in (place * length // bins, -(-(place + 1) * length // bins)))
    return list(range(low, high))


def test_regions_are_averaged_with_channels_of_each_bin():
    draw = mt.Generator().manual_seed(0)
    x = mt.randn(2, 12, 6, 7, dtype=mt.float64, generator=draw).requires_grad_()
    rois = mt.tensor([[0, 0, 0, 3, 3], [1, 0.6, 2.4, 4.6, 2.4], [0, 8, 8, 9, 9], [1, -2, -3, 6.7, 5.2]])
    out = ops.ps_roi_pool(x, rois, (2, 3))
    assert out.shape == (4, 2, 2, 3) and out[2].abs().max() == 0
    want = [[averaged(x, r, (2, 3), (i, j), whole) for i in range(2) for j in range(3)] for r in rois.tolist()]
    assert mt.allclose(out, mt.stack([mt.stack(w, 1).view(2, 2, 3) for w in want]))
    aligned = ops.ps_roi_align(x, rois, (2, 3), sampling_ratio=2)
    of_all = ops.roi_align(x, rois, (2, 3), sampling_ratio=2, aligned=True)
    assert all(mt.equal(aligned[:, c, i, j], of_all[:, 6 * c + 3 * i + j, i, j]) for c in (0, 1) for i in (0, 1) for j in range(3))
    for pool in (ops.ps_roi_pool, ops.ps_roi_align):
        assert mt.autograd.gradcheck(lambda x, pool=pool: pool(x, rois, (2, 3)), (x,))
        assert mt.equal(pool(x, [rois[::2, 1:] * 2, rois[1::2, 1:] * 2], (2, 3), 0.5), pool(x, rois, (2, 3))[[0, 2, 1, 3]])
        assert pool(x, mt.zeros(0, 5), 2).shape == (0, 3, 2, 2)
        with pytest.raises(RuntimeError, match=r"multiple of pooling height \* pooling width; got 12 for 5 \* 5"):
            pool(x, rois, 5)
    assert mt.equal(ops.PSRoIPool((2, 3), 1.0)(x, rois), out)
    assert repr(ops.PSRoIPool(2, 0.5)) == "PSRoIPool(output_size=2, spatial_scale=0.5)"
    layer = ops.PSRoIAlign((2, 3), 1.0, 2)
    assert mt.equal(layer(x, rois), aligned)
    assert repr(layer) == "PSRoIAlign(output_size=(2, 3), spatial_scale=1.0, sampling_ratio=2)"


def test_regions_are_pooled_by_their_largest_values():
    x = mt.arange(2 * 6 * 6.0).view(1, 2, 6, 6).requires_grad_()
    rois = mt.tensor([[0, 0, 0, 3, 3], [0, 0.6, 2.4, 4.5, 2.4], [0, 8, 8, 9, 9]])
    out = ops.roi_pool(x, rois, 2)
    # whole pixels 0 to 3; columns 1 to 5 of row 2, whose bins share column 3; nothing
    assert out[0, 0].tolist() == [[7, 9], [19, 21]] and out[1, 1].tolist() == [[51, 53], [51, 53]]
    assert out[2].abs().max() == 0
    out.sum().backward()
    assert x.grad[0, 0, 1, 1] == 1 and x.grad[0, 1, 2, 5] == 2 and x.grad.sum() == 16
    level = mt.ones(1, 1, 3, 3, requires_grad=True)
    ops.roi_pool(level, mt.tensor([[0.0, 1, 0, 2, 2]]), 1).sum().backward()  # of equals the first
    assert level.grad[0, 0].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert ops.roi_pool(x, [rois[:, 1:] * 2], (2, 2), 0.5).tolist() == out.tolist()
    assert ops.roi_pool(x, mt.zeros(0, 5), 2).shape == (0, 2, 2, 2)
    assert repr(ops.RoIPool((2, 2), 0.5)) == "RoIPool(output_size=(2, 2), spatial_scale=0.5)"
    with pytest.raises(IndexError, match=r"roi_pool: expected images from 0 to 0; got \[3\]."):
        ops.roi_pool(x, mt.tensor([[3.0, 0, 0, 1, 1]]), 1)
