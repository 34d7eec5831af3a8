"""Transforms of v2 beside torchvision's: the same samples to both, and the same draws."""

from __future__ import annotations

import importlib
import inspect
import itertools
import warnings
from enum import EnumMeta

import numpy as np
import pytest

import mortice
from mortice.vision import tv_tensors
from mortice.vision.transforms import v2

pytest.importorskip("sklearn")
pytest.importorskip("PIL.Image")
beside = importlib.import_module("vision.beside_torchvision")
pytestmark = pytest.mark.oracle
torch, Image = beside.torch, beside.Image
SMALL = beside.PHOTO.resize((64, 48))
PLAIN, TURNED = ["XYXY", "XYWH", "CXCYWH"], ["XYWHR", "CXCYWHR", "XYXYXYXY"]
LIBRARIES = {"mine": (mortice, v2, tv_tensors)}


@pytest.fixture(scope="module", autouse=True)
def theirs():
    other = importlib.import_module("torchvision.transforms.v2")
    LIBRARIES["theirs"] = torch, other, importlib.import_module("torchvision.tv_tensors")
    return other


def each(call):
    """Return what a function of a framework, its v2 and its tv_tensors gives in both, or the error."""
    found = []
    for name in ("mine", "theirs"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(call(*LIBRARIES[name]))
        except Exception as error:
            found.append(error)
    return found


def same(a, b, step=0.0, rare=0.0, tolerance=1e-4):
    """Two results agree: images to the step or but for a rare share of values, all else to rounding."""
    assert type(a).__name__ == type(b).__name__, (a, b)
    if isinstance(a, Exception):
        return
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y, step, rare, tolerance)
    elif isinstance(a, Image.Image):
        most, share = beside.steps_apart(a, b)
        assert most <= step or share <= rare, (most, share)
    elif isinstance(a, mortice.Tensor):
        assert tuple(a.shape) == tuple(b.shape), (a.shape, b.shape)
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        for name in getattr(type(a), "_fields", ()):
            mine, other = getattr(a, name), getattr(b, name)
            assert str(mine) == str(other) if name != "canvas_size" else tuple(mine) == tuple(other), name
        x, y = a.numpy(force=True), b.numpy(force=True)
        if isinstance(a, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=100 * tolerance if x.dtype.kind == "f" else 0)
        elif isinstance(a, tv_tensors.Mask):
            assert (x != y).mean() <= max(rare, 0.002), (x != y).mean()
        elif x.dtype == np.uint8 or x.ndim > 2 and x.dtype.kind == "f":
            apart = np.abs(x.astype(np.float64) - y.astype(np.float64))
            share = (apart > (1 if x.dtype == np.uint8 else 1e-4)).mean() if x.size else 0
            assert share <= rare, (share, apart.max())
        else:
            np.testing.assert_allclose(x, y, rtol=1e-6)
    else:
        assert a == b


def agree(call, **loose):
    mine, other = each(call)
    if isinstance(other, Exception) and isinstance(mine, Exception):
        assert isinstance(mine, type(other)), (mine, other)
        return None
    if isinstance(mine, Exception) or isinstance(other, Exception):
        raise AssertionError(f"{mine!r} and {other!r}")
    same(mine, other, **loose)
    return mine


def image(kind, t, tv, photo=SMALL):
    """Return the photo as "pil", or a tensor: "uint8", "float", both with "image-", "video-" or "batch-" before."""
    if kind == "pil":
        return photo
    a = beside.pixels(photo)
    if kind.startswith("batch") or kind.startswith("video"):
        a = np.stack([a, a[:, ::-1, ::-1]])
    if kind.endswith("float"):
        a = (a / 255).astype(np.float32)
    made = t.tensor(np.ascontiguousarray(a))
    return {"image": tv.Image, "video": tv.Video}.get(kind.split("-")[0], lambda x: x)(made)


BOXES = [[3.0, 5.0, 20.0, 30.0], [0.0, 0.0, 64.0, 48.0], [30.5, 10.25, 41.0, 47.5], [60.0, 40.0, 63.0, 44.0]]
ROTATED = [[20.3, 12.4, 17.0, 9.0, 30.0], [40.4, 30.2, 12.0, 20.0, -70.0], [5.3, 40.4, 20.0, 10.0, 120.0]]


def boxes(format, t, tv, dtype="float32", mode="soft"):
    dtype = getattr(t, dtype)
    if format in TURNED:
        made = tv.BoundingBoxes(t.tensor(ROTATED, dtype=dtype), format="CXCYWHR", canvas_size=(48, 64), clamping_mode=mode)
    else:
        made = tv.BoundingBoxes(t.tensor(BOXES).to(dtype), format="XYXY", canvas_size=(48, 64), clamping_mode=mode)
    functional = v2.functional if t is mortice else LIBRARIES["theirs"][1].functional
    return functional.convert_bounding_box_format(made, new_format=format)


