"""Boxes, regions and losses beside torchvision."""

from __future__ import annotations

import pytest

import mortice as mt

np = pytest.importorskip("numpy", reason="the oracle needs it")
from torchvision_side import torch, torchvision  # noqa: E402

from mortice.vision import ops  # noqa: E402

pytestmark = pytest.mark.oracle


def boxes(n, seed):
    low = np.random.default_rng(seed).uniform(0, 10, (n, 2))
    return np.concatenate([low, low + np.random.default_rng(seed + 1).uniform(0.5, 8, (n, 2))], 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
@pytest.mark.parametrize("name", ["box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"])
def test_overlaps(name, dtype):
    a, b = (boxes(n, n).astype(dtype) for n in (5, 7))
    mine, want = getattr(ops, name)(mt.tensor(a), mt.tensor(b)), getattr(torchvision.ops, name)(
        torch.tensor(a), torch.tensor(b)
    )
    assert str(mine.dtype).split(".")[-1] == str(want.dtype).split(".")[-1]
    assert np.allclose(mine.numpy(), want.numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_turned_boxes(dtype):
    widths = {"xywhr": 5, "cxcywhr": 5, "xyxyxyxy": 8}
    for old, width in widths.items():
        a = (np.random.default_rng(0).random((50, width)) * 90).astype(dtype)
        for new in widths:
            mine, want = ops.box_convert(mt.tensor(a), old, new), torchvision.ops.box_convert(torch.tensor(a), old, new)
            assert str(mine.dtype).split(".")[-1] == str(want.dtype).split(".")[-1]
            assert np.allclose(mine.numpy(), want.numpy(), 1e-5, 1e-4)


@pytest.mark.parametrize("name", ["generalized_box_iou", "distance_box_iou", "complete_box_iou"])
def test_gradients_of_overlaps(name):
    grads = []
    for t, o in ((mt, ops), (torch, torchvision.ops)):
        a, b = t.tensor(boxes(4, 1), requires_grad=True), t.tensor(boxes(6, 2), requires_grad=True)
        (getattr(o, name)(a, b) ** 2).sum().backward()
        grads.append((a.grad.numpy(), b.grad.numpy()))
    assert all(np.allclose(m, w, 1e-9, 1e-12) for m, w in zip(*grads))


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_regions(aligned, ratio):
    plain = torchvision.ops.roi_align.__globals__["_roi_align"].__wrapped__  # what torchvision's compiled one is held to
    values = np.random.default_rng(0).normal(size=(2, 3, 9, 11))
    # Beyond the edge by more than a pixel the compiled one and mortice give 0, where the plain one repeats the edge.
    rois = np.concatenate([[[0], [1], [1], [0], [1]], boxes(5, 3)], 1)
    got = []
    for t in (mt, torch):
        x = t.tensor(values, requires_grad=True)
        args = (0.5, 3, 4, ratio, aligned)
        out = plain(x, t.tensor(rois), *args) if t is torch else ops.roi_align(x, t.tensor(rois), (3, 4), 0.5, ratio, aligned)
        (out**2).sum().backward()
        got.append((out.detach().numpy(), x.grad.numpy()))
    assert all(np.allclose(m, w, 1e-9, 1e-12) for m, w in zip(*got))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("alpha", [-1, 0.25])
def test_focal_loss(alpha, reduction):
    x, y = np.random.default_rng(0).normal(size=(4, 5)), np.eye(4, 5)
    mine = ops.sigmoid_focal_loss(mt.tensor(x), mt.tensor(y), alpha, 1.5, reduction)
    want = torchvision.ops.sigmoid_focal_loss(torch.tensor(x), torch.tensor(y), alpha, 1.5, reduction)
    assert np.allclose(mine.numpy(), want.numpy(), 1e-12)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss"])
def test_losses_of_boxes(name, reduction):
    got = []
    for t, o in ((mt, ops), (torch, torchvision.ops)):
        a, b = (t.tensor(boxes(6, seed).reshape(2, 3, 4), requires_grad=True) for seed in (1, 2))
        loss = getattr(o, name)(a, b, reduction)
        (loss**2).sum().backward()
        got.append((loss.detach().numpy(), a.grad.numpy(), b.grad.numpy()))
    assert all(m.shape == w.shape and np.allclose(m, w, 1e-9, 1e-12) for m, w in zip(*got))
    half = boxes(3, 1).astype("float16")
    mine, want = (getattr(o, name)(t.tensor(half), t.tensor(half + 1)) for t, o in ((mt, ops), (torch, torchvision.ops)))
    assert mine.dtype == mt.float32 and want.dtype == torch.float32 and np.allclose(mine.numpy(), want.numpy(), 1e-5)


@pytest.mark.parametrize("extra", [None, "LastLevelMaxPool", "LastLevelP6P7"])
def test_pyramids(extra):
    nets = []
    for library, o in ((mt, ops), (torch, torchvision.ops)):
        kind = o.feature_pyramid_network
        more = None if extra is None else getattr(kind, extra)(*([6, 5] if "P6" in extra else []))
        nets.append(o.FeaturePyramidNetwork([4, 6], 5, more, norm_layer=library.nn.BatchNorm2d))
    state = nets[1].state_dict()
    assert list(nets[0].state_dict()) == list(state)
    nets[0].load_state_dict({key: mt.tensor(value.numpy()) for key, value in state.items()})
    maps = {str(i): np.random.default_rng(i).normal(size=(2, 4 + 2 * i, 9 - 4 * i, 7 - 3 * i)) for i in (0, 1)}
    mine, want = (
        net.double()({key: t.tensor(value) for key, value in maps.items()}) for t, net in zip((mt, torch), nets)
    )
    assert list(mine) == list(want)
    assert all(np.allclose(mine[key].numpy(force=True), want[key].numpy(force=True), 1e-9, 1e-12) for key in want)


def test_regions_of_several_maps(monkeypatch):
    plain = torchvision.ops.roi_align.__globals__["_roi_align"].__wrapped__
    monkeypatch.setattr(
        torchvision.ops.poolers, "roi_align",
        lambda x, rois, output_size, spatial_scale, sampling_ratio: plain(
            x, rois, spatial_scale, *output_size, sampling_ratio, False
        ),
    )  # fmt: skip
    maps = {name: np.random.default_rng(0).normal(size=(2, 3, side, side + 2)) for name, side in (("a", 16), ("b", 8), ("c", 4))}
    rois = [boxes(5, 3) * 3, boxes(4, 4) * 2]
    for names in (["a", "b"], ["b"]):
        mine, want = (
            o.MultiScaleRoIAlign(names, (3, 2), 2, canonical_scale=16, canonical_level=2)(
                {name: t.tensor(value) for name, value in maps.items()}, [t.tensor(r) for r in rois], [(64, 70), (60, 72)]
            )
            for t, o in ((mt, ops), (torch, torchvision.ops))
        )
        assert mine.shape == want.shape == (9, 3, 3, 2) and np.allclose(mine.numpy(), want.numpy(), 1e-9, 1e-12)
    sides = [[[0.0, 0, s, s]] for s in (224.0, 112.0, 111.9, 56.0, 1000.0)]
    mapped = [o.poolers.LevelMapper(2, 5)([t.tensor(s) for s in sides]) for t, o in ((mt, ops), (torch, torchvision.ops))]
    assert mapped[0].tolist() == mapped[1].tolist() == [2, 1, 0, 0, 3]
