"""Grids, image files and drawing, on real photographs."""

from __future__ import annotations

import io
import os

import pytest

import mortice as mt

np = pytest.importorskip("numpy", reason="pixels are compared by it")
pytest.importorskip("PIL", reason="pictures are written by Pillow")
sklearn = pytest.importorskip("sklearn.datasets", reason="the pictures are scikit-learn's")

from PIL import Image  # noqa: E402

from mortice.vision import io as vio  # noqa: E402
from mortice.vision import utils as vutils  # noqa: E402

CHINA = os.path.join(os.path.dirname(sklearn.__file__), "images", "china.jpg")


@pytest.fixture(scope="module")
def china():
    """Return a photograph of 427 by 640 as a tensor."""
    return mt.tensor(sklearn.load_sample_image("china.jpg")).permute(2, 0, 1).contiguous()


def test_images_are_read_by_the_longer_name_too():
    from mortice.vision.io.image import ImageReadMode, decode_image, read_image

    assert (vio.ImageReadMode, vio.decode_image, vio.read_image) == (ImageReadMode, decode_image, read_image)


# ---- grids ----


def test_VU01_a_grid_of_eight_in_a_row_from_least_to_greatest(tmp_path):
    fake = mt.randn(20, 3, 6, 5, generator=mt.Generator().manual_seed(1)).requires_grad_()
    vutils.save_image(fake.detach(), tmp_path / "grid.png", normalize=True)
    found = np.asarray(Image.open(tmp_path / "grid.png"))
    assert found.shape == (3 * 8 + 2, 8 * 7 + 2, 3)
    pixels = np.zeros_like(found)
    values = fake.detach().cpu().numpy()
    scaled = (values - values.min()) / (values.max() - values.min()) * 255 + 0.5
    for i in range(20):
        y, x = i // 8 * 8 + 2, i % 8 * 7 + 2
        pixels[y : y + 6, x : x + 5] = scaled[i].clip(0, 255).astype(np.uint8).transpose(1, 2, 0)
    assert np.abs(found.astype(int) - pixels).max() <= 1 and found.min() == 0 and found.max() == 255
    assert not vutils.make_grid(fake).requires_grad


def test_VU02_a_single_image_is_rounded_and_clamped(tmp_path):
    image = mt.tensor([[[0.0, 1.0, 2.0, -1.0, 0.5, 0.501961]]]).expand(3, 1, 6)
    vutils.save_image(image, str(tmp_path / "a.png"), normalize=False)
    assert np.asarray(Image.open(tmp_path / "a.png"))[0, :, 0].tolist() == [0, 255, 255, 0, 128, 128]
    vutils.save_image([image, image], tmp_path / "list.png")
    assert np.asarray(Image.open(tmp_path / "list.png")).shape == (5, 18, 3)
    file = io.BytesIO()
    vutils.save_image(image, file, format="bmp")
    assert Image.open(file).format == "BMP"


def test_VU03_a_pil_image_is_refused(tmp_path):
    with pytest.raises(TypeError, match="^tensor or list of tensors expected, got <class 'PIL.Image.Image'>$"):
        vutils.save_image(Image.new("RGB", (2, 2)), tmp_path / "a.png")
    with pytest.raises(TypeError, match="^tensor or list of tensors expected, got a list containing <class 'int'>$"):
        vutils.make_grid([1])
    assert os.listdir(tmp_path) == []


def test_VU04_grey_becomes_three_channels_and_one_image_gets_no_border():
    assert vutils.make_grid(mt.ones(4, 5)).shape == (3, 4, 5)
    assert vutils.make_grid(mt.ones(1, 1, 4, 5)).shape == (3, 4, 5)
    grid = vutils.make_grid(mt.ones(3, 1, 4, 5), nrow=2, padding=1, pad_value=0.5)
    assert grid.shape == (3, 11, 13) and grid[:, 0].unique().tolist() == [0.5]
    assert grid[1, 6:10, 7:12].unique().tolist() == [0.5] and grid[2, 6:10, 1:6].unique().tolist() == [1.0]


def test_every_image_is_scaled_by_itself_or_by_a_range():
    images = mt.arange(8.0).reshape(2, 1, 2, 2)
    grid = vutils.make_grid(images, normalize=True, scale_each=True, padding=0)
    assert mt.allclose(grid[0, :, :2], grid[0, :, 2:]) and grid.max() == 1 and grid.min() == 0
    grid = vutils.make_grid(images, normalize=True, value_range=(0, 4), padding=0)
    assert grid[0, 0].tolist() == [0, 0.25, 1, 1] and images.max() == 7
    with pytest.raises(TypeError, match="value_range has to be a tuple"):
        vutils.make_grid(images, normalize=True, value_range=[0, 4])


# ---- drawing ----