def points(t, tv, dtype="float32"):
    values = t.tensor([[[3.0, 5.0], [20.5, 30.25]], [[0.0, 0.0], [63.0, 47.0]]]).to(getattr(t, dtype))
    return tv.KeyPoints(values, canvas_size=(48, 64))


def masks(t, tv):
    rng = np.random.default_rng(0)
    return tv.Mask(t.tensor(np.repeat(np.repeat(rng.random((4, 6, 8)) > 0.5, 8, 1), 8, 2)))


def sample(kind, format, t, tv):
    found = boxes(format, t, tv)
    return {
        "image": image(kind, t, tv), "boxes": found, "labels": t.arange(len(found)), "n": 7,
        "more": (points(t, tv), [tv.Mask(masks(t, tv)[: len(found)]), "text"]), "whole": tv.Mask(t.zeros(48, 64, dtype=t.uint8)),
    }  # fmt: skip


KINDS = ["pil", "uint8", "image-uint8", "float", "image-float", "video-uint8", "batch-float"]

# ---- random classes, of samples ----

RANDOM = [
    ("RandomHorizontalFlip", {}), ("RandomVerticalFlip", {}), ("RandomCrop", {"size": (30, 40)}),
    ("RandomCrop", {"size": 50, "padding": [3, 2]}), ("RandomCrop", {"size": (60, 64), "pad_if_needed": True, "fill": 3}),
    ("RandomResizedCrop", {"size": (33, 21)}), ("RandomResizedCrop", {"size": 20, "antialias": False, "interpolation": "nearest"}),
    ("RandomResizedCrop", {"size": 20, "scale": (1.5, 2.0), "ratio": (0.2, 0.3)}),
    ("RandomZoomOut", {"fill": 5, "p": 0.9}), ("RandomZoomOut", {"fill": {"others": 0}, "side_range": (1.0, 1.5)}),
    ("RandomIoUCrop", {}), ("RandomIoUCrop", {"sampler_options": [0.3], "min_scale": 0.1}),
    ("RandomShortestSize", {"min_size": [20, 30, 40], "max_size": 50}), ("RandomShortestSize", {"min_size": 24}),
    ("RandomResize", {"min_size": 20, "max_size": 60}), ("ScaleJitter", {"target_size": (40, 50)}),
    ("RandomRotation", {"degrees": 40, "interpolation": "bilinear"}), ("RandomRotation", {"degrees": (10, 80), "expand": True}),
    ("RandomRotation", {"degrees": 90, "center": (10, 5), "fill": 9}), ("RandomAffine", {"degrees": 20}),
    ("RandomAffine", {"degrees": (-5, 40), "translate": (0.2, 0.1), "scale": (0.7, 1.3), "interpolation": "bilinear"}),
    ("RandomAffine", {"degrees": 3, "shear": (-10, 10, -5, 5), "fill": 2}), ("RandomAffine", {"degrees": 0, "shear": 20}),
    ("RandomPerspective", {"p": 0.9}), ("RandomPerspective", {"p": 0.9, "fill": 4, "interpolation": "nearest"}),
    ("ElasticTransform", {}), ("ElasticTransform", {"alpha": [90.0], "sigma": [3.0, 2.0]}),
    ("ColorJitter", {"brightness": 0.4, "contrast": (0.2, 1.8), "saturation": 0.9, "hue": 0.3}), ("ColorJitter", {}),
    ("RandomPhotometricDistort", {}), ("RandomChannelPermutation", {}), ("RandomGrayscale", {"p": 0.7}),
    ("RandomInvert", {}), ("RandomPosterize", {"bits": 3}), ("RandomSolarize", {"threshold": 0.4}),
    ("RandomAutocontrast", {}), ("RandomEqualize", {}), ("RandomAdjustSharpness", {"sharpness_factor": 2.0}),
    ("GaussianBlur", {"kernel_size": 5}), ("GaussianBlur", {"kernel_size": (3, 7), "sigma": 1}), ("GaussianNoise", {}),
    ("GaussianNoise", {"mean": 0.2, "sigma": 0.3, "clip": False}), ("RandomErasing", {"p": 0.9}), ("RandomErasing", {"value": "random"}),
    ("RandomErasing", {"value": [0.1, 0.5, 0.9], "scale": (0.3, 0.9)}),
]  # fmt: skip
FIXED = [
    ("Resize", {"size": 30}), ("Resize", {"size": [30, 21]}), ("Resize", {"size": None, "max_size": 30}),
    ("Resize", {"size": [40], "max_size": 45, "interpolation": "bicubic"}), ("Resize", {"size": 30, "interpolation": "nearest-exact"}),
    ("Resize", {"size": [20, 70], "interpolation": "lanczos"}), ("Resize", {"size": 9, "interpolation": "lanczos", "antialias": False}),
    ("CenterCrop", {"size": 30}), ("CenterCrop", {"size": (60, 20)}), ("CenterCrop", {"size": [100]}), ("Pad", {"padding": 3}),
    ("Pad", {"padding": [1, 2, 3, 4], "fill": 5}), ("Grayscale", {}), ("Grayscale", {"num_output_channels": 3}), ("RGB", {}),
    ("Identity", {}), ("ToImage", {}), ("ToPureTensor", {}), ("PILToTensor", {}), ("ToPILImage", {}), ("ClampBoundingBoxes", {}),
    ("ClampBoundingBoxes", {"clamping_mode": None}), ("ClampKeyPoints", {}), ("SetClampingMode", {"clamping_mode": "hard"}),
    ("ConvertBoundingBoxFormat", {"format": "CXCYWH"}), ("ConvertBoundingBoxFormat", {"format": "xyxyxyxy"}),
    ("SanitizeBoundingBoxes", {}), ("SanitizeBoundingBoxes", {"min_size": 11, "labels_getter": None}),
    ("SanitizeBoundingBoxes", {"min_area": 200.0}), ("SanitizeKeyPoints", {}),
]  # fmt: skip
# Of warps a few values are far, where a pixel falls to another side of an edge.
LOOSE = {"RandomEqualize": 0.01, **dict.fromkeys("RandomPerspective RandomAffine RandomRotation ElasticTransform".split(), 0.02)}


