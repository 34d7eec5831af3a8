"""The founding notes on transforms, where the tests of mortice.vision do not already follow them."""

from __future__ import annotations

import pytest

import mortice as mt
from mortice import nn

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: there are no pictures")
transforms = pytest.importorskip("mortice.vision.transforms")
F = transforms.functional
np = pytest.importorskip("numpy")


def picture(width=12, height=8):
    """Return a picture whose pixels tell where they are."""
    y, x = np.mgrid[:height, :width]
    return Image.fromarray(np.stack([x * 9, y * 9, x * y], 2).astype(np.uint8))


def test_VT03_compose_calls_in_order_and_prints_its_parts():
    seen = []
    both = transforms.Compose([transforms.Lambda(lambda x: seen.append("first") or x + 1), lambda x: x * 10])
    assert both(2) == 30 and seen == ["first"]
    text = repr(transforms.Compose([transforms.Resize(8), transforms.CenterCrop(4), transforms.ToTensor()]))
    assert text == (
        "Compose(\n    Resize(size=8, interpolation=bilinear, max_size=None, antialias=True)\n"
        "    CenterCrop(size=(4, 4))\n    ToTensor()\n)"
    )


@pytest.mark.seed("VT05")
def test_VT04_VT06_the_longer_edge_follows_and_interpolation_has_names():
    assert transforms.Resize(4)(picture(10, 25)).size == (4, 10)  # size * height / width
    assert transforms.Resize(4)(picture(25, 10)).size == (10, 4)
    assert transforms.Resize((3, 7))(picture()).size == (7, 3)  # (h, w) here, (w, h) in Pillow
    by_name = transforms.Resize(5, interpolation=transforms.InterpolationMode.NEAREST)
    assert by_name(picture()).tobytes() == transforms.Resize(5, interpolation=0)(picture()).tobytes()
    assert by_name(picture()).tobytes() != transforms.Resize(5)(picture()).tobytes()


def test_VT08_five_crops_in_their_order():
    x = mt.arange(24).view(1, 4, 6)
    crops = transforms.FiveCrop(2)(x)
    assert isinstance(crops, tuple)
    assert [c[0].tolist() for c in crops] == [
        [[0, 1], [6, 7]], [[4, 5], [10, 11]], [[12, 13], [18, 19]], [[16, 17], [22, 23]], [[8, 9], [14, 15]],
    ]  # fmt: skip
    pixels = np.asarray(picture())
    found = [np.asarray(c) for c in transforms.FiveCrop(4)(picture())]
    wanted = [pixels[:4, :4], pixels[:4, 8:], pixels[4:, :4], pixels[4:, 8:], pixels[2:6, 4:8]]
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_VT10_flips_are_even_odds_and_follow_the_seed():
    flip, image = transforms.RandomHorizontalFlip(), picture()
    assert flip.p == 0.5

    def draw():
        mt.manual_seed(3)
        return [flip(image).tobytes() != image.tobytes() for _ in range(200)]

    drawn = draw()
    assert draw() == drawn and 70 < sum(drawn) < 130


@pytest.mark.parametrize("change", [
    transforms.Resize((4, 6)), transforms.CenterCrop((4, 6)), transforms.RandomCrop((4, 6)), transforms.RandomHorizontalFlip(1.0),
])  # fmt: skip
def test_VT11_tensors_go_through_with_any_leading_dims(change):
    for lead in ((3,), (2, 3), (5, 2, 3)):
        found = change(mt.rand(*lead, 8, 12))
        assert found.shape in {(*lead, 4, 6), (*lead, 8, 12)}
    with pytest.raises(TypeError, match="PIL Image or Tensor|Unexpected type"):
        change("a picture")


def test_VT12_channels_decide_the_mode():
    for channels, mode in ((1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")):
        assert F.to_pil_image(mt.rand(channels, 4, 5)).mode == mode
    assert F.to_pil_image(mt.full((1, 1, 1), 0.5)).getpixel((0, 0)) == 127
    with pytest.raises(ValueError, match="2/3 dimensional"):
        F.to_pil_image(mt.rand(1, 3, 4, 5))
    with pytest.raises(ValueError, match="> 4 channels"):
        F.to_pil_image(mt.rand(5, 4, 5))


@pytest.mark.seed("VT20")
def test_VT14_a_tensor_goes_to_a_picture_and_back():
    pixels = (mt.rand(3, 6, 7) * 255).to(mt.uint8)
    back = F.to_tensor(F.to_pil_image(pixels))
    assert mt.equal((back * 255).round().to(mt.uint8), pixels)
    assert transforms.ToTensor()(transforms.Resize((3, 3))(F.to_pil_image(pixels))).shape == (3, 3, 3)


def test_VT17_one_half_and_one_half_map_to_the_range_of_tanh():
    x = mt.tensor([0.0, 0.25, 1.0]).view(1, 1, 3)
    assert transforms.Normalize((0.5,), (0.5,))(x).flatten().tolist() == [-1, -0.5, 1]
    assert transforms.Normalize((0,), (1,))(x).tolist() == x.tolist()
    three = transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))(mt.rand(3, 4, 4))
    assert three.min() >= -1 and three.max() <= 1


@pytest.mark.seed("FN03")
def test_VT18_a_picture_in_the_middle_cuts_the_graph():
    x = mt.rand(1, 3, 8, 8, requires_grad=True)
    between = transforms.ToTensor()(transforms.Resize((4, 4))(transforms.ToPILImage()(x[0].detach())))
    assert not between.requires_grad
    nn.Upsample(size=4, mode="bilinear")(x).sum().backward()
    assert x.grad.sum().item() == pytest.approx(3 * 16, rel=1e-5)


def test_VD02_VD03_the_folder_is_named_where_nothing_is_found(tmp_path):
    datasets = pytest.importorskip("mortice.vision.datasets")
    picture().save(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder in"):
        datasets.ImageFolder(tmp_path)
    (tmp_path / "only").mkdir()
    with pytest.raises(FileNotFoundError, match="Supported extensions are: .jpg, .jpeg, .png"):
        datasets.ImageFolder(tmp_path)