def test_boxes(china):
    boxes = mt.tensor([[50.0, 50.0, 100.0, 150.0], [210, 150, 310, 300]])
    drawn = vutils.draw_bounding_boxes(china, boxes, ["house", "sky"], ["red", (0, 255, 0)], width=2)
    assert drawn[:, 50, 75].tolist() == [255, 0, 0] and drawn[:, 151, 250].tolist() == [0, 255, 0]
    assert mt.equal(drawn[:, :50], china[:, :50]) and drawn.dtype == mt.uint8
    floating = vutils.draw_bounding_boxes(china.float() / 255, boxes, colors="blue", fill=True)
    assert mt.allclose(floating[:, 50, 75], mt.tensor([0.0, 0, 1])) and floating.dtype == mt.float32
    assert not mt.allclose(floating[:, 100, 75], china[:, 100, 75] / 255)
    turned = mt.tensor([[50, 50, 100, 60, 90, 100, 40, 90]])
    labelled = vutils.draw_bounding_boxes(
        china[:1], turned, ["a"], fill_labels=True, label_colors="white", label_background_colors="black"
    )
    assert labelled.shape == china.shape and not mt.equal(labelled, china[:1].expand(3, -1, -1))
    with pytest.warns(UserWarning, match="boxes doesn't contain any box"):
        assert vutils.draw_bounding_boxes(china, mt.zeros(0, 4)) is china


@pytest.mark.parametrize(
    "change, kind, text",
    [
        ({"image": 1}, TypeError, "Tensor expected, got <class 'int'>"),
        (
            {"image": mt.ones(3, 4, 4, dtype=mt.int64)},
            ValueError,
            "The image dtype must be uint8 or float, got mortice.int64",
        ),
        ({"image": mt.ones(1, 3, 4, 4)}, ValueError, "Pass individual images, not batches"),
        ({"image": mt.ones(2, 4, 4)}, ValueError, "Only grayscale and RGB images are supported"),
        ({"boxes": mt.tensor([[3, 0, 1, 1]])}, ValueError, "Boxes need to be in (xmin, ymin, xmax, ymax) format"),
        (
            {"labels": ["a", "b"]},
            ValueError,
            "Number of boxes (1) and labels (2) mismatch. Please specify labels for each box.",
        ),
        (
            {"colors": []},
            ValueError,
            "Number of colors must be equal or larger than the number of objects, but got 0 < 1.",
        ),
        ({"colors": (1, 2)}, ValueError, "If passed as tuple, colors should be an RGB triplet, but got (1, 2)."),
        ({"colors": 1}, ValueError, "colors must be a tuple or a string, or a list thereof, but got 1."),
    ],
)
def test_what_cannot_be_drawn(change, kind, text):
    with pytest.raises(kind) as caught:
        vutils.draw_bounding_boxes(**{"image": mt.ones(3, 4, 4), "boxes": mt.tensor([[0, 0, 1, 1]]), **change})
    assert str(caught.value).startswith(text)


def test_masks(china):
    masks = mt.zeros(2, 427, 640, dtype=mt.bool)
    masks[0, :100, :100] = True
    masks[1, 50:150, 50:150] = True
    drawn = vutils.draw_segmentation_masks(china, masks, alpha=1.0, colors=["red", "blue"])
    assert [drawn[:, i, i].tolist() for i in (10, 70, 120)] == [[255, 0, 0], [0, 0, 0], [0, 0, 255]]
    assert mt.equal(drawn[:, 200:], china[:, 200:])
    half = vutils.draw_segmentation_masks(china.float() / 255, masks[0], alpha=0.5, colors=(255, 0, 0))
    assert abs(half[0, 10, 10].item() - (china[0, 10, 10].item() / 255 + 1) / 2) < 1e-6
    with pytest.raises(ValueError, match="The masks must be of dtype bool. Got mortice.float32"):
        vutils.draw_segmentation_masks(china, masks.float())
    with pytest.raises(ValueError, match="must have the same height and width"):
        vutils.draw_segmentation_masks(china, masks[:, :5])


def test_keypoints(china):
    points = mt.tensor([[[100.0, 50.0], [200, 50], [300, 80]]])
    seen = mt.tensor([[True, True, False]])
    drawn = vutils.draw_keypoints(china, points, [(0, 1), (1, 2)], colors="red", radius=5, visibility=seen)
    assert drawn[:, 54, 100].tolist() == [255, 0, 0] and drawn[:, 50, 150].tolist() == [255, 255, 255]
    assert mt.equal(drawn[:, 70:], china[:, 70:])
    with pytest.raises(ValueError, match=r"keypoints must be of shape \(num_instances, K, 2\)"):
        vutils.draw_keypoints(china, points[0])


def test_flow():
    y, x = mt.meshgrid(mt.linspace(-1, 1, 9), mt.linspace(-1, 1, 9), indexing="ij")
    colors = vutils.flow_to_image(mt.stack([x, y]))
    assert colors.shape == (3, 9, 9) and colors.dtype == mt.uint8 and colors[:, 4, 4].tolist() == [255, 255, 255]
    assert vutils.flow_to_image(mt.stack([x, y])[None])[0].tolist() == colors.tolist()
    with pytest.raises(ValueError, match="Flow should be of dtype mortice.float32, got mortice.float64"):
        vutils.flow_to_image(mt.stack([x, y]).double())