@pytest.fixture
def drawn(theirs, monkeypatch):
    """Let torchvision draw from mortice's generator."""
    for name in ("_transform", "_augment", "_auto_augment", "_color", "_container", "_geometry", "_misc", "functional._misc"):
        monkeypatch.setattr(importlib.import_module(f"torchvision.transforms.v2.{name}"), "torch", beside.Draws())


SAMPLES = [*((kind, "XYXY") for kind in KINDS), *(("image-uint8", format) for format in ("CXCYWH", "XYWHR", "XYXYXYXY"))]


@pytest.mark.parametrize("kind, format", SAMPLES)
@pytest.mark.parametrize("case", [*FIXED, *RANDOM], ids=str)
def test_samples(drawn, case, kind, format):
    name, settings = case
    if name == "RandomSolarize" and not kind.endswith("float"):
        settings = {"threshold": 100}
    for seed in range(3):
        after = []

        def run(t, lib, tv, seed=seed, after=after):
            mortice.manual_seed(seed)
            out = getattr(lib, name)(**settings)(sample(kind, format, t, tv))
            after.append(mortice.rand(1).item())
            return out

        agree(run, rare=LOOSE.get(name, 0.0), step=1 if name in ("ElasticTransform", "GaussianBlur") else 0)
        assert len(set(after)) <= 1, f"seed {seed}: another number of draws"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", "FiveCrop TenCrop UniformTemporalSubsample Normalize ToDtype ConvertImageDtype".split())
def test_images_alone(kind, name):
    settings = {
        "FiveCrop": [20], "TenCrop": [(20, 10)], "UniformTemporalSubsample": [3], "Normalize": [[0.5, 0.4, 0.3], [0.2, 0.3, 0.4]]
    }  # fmt: skip
    for scale in (False, True):

        def run(t, lib, tv, scale=scale):
            args = settings.get(name) or ([t.float32, scale] if name == "ToDtype" else [t.float64])
            if name == "UniformTemporalSubsample" and not kind.startswith(("video", "batch")):
                return None
            return getattr(lib, name)(*args)((image(kind, t, tv), 3))

        agree(run)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_policies(drawn, name, kind, interpolation):
    for seed in range(12):
        after = []

        def run(t, lib, tv, seed=seed, after=after):
            mortice.manual_seed(seed)
            fill = {tv.Image: 7, "others": [1, 2, 3]} if seed % 3 == 0 else None if seed % 3 == 1 else 9
            out = getattr(lib, name)(interpolation=interpolation, fill=fill)(image(kind, t, tv), {"label": 3})
            after.append(mortice.rand(1).item())
            return out

        if name == "AugMix" and kind == "pil":
            continue  # weights are drawn in another form
        agree(run, rare=0.03)
        assert len(set(after)) <= 1, f"seed {seed}: another number of draws"


