"""Grids, drawing and datasets beside torchvision."""

from __future__ import annotations

import io
import itertools

import pytest

import mortice as mt

np = pytest.importorskip("numpy", reason="the oracle needs it")
pytest.importorskip("PIL", reason="pictures are written by Pillow")
from torchvision_side import torch, torchvision  # noqa: E402

from mortice.vision import datasets, utils  # noqa: E402

pytestmark = pytest.mark.oracle
draw = np.random.default_rng(0)


@pytest.mark.parametrize(
    "shape", [(5, 7), (1, 5, 7), (3, 5, 7), (1, 3, 5, 7), (1, 1, 5, 7), (9, 1, 5, 7), (10, 3, 5, 7), (6, 4, 5, 7)]
)
def test_grids_and_files_have_equal_pixels(shape):
    values = draw.normal(size=shape).astype(np.float32)
    options = itertools.product(
        (2, 8), (0, 2), ({}, {"scale_each": True}, {"value_range": (-1, 1)}), (False, True), (0.0, 0.3)
    )
    for nrow, padding, scale, normalize, pad_value in options:
        kwargs = {"nrow": nrow, "padding": padding, "normalize": normalize, "pad_value": pad_value, **scale}
        a, b = utils.make_grid(mt.tensor(values), **kwargs), torchvision.utils.make_grid(torch.tensor(values), **kwargs)
        assert np.array_equal(a.numpy(), b.numpy()), kwargs
        files = io.BytesIO(), io.BytesIO()
        utils.save_image(mt.tensor(values), files[0], "png", **kwargs)
        torchvision.utils.save_image(torch.tensor(values), files[1], "png", **kwargs)
        assert files[0].getvalue() == files[1].getvalue(), kwargs


def test_grids_of_bytes():
    values = draw.integers(0, 256, (5, 3, 4, 6), dtype=np.uint8)
    a, b = utils.make_grid(mt.tensor(values), 3), torchvision.utils.make_grid(torch.tensor(values), 3)
    assert np.array_equal(a.numpy(), b.numpy()) and a.dtype == mt.uint8
    listed = [list(map(library.tensor, values)) for library in (mt, torch)]
    a, b = utils.make_grid(listed[0], padding=3), torchvision.utils.make_grid(listed[1], padding=3)
    assert np.array_equal(a.numpy(), b.numpy())


IMAGES = {
    "uint8": draw.integers(0, 256, (3, 60, 80), dtype=np.uint8),
    "float32": draw.random((3, 60, 80), dtype=np.float32),
}
BOXES = np.array([[5.0, 6, 40, 50], [30, 10, 70, 55]])
TURNED = np.array([[20.0, 5, 60, 15, 50, 50, 10, 40]])
POINTS = np.array([[[10.0, 20], [40, 30], [70, 50]], [[20, 50], [30, 10], [60, 20]]])
MASKS = np.stack([np.add.outer(np.arange(60), np.arange(80)) < 50, np.add.outer(np.arange(60), -np.arange(80)) < 0])
CALLS = [
    ("draw_bounding_boxes", {"boxes": BOXES}),
    ("draw_bounding_boxes", {"boxes": BOXES, "colors": ["red", (1, 2, 3)], "width": 3, "labels": ["one", "two"]}),
    ("draw_bounding_boxes", {"boxes": BOXES, "colors": "#00ff80", "fill": True, "labels": ["a", None]}),
    (
        "draw_bounding_boxes",
        {"boxes": BOXES, "labels": ["a", "b"], "fill_labels": True, "label_background_colors": "white"},
    ),
    (
        "draw_bounding_boxes",
        {"boxes": BOXES, "labels": ["a", "b"], "label_colors": ["white", "black"], "fill_labels": True},
    ),
    ("draw_bounding_boxes", {"boxes": TURNED, "width": 2, "colors": "yellow"}),
    ("draw_bounding_boxes", {"boxes": TURNED, "fill": True}),
    ("draw_segmentation_masks", {"masks": MASKS}),
    ("draw_segmentation_masks", {"masks": MASKS[0], "alpha": 0.3, "colors": "red"}),
    ("draw_keypoints", {"keypoints": POINTS, "colors": "red"}),
    ("draw_keypoints", {"keypoints": POINTS, "connectivity": [(0, 1), (1, 2)], "radius": 4, "width": 2}),
    ("draw_keypoints", {"keypoints": POINTS, "connectivity": [(0, 1)], "visibility": np.array([[1, 0, 1], [1, 1, 0]])}),
]