# ---- files ----


def test_a_photograph_is_read(china):
    image = vio.read_image(CHINA)
    assert image.shape == (3, 427, 640) and mt.equal(image, china)
    assert mt.equal(vio.decode_image(vio.read_file(CHINA)), china) and mt.equal(
        vio.decode_jpeg(vio.read_file(CHINA)), china
    )
    luma = vio.read_image(CHINA, "gray")
    assert (
        luma.shape == (1, 427, 640)
        and (luma.float() - (china.float() * mt.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(0)).abs().max() < 5
    )
    assert (
        vio.read_image(CHINA, vio.ImageReadMode.RGBA).shape[0] == 4
        and vio.ImageReadMode.RGBA is vio.ImageReadMode.RGB_ALPHA
    )


@pytest.mark.parametrize("level", [0, 6, 9])
def test_png_gives_the_pixels_back(china, tmp_path, level):
    vio.write_png(china, tmp_path / "a.png", level)
    assert mt.equal(vio.read_image(tmp_path / "a.png"), china)
    grey = china[:1, ::2, ::2]  # not in one piece
    assert mt.equal(vio.decode_png(vio.encode_png(grey, level)), grey)


def test_jpeg_is_close(china, tmp_path):
    vio.write_jpeg(china, tmp_path / "a.jpg", quality=95)
    assert (vio.read_image(tmp_path / "a.jpg").float() - china.float()).abs().mean() < 3
    small, large = (len(vio.encode_jpeg(china, quality=q)) for q in (10, 90))
    assert small < large / 3 and len(vio.encode_jpeg([china, china])) == 2


def test_modes_of_other_files(tmp_path, china):
    deep = np.arange(6, dtype=np.uint16).reshape(2, 3) * 10000
    Image.fromarray(deep).save(tmp_path / "deep.png")
    found = vio.read_image(tmp_path / "deep.png")
    assert found.dtype == mt.uint16 and found.tolist() == [deep.tolist()]
    photo = Image.open(CHINA)
    photo.quantize(16).save(tmp_path / "palette.png")
    assert vio.read_image(tmp_path / "palette.png").shape[0] == 3
    photo.convert("LA").save(tmp_path / "la.png")
    assert vio.read_image(tmp_path / "la.png").shape[0] == 2
    photo.convert("1").save(tmp_path / "one.png")
    assert sorted(vio.read_image(tmp_path / "one.png").unique().tolist()) == [0, 255]
    photo.save(tmp_path / "two.gif", save_all=True, append_images=[photo.rotate(90)])
    assert vio.decode_gif(vio.read_file(tmp_path / "two.gif")).shape == (2, 3, 427, 640)
    photo.save(tmp_path / "a.webp", lossless=True)
    assert mt.equal(vio.decode_webp(vio.read_file(tmp_path / "a.webp")), china)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    photo.save(tmp_path / "turned.png", exif=exif)
    assert mt.equal(vio.read_image(tmp_path / "turned.png", apply_exif_orientation=True), china.rot90(-1, (1, 2)))
    assert mt.equal(vio.read_image(tmp_path / "turned.png"), china)


def test_what_cannot_be_read_or_written(tmp_path, china):
    with pytest.raises(RuntimeError, match="No such file or directory: '"):
        vio.read_image(tmp_path / "none.png")
    data = vio.read_file(CHINA)
    with pytest.raises(RuntimeError, match="^decode_image: expected an image; got 10000 bytes that cannot be read: "):
        vio.decode_image(data[:10000])
    (tmp_path / "half.jpg").write_bytes(bytes(data[:10000].tolist()))
    with pytest.raises(RuntimeError, match=r"half\.jpg: decode_image: expected an image; got 10000 bytes"):
        vio.read_image(tmp_path / "half.jpg")
    with pytest.raises(RuntimeError, match="^decode_png: expected PNG; got"):
        vio.decode_png(data)
    (tmp_path / "empty.png").touch()
    with pytest.raises(RuntimeError, match="^read_file: expected a file that is not empty; got "):
        vio.read_image(tmp_path / "empty.png")
    for image, text in (
        (china.float(), "Input tensor dtype should be uint8; got mortice.float32"),
        (china[0], "Input data should be a 3-dimensional tensor; got 2 dimensions"),
        (china[:2], "The number of channels should be 1 or 3, got: 2"),
    ):
        with pytest.raises(RuntimeError, match=text):
            vio.write_png(image, tmp_path / "a.png")
    with pytest.raises(ValueError, match="Image quality should be a positive number between 1 and 100"):
        vio.encode_jpeg(china, 0)
    with pytest.raises(RuntimeError, match="Compression level should be between 0 and 9; got 10"):
        vio.encode_png(china, 10)
    assert not (tmp_path / "a.png").exists()
