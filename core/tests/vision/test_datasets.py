"""Datasets of pictures over real files, which the tests write in the published formats from scikit-learn's digits and photographs."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import struct
import zipfile
from functools import partial
from pathlib import Path

import pytest

import mortice as mt

np = pytest.importorskip("numpy", reason="scikit-learn's digits are NumPy arrays")
pytest.importorskip("PIL", reason="the datasets give PIL images")
sklearn = pytest.importorskip("sklearn.datasets", reason="the pictures are scikit-learn's")

from PIL import Image, UnidentifiedImageError  # noqa: E402

from mortice.vision import datasets  # noqa: E402
from mortice.vision.datasets import mnist  # noqa: E402
from mortice.vision.datasets.cifar import read_batch  # noqa: E402
from mortice.vision.datasets.svhn import read_mat  # noqa: E402

md5 = lambda path: hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def digits():
    """Return 1797 pictures of 8 by 8, as bytes, and their labels."""
    images, labels = sklearn.load_digits(return_X_y=True)
    return (images.reshape(-1, 8, 8) * 15.9).astype(np.uint8), labels


@pytest.fixture(scope="session")
def pictures(digits):
    """Return forty pictures of 32 by 32 in colour, cut from photographs, and labels."""
    photos = [sklearn.load_sample_image(name) for name in ("china.jpg", "flower.jpg")]
    cut = [photos[i % 2][i // 8 * 32 :, i % 8 * 32 :][:32, :32] for i in range(40)]
    return np.stack(cut), [int(v) for v in digits[1][:40]]


# ---- folders ----


@pytest.fixture
def tree(tmp_path, pictures):
    """Write a folder with classes of image files and other things."""
    names = ["dog/b.PNG", "dog/a.jpg", "dog/deep/er/c.webp", "cat/x.bmp", "cat/y.tiff", "ant/z.pgm"]
    for name, pixels in zip(names, pictures[0]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(pixels)
        (image.convert("L") if name.endswith("pgm") else image).save(path)
    (tmp_path / "dog/notes.txt").write_text("no image")
    (tmp_path / "a file.jpg").write_bytes(b"")
    return tmp_path


def test_VD01_image_folder(tree, pictures):
    data = datasets.ImageFolder(tree)
    assert data.classes == ["ant", "cat", "dog"] and data.class_to_idx == {"ant": 0, "cat": 1, "dog": 2}
    assert [(os.path.relpath(p, tree), c) for p, c in data.samples] == [
        ("ant/z.pgm", 0), ("cat/x.bmp", 1), ("cat/y.tiff", 1), ("dog/a.jpg", 2), ("dog/b.PNG", 2), ("dog/deep/er/c.webp", 2)
    ]  # fmt: skip
    assert data.imgs is data.samples and data.targets == [0, 1, 1, 2, 2, 2] and len(data) == 6
    image, target = data[1]
    assert image.mode == "RGB" and target == 1 and np.array_equal(np.asarray(image), pictures[0][3])
    assert data[0][0].mode == "RGB"  # grey in the file
    data = datasets.ImageFolder(str(tree), transform=np.asarray, target_transform=lambda c: c * 10)
    assert data[4][0].shape == (32, 32, 3) and data[4][1] == 20


def test_VD02_what_is_missing_is_said_in_torchvisions_words(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        datasets.ImageFolder(tmp_path)
    assert str(caught.value) == f"Couldn't find any class folder in {tmp_path}."
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError) as caught:
        datasets.ImageFolder(tmp_path)
    assert str(caught.value) == (
        f"Found 0 files in subfolders of: {tmp_path}. Found no valid file for the classes a, b. "
        "Supported extensions are: .jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff, .webp"
    )
    assert len(datasets.ImageFolder(tmp_path, allow_empty=True)) == 0
    with pytest.raises(FileNotFoundError, match=r"^Found 0 files in .*\. Found no valid file for the classes a, b\. $"):
        datasets.DatasetFolder(tmp_path, open, is_valid_file=lambda path: False)


def test_VD03_the_parent_folder_is_given(tree):
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(tree / "cat")
    assert len(datasets.ImageFolder(tree)) == 6


def test_VD10_paired_folders_match_by_name(tmp_path, pictures):
    for kind in ("image", "annot"):
        (tmp_path / kind).mkdir()
        for i, pixels in enumerate(pictures[0][:3]):
            Image.fromarray(pixels).save(tmp_path / kind / f"{i}.png")
    data = datasets.ImageFolder(tmp_path)
    half = len(data) // 2
    assert data.classes == ["annot", "image"] and data.targets == [0] * half + [1] * half
    for (a, _), (b, _) in zip(data.samples[:half], data.samples[half:]):
        assert os.path.basename(a) == os.path.basename(b)


def test_VD11_names_of_saved_images_come_from_samples(tree):
    names = [os.path.basename(path) for path, _ in datasets.ImageFolder(tree).samples]
    assert names == ["z.pgm", "x.bmp", "y.tiff", "a.jpg", "b.PNG", "c.webp"]


def test_VD12_extensions_in_capitals_and_nested_folders(tree):
    assert [p for p, _ in datasets.ImageFolder(tree).samples if p.endswith(("b.PNG", "deep/er/c.webp"))]
    folder = datasets.DatasetFolder(tree, lambda path: Path(path).read_text(), extensions=(".txt",), allow_empty=True)
    assert folder[0] == ("no image", 2) and folder.extensions == (".txt",)
    chosen = datasets.ImageFolder(tree, is_valid_file=lambda path: path.endswith(("jpg", "bmp", "pgm")))
    assert [os.path.basename(p) for p, _ in chosen.samples] == ["z.pgm", "x.bmp", "a.jpg"] and chosen.extensions is None
    with pytest.raises(ValueError, match="Both extensions and is_valid_file cannot be None or not None"):
        datasets.DatasetFolder(tree, open)


def test_a_subclass_chooses_its_classes(tree):
    class Two(datasets.ImageFolder):
        def find_classes(self, directory):
            return ["dog", "ant"], {"dog": 0, "ant": 1}

    assert [c for _, c in Two(tree).samples] == [1, 0, 0, 0]
    with pytest.raises(ValueError, match="The class_to_idx parameter cannot be None."):
        datasets.ImageFolder.make_dataset(tree, None)


@pytest.mark.parametrize("part, kind", [(0, UnidentifiedImageError), (10, OSError), (0.5, OSError), (0.9, OSError)])
@pytest.mark.parametrize("format", ["png", "jpg"])
def test_a_corrupt_image_is_named(tmp_path, part, kind, format):
    (tmp_path / "a").mkdir()
    path = tmp_path / f"a/bad.{format}"
    Image.fromarray(sklearn.load_sample_image("china.jpg")).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: part if isinstance(part, int) else int(part * len(whole))])
    with pytest.raises(kind, match=f"^pil_loader: {path} is no image that can be read: "):
        datasets.ImageFolder(tmp_path)[0]
    path.unlink()
    data = datasets.DatasetFolder(tmp_path, datasets.folder.pil_loader, (".x",), allow_empty=True)
    data.samples = [(str(path), 0)]
    with pytest.raises(FileNotFoundError):
        data[0]


def test_repr_is_torchvisions(tree):
    class Named:
        def __repr__(self):
            return "Compose(\n    A()\n)"

    data = datasets.ImageFolder(tree, transform=Named(), target_transform=Named())
    assert repr(data) == (
        f"Dataset ImageFolder\n    Number of datapoints: 6\n    Root location: {tree}\n    StandardTransform\n"
        "Transform: Compose(\n               A()\n           )\n"
        "Target transform: Compose(\n                      A()\n                  )"
    )


def test_transforms_of_pairs_and_of_parts_exclude_each_other():
    assert datasets.VisionDataset("~").root == os.path.expanduser("~")
    with pytest.raises(ValueError, match="^Only transforms or transform/target_transform can be passed as argument$"):
        datasets.VisionDataset(None, transforms=print, transform=print)


# ---- idx files ----


def idx(array, code=8):
    """Return an array in the format of MNIST's files."""
    return (
        bytes([0, 0, code, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.astype(array.dtype.newbyteorder(">")).tobytes()
    )


@pytest.fixture
def raw(tmp_path, digits):
    """Write scikit-learn's digits as MNIST: 1500 to train with, the others to test."""
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    large = np.pad(digits[0].repeat(3, 1).repeat(3, 2), ((0, 0), (2, 2), (2, 2)))
    for part, rows in (("train", slice(1500)), ("t10k", slice(1500, None))):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(large[rows]))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(digits[1][rows].astype(np.uint8)))
    return folder


