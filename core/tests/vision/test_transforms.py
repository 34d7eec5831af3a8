"""Transforms by themselves: PIL images against Pillow, tensors against closed forms, on the default and strict backends."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys

import pytest

import mortice as mt
from mortice.vision import transforms as T
from mortice.vision.transforms import functional as F

Image = pytest.importorskip("PIL.Image")
ImageOps = importlib.import_module("PIL.ImageOps")
STRICT = importlib.util.find_spec("mortice_conformance") is not None
Mode = T.InterpolationMode


@pytest.fixture(params=[mt.default_backend(), *(["strict"] if STRICT else [])], autouse=True)
def backend(request):
    """Run each test on the default backend, and on the strict one where the conformance kit is installed."""
    with mt.use_backend(request.param):
        yield request.param


def picture(width=24, height=16, mode="RGB"):
    """Return an image whose pixels tell where they are."""
    img = Image.new("RGB", (width, height))
    img.putdata([(7 * x % 256, 11 * y % 256, 5 * (x + y) % 256) for y in range(height) for x in range(width)])
    return img.convert(mode)


def rows(img):
    """Return the pixels of an image as nested lists (C, H, W), by Pillow alone."""
    w, h = img.size
    return [[[band.getpixel((x, y)) for x in range(w)] for y in range(h)] for band in img.split()]


def near(a, b, tolerance=1e-6):
    assert tuple(a.shape) == tuple(b.shape)
    assert (a - b).abs().max().item() <= tolerance


# ---- from one kind to another ----


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "CMYK", "HSV", "YCbCr"])
@pytest.mark.seed("VT14", "VT20")
def test_pixels_become_tensors_and_come_back_exactly(mode):
    img = picture(mode=mode)
    t = F.pil_to_tensor(img)
    assert t.dtype == mt.uint8 and t.tolist() == rows(img)
    back = F.to_pil_image(t, mode)
    assert back.mode == mode and back.tobytes() == img.tobytes()
    scaled = T.ToTensor()(img)
    assert scaled.dtype == mt.float32 and scaled.is_contiguous()
    near(scaled, mt.tensor(rows(img)) / 255)
    assert F.to_pil_image(scaled, mode).tobytes() == img.tobytes()


def test_to_tensor_is_writable_and_a_copy():
    img = picture()
    before = img.tobytes()
    t = F.pil_to_tensor(img)
    t.zero_()
    assert t.sum().item() == 0 and img.tobytes() == before


def test_other_types_are_kept_as_they_are():
    for mode, dtype in (("I", mt.int32), ("F", mt.float32), ("1", mt.bool)):
        img = picture(mode="L").convert(mode)
        t = F.pil_to_tensor(img)
        assert t.dtype == dtype and t.shape == (1, 16, 24)
    assert T.ToTensor()(picture(mode="1")).unique().tolist() == [0.0, 1.0]
    deep = Image.frombytes("I;16", (2, 2), b"\x00\x01\x02\x03\xff\xff\x00\x00")
    assert F.pil_to_tensor(deep).tolist() == [[[256, 770], [65535, 0]]]
    assert F.pil_to_tensor(Image.frombytes("I;16B", (2, 2), b"\x01\x00\x03\x02\xff\xff\x00\x00")).tolist() == [
        [[256, 770], [65535, 0]]
    ]


def test_an_empty_image():
    assert T.ToTensor()(Image.new("RGB", (0, 4))).shape == (3, 4, 0)


@pytest.mark.seed("VT12")
def test_floats_count_from_zero_to_one_and_channels_say_the_mode():
    for channels, mode in ((1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")):
        img = F.to_pil_image(mt.full((channels, 3, 5), 0.5))
        assert (img.mode, img.size) == (mode, (5, 3)) and set(img.tobytes()) == {127}
    assert F.to_pil_image(mt.ones(3, 5)).mode == "L"
    with pytest.raises(ValueError, match="2/3 dimensional. Got 4 dimensions"):
        F.to_pil_image(mt.ones(1, 3, 4, 4))
    with pytest.raises(ValueError, match="> 4 channels. Got 5 channels"):
        F.to_pil_image(mt.ones(5, 4, 4))
    with pytest.raises(TypeError, match="Input type int16 is not supported"):
        F.to_pil_image(mt.ones(3, 4, 4, dtype=mt.int16), "RGB")


def test_a_tensor_is_no_picture_for_to_tensor():
    with pytest.raises(TypeError, match="pic should be PIL Image or ndarray"):
        T.ToTensor()(mt.ones(3, 4, 4))


def test_integers_of_other_sizes_keep_white_white():
    white = mt.tensor([[0, 128, 255]], dtype=mt.uint8)
    assert F.convert_image_dtype(white, mt.int16).tolist() == [[0, 128 * 128, 255 * 128]]
    assert F.convert_image_dtype(white, mt.float32).tolist()[0][2] == 1.0
    assert F.convert_image_dtype(mt.tensor([[0.0, 0.5, 1.0]]), mt.uint8).tolist() == [[0, 127, 255]]
    assert F.convert_image_dtype(F.convert_image_dtype(white, mt.int32), mt.uint8).tolist() == white.tolist()
    assert F.convert_image_dtype(mt.tensor([[True, False]]), mt.float32).tolist() == [[1.0, 0.0]]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(mt.ones(1, 1), mt.int32)


# ---- PIL images are Pillow's own ----


def test_resizing_is_pillows():
    img = picture(50, 40)
    for mode, number in F.pil_modes_mapping.items():
        assert F.resize(img, [13, 21], mode).tobytes() == img.resize((21, 13), number).tobytes()
    assert T.Resize(20)(img).size == (25, 20) and T.Resize(20, max_size=22)(img).size == (22, 17)
    assert T.Resize((5, 9))(img).size == (9, 5) and T.Resize([10])(img).size == (12, 10)
    assert T.Resize(40)(img) is img


def test_geometry_is_pillows():
    img = picture()
    flips = Image.Transpose
    assert F.hflip(img).tobytes() == img.transpose(flips.FLIP_LEFT_RIGHT).tobytes()
    assert F.vflip(img).tobytes() == img.transpose(flips.FLIP_TOP_BOTTOM).tobytes()
    assert F.crop(img, -2, 3, 10, 30).tobytes() == img.crop((3, -2, 33, 8)).tobytes()
    assert F.rotate(img, 33, fill=5).tobytes() == img.rotate(33, fillcolor=(5, 5, 5)).tobytes()
    assert F.pad(img, (1, 2, 3, 4), (9, 8, 7)).tobytes() == ImageOps.expand(img, (1, 2, 3, 4), (9, 8, 7)).tobytes()
    moved = F.affine(img, 0, [3, 2], 1.0, 0)
    assert moved.tobytes() == img.transform(img.size, Image.Transform.AFFINE, (1, 0, -3, 0, 1, -2)).tobytes()


def test_colours_are_pillows():
    img = picture()
    enhance = importlib.import_module("PIL.ImageEnhance")
    for name, kind in (
        ("brightness", "Brightness"),
        ("contrast", "Contrast"),
        ("saturation", "Color"),
        ("sharpness", "Sharpness"),
    ):
        changed = getattr(F, f"adjust_{name}")(img, 1.4)
        assert changed.tobytes() == getattr(enhance, kind)(img).enhance(1.4).tobytes()
    for name in ("invert", "autocontrast", "equalize"):
        assert getattr(F, name)(img).tobytes() == getattr(ImageOps, name)(img).tobytes()
    assert F.posterize(img, 3).tobytes() == ImageOps.posterize(img, 3).tobytes()
    assert F.solarize(img, 100).tobytes() == ImageOps.solarize(img, 100).tobytes()
    grey = img.convert("L")
    assert T.Grayscale()(img).tobytes() == grey.tobytes() and T.Grayscale(3)(img).split()[2].tobytes() == grey.tobytes()


def test_a_palette_stays_with_the_image():
    img = picture(mode="P")
    for mode in ("constant", "reflect"):
        assert F.pad(img, 2, padding_mode=mode).getpalette() == img.getpalette()


# ---- tensors against closed forms ----


def test_padding_modes_continue_the_row():
    row = mt.tensor([[1, 2, 3, 4]], dtype=mt.uint8)
    pad = lambda n, mode: F.pad(row, [n, 0], padding_mode=mode).tolist()[0]  # noqa: E731
    assert pad(2, "edge") == [1, 1, 1, 2, 3, 4, 4, 4]
    assert pad(2, "reflect") == [3, 2, 1, 2, 3, 4, 3, 2]
    assert pad(2, "symmetric") == [2, 1, 1, 2, 3, 4, 4, 3]
    assert pad(5, "reflect") == [2, 3, 4, 3, 2, 1, 2, 3, 4, 3, 2, 1, 2, 3]
    assert pad(-1, "symmetric") == [2, 3]
    assert F.pad(row, [1, 0], fill=9).tolist() == [[9, 1, 2, 3, 4, 9]]


def test_crops_reach_beyond_the_image():
    x = mt.arange(12).reshape(1, 3, 4) + 1
    assert F.crop(x, -1, 2, 3, 3).tolist() == [[[0, 0, 0], [3, 4, 0], [7, 8, 0]]]
    for top, left in ((-9, 0), (9, 0), (0, -9), (0, 9)):
        assert F.crop(x, top, left, 2, 3).tolist() == [[[0, 0, 0], [0, 0, 0]]]
    assert F.center_crop(x, (1, 2)).tolist() == [[[6, 7]]]
    assert F.center_crop(x, 6).shape == (1, 6, 6) and F.center_crop(x, 6).sum().item() == 78
    corners = F.five_crop(x, (1, 1))
    assert [c.item() for c in corners] == [1, 4, 9, 12, 7]
    assert [c.item() for c in F.ten_crop(x, 1, vertical_flip=True)[5:]] == [9, 12, 1, 4, 7]


@pytest.mark.parametrize("mode", [Mode.NEAREST, Mode.NEAREST_EXACT, Mode.BILINEAR, Mode.BICUBIC])
def test_resizing_tensors_agrees_with_pillow(mode):
    img = picture(48, 40)
    ours = F.resize(F.pil_to_tensor(img), [20, 24], mode)
    want = F.pil_to_tensor(F.resize(img, [20, 24], mode))
    # Shrinking by two, Pillow's nearest takes the second of each two pixels and so does nearest-exact.
    if mode != Mode.NEAREST:
        # Pillow rounds once an axis; cubic weights make more of it.
        assert (ours.int() - want.int()).abs().max().item() <= (2 if mode == Mode.BICUBIC else 1)
    else:
        assert ours.tolist() == F.pil_to_tensor(img)[:, ::2, ::2].tolist()


def test_turns_by_right_angles_are_exact():
    x = mt.arange(2 * 5 * 5, dtype=mt.float32).reshape(2, 5, 5)
    for angle, turns in ((90, 1), (180, 2), (-90, 3), (360, 0)):
        near(F.rotate(x, angle), mt.rot90(x, turns, (-2, -1)))
    wide = mt.arange(15.0).reshape(1, 3, 5)
    near(F.rotate(wide, 90, expand=True), mt.rot90(wide, 1, (-2, -1)))
    near(F.affine(wide, 0, [1, 0], 1.0, 0, fill=7.0)[0, :, 0], mt.full((3,), 7.0))


def test_perspective_takes_points_to_points():
    x = mt.zeros(1, 40, 40)
    x[0, 8:13, 10:15] = 1.0
    moved = F.perspective(x, [[12, 10], [30, 10], [30, 30], [12, 30]], [[20, 22], [35, 12], [33, 36], [14, 31]])
    places = (moved[0] > 0.5).nonzero().tolist()
    assert places and all([abs(y - 22) <= 1 and abs(across - 20) <= 1 for y, across in places])
    near(F.perspective(x, [[0, 0], [39, 0], [39, 39], [0, 39]], [[0, 0], [39, 0], [39, 39], [0, 39]]), x, 1e-4)


def test_a_blur_keeps_the_sum_and_has_gaussian_weights():
    x = mt.zeros(1, 9, 9)
    x[0, 4, 4] = 1.0
    out = F.gaussian_blur(x, [5, 3], [1.0, 0.5])
    assert abs(out.sum().item() - 1) < 1e-6
    assert out[0, 4, 5].item() / out[0, 4, 4].item() == pytest.approx(math.exp(-0.5), rel=1e-5)
    assert out[0, 5, 4].item() / out[0, 4, 4].item() == pytest.approx(math.exp(-2.0), rel=1e-5)
    assert F.gaussian_blur(mt.full((3, 9, 9), 77, dtype=mt.uint8), 5).unique().tolist() == [77]


def test_hues_turn_through_the_circle():
    red = mt.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    near(F.adjust_hue(red, 1 / 3).flatten(), mt.tensor([0.0, 1.0, 0.0]), 1e-5)
    near(F.adjust_hue(red, -1 / 3).flatten(), mt.tensor([0.0, 0.0, 1.0]), 1e-5)
    near(F.adjust_hue(red, 0.5).flatten(), mt.tensor([0.0, 1.0, 1.0]), 1e-5)
    grey = mt.full((3, 2, 2), 0.25)
    near(F.adjust_hue(grey, 0.3), grey)


def test_blends_have_their_ends():
    x = mt.rand(3, 6, 7)
    near(F.adjust_brightness(x, 1.0), x)
    near(F.adjust_brightness(x, 0.0), mt.zeros(3, 6, 7))
    near(F.adjust_saturation(x, 0.0), F.rgb_to_grayscale(x, 3), 1e-6)
    assert F.adjust_contrast(x, 0.0).std().item() < 1e-6
    near(F.adjust_sharpness(x, 1.0), x)
    assert F.rgb_to_grayscale(mt.ones(1, 2, 2), 3).shape == (3, 2, 2)
    near(F.invert(F.invert(x)), x)
    near(F.adjust_gamma(x, 2.0), x * x)


def test_histograms():
    ramp = mt.arange(100, 164, dtype=mt.uint8).reshape(1, 8, 8)
    stretched = F.autocontrast(ramp)
    assert stretched.min().item() == 0 and stretched.max().item() >= 254  # what is left of 255 is cut
    flat = mt.full((3, 4, 4), 9, dtype=mt.uint8)
    few = mt.arange(142, dtype=mt.uint8).reshape(1, 1, 142)
    assert F.autocontrast(few)[0, 0, 47] == 84  # 47 * (1 / 141 * 255), below 85 in float32 as torchvision reckons
    assert F.autocontrast(flat).tolist() == flat.tolist() and F.equalize(flat).tolist() == flat.tolist()
    img = picture(60, 50)
    assert F.equalize(F.pil_to_tensor(img)).tolist() == F.pil_to_tensor(ImageOps.equalize(img)).tolist()
    assert F.posterize(ramp, 4).tolist() == [[[v & 0xF0 for v in r] for r in ramp[0].tolist()]]
    assert F.solarize(ramp, 128).tolist() == [[[255 - v if v >= 128 else v for v in r] for r in ramp[0].tolist()]]


# ---- any leading dims, gradients ----

CALLS = {
    "resize": lambda x: F.resize(x, [5, 7]), "cubic": lambda x: F.resize(x, 5, Mode.BICUBIC), "pad": lambda x: F.pad(x, 2),
    "reflect": lambda x: F.pad(x, 2, padding_mode="reflect"), "crop": lambda x: F.crop(x, -1, 2, 5, 9), "hflip": F.hflip,
    "rotate": lambda x: F.rotate(x, 20.0, Mode.BILINEAR, fill=[0.5]),
    "affine": lambda x: F.affine(x, 9.0, [1, 2], 1.1, 4.0, Mode.BILINEAR),
    "perspective": lambda x: F.perspective(x, [[0, 0], [7, 0], [7, 7], [0, 7]], [[1, 0], [7, 1], [6, 7], [0, 6]]),
    "blur": lambda x: F.gaussian_blur(x, 3), "brightness": lambda x: F.adjust_brightness(x, 0.7),
    "contrast": lambda x: F.adjust_contrast(x, 0.6), "saturation": lambda x: F.adjust_saturation(x, 0.6),
    "hue": lambda x: F.adjust_hue(x, 0.1), "sharpness": lambda x: F.adjust_sharpness(x, 0.4), "grey": F.rgb_to_grayscale,
    "gamma": lambda x: F.adjust_gamma(x, 1.7), "autocontrast": F.autocontrast, "invert": F.invert,
    "normalize": lambda x: F.normalize(x, [0.5], [0.2]), "elastic": lambda x: F.elastic_transform(x, mt.full((1, 8, 9, 2), 0.05)),
    "solarize": lambda x: F.solarize(x, 0.5), "erase": lambda x: F.erase(x, 1, 2, 3, 3, mt.zeros(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_any_leading_dims_and_a_gradient(name):
    mt.manual_seed(3)
    x = mt.rand(2, 2, 3, 8, 9) * 0.8 + 0.1
    whole = CALLS[name](x)
    for i in range(2):
        for j in range(2):
            near(CALLS[name](x[i, j]), whole[i, j], 1e-5)
    if name == "autocontrast":
        return  # the brightest value is on the edge of a clamp, where a quotient is no gradient
    y = x[0, 0].clone().requires_grad_()
    weights = mt.rand(*whole.shape[2:])
    (CALLS[name](y) * weights).sum().backward()
    # Against a difference quotient in a direction, in which float32 still leaves two digits.
    step = mt.rand(3, 8, 9) * 2e-3
    with mt.no_grad():
        change = ((CALLS[name](y + step) - CALLS[name](y - step)) * weights).sum().item() / 2
    assert (y.grad * step).sum().item() == pytest.approx(change, rel=0.08, abs=2e-4)


def test_images_without_channels():
    x = (mt.rand(6, 9) * 255).to(mt.uint8)
    assert (
        F.resize(x, [3, 4]).shape == (3, 4)
        and F.rotate(x, 30).shape == (6, 9)
        and F.gaussian_blur(x, 3).shape == (6, 9)
    )
    assert F.get_dimensions(x) == [1, 6, 9] and F.get_image_size(x) == [9, 6]


@pytest.mark.skipif(not STRICT, reason="needs the conformance kit's strict backend")
def test_tensors_stay_on_their_device():
    for device in ("strict:1", "strict_f32"):
        x = mt.rand(3, 8, 9, device=device)
        for name, call in CALLS.items():
            if name != "elastic":  # its displacement comes with the call
                assert str(call(x).device) == device, name
        byte = (x * 255).to(mt.uint8)
        assert {str(F.equalize(byte).device), str(F.posterize(byte, 3).device)} == {device}
        assert str(T.RandomErasing(p=1.0, value="random")(x).device) == device


# ---- the seeds' rows ----


def test_vt01_vt19_arrays_have_their_channels_last_and_only_bytes_are_scaled():
    np = pytest.importorskip("numpy")
    a = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    near(T.ToTensor()(a), mt.tensor(a.transpose(2, 0, 1).astype(np.float32)) / 255)
    assert T.ToTensor()(a[:, :, 0]).shape == (1, 2, 4) and T.ToTensor()(picture(mode="L")).shape == (1, 16, 24)
    unscaled = T.ToTensor()(a.astype(np.float64))
    assert unscaled.dtype == mt.float64 and unscaled.max().item() == 23
    assert F.to_pil_image(a).tobytes() == a.tobytes() and F.to_pil_image(a[:, :, 0]).mode == "L"


def test_vt04_vt05_vt06_resize():
    tall = picture(20, 50)
    assert T.Resize(10)(tall).size == (10, 25) and T.Resize((7, 9))(tall).size == (9, 7)
    bilinear = tall.resize((10, 25), 2).tobytes()
    assert T.Resize(10, interpolation=2)(tall).tobytes() == T.Resize(10)(tall).tobytes() == bilinear
    assert T.Resize(10)(F.pil_to_tensor(tall)).shape == (3, 25, 10)


def test_vt07_vt08_vt09_crops():
    img = picture()
    padded = T.CenterCrop(30)(img)
    assert padded.size == (30, 30) and padded.getpixel((0, 0)) == (0, 0, 0)
    assert [c.size for c in T.FiveCrop(8)(img)] == [(8, 8)] * 5
    with pytest.raises(ValueError, match="is bigger than input size"):
        T.FiveCrop(17)(img)
    with pytest.raises(ValueError, match="is larger than input image size"):
        T.RandomCrop(17)(img)
    assert T.RandomCrop(17, padding=1)(img).size == T.RandomCrop(17, pad_if_needed=True)(img).size == (17, 17)


def test_vt16_transforms_run_on_every_access():
    Dataset = importlib.import_module("mortice.utils.data").Dataset

    class Data(Dataset):
        calls, flip = 0, T.Lambda(lambda img: F.hflip(img))

        def __getitem__(self, i):
            self.calls += 1
            return self.flip(picture())

    data = Data()
    assert data.calls == 0 and data[0].tobytes() == data[0].tobytes() and data.calls == 2


def test_vt02_normalize():
    x = mt.rand(1, 4, 4)
    near(T.Normalize((0.5,), (0.5,))(x), (x - 0.5) / 0.5)
    near(T.Normalize((0,), (1,))(x), x)
    with pytest.raises(ValueError, match="std evaluated to zero"):
        T.Normalize((0.5,), (0,))(x)
    with pytest.raises(TypeError, match="img should be Tensor Image"):
        T.Normalize((0.5,), (0.5,))(picture())
    with pytest.raises(RuntimeError, match="one value or one a channel"):
        T.Normalize((0.5, 0.5), (0.5, 0.5))(x)


def test_vt13_the_second_argument_of_resize_is_the_interpolation():
    assert T.Resize(3, 3).interpolation is Mode.BICUBIC and T.Resize(3, 2).interpolation is Mode.BILINEAR
    assert T.Resize(3, 3)(picture()).size == (4, 3)
    with pytest.raises(KeyError, match="number from 0 to 5; got 9"):
        T.Resize(3, 9)


def test_vt15_cropping_first_cuts_a_tiny_centre():
    img = picture(120, 90)
    assert T.Compose([T.Resize(64), T.CenterCrop(64)])(img).size == (64, 64)
    first = T.Compose([T.CenterCrop(64), T.Resize(64)])(img)
    assert first.tobytes() == img.crop((28, 13, 92, 77)).tobytes()


def test_names_that_torchvision_removed_say_what_took_their_place():
    with pytest.raises(AttributeError, match="removed it: use Resize"):
        T.Scale  # noqa: B018
    with pytest.raises(AttributeError, match="use RandomResizedCrop"):
        T.RandomSizedCrop  # noqa: B018


@pytest.mark.seed("VT11")
def test_other_types_are_refused():
    for call in (F.hflip, F.invert, lambda x: F.rotate(x, 3), lambda x: F.pad(x, 1), lambda x: F.resize(x, 3)):
        with pytest.raises(TypeError, match="PIL Image or Tensor|Unexpected type"):
            call([[1, 2]])


# ---- drawing ----

PIPELINES = {
    "crop": lambda: T.RandomResizedCrop(8), "jitter": lambda: T.ColorJitter(0.4, 0.4, 0.4, 0.2), "trivial": T.TrivialAugmentWide,
    "auto": T.AutoAugment, "rand": T.RandAugment, "mix": T.AugMix, "affine": lambda: T.RandomAffine(20, (0.2, 0.2), (0.5, 2), 9),
    "order": lambda: T.RandomOrder([T.RandomRotation(50), T.RandomHorizontalFlip(), T.RandomPerspective()]),
    "choice": lambda: T.RandomChoice([T.RandomRotation(50), T.RandomHorizontalFlip(), T.RandomPerspective()]),
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.seed("RS01", "VT10")
def test_a_seed_repeats_what_is_drawn(name):
    transform, img = PIPELINES[name](), picture()
    mt.manual_seed(5)
    first = [transform(img).tobytes() for _ in range(6)]
    mt.manual_seed(5)
    assert [transform(img).tobytes() for _ in range(6)] == first and len(set(first)) > 1


@pytest.mark.seed("VT09", "VT10")
def test_draws_are_spread_as_they_should_be(backend):
    if backend == "strict":
        pytest.skip("every backend draws the same, and this draws much")
    mt.manual_seed(0)
    x = mt.arange(6).reshape(1, 2, 3)
    flips = sum([T.RandomHorizontalFlip(0.3)(x)[0, 0, 0].item() == 2 for _ in range(2000)]) / 2000
    assert flips == pytest.approx(0.3, abs=0.04)
    places = [T.RandomCrop.get_params(x, (1, 1)) for _ in range(3000)]
    counts = [places.count((i, j, 1, 1)) / 3000 for i in range(2) for j in range(3)]
    assert counts == pytest.approx([1 / 6] * 6, abs=0.03)
    wide = mt.zeros(1, 300, 200)
    boxes = [T.RandomResizedCrop.get_params(wide, (0.2, 0.6), (0.5, 2.0)) for _ in range(300)]
    for i, j, h, w in boxes:
        assert 0 <= i <= 300 - h and 0 <= j <= 200 - w
        assert 0.19 <= h * w / 60000 <= 0.61 and 0.48 <= w / h <= 2.05
    orders = {tuple(T.RandomOrder([lambda p, n=n: [*p, n] for n in "abc"])([])) for _ in range(200)}
    assert len(orders) == 6


def test_erasing_puts_values_and_noise_in_place_of_a_box():
    mt.manual_seed(1)
    x = mt.full((3, 20, 20), 5.0)
    erased = T.RandomErasing(p=1, value=(1, 2, 3))(x)
    assert x.unique().tolist() == [5.0] and [c.min().item() for c in erased] == [1.0, 2.0, 3.0]
    share = (erased[0] == 1).sum().item() / 400
    assert 0.01 <= share <= 0.36
    same = T.RandomErasing(p=1, inplace=True)(x)
    assert same is x and (x == 0).any().item()
    assert T.RandomErasing(p=0)(x) is x


def test_whitening():
    mt.manual_seed(2)
    x, matrix, mean = mt.rand(2, 3, 2, 2), mt.rand(12, 12), mt.rand(12)
    near(T.LinearTransformation(matrix, mean)(x), ((x.reshape(2, 12) - mean) @ matrix).reshape(2, 3, 2, 2))


# ---- what is imported ----


def test_tensors_need_no_pillow_and_pictures_say_what_to_install(backend):
    if backend == "strict":
        pytest.skip("another process, with a backend of its own")
    program = """
import sys
sys.modules["PIL"] = sys.modules["PIL.Image"] = None
import mortice as mt
assert "mortice.vision" not in sys.modules
from mortice.vision import transforms as T
x = (mt.rand(3, 9, 8) * 255).to(mt.uint8)
for t in (T.Resize(5), T.RandAugment(), T.ColorJitter(.1, .1, .1, .1), T.Compose([T.RandomCrop(4), T.RandomRotation(9)])):
    t(x)
try:
    T.ToPILImage()(x)
except ModuleNotFoundError as error:
    assert "pip install 'mortice[vision]'" in str(error), error
else:
    raise SystemExit("made an image without Pillow")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_the_module_has_torchvisions_longer_name_too():
    from mortice.vision.transforms import Resize, transforms

    assert transforms.Resize is Resize and transforms.__name__ == "mortice.vision.transforms.transforms"