@pytest.mark.parametrize("kind", ["batch-uint8", "batch-float", "image-batch", "video"])
@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
@pytest.mark.parametrize("labels", [[1, 0], [[0.25, 0.75], [1.0, 0.0]]], ids=str)
def test_mixing(drawn, name, kind, labels):
    for seed in range(5):

        def run(t, lib, tv, seed=seed):
            mortice.manual_seed(seed)
            mixing = getattr(lib, name)(alpha=0.7, num_classes=2)
            if t is torch:
                beta = mortice.distributions.Beta(mortice.tensor([0.7]), mortice.tensor([0.7]))
                mixing._dist = beta
            x = image("batch-uint8" if kind == "batch-uint8" else "batch-float", t, tv)
            x = tv.Image(x) if kind == "image-batch" else tv.Video(t.stack([x, x * 0.5])) if kind == "video" else x
            return mixing(x, t.tensor(labels)), mixing({"x": x, "Labels": t.tensor(labels)})

        agree(run)


def test_containers(drawn):
    for seed in range(8):

        def run(t, lib, tv, seed=seed):
            mortice.manual_seed(seed)
            ops = [lib.RandomHorizontalFlip(), lib.Resize(20), lib.RandomCrop(16), lib.ColorJitter(0.5)]
            all_of = lib.Compose(
                [lib.ToImage(), lib.RandomOrder(ops[:2]), lib.RandomChoice(ops, p=[1, 2, 3, 4]), lib.RandomApply(ops[1:], p=0.4)]
            )
            x = image("image-float", t, tv)
            return all_of(x, boxes("XYWH", t, tv)), all_of({"x": x, "y": 3})

        agree(run)


# ---- functional ----

CALLS = [
    ("horizontal_flip",), ("vertical_flip",), ("crop", 3, 5, 20, 30), ("crop", -4, -6, 30, 60), ("crop", 40, 50, 20, 30),
    ("center_crop", [20, 30]), ("center_crop", 70), ("pad", [3]), ("pad", [1, 2, 3, 4]), ("pad", (5, -3)),
    ("resize", [30, 50]), ("resize", [20]), ("resize", 20), ("resize", None, "bilinear", 30), ("resize", [48, 64]),
    ("resized_crop", 3, 5, 20, 30, [32, 16]),
    ("rotate", 30.0), ("rotate", 90), ("rotate", -90.0, "bilinear", True), ("rotate", 180), ("rotate", 0),
    ("rotate", 37.0, "nearest", True),
    ("rotate", 20, "bilinear", False, [10, 20]), ("rotate", 360, "bilinear", True), ("affine", 20.0, [3, -4], 1.2, [5.0, -8.0]),
    ("affine", -75, (0, 0), 0.6, [15.0]), ("affine", 0, [10, 30], 1.0, [0.0, 0.0], "bilinear", None, [3, 4]),
    ("perspective", [[0, 0], [63, 0], [63, 47], [0, 47]], [[5, 9], [51, 3], [58, 44], [11, 40]]),
    ("perspective", None, None, "nearest", None, [1.1, 0.1, -3.0, 0.05, 0.9, 2.0, 0.001, -0.002]),
]  # fmt: skip


# Turned boxes are floats.
FORMATS = [*itertools.product(PLAIN, ["float32", "int64", "float64"]), *itertools.product(TURNED, ["float32", "float64"])]


