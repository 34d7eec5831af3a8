"""Transforms of v2 and tv_tensors by themselves, on the default and strict backends."""

from __future__ import annotations

import copy
import importlib.util
import pickle

import pytest

import mortice as mt
from mortice.vision import datasets
from mortice.vision import tv_tensors as tv
from mortice.vision.transforms import v2
from mortice.vision.transforms.v2 import functional as F

Image = pytest.importorskip("PIL.Image")
STRICT = importlib.util.find_spec("mortice_conformance") is not None


@pytest.fixture(params=[mt.default_backend(), *(["strict"] if STRICT else [])], autouse=True)
def backend(request):
    """Run each test on the default backend, and on the strict one where the conformance kit is installed."""
    with mt.use_backend(request.param):
        yield request.param


def image():
    """Return an Image (1, 4, 6) whose pixels tell where they are."""
    return tv.Image(mt.arange(24, dtype=mt.uint8).reshape(1, 4, 6))


def boxes(**settings):
    return tv.BoundingBoxes([[1, 0, 3, 2], [0, 1, 6, 4]], format="XYXY", canvas_size=(4, 6), **settings)


# ---- tv_tensors ----


def test_operations_give_plain_tensors_and_copies_keep_the_class():
    x = boxes()
    assert type(x + 1) is type(x[0]) is type(x.sum()) is mt.Tensor
    assert isinstance(x, mt.Tensor) and not F.is_pure_tensor(x) and F.is_pure_tensor(x + 1)
    for same in (x.clone(), x.to(mt.float32), x.detach(), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(same) is tv.BoundingBoxes and same.canvas_size == (4, 6) and same.format.value == "XYXY"
    wrapped = tv.wrap(x + 1, like=x, canvas_size=(9, 9))
    assert wrapped.canvas_size == (9, 9) and wrapped.tolist()[0] == [2, 1, 4, 3]
    assert type(mt.stack([image(), image()])) is mt.Tensor


def test_writing_in_place_keeps_the_class_of_what_is_written_and_gives_a_plain_tensor():
    x = image()
    y = x.add_(1).mul_(2)
    assert type(x) is tv.Image and type(y) is mt.Tensor and x[0, 0].tolist() == y[0, 0].tolist() == [2, 4, 6, 8, 10, 12]
    y.zero_()
    assert x.sum() == 0 and type(x.contiguous()) is type(x.byte()) is mt.Tensor and x.requires_grad_(False) is x


def test_set_return_type():
    x = image()
    with tv.set_return_type("TVTensor"):
        assert type(x + 2) is type(2 + x) is type(x.float().mean()) is type(x == 1) is tv.Image
        assert [type(v) for v in x.float().max(-1)] == [tv.Image, tv.Image] and x.sum().item() == 276
        assert boxes()[0].format == tv.BoundingBoxFormat.XYXY
        assert type(mt.add(x, 2)) is type(mt.stack([x, x])) is type(mt.nn.functional.relu(x)) is tv.Image
        assert type(x.as_subclass(mt.Tensor)) is mt.Tensor and type(x.add_(0)) is tv.Image
    assert type(x + 2) is mt.Tensor
    with pytest.raises(ValueError, match="return_type must be 'TVTensor' or 'Tensor', got Image"):
        tv.set_return_type("Image")


def test_as_subclass_shares_memory_and_graph():
    x = mt.ones(2, 3, requires_grad=True)
    y = x.as_subclass(tv.Mask)
    (y * 2).sum().backward()
    assert type(y) is tv.Mask and not y.is_leaf and x.grad.tolist() == [[2.0] * 3] * 2
    a = mt.zeros(3, 2).T
    a.as_subclass(tv.Mask)[0] = 5
    assert a.tolist() == [[5.0] * 3, [0.0] * 3]


def test_what_they_print():
    assert repr(boxes()).endswith("format=BoundingBoxFormat.XYXY, canvas_size=(4, 6), clamping_mode=soft)")
    assert repr(tv.Mask([[1, 0]])).startswith("Mask([[1, 0]]") and repr(image()).endswith(", )")


def test_images_of_pictures_and_of_grey_tensors():
    picture = Image.new("RGB", (5, 3), (1, 2, 3))
    assert tv.Image(picture).shape == (3, 3, 5) and tv.Image(picture)[:, 0, 0].tolist() == [1, 2, 3]
    assert tv.Image(mt.zeros(3, 5)).shape == (1, 3, 5) and tv.Mask(picture.convert("L")).shape == (1, 3, 5)
    assert type(F.to_image(picture)) is tv.Image


# ---- samples ----


def test_what_belongs_together_changes_together():
    sample = {"x": image(), "y": (boxes(), [tv.Mask(mt.arange(24).reshape(4, 6)), 3, "text", mt.tensor([1, 2])])}
    out = v2.RandomHorizontalFlip(p=1)(sample)
    assert type(out["x"]) is tv.Image and out["x"][0, 0].tolist() == [5, 4, 3, 2, 1, 0]
    assert type(out["y"][0]) is tv.BoundingBoxes and out["y"][0].tolist() == [[3, 0, 5, 2], [0, 1, 6, 4]]
    mask, number, text, labels = out["y"][1]
    assert type(mask) is tv.Mask and mask[0].tolist() == [5, 4, 3, 2, 1, 0]
    assert (number, text) == (3, "text") and labels is sample["y"][1][3]


def test_only_the_first_plain_tensor_is_an_image():
    x, y = mt.arange(6.0).reshape(1, 2, 3), mt.arange(6.0).reshape(1, 2, 3)
    a, b = v2.RandomHorizontalFlip(p=1)(x, y)
    assert a.tolist() == [[[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]] and b is y
    a, b = v2.RandomHorizontalFlip(p=1)(x, image())
    assert a is x and b[0, 0, 0] == 5


def test_geometry_of_boxes():
    x = boxes()
    assert F.crop(x, 1, 2, 2, 3).tolist() == [[0, 0, 1, 1], [0, 0, 3, 2]] and F.crop(x, 1, 2, 2, 3).canvas_size == (2, 3)
    assert F.resize(x, [8, 6]).tolist() == [[1, 0, 3, 4], [0, 2, 6, 8]] and F.resize(x, [8, 6]).canvas_size == (8, 6)
    assert F.pad(x, [1, 2]).tolist() == [[2, 2, 4, 4], [1, 3, 7, 6]] and F.pad(x, [1, 2]).canvas_size == (8, 8)
    assert F.rotate(x, 90, expand=True).tolist() == [[0, 3, 2, 5], [1, 0, 4, 6]]
    outside = tv.BoundingBoxes([[-3, 1, 9, 9]], format="XYXY", canvas_size=(4, 6))
    assert F.clamp_bounding_boxes(outside).tolist() == [[0, 1, 6, 4]]
    assert F.pad(tv.wrap(outside, like=outside, clamping_mode=None), 0).tolist() == [[-3, 1, 9, 9]]
    points = tv.KeyPoints([[1, 0], [5, 3]], canvas_size=(4, 6))
    assert F.vertical_flip(points).tolist() == [[1, 3], [5, 0]] and F.crop(points, 1, 1, 2, 2).tolist() == [[0, -1], [4, 2]]


def test_formats_of_boxes():
    x = mt.tensor([[1, 2, 6, 5]])
    assert F.convert_bounding_box_format(x, "XYXY", "XYWH").tolist() == [[1, 2, 5, 3]]
    assert F.convert_bounding_box_format(x, "XYXY", "cxcywh").tolist() == [[3, 3, 5, 3]]
    assert F.convert_bounding_box_format(x.float(), "XYXY", "CXCYWH").tolist() == [[3.5, 3.5, 5.0, 3.0]]
    turned = F.convert_bounding_box_format(mt.tensor([[1.0, 2.0, 4.0, 2.0, 90.0]]), "XYWHR", "XYXYXYXY")
    assert turned.round().tolist() == [[1.0, 2.0, 1.0, -2.0, 3.0, -2.0, 3.0, 2.0]]
    made = v2.ConvertBoundingBoxFormat("XYWH")(boxes())
    assert made.tolist() == [[1, 0, 2, 2], [0, 1, 6, 3]] and made.format == tv.BoundingBoxFormat.XYWH
    with pytest.raises(ValueError, match="Cannot convert between rotated and unrotated bounding boxes"):
        F.convert_bounding_box_format(x, "XYXY", "XYWHR")
    F.convert_bounding_box_format(x, "XYXY", "XYWH", inplace=True)
    assert x.tolist() == [[1, 2, 5, 3]]


def test_sanitize_removes_boxes_with_their_labels_and_masks():
    found = tv.BoundingBoxes([[0, 0, 3, 3], [2, 2, 2, 3], [0, 1, 9, 2]], format="XYXY", canvas_size=(4, 6))
    masks, whole = tv.Mask(mt.arange(6).reshape(3, 1, 2)), tv.Mask(mt.zeros(4, 6))
    out = v2.SanitizeBoundingBoxes()({"b": found, "labels": mt.tensor([7, 8, 9]), "m": masks, "whole": whole})
    assert out["b"].tolist() == [[0, 0, 3, 3]] and out["labels"].tolist() == [7] and out["m"].tolist() == [[[0, 1]]]
    assert out["whole"] is whole
    with pytest.raises(ValueError, match="as many labels as BoundingBoxes"):
        v2.SanitizeBoundingBoxes()({"b": found, "labels": mt.tensor([1])})


def test_to_dtype():
    x, mask = image(), tv.Mask(mt.zeros(4, 6))
    out = v2.ToDtype(mt.float32, scale=True)(x, mask)
    assert out[0].dtype == mt.float32 and abs(out[0][0, 0, 1].item() - 1 / 255) < 1e-7 and out[1] is mask
    out = v2.ToDtype({tv.Image: mt.float64, tv.Mask: mt.int64, "others": None})(x, mask, boxes())
    assert [v.dtype for v in out] == [mt.float64, mt.int64, mt.int64] and out[0][0, 0, 1] == 1


def test_jpeg_of_tensors_is_that_of_pictures():
    picture = Image.radial_gradient("L").convert("RGB").resize((40, 32))
    x = F.jpeg(F.to_image(picture), 50)
    assert type(x) is tv.Image and mt.equal(x, F.pil_to_tensor(F.jpeg(picture, 50)).to(x.device))
    assert not mt.equal(x, F.to_image(picture)) and v2.JPEG((5, 9))(mt.stack([x, x])).shape == (2, 3, 32, 40)


def test_modules_are_attributes_without_an_import():
    from mortice.vision import transforms

    assert transforms.transforms.Resize is transforms.Resize and transforms.v2 is v2


def test_masks_of_no_object_keep_their_number():
    for dtype in (mt.uint8, mt.bool, mt.float32):
        none = tv.Mask(mt.zeros(0, 17, 11, dtype=dtype))
        for out, size in (
            (F.resize(none, [5, 6]), (5, 6)), (F.rotate(none, 90.0, expand=True), (11, 17)),
            (F.affine(none, 3.0, [0, 0], 1.0, [0.0, 0.0]), (17, 11)), (F.elastic(none, mt.zeros(1, 17, 11, 2)), (17, 11)),
            (F.resized_crop(none, 1, 2, 5, 5, [9, 4]), (9, 4)),
        ):  # fmt: skip
            assert type(out) is tv.Mask and out.dtype is dtype and tuple(out.shape) == (0, *size)


def test_bytes_are_rounded_once():
    x = (mt.arange(75) * 7919 % 256).to(mt.uint8).reshape(3, 5, 5)
    flat = mt.full((3, 4, 4), 10, dtype=mt.uint8)
    assert mt.equal(F.adjust_sharpness(flat, 0.3), flat)
    assert F.resize(x, [2, 2])[0].tolist() == [[136, 132], [137, 136]]
    assert F.resize(x, [2, 2], "bicubic")[0].tolist() == [[135, 133], [135, 134]]


def test_mixing_a_batch():
    mt.manual_seed(0)
    x = mt.stack([mt.zeros(1, 8, 8), mt.ones(1, 8, 8)])
    mixed, labels = v2.MixUp(num_classes=3)(x, mt.tensor([0, 2]))
    share = labels[0, 0].item()
    assert 0 < share < 1 and abs(mixed[0].mean().item() - (1 - share)) < 1e-6 and labels.sum(1).tolist() == [1.0, 1.0]
    cut, labels = v2.CutMix(num_classes=3)(x, mt.tensor([0, 2]))
    assert set(cut.unique().tolist()) <= {0.0, 1.0} and abs(cut[0].mean().item() - labels[0, 2].item()) < 1e-6


# ---- classes and kernels of one's own ----


def test_a_transform_of_ones_own():
    class Add(v2.Transform):
        def __init__(self, most):
            super().__init__()
            self.most = most

        def make_params(self, flat_inputs):
            assert [type(x) for x in flat_inputs] == [tv.Image, tv.Mask]
            return {"by": self.most}

        def transform(self, inpt, params):
            return tv.wrap(inpt + params["by"], like=inpt) if isinstance(inpt, tv.Image) else inpt

    x, mask, other = Add(3)(image(), tv.Mask(mt.zeros(2, 2)), "y")
    assert type(x) is tv.Image and x[0, 0, 0] == 3 and mask.sum() == 0 and other == "y"
    assert repr(Add(3)) == "Add(most=3)"
    assert v2.Compose([Add(1), Add(2)])({"x": image(), "m": tv.Mask(mt.zeros(2, 2))})["x"][0, 0, 0] == 3


def test_a_kernel_of_ones_own():
    class Depth(tv.TVTensor):
        pass

    x = mt.arange(6.0).reshape(1, 2, 3).as_subclass(Depth)
    assert v2.RandomHorizontalFlip(p=1)(x) is x
    with pytest.raises(TypeError, match="Functional F.horizontal_flip supports inputs of type Tensor, PIL, Image"):
        F.horizontal_flip(x)

    @F.register_kernel("horizontal_flip", Depth)
    def flip(inpt):
        return tv.wrap(-inpt, like=inpt)

    out = v2.RandomHorizontalFlip(p=1)(x)
    assert type(out) is Depth and out[0, 0].tolist() == [0.0, -1.0, -2.0]


def test_a_class_of_ones_own_that_knows_something():
    class Depth(tv.TVTensor):
        def __new__(cls, data, *, unit, dtype=None):
            return cls._wrap(cls._to_tensor(data, dtype=dtype), unit=unit)

        @classmethod
        def _wrap(cls, tensor, *, unit):
            made = tensor.as_subclass(cls)
            made.unit = unit
            return made

        @classmethod
        def wrap(cls, tensor, like, **kwargs):
            return cls._wrap(tensor, unit=kwargs.get("unit", like.unit))

        @classmethod
        def _wrap_output(cls, output, args=(), kwargs=None):
            return cls._wrap(output, unit=args[0].unit) if isinstance(output, mt.Tensor) else output

        def __repr__(self, *, tensor_contents=None):
            return self._make_repr(unit=self.unit)

    x = Depth([1, 2], unit="m", dtype=mt.float64)
    assert x.dtype == mt.float64 and "unit=m)" in repr(x) and repr(x).startswith("Depth([1., 2.]")
    assert x.clone().unit == "m" and tv.wrap(x + 1, like=x, unit="cm").unit == "cm" and type(x + 1) is mt.Tensor
    with tv.set_return_type("TVTensor"):
        assert (x * 2).unit == "m"


# ---- with data ----


def test_a_dataset_gives_its_transforms_whole_samples(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (6, 4), (10, 20, 30)).save(tmp_path / name / "a.png")
    plain = datasets.ImageFolder(str(tmp_path), v2.ToImage(), lambda y: y + 5)
    wrapped = pickle.loads(pickle.dumps(datasets.wrap_dataset_for_transforms_v2(datasets.ImageFolder(str(tmp_path)))))
    wrapped.transforms = lambda x, y: (v2.functional.to_image(x), y + 5)
    assert type(wrapped[0][0]) is tv.Image and wrapped[0][1] == 5
    wrapped = datasets.wrap_dataset_for_transforms_v2(plain)
    assert isinstance(wrapped, datasets.ImageFolder) and len(wrapped) == 2 and wrapped.classes == ["cat", "dog"]
    x, y = wrapped[1]
    assert type(x) is tv.Image and x.shape == (3, 4, 6) and y == 6
    with pytest.raises(TypeError, match="No wrapper exists for dataset class FakeData"):
        datasets.wrap_dataset_for_transforms_v2(datasets.FakeData(1))
    with pytest.raises(TypeError, match="got a 'list' instead"):
        datasets.wrap_dataset_for_transforms_v2([])
    with pytest.raises(ValueError, match="`target_keys` is for datasets of detection"):
        datasets.wrap_dataset_for_transforms_v2(plain, ["boxes"])


def test_a_seed_repeats_a_pipeline():
    pipeline = v2.Compose([
        v2.ToImage(), v2.RandomResizedCrop((8, 8)), v2.RandomPhotometricDistort(), v2.RandAugment(), v2.RandomErasing(p=1),
        v2.ToDtype(mt.float32, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3), v2.ToPureTensor(),
    ])  # fmt: skip
    picture = Image.effect_noise((20, 16), 80).convert("RGB")
    found = []
    for _ in range(2):
        mt.manual_seed(3)
        found.append(pipeline(picture))
    assert type(found[0]) is mt.Tensor and found[0].shape == (3, 8, 8) and mt.equal(*found)


def test_what_belongs_to_the_package_is_found_without_an_import():
    import mortice.vision

    assert mortice.vision.transforms.v2 is v2 and mortice.vision.tv_tensors is tv
    mortice.vision.disable_beta_transforms_warning()


def test_what_programs_reach_into():
    fill = v2._utils._setup_fill_arg({tv.Mask: 255, "others": (1, 2, 3)})
    assert v2._utils._get_fill(fill, tv.Mask) == 255 and v2._utils._get_fill(fill, mt.Tensor) == [1.0, 2.0, 3.0]
    assert v2._utils.query_size([image(), boxes(), 3]) == (4, 6) and v2._utils.query_chw([image()]) == (1, 4, 6)
    assert v2.RandomCrop.get_params(image(), (4, 6)) == (0, 0, 4, 6)