def test_VD04_mnist(raw, digits, tmp_path):
    train, test = datasets.MNIST(tmp_path), datasets.MNIST(str(tmp_path), train=False)
    assert len(train) == 1500 and len(test) == 297
    assert train.data.dtype == mt.uint8 and train.data.shape == (1500, 28, 28) and train.targets.dtype == mt.int64
    image, label = train[7]
    assert image.mode == "L" and image.size == (28, 28) and type(label) is int and label == digits[1][7]
    assert np.array_equal(np.asarray(image)[3:-2:3, 3:-2:3], digits[0][7])
    assert train.class_to_idx["7 - seven"] == 7
    assert repr(test) == f"Dataset MNIST\n    Number of datapoints: 297\n    Root location: {tmp_path}\n    Split: Test"
    with pytest.warns(UserWarning, match="train_labels has been renamed targets"):
        assert train.train_labels is train.targets


def test_VD04_what_is_missing(tmp_path, raw):
    (raw / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(RuntimeError, match="^Dataset not found. You can use download=True to download it. ") as caught:
        datasets.MNIST(tmp_path)
    assert str(caught.value).endswith(f"({raw / 't10k-labels-idx1-ubyte'} is not there.)")


def test_packed_files_that_lie_there_need_no_network(tmp_path, raw, monkeypatch):
    resources = []
    for path in sorted(raw.iterdir()):
        (raw / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        resources.append((f"{path.name}.gz", md5(raw / f"{path.name}.gz")))
        path.unlink()
    monkeypatch.setattr(datasets.MNIST, "resources", resources)
    monkeypatch.setattr(datasets.MNIST, "mirrors", ["http://127.0.0.1:9/"])
    assert len(datasets.MNIST(tmp_path, download=True)) == 1500


def test_numbers_of_several_bytes(tmp_path):
    for code, dtype in ((9, "int8"), (11, "int16"), (12, "int32"), (13, "float32"), (14, "float64")):
        (tmp_path / "a").write_bytes(idx(np.arange(-3, 3, dtype=dtype).reshape(2, 3), code))
        found = mnist.read_sn3_pascalvincent_tensor(tmp_path / "a")
        assert found.tolist() == [[-3, -2, -1], [0, 1, 2]] and str(found.dtype) == f"mortice.{dtype}"


@pytest.mark.parametrize("damage", [b"", b"\0\0", b"\x1f\x8b\x08\0", b"\0\0\x08\x03\0\0", None])
def test_damaged_idx_files(tmp_path, raw, damage):
    path = raw / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    with pytest.raises(RuntimeError, match=f"^{path} (is no idx file|should have 1176000 bytes)"):
        datasets.MNIST(tmp_path)


def test_images_and_labels_that_do_not_match(tmp_path, raw):
    (raw / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(9, np.uint8)))
    with pytest.raises(RuntimeError, match="expected as many labels as images; got 9 for 1500."):
        datasets.MNIST(tmp_path)


def test_fashion_and_kuzushiji(tmp_path, raw):
    os.rename(tmp_path / "MNIST", tmp_path / "FashionMNIST")
    assert datasets.FashionMNIST(tmp_path).classes[9] == "Ankle boot"
    os.rename(tmp_path / "FashionMNIST", tmp_path / "KMNIST")
    assert len(datasets.KMNIST(tmp_path)) == 1500 and datasets.KMNIST.classes[0] == "o"


def test_emnist(tmp_path, raw, monkeypatch):
    with zipfile.ZipFile(tmp_path / "gzip.zip", "w") as packed:
        for split in ("letters", "byclass"):
            for part, name in (("train", "train"), ("t10k", "test")):
                for kind in ("images-idx3", "labels-idx1"):
                    data = gzip.compress((raw / f"{part}-{kind}-ubyte").read_bytes())
                    packed.writestr(f"gzip/emnist-{split}-{name}-{kind}-ubyte.gz", data)
    (tmp_path / "EMNIST/raw").mkdir(parents=True)
    os.rename(tmp_path / "gzip.zip", tmp_path / "EMNIST/raw/gzip.zip")
    monkeypatch.setattr(datasets.EMNIST, "md5", md5(tmp_path / "EMNIST/raw/gzip.zip"))
    data = datasets.EMNIST(tmp_path, "letters", train=False, download=True)
    assert len(data) == 297 and data.classes[1] == "a" and data.classes[0] == "N/A"
    assert len(datasets.EMNIST(tmp_path, split="byclass").classes) == 62
    assert {k: len(v) for k, v in datasets.EMNIST.classes_split_dict.items()} == {
        "byclass": 62, "bymerge": 47, "balanced": 47, "letters": 27, "digits": 10, "mnist": 10
    }  # fmt: skip
    assert "gzip" not in os.listdir(tmp_path / "EMNIST/raw")
    with pytest.raises(RuntimeError, match="^Dataset not found. You can use download=True"):
        datasets.EMNIST(tmp_path, "digits")
    with pytest.raises(ValueError, match="Unknown value 'x' for argument split. Valid values are {'byclass', "):
        datasets.EMNIST(tmp_path, "x")


def test_qmnist(tmp_path, digits):
    folder = tmp_path / "QMNIST/raw"
    folder.mkdir(parents=True)
    (folder / "qmnist-test-images-idx3-ubyte").write_bytes(idx(digits[0]))
    labels = np.stack([digits[1]] + [np.arange(1797) + 70000] * 7, 1).astype(np.int32)
    (folder / "qmnist-test-labels-idx2-int").write_bytes(idx(labels, 12))
    data = datasets.QMNIST(tmp_path, "test")
    assert data[5][1] == 5 and len(data) == 1797 and repr(data).endswith("Split: test")
    assert datasets.QMNIST(tmp_path, train=False, compat=False)[5][1].tolist() == [5, *[70005] * 7]
    assert len(datasets.QMNIST(tmp_path, "test50k")) == 0


# ---- CIFAR ----


def old_pickle(value):
    """Write what Python 2 wrote: protocol 2, whose strings are bytes."""
    out = io.BytesIO()

    class Old(pickle._Pickler):
        def save(self, obj, save_persistent_id=True):
            if isinstance(obj, (bytes, str)):
                data = obj if isinstance(obj, bytes) else obj.encode()
                self.write(
                    (b"U" + bytes([len(data)]) if len(data) < 256 else b"T" + struct.pack("<i", len(data))) + data
                )
                return self.memoize(b"")
            if isinstance(obj, np.ndarray):
                self.write(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01")
                self.save(tuple(int(s) for s in obj.shape))
                self.write(
                    b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
                )
                self.save(obj.tobytes())
                return self.write(b"tb")
            return super().save(obj, save_persistent_id)

        def memoize(self, obj):
            pass

    Old(out, 2).dump(value)
    return out.getvalue()


def write_cifar(root, pictures, dump=old_pickle, monkeypatch=None, kind=datasets.CIFAR10):
    """Write small batches in the published format, and take their checksums for the published ones."""
    pixels, labels = pictures
    planes = pixels.transpose(0, 3, 1, 2).reshape(-1, 3072)
    folder = root / kind.base_folder
    folder.mkdir(parents=True, exist_ok=True)
    name = "labels" if kind is datasets.CIFAR10 else "fine_labels"
    for field in ("train_list", "test_list"):
        listed = []
        for i, (file, _) in enumerate(getattr(kind, field)):
            rows = slice(8 * i, 8 * i + 8)
            batch = {"batch_label": f"batch {i}", name: labels[rows], "data": planes[rows], "filenames": ["a.png"] * 8}
            (folder / file).write_bytes(dump(batch))
            listed.append([file, md5(folder / file)])
        monkeypatch.setattr(kind, field, listed)
    names = [f"class {i}" for i in range(10)]
    (folder / kind.meta["filename"]).write_bytes(dump({kind.meta["key"]: names, "num_vis": 3072}))
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": md5(folder / kind.meta["filename"])})
    return folder


@pytest.mark.parametrize("dump", [old_pickle, *(partial(pickle.dumps, protocol=p) for p in (2, 4, 5))])
def test_VD06_VD07_cifar_batches(tmp_path, pictures, monkeypatch, dump):
    folder = write_cifar(tmp_path, pictures, dump, monkeypatch)
    train, test = datasets.CIFAR10(tmp_path), datasets.CIFAR10(tmp_path, train=False)
    assert len(train) == 40 and len(test) == 8 and train.targets == pictures[1] and test.targets == pictures[1][:8]
    assert isinstance(train.data, np.ndarray) and train.data.shape == (40, 32, 32, 3) and train.data.dtype == np.uint8
    assert np.array_equal(train.data, pictures[0])
    image, label = train[9]
    assert image.mode == "RGB" and label == pictures[1][9] and np.array_equal(np.asarray(image), pictures[0][9])
    assert train.classes[3] == "class 3" and train.class_to_idx["class 3"] == 3
    batch = read_batch(str(folder / "data_batch_2"))
    assert (
        batch["batch_label"] == "batch 1"
        and batch["labels"] == pictures[1][8:16]
        and batch["filenames"] == ["a.png"] * 8
    )
    # a row is 1024 of red, then of green, then of blue
    row = np.frombuffer(batch["data"], np.uint8).reshape(8, 3072)[0]
    assert np.array_equal(row.reshape(3, 32, 32), pictures[0][8].transpose(2, 0, 1))


def test_VD08_the_strange_rotation_reverses_the_colours(pictures):
    planes = pictures[0][0].transpose(2, 0, 1).reshape(3, 1024)
    assert np.array_equal(np.rot90(planes, 3).reshape(32, 32, 3), pictures[0][0][:, :, ::-1])


class Sevens(mt.utils.data.Dataset):
    """The notes' own dataset over CIFAR's batches: pictures with the label 7."""

    def __init__(self, root):
        data = datasets.CIFAR10(root)
        self.items = [
            (mt.tensor(data.data[i]).permute(2, 0, 1).float() / 255, mt.tensor(label))
            for i, label in enumerate(data.targets)
            if label == 7
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_VD09_a_hand_made_dataset(tmp_path, pictures, monkeypatch):
    write_cifar(tmp_path, pictures, monkeypatch=monkeypatch)
    data = Sevens(tmp_path)
    batches = list(mt.utils.data.DataLoader(data, batch_size=2, num_workers=2))
    assert len(data) == pictures[1].count(7) == sum(len(y) for _, y in batches)
    assert all(x.shape[1:] == (3, 32, 32) and y.tolist() == [7] * len(y) for x, y in batches)


def test_cifar100(tmp_path, pictures, monkeypatch):
    write_cifar(tmp_path, pictures, monkeypatch=monkeypatch, kind=datasets.CIFAR100)
    assert len(datasets.CIFAR100(tmp_path)) == 8 and datasets.CIFAR100(tmp_path, train=False)[1][1] == pictures[1][1]


def test_cifar_with_a_wrong_checksum(tmp_path, pictures, monkeypatch):
    folder = write_cifar(tmp_path, pictures, monkeypatch=monkeypatch)
    (folder / "data_batch_3").write_bytes(b"other")
    with pytest.raises(RuntimeError) as caught:
        datasets.CIFAR10(tmp_path)
    assert str(caught.value) == (
        f"Dataset not found or corrupted. You can use download=True to download it. ({folder / 'data_batch_3'} differs "
        "from what was published.)"
    )


@pytest.mark.parametrize("part", [0, 1, 50, 5000, -1, -2])
def test_truncated_batches(tmp_path, pictures, monkeypatch, part):
    folder = write_cifar(tmp_path, pictures, monkeypatch=monkeypatch)
    path = folder / "data_batch_1"
    path.write_bytes(path.read_bytes()[:part])
    monkeypatch.setattr(datasets.CIFAR10, "train_list", [["data_batch_1", None]])
    with pytest.raises(
        RuntimeError, match=f"^{path} (is damaged or no batch of CIFAR: .*Remove it, and get it again|should have)"
    ):
        datasets.CIFAR10(tmp_path)


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/never",)


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_pickles_are_not_executed(tmp_path, protocol):
    for value in (
        {"data": Evil()},
        Evil(),
        {b"data": np.zeros(3, object)},
        {b"data": np.zeros(3)},
        [1],
        {"a": {1: np.uint8}},
    ):
        (tmp_path / "batch").write_bytes(pickle.dumps(value, protocol))
        try:
            found = read_batch(str(tmp_path / "batch"))
        except RuntimeError as error:
            assert "is damaged or no batch of CIFAR" in str(error)
        else:
            raise AssertionError(found)


# ---- SVHN, STL-10, random pictures ----


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("labels", [np.uint8, np.float64])
def test_svhn(tmp_path, pictures, monkeypatch, compressed, labels):
    savemat = pytest.importorskip("scipy.io", reason="the files are written by SciPy").savemat
    values = np.array([v or 10 for v in pictures[1]])  # the files call 0 ten
    path = tmp_path / "train_32x32.mat"
    savemat(
        path, {"X": pictures[0].transpose(1, 2, 3, 0), "y": values.astype(labels)[:, None]}, do_compression=compressed
    )
    monkeypatch.setitem(datasets.SVHN.split_list, "train", [datasets.SVHN.split_list["train"][0], path.name, md5(path)])
    data = datasets.SVHN(tmp_path)
    assert data.labels.tolist() == pictures[1] and data.labels.dtype == np.int64 and data.data.shape == (40, 3, 32, 32)
    image, label = data[11]
    assert type(label) is int and label == pictures[1][11] and np.array_equal(np.asarray(image), pictures[0][11])
    assert repr(data).endswith("Split: train")
    with pytest.raises(RuntimeError, match="^Dataset not found or corrupted. You can use download=True"):
        datasets.SVHN(tmp_path, split="extra")
    with pytest.raises(
        ValueError, match="Unknown value 'all' for argument split. Valid values are {'train', 'test', 'extra'}."
    ):
        datasets.SVHN(tmp_path, split="all")
    whole = path.read_bytes()
    for part in (0, 60, 200, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:part])
        with pytest.raises(RuntimeError):
            read_mat(str(path))


def test_svhn_files_of_other_shapes(tmp_path, monkeypatch):
    savemat = pytest.importorskip("scipy.io", reason="the files are written by SciPy").savemat
    path = tmp_path / "test_32x32.mat"
    savemat(
        path, {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.zeros((3, 1), np.uint8), "s": "text", "e": np.zeros(0)}
    )
    monkeypatch.setitem(datasets.SVHN.split_list, "test", ["", path.name, None])
    with pytest.raises(
        RuntimeError, match=r"should have bytes X of \(32, 32, 3, n\) and n labels y; got \(32, 32, 3, 4\) and 3."
    ):
        datasets.SVHN(tmp_path, split="test")


def test_stl10(tmp_path, pictures, monkeypatch):
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    large = pictures[0].repeat(3, 1).repeat(3, 2)
    monkeypatch.setattr(datasets.STL10, "train_list", [[n, None] for n, _ in datasets.STL10.train_list])
    monkeypatch.setattr(datasets.STL10, "test_list", [[n, None] for n, _ in datasets.STL10.test_list])
    for name, rows in (("train", slice(20)), ("test", slice(20, 30)), ("unlabeled", slice(30, None))):
        (folder / f"{name}_X.bin").write_bytes(large[rows].transpose(0, 3, 2, 1).tobytes())
        (folder / f"{name}_y.bin").write_bytes(bytes(v + 1 for v in pictures[1][rows]))
    (folder / "fold_indices.txt").write_text("0 2 4\n1 3 5 7\n")
    (folder / "class_names.txt").write_text("airplane\nbird\n")
    data = datasets.STL10(tmp_path)
    assert (
        np.array_equal(np.asarray(data[3][0]), large[3])
        and data[3][1] == pictures[1][3]
        and data.classes == ["airplane", "bird"]
    )
    assert [datasets.STL10(tmp_path, folds=1)[i][1] for i in range(4)] == [pictures[1][i] for i in (1, 3, 5, 7)]
    both = datasets.STL10(tmp_path, split="train+unlabeled")
    assert len(both) == 30 and both[25][1] == -1 and len(datasets.STL10(tmp_path, split="test")) == 10
    for folds, text in (
        (10, r"should be in the range \[0, 10\), but got 10"),
        ("a", "Expected type None or int for argument folds"),
    ):
        with pytest.raises(ValueError, match=text):
            datasets.STL10(tmp_path, folds=folds)


def test_fake_data_depends_on_the_index_alone():
    data = datasets.FakeData(5, (3, 8, 9), 4, transform=np.asarray)
    mt.manual_seed(0)
    state = mt.get_rng_state()
    first = data[2]
    assert (
        mt.equal(state, mt.get_rng_state())
        and first[0].shape == (8, 9, 3)
        and 0 <= first[1] < 4
        and type(first[1]) is int
    )
    assert np.array_equal(data[2][0], first[0]) and not np.array_equal(data[3][0], first[0])
    assert np.array_equal(datasets.FakeData(5, (3, 8, 9), 4, random_offset=1)[1][0], first[0])
    assert datasets.FakeData(image_size=(1, 4, 4))[0][0].mode == "L" and len(datasets.FakeData()) == 1000
    with pytest.raises(IndexError, match="FakeData index out of range"):
        data[5]


def test_datasets_go_through_the_loader(raw, tmp_path):
    data = datasets.MNIST(tmp_path, transform=lambda image: mt.tensor(np.asarray(image)).float())
    loader = mt.utils.data.DataLoader(data, batch_size=500, num_workers=2)
    assert [tuple(x.shape) for x, _ in loader] == [(500, 28, 28)] * 3


def test_VD05_VD13_what_there_is():
    assert {"MNIST", "FashionMNIST", "EMNIST", "KMNIST", "CIFAR10", "CIFAR100", "SVHN", "ImageFolder"} <= set(
        datasets.__all__
    )
    classes = [getattr(datasets, name) for name in datasets.__all__ if name != "wrap_dataset_for_transforms_v2"]
    assert all(issubclass(cls, datasets.VisionDataset) for cls in classes)


CELEBA = {
    "list_eval_partition.txt": "a.jpg 0\nb.jpg 0\nc.jpg 1\nd.jpg 2\n",
    "identity_CelebA.txt": "a.jpg 7\nb.jpg 8\nc.jpg 7\nd.jpg 9\n",
    "list_bbox_celeba.txt": "4\nimage_id x_1 y_1 width height\na.jpg  95  71 226 313\nb.jpg 1 2 3 4\nc.jpg 5 6 7 8\nd.jpg 9 8 7 6\n",
    "list_landmarks_align_celeba.txt": "4\nx y\na.jpg 69 109\nb.jpg  1  2\nc.jpg  3  4\nd.jpg  5  6\n",
    "list_attr_celeba.txt": "4\nSmiling Young \na.jpg -1  1\nb.jpg  1  1\nc.jpg -1 -1\nd.jpg  1 -1\n",
}


def celeba(monkeypatch, kind, root):
    monkeypatch.setattr(kind, "file_list", [("", None, name) for name in ("img_align_celeba.zip", *CELEBA)])
    folder = root / "celeba" / "img_align_celeba"
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for name, text in CELEBA.items():
            (folder.parent / name).write_text(text)
        for shade, name in enumerate("abcd"):
            Image.new("RGB", (6, 5), (60 * shade, 0, 0)).save(folder / f"{name}.jpg", quality=100)
    return partial(kind, root)


def test_celeba(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="list_attr_celeba.txt is not there"):
        datasets.CelebA(tmp_path)
    make = celeba(monkeypatch, datasets.CelebA, tmp_path)
    data = make()
    picture, target = data[1]
    assert len(data) == 2 and picture.size == (6, 5) and target.tolist() == [1, 1] and data[0][1].tolist() == [0, 1]
    every = make(split="all", target_type=["identity", "bbox", "landmarks"], transform=lambda p: p.size, target_transform=list)
    size, (identity, box, marks) = every[3]
    assert size == (6, 5) and identity.item() == 9 and box.tolist() == [9, 8, 7, 6] and marks.tolist() == [5, 6]
    assert len(every) == 4 and make(split="test").filename == ["d.jpg"] and make(target_type=[])[0][1] is None
    with pytest.raises(ValueError, match='Target type "age" is not recognized.'):
        make(target_type="age")[0]
    with pytest.raises(RuntimeError, match="target_transform is specified but target_type is empty"):
        make(target_type=[], target_transform=list)
    with pytest.raises(ValueError, match="Unknown value 'dev' for argument split"):
        make(split="dev")


@pytest.mark.oracle
def test_celeba_as_torchvision_reads_it(tmp_path, monkeypatch):
    theirs = pytest.importorskip("torchvision_side", reason="the oracle is torchvision").torchvision.datasets.CelebA
    for settings in ({}, {"target_type": ["bbox"]}, {"split": "all", "target_type": ["attr", "identity", "bbox", "landmarks"]}):
        ours, other = (celeba(monkeypatch, kind, tmp_path)(**settings) for kind in (datasets.CelebA, theirs))
        assert len(ours) == len(other) and ours.attr_names == other.attr_names and ours.filename == list(other.filename)
        assert repr(ours) == repr(other)
        for (x, t), (y, u) in zip(ours, other, strict=False):
            assert np.array_equal(np.asarray(x), np.asarray(y))
            for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (t, u)), strict=True):
                assert a.tolist() == b.tolist() and str(a.dtype).split(".")[-1] == str(b.dtype).split(".")[-1]


def test_celeba_is_fetched_where_it_is_shared(tmp_path, monkeypatch):
    make, asked = celeba(monkeypatch, datasets.CelebA, tmp_path), []
    make(download=True)  # all is there
    fetch = lambda urls, path, *_: asked.append((urls[0].partition("?")[2].partition("&")[0], os.path.basename(path)))
    monkeypatch.setattr(datasets.utils, "fetch", fetch)
    datasets.utils.download_file_from_google_drive("a-1_b", tmp_path)
    assert asked == [("id=a-1_b", "a-1_b")]
    monkeypatch.setattr(datasets.CelebA, "file_list", [("x", "0" * 32, "list_attr_celeba.txt"), ("y", None, "img_align_celeba.zip")])
    monkeypatch.setattr(datasets.celeba, "extract_archive", lambda path: asked.append(path))
    with pytest.raises(RuntimeError, match="list_attr_celeba.txt differs from what was published"):
        make(download=True)
    assert asked[1:] == [
        ("id=x", "list_attr_celeba.txt"), ("id=y", "img_align_celeba.zip"), str(tmp_path / "celeba" / "img_align_celeba.zip"),
    ]  # fmt: skip