@pytest.mark.parametrize("mode", ["soft", "hard", None])
@pytest.mark.parametrize("format, dtype", FORMATS)
@pytest.mark.parametrize("case", CALLS, ids=str)
def test_boxes(case, format, dtype, mode):
    tolerance = 1e-3 if format in TURNED else 1e-5
    agree(lambda t, lib, tv: getattr(lib.functional, case[0])(boxes(format, t, tv, dtype, mode), *case[1:]), tolerance=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("case", CALLS, ids=str)
def test_points_and_masks(case, dtype):
    agree(lambda t, lib, tv: getattr(lib.functional, case[0])(points(t, tv, dtype), *case[1:]))
    for make in (lambda t, tv: masks(t, tv), lambda t, tv: tv.Mask(t.arange(48 * 64).reshape(48, 64).to(getattr(t, dtype)))):
        agree(lambda t, lib, tv, make=make: getattr(lib.functional, case[0])(make(t, tv), *case[1:]), rare=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CALLS, ids=str)
def test_images(case, kind):
    agree(lambda t, lib, tv: getattr(lib.functional, case[0])(image(kind, t, tv), *case[1:]), rare=0.002)


@pytest.mark.parametrize("format, dtype", FORMATS)
def test_elastic(format, dtype):
    moves = (np.random.default_rng(0).random((1, 48, 64, 2)).astype(np.float32) - 0.5) * 0.2
    agree(lambda t, lib, tv: lib.functional.elastic(boxes(format, t, tv, dtype), t.tensor(moves)))
    agree(lambda t, lib, tv: lib.functional.elastic(points(t, tv, dtype), t.tensor(moves)))
    agree(lambda t, lib, tv: lib.functional.elastic_transform(masks(t, tv), t.tensor(moves)))


@pytest.mark.parametrize("old, dtype", FORMATS)
@pytest.mark.parametrize("new", [*PLAIN, *TURNED])
def test_formats(old, new, dtype):
    rng = np.random.default_rng(1)
    a = rng.integers(-20, 90, (50, 4 if old in PLAIN else 8 if old == "XYXYXYXY" else 5)).astype(dtype)
    if old == "XYXYXYXY" and new != old:  # corners of rectangles
        a = each(lambda t, lib, tv: lib.functional.convert_bounding_box_format(t.tensor(a[:, :5]), "XYWHR", old))[1].numpy()

    def run(t, lib, tv):
        kind = tv.BoundingBoxFormat
        plain = lib.functional.convert_bounding_box_format(t.tensor(a), kind[old], new.lower())
        return tv.BoundingBoxes(plain, format=new, canvas_size=(1, 1)), lib.functional.convert_bounding_box_format(
            tv.BoundingBoxes(t.tensor(a), format=old, canvas_size=(3, 4)), new_format=kind[new]
        )

    agree(run, tolerance=1e-5)


@pytest.mark.parametrize("mode", ["soft", "hard", None, "auto"])
@pytest.mark.parametrize("format", [*PLAIN, *TURNED])
def test_clamping(format, mode):
    rng = np.random.default_rng(2)
    a = (rng.random((200, 5)) * [90, 70, 60, 60, 360] - [20, 15, 0, 0, 0])[:, : 4 if format in PLAIN else 5]

    def run(t, lib, tv):
        first = format if format in PLAIN else "CXCYWHR"
        made = tv.BoundingBoxes(t.tensor(a), format=first, canvas_size=(48, 64), clamping_mode="hard")
        made = lib.functional.convert_bounding_box_format(made, new_format=format)
        out = lib.functional.clamp_bounding_boxes(made, clamping_mode=mode)
        # Turned boxes that touch the edge are good or not by the last bit.
        good = lib.functional.sanitize_bounding_boxes(out) if format in PLAIN else None
        return out, good, lib.functional.sanitize_bounding_boxes(made, min_size=5, min_area=90)

    agree(run, tolerance=1e-6)


VALUES = [
    ("adjust_brightness", 0.6), ("adjust_contrast", 1.7), ("adjust_saturation", 0.3), ("adjust_sharpness", 2.5), ("adjust_hue", 0.3),
    ("adjust_gamma", 0.5), ("adjust_gamma", 2.2, 0.7), ("invert",), ("autocontrast",), ("equalize",), ("posterize", 3), ("posterize", 0),
    ("posterize", 8), ("solarize", 0.5), ("rgb_to_grayscale", 1), ("to_grayscale", 3), ("grayscale_to_rgb",),
    ("permute_channels", [2, 0, 1]),
    ("gaussian_blur", 5), ("gaussian_blur", [3, 7], [1.5]), ("to_dtype",), ("get_size",), ("get_dimensions",), ("get_num_channels",),
    ("get_image_size",), ("pad", 3, [0.1, 0.2, 0.3]), ("pad", [1, 2, 3, 4], [5]), ("pad", 2, 0.5, "edge"), ("pad", 2, None, "symmetric"),
    ("pad", [2, 3], 0, "reflect"), ("pad", 2, [1, 2, 3], "edge"), ("five_crop", 20), ("ten_crop", [10, 20], True), ("get_num_frames",),
    ("uniform_temporal_subsample", 5), ("jpeg", 50), ("normalize", [0.5], [0.5]), ("to_image",), ("to_pil_image",), ("pil_to_tensor",),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", VALUES, ids=str)
def test_values(case, kind):
    if case[0] == "jpeg" and kind != "pil":
        pytest.skip("torchvision's own encoder is not here")
    if case[0] == "solarize" and not kind.endswith("float"):
        case = ("solarize", 128)
    if case[:2] == ("posterize", 0) and kind == "pil":
        pytest.skip("Pillow keeps one bit at least")
    agree(lambda t, lib, tv: getattr(lib.functional, case[0])(image(kind, t, tv), *case[1:]), step=1 if case[0] == "gaussian_blur" else 0)


EXACT = [
    *[("resize", size, mode, None, antialias) for size in ([31, 20], [20], [96, 130])
      for mode in ("nearest", "nearest-exact", "bilinear", "bicubic") for antialias in (True, False)],
    ("resize", [31, 20], "lanczos"), ("resized_crop", 3, 5, 20, 30, [32, 16], "bilinear"),
    ("resized_crop", 3, 5, 20, 30, [7, 16], "bicubic"), ("adjust_sharpness", 0.4), ("adjust_sharpness", 1.7),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["uint8", "image-uint8", "video-uint8"])
@pytest.mark.parametrize("case", EXACT, ids=str)
def test_bytes_are_the_same_ones(case, kind):
    mine, other = each(lambda t, lib, tv: getattr(lib.functional, case[0])(image(kind, t, tv), *case[1:]))
    np.testing.assert_array_equal(mine.numpy(force=True), other.numpy(), strict=True)


@pytest.mark.parametrize("shape", [(3, 26, 17), (1, 3, 26, 17), (2, 3, 26, 17), (1, 2, 3, 26, 17)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("last", [True, False])
def test_resized_images_lie_as_they_did(shape, dtype, last):
    def strides(t, lib, tv):
        form = t.channels_last if last else t.contiguous_format
        x = t.zeros(2, *shape[-3:], dtype=getattr(t, dtype))[: max(1, *shape[:-3], 1)].contiguous(memory_format=form)
        return lib.functional.resize(x.view(shape), [30, 19]).stride()[-3:]

    mine, other = each(strides)
    assert mine == other


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float16", "float64"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("case", [("invert",), ("posterize", 3), ("solarize", 0.5), ("equalize",), ("adjust_gamma", 1.5)], ids=str)
def test_values_of_other_types(case, channels, dtype):
    rng = np.random.default_rng(3)
    a = rng.random((2, channels, 9, 8)) if dtype.startswith("f") else rng.integers(0, np.iinfo(dtype).max, (2, channels, 9, 8))
    mine, other = each(lambda t, lib, tv: getattr(lib.functional, case[0])(tv.Image(t.tensor(a.astype(dtype))), *case[1:]))
    if isinstance(other, Exception):
        assert isinstance(mine, type(other)), (mine, other)
        return
    x, y = (v.numpy(force=True).astype(np.float64) for v in (mine, other))
    # Of integers a step, since they are cut.
    unit, step = (1.0, 2e-3 if dtype == "float16" else 1e-6) if dtype.startswith("f") else (float(np.iinfo(dtype).max), 1.0)
    np.testing.assert_allclose(x / unit, y / unit, atol=max(step / unit, 1e-6))


@pytest.mark.parametrize("source", ["uint8", "int8", "int16", "int32", "int64", "bool", "uint16", "float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["uint8", "int8", "int16", "int32", "int64", "uint16", "float16", "float32", "float64"])
def test_dtypes(source, target):
    rng = np.random.default_rng(4)
    a = rng.random((3, 5, 6)) if source.startswith("f") else rng.integers(0, 2 if source == "bool" else np.iinfo(source).max, (3, 5, 6))
    for scale in (False, True):
        mine, other = each(lambda t, lib, tv: lib.functional.to_dtype(t.tensor(a.astype(source)), getattr(t, target), scale=scale))  # noqa: B023
        if isinstance(other, Exception):
            continue
        np.testing.assert_array_equal(mine.numpy(force=True), other.numpy(), strict=True)


# ---- names, signatures, prints ----


def test_every_name_is_there_with_its_parameters(theirs):
    tv = LIBRARIES["theirs"][2]
    for mine, other in ((v2, theirs), (v2.functional, theirs.functional), (tv_tensors, tv)):
        for name, there in vars(other).items():
            if name.startswith("_") or inspect.ismodule(there) or not callable(there):
                continue
            here = getattr(mine, name)
            # Kernels of images are the functions themselves, whose first parameter is `inpt`.
            if name.endswith(("_image", "_video", "_mask")) or name == "TVTensor" or isinstance(there, EnumMeta):
                continue
            shown = []
            for f in (here, there):
                parameters = inspect.signature(f).parameters.values()
                shown.append([(p.name, p.kind, str(p.default).replace("torch.", "mortice.")) for p in parameters])
            if inspect.isclass(there) or not name.endswith(("_boxes", "_keypoints")):
                assert shown[0] == shown[1], name
            else:
                assert sorted(shown[0]) == sorted(shown[1]), name
            if inspect.isclass(there):
                assert hasattr(here, "get_params") == hasattr(there, "get_params"), name


@pytest.mark.parametrize("case", [*FIXED, *RANDOM, ("Lambda", {"lambd": abs}), ("Normalize", {"mean": [0.5], "std": (1,)})], ids=str)
def test_what_classes_print(case):
    agree(lambda t, lib, tv: repr(getattr(lib, case[0])(**case[1])))


def test_what_the_others_print():
    def texts(t, lib, tv):
        parts = [
            lib.Compose([lib.Resize(8), lib.ToImage(), lib.Lambda(abs, int)]), lib.ToPILImage("RGB"), lib.JPEG(5), lib.JPEG((5, 9)),
            lib.FiveCrop([4]), lib.TenCrop((4, 5), True), lib.RandomApply([lib.Grayscale()], 0.3), lib.RandomChoice([lib.Identity()]),
            lib.RandomOrder([lib.Identity()]), lib.MixUp(num_classes=3), lib.CutMix(alpha=2), lib.AutoAugment(), lib.RandAugment(),
            lib.TrivialAugmentWide(), lib.AugMix(), lib.UniformTemporalSubsample(3), lib.ToDtype(t.float32, scale=True),
            tv.Image(t.zeros(1, 2, 2)), tv.BoundingBoxes([1, 2, 3, 4], format="XYWH", canvas_size=(5, 6)), tv.Mask([[1]]),
            tv.KeyPoints([[1, 2]], canvas_size=(5, 6)), tv.Video(t.zeros(1, 1, 1, 1)),
        ]  # fmt: skip
        return [repr(p).replace("torch.", "mortice.") for p in parts]

    agree(texts)


MISUSE = """
lib.Resize((1, 2, 3))
lib.Resize(None)
lib.Resize(3.5)
lib.Resize(8, "cubic")(t.zeros(3, 9, 9))
lib.Resize([4, 4], max_size=5)(t.zeros(3, 9, 9))
lib.CenterCrop((1, 2, 3))
lib.Pad("a")
lib.Pad((1, 2, 3))
lib.Pad(1, "a")
lib.Pad(1, padding_mode="wrap")
lib.Pad(1, padding_mode="edge")(boxes("XYXY", t, tv))
lib.RandomCrop(9)(t.zeros(3, 8, 8))
lib.RandomResizedCrop(8, scale=1)
lib.RandomHorizontalFlip(2)
lib.Compose([])
lib.Compose(3)
lib.RandomChoice([abs], p=[1, 2])
lib.RandomApply([abs], p=3)
lib.RandomOrder([])
lib.FiveCrop(3)(boxes("XYXY", t, tv))
lib.RandomZoomOut(side_range=(0.5, 1))
lib.RandomIoUCrop()(t.zeros(3, 8, 8))
lib.ColorJitter(-1)
lib.ColorJitter("a")
lib.ColorJitter(hue=0.6)
lib.RandomPhotometricDistort()(boxes("XYXY", t, tv))
lib.Normalize([0.5], [0.5])(SMALL)
lib.Normalize([0.5], [0.0])(t.zeros(3, 4, 4))
lib.Normalize([0.5], [0.5])(t.zeros(3, 4, 4, dtype=t.uint8))
lib.GaussianBlur(2)
lib.GaussianBlur(3, -1)
lib.GaussianBlur(3, (2, 1))
lib.GaussianBlur(3, "a")
lib.GaussianNoise(sigma=-1)(t.zeros(3, 4, 4))
lib.GaussianNoise()(SMALL)
lib.GaussianNoise()(t.zeros(3, 4, 4, dtype=t.int32))
lib.ToDtype("float32")
lib.ToDtype({tv.Mask: t.int64})(t.zeros(3, 4, 4))
lib.SanitizeBoundingBoxes(min_size=0)
lib.SanitizeBoundingBoxes()({"x": boxes("XYXY", t, tv)})
lib.SanitizeBoundingBoxes(labels_getter=3)
lib.SanitizeBoundingBoxes()({"x": boxes("XYXY", t, tv), "labels": t.zeros(3)})
lib.SanitizeBoundingBoxes()({"x": boxes("XYXY", t, tv), "labels": [1, 2]})
lib.SanitizeBoundingBoxes()({"labels": t.zeros(3)})
lib.SetClampingMode("a")
lib.ConvertBoundingBoxFormat("a")(boxes("XYXY", t, tv))
lib.ConvertBoundingBoxFormat("XYWHR")(boxes("XYXY", t, tv))
lib.RandomErasing(p=2)
lib.RandomErasing(value="a")
lib.RandomErasing(p=1, value=(1, 2))(t.zeros(3, 8, 8))
lib.MixUp()(t.zeros(2, 3, 4, 4), t.tensor([1, 2]))
lib.MixUp(num_classes=3)(t.zeros(3, 4, 4), t.tensor([1, 2]))
lib.MixUp(num_classes=3)(t.zeros(3, 3, 4, 4), t.tensor([1, 2]))
lib.CutMix(num_classes=3)(t.zeros(2, 3, 4, 4), t.zeros(2, 4))
lib.CutMix(num_classes=3)(t.zeros(2, 3, 4, 4), [1, 2])
lib.CutMix(num_classes=3)(SMALL, t.tensor([1, 2]))
lib.JPEG(0)
lib.JPEG(True)
lib.JPEG((9, 5))
lib.JPEG("a")
lib.AutoAugment()(boxes("XYXY", t, tv))
lib.AutoAugment()(3)
lib.RandAugment(-1)
lib.RandAugment()(SMALL, SMALL)
lib.AugMix(severity=11)
lib.RandomPerspective(2)
lib.RandomAffine(1, translate=(2, 0))
lib.RandomAffine(1, scale=(0, 1))
lib.RandomRotation(-1)
lib.ElasticTransform("a")
lib.ElasticTransform((1.0, 2.0, 3.0))
lib.Transform()(t.zeros(3, 4, 4))
F.resize("a", 3)
F.adjust_hue(masks(t, tv), 0.1)
F.resize(masks(t, tv), [4, 4], sise=3)
F.resize(boxes("XYXY", t, tv), [4, 4], "nearest", None, True, 7)
F.resize(boxes("XYXY", t, tv))
F.crop(boxes("XYXY", t, tv), 1, 2, 3)
F.five_crop(boxes("XYXY", t, tv), 3)
F.convert_bounding_box_format(t.zeros(2, 4), new_format="XYXY")
F.convert_bounding_box_format(t.zeros(2, 4))
F.convert_bounding_box_format(boxes("XYXY", t, tv), "XYXY", "XYWH")
F.convert_bounding_box_format(masks(t, tv), new_format="XYWH")
F.clamp_bounding_boxes(t.zeros(2, 4))
F.clamp_bounding_boxes(boxes("XYXY", t, tv), "XYXY")
F.clamp_bounding_boxes(boxes("XYXY", t, tv), clamping_mode="q")
F.sanitize_bounding_boxes(t.zeros(2, 4))
F.sanitize_bounding_boxes(masks(t, tv))
F.sanitize_bounding_boxes(boxes("XYXY", t, tv), "XYXY")
F.clamp_keypoints(t.zeros(2, 2))
F.sanitize_keypoints(t.zeros(2, 2))
F.perspective(t.zeros(3, 4, 4), None, None)
F.perspective(t.zeros(3, 4, 4), None, None, coefficients=[1])
F.perspective(boxes("XYXY", t, tv), None, None, coefficients=[0.0] * 8)
F.posterize(t.zeros(3, 4, 4), 9)
F.permute_channels(t.zeros(3, 4, 4), [0, 1])
F.to_image("a")
F.pad(masks(t, tv), 1, [1, 2])
F.elastic(boxes("XYXY", t, tv), t.zeros(1, 2, 3, 2))
F.register_kernel("resize", tv.Image)
F.register_kernel("q", tv.Image)
F.register_kernel(abs, tv.Image)
F.register_kernel("resize", int)
lib.query_size([3])
lib.query_chw([t.zeros(3, 4, 4), t.zeros(3, 4, 5)])
lib.get_bounding_boxes([])
tv.Image(t.zeros(3))
tv.Video(t.zeros(3))
tv.set_return_type("a")
tv.BoundingBoxes(t.zeros(1, 1, 4), format="XYXY", canvas_size=(1, 1))
tv.is_rotated_bounding_format(3)
tv.BoundingBoxes(t.zeros(1, 5, dtype=t.int64), format="XYWHR", canvas_size=(1, 1))
tv.KeyPoints(t.zeros(3, 3), canvas_size=(1, 1))
""".strip().splitlines()


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_raises_what_torchvision_raises(case):
    known = {"boxes": boxes, "masks": masks, "SMALL": SMALL}
    mine, other = each(lambda t, lib, tv: eval(case, known, {"t": t, "lib": lib, "tv": tv, "F": lib.functional}))
    assert isinstance(other, Exception), other
    assert isinstance(mine, type(other)), (mine, other)