@pytest.mark.parametrize("dtype", IMAGES)
@pytest.mark.parametrize("name, kwargs", CALLS)
def test_drawings_have_equal_pixels(name, kwargs, dtype):
    found = []
    for library, functions in ((mt, utils), (torch, torchvision.utils)):
        arguments = {k: library.tensor(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
        found.append(getattr(functions, name)(library.tensor(IMAGES[dtype]), **arguments).numpy())
    assert found[0].dtype == found[1].dtype
    assert np.abs(found[0].astype(np.float64) - found[1]).max() <= (0 if dtype == "uint8" else 1e-6)


def test_flows_have_equal_colours():
    flow = draw.normal(size=(2, 2, 30, 40)).astype(np.float32)
    a, b = utils.flow_to_image(mt.tensor(flow)).numpy(), torchvision.utils.flow_to_image(torch.tensor(flow)).numpy()
    difference = np.abs(a.astype(int) - b)
    assert difference.max() <= 1 and (difference > 0).mean() < 0.001  # where rounding decides which byte it is


def test_what_is_published_where():
    for name in datasets.__all__:
        mine, theirs = getattr(datasets, name), getattr(torchvision.datasets, name)
        for field in ("resources", "url", "md5", "tgz_md5", "filename", "train_list", "test_list", "meta", "split_list", "classes",
                      "classes_split_dict", "splits", "base_folder", "subsets"):  # fmt: skip
            if name == "QMNIST" and field == "resources":
                urls = {
                    k: [(theirs.resources[k][i][0].rpartition("/")[2], md5) for i, (_, md5) in enumerate(v)]
                    for k, v in mine.resources.items()
                }
                assert urls == mine.resources and [v[0][1] for v in mine.resources.values()] == [
                    v[0][1] for v in theirs.resources.values()
                ]
            elif field in vars(theirs) and not isinstance(vars(theirs)[field], property):
                assert getattr(mine, field) == vars(theirs)[field], (name, field)


def test_folders_are_listed_alike(tmp_path):
    for name in ("b/2.png", "b/1.jpg", "b/c/0.png", "B/x.PNG", "a/y.webp", "a/z.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    mine, theirs = datasets.ImageFolder(tmp_path), torchvision.datasets.ImageFolder(tmp_path)
    assert mine.samples == theirs.samples and mine.class_to_idx == theirs.class_to_idx and repr(mine) == repr(theirs)
    turn = lambda x: x
    mine, theirs = (
        d.ImageFolder(str(tmp_path), transform=turn, target_transform=turn) for d in (datasets, torchvision.datasets)
    )
    assert repr(mine) == repr(theirs)


def test_mnist_reads_alike(tmp_path):
    folder = tmp_path / "MNIST/raw"
    folder.mkdir(parents=True)
    for part in ("train", "t10k"):
        pixels = draw.integers(0, 256, (7, 28, 28), dtype=np.uint8)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            b"\0\0\x08\x03\0\0\0\x07\0\0\0\x1c\0\0\0\x1c" + pixels.tobytes()
        )
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x07" + bytes(range(7)))
    for train in (True, False):
        mine, theirs = datasets.MNIST(tmp_path, train), torchvision.datasets.MNIST(tmp_path, train)
        assert (
            np.array_equal(mine.data.numpy(), theirs.data.numpy()) and mine.targets.tolist() == theirs.targets.tolist()
        )
        assert (
            mine[3][0].tobytes() == theirs[3][0].tobytes() and mine[3][1] == theirs[3][1] and repr(mine) == repr(theirs)
        )
