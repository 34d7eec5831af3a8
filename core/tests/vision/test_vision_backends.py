"""Datasets, pictures and models give the same on every backend that is here."""

from __future__ import annotations

import io

import pytest

import mortice as mt
from mortice.backends import plugins
from mortice.vision import datasets, models, utils
from mortice.vision import io as vio

np = pytest.importorskip("numpy", reason="results are compared by it")
pytest.importorskip("PIL", reason="the datasets give PIL images")
DEVICES = [name for name in ("cpu_numpy", "cpu_cext", "strict") if name in plugins.list_backends()]


def everything():
    """Return what a little of everything gives, as arrays."""
    draw = mt.Generator().manual_seed(3)
    images = mt.rand(5, 3, 16, 16, generator=draw)
    file = io.BytesIO()
    utils.save_image(images, file, "png", normalize=True)
    picture = (images[0] * 255).to(mt.uint8)
    boxes, points = mt.tensor([[1, 2, 9, 12]]), mt.tensor([[[3.0, 4.0], [10.0, 8.0]]])
    found = {
        "file": np.frombuffer(file.getvalue(), np.uint8),
        "read": vio.decode_image(vio.encode_png(picture)),
        "boxes": utils.draw_bounding_boxes(picture, boxes, ["a"], fill=True),
        "points": utils.draw_keypoints(images[0], points, [(0, 1)], "red"),
        "masks": utils.draw_segmentation_masks(images[0], images[1] > 0.5, colors="blue"),
        "flow": utils.flow_to_image(images[:2, :2] - 0.5),
        "fake": np.asarray(datasets.FakeData(3, (3, 6, 6))[1][0]),
    }
    for name in ("squeezenet1_1", "shufflenet_v2_x0_5"):
        mt.manual_seed(0)
        model = models.get_model(name, num_classes=4).eval()
        out = model(mt.rand(2, 3, 32, 32, generator=draw))
        out.square().sum().backward()
        found[name] = out.detach()
        found[f"{name} gradient"] = next(model.parameters()).grad
    return {k: v.numpy(force=True) if isinstance(v, mt.Tensor) else v for k, v in found.items()}


@pytest.fixture(scope="module")
def expected():
    with mt.use_backend(DEVICES[0]):
        return everything()


@pytest.mark.parametrize("backend", DEVICES[1:])
def test_backends_agree(backend, expected):
    with mt.use_backend(backend):
        found = everything()
    for name, value in expected.items():
        difference = np.abs(found[name].astype(np.float64) - value).max()
        allowed = {"flow": 1, "file": 0}.get(name, 2e-3 * max(1, np.abs(value).max()) if "net" in name else 1e-6)
        assert found[name].shape == value.shape and difference <= allowed, (name, difference)
