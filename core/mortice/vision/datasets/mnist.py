"""MNIST and the datasets in its format, idx files: Fashion-MNIST, Kuzushiji-MNIST, EMNIST, QMNIST."""

from __future__ import annotations

import math
import os
import shutil
import string
import struct
import sys
from array import array
from collections.abc import Callable
from typing import Any
from urllib.error import URLError as URLError

import mortice as mt
from mortice.notice import warn
from mortice.vision.datasets.utils import (
    NOT_FOUND,
    check_integrity,
    download_and_extract_archive,
    extract_archive,
    require,
    verify_str_arg,
)
from mortice.vision.datasets.vision import VisionDataset
from mortice.vision.pictures import to_image

Path = str | os.PathLike[str]

_CODES = {
    8: ("B", mt.uint8),
    9: ("b", mt.int8),
    11: ("h", mt.int16),
    12: ("i", mt.int32),
    13: ("f", mt.float32),
    14: ("d", mt.float64),
}
_DIGITS = "0 - zero|1 - one|2 - two|3 - three|4 - four|5 - five|6 - six|7 - seven|8 - eight|9 - nine".split("|")
_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def _resources(*md5s: str) -> list[tuple[str, str]]:
    return list(zip(_FILES, md5s))


def read_sn3_pascalvincent_tensor(path: Path, strict: bool = True) -> Any:
    """Read an idx file: two zero bytes, the type, the number of sizes, the sizes, and the elements, big end first."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _CODES or len(data) < 4 * (1 + data[3]):
        raise RuntimeError(f"{os.fspath(path)} is no idx file: got {data[:4]!r} at its start.")
    code, dtype = _CODES[data[2]]
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    elements, start = math.prod(shape), 4 * (1 + data[3])
    wanted, there = elements * dtype.itemsize, len(data) - start
    if there < wanted or (strict and there != wanted):
        raise RuntimeError(
            f"{os.fspath(path)} should have {wanted} bytes of elements for its shape {shape}; got {there}. "
            "Remove it, and get it again."
        )
    if not elements:
        return mt.empty(shape, dtype=dtype)
    values: Any = bytearray(memoryview(data)[start : start + wanted])
    if dtype.itemsize > 1 and sys.byteorder == "little":
        values = array(code, values)
        values.byteswap()
    return mt.frombuffer(values, dtype=dtype).reshape(shape)


def _read(path: Path, dims: int) -> Any:
    found = read_sn3_pascalvincent_tensor(path, strict=False)
    if found.dtype != mt.uint8:
        raise TypeError(f"x should be of dtype mortice.uint8 instead of {found.dtype}")
    if found.ndim != dims:
        raise ValueError(f"x should have {dims} dimension{'s' * (dims > 1)} instead of {found.ndim}")
    return found


def read_label_file(path: Path) -> Any:
    """Read an idx file of bytes in one dimension, as int64."""
    return _read(path, 1).long()


def read_image_file(path: Path) -> Any:
    """Read an idx file of bytes in three dimensions."""
    return _read(path, 3)


class MNIST(VisionDataset):
    """Handwritten digits of 28 by 28, in idx files below `root`/MNIST/raw."""

    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"]
    resources: Any = _resources(
        "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c",
    )  # fmt: skip
    classes = _DIGITS

    def __init__(
        self,
        root: Path,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_exists():
            text = NOT_FOUND.replace(" or corrupted", "")
            require(self.raw_folder, [(os.path.basename(path), None) for path in self._wanted()], text)
        self.data, self.targets = self._load_data()
        if len(self.data) != len(self.targets):
            raise RuntimeError(
                f"{self.raw_folder}: expected as many labels as images; got {len(self.targets)} for {len(self.data)}."
            )

    def _files(self) -> tuple[str, str]:
        """Return the paths of the images and the labels."""
        part = "train" if self.train else "t10k"
        return tuple(os.path.join(self.raw_folder, f"{part}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))  # type: ignore[return-value]

    def _wanted(self) -> list[str]:
        """Return the paths of all that `download` brings."""
        return [os.path.join(self.raw_folder, os.path.splitext(os.path.basename(url))[0]) for url, _ in self.resources]

    def _check_exists(self) -> bool:
        return all(map(check_integrity, self._wanted()))

    def _load_data(self) -> tuple[Any, Any]:
        images, labels = self._files()
        return read_image_file(images), read_label_file(labels)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(to_image(self.data[index]), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)

    @property
    def raw_folder(self) -> str:
        """Where the files lie."""
        return os.path.join(self.root, type(self).__name__, "raw")  # type: ignore[arg-type]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: i for i, name in enumerate(self.classes)}

    def download(self) -> None:
        """Fetch and unpack the files that are not there; packed ones that lie in the folder are taken from there."""
        if self._check_exists():
            return
        for name, md5 in self.resources:
            download_and_extract_archive(
                [mirror + name for mirror in self.mirrors], self.raw_folder, filename=name, md5=md5
            )

    def extra_repr(self) -> str:
        """Say which part it is."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


def _renamed(old: str, new: str) -> property:
    def get(self: Any) -> Any:
        warn(f"{old} has been renamed {new}")
        return getattr(self, new)

    return property(get, doc=f"The old name of `{new}`.")


for _old, _new in (
    ("train_labels", "targets"),
    ("test_labels", "targets"),
    ("train_data", "data"),
    ("test_data", "data"),
):
    setattr(MNIST, _old, _renamed(_old, _new))


class FashionMNIST(MNIST):
    """Zalando's articles, in MNIST's format."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = _resources(
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
    )  # fmt: skip
    classes = "T-shirt/top|Trouser|Pullover|Dress|Coat|Sandal|Shirt|Sneaker|Bag|Ankle boot".split("|")


class KMNIST(MNIST):
    """Cursive Japanese characters, in MNIST's format."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = _resources(
        "bdb82020997e1d708af4cf47b453dcf7", "e144d726b3acfaa3e44228e80efcd344",
        "5c965bf0a639b31b8f53240b1b52f4d7", "7320c461ea6c1c855c0b718fb2a4b134",
    )  # fmt: skip
    classes = "o ki su tsu na ha ma ya re wo".split()


_MERGED = sorted({*string.digits, *string.ascii_letters} - {*"cijklmopsuvwxyz"})


class EMNIST(MNIST):
    """Handwritten letters and digits, in six splits; the published files have the images turned and mirrored."""

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    classes_split_dict = {
        "byclass": sorted(string.digits + string.ascii_letters), "bymerge": _MERGED, "balanced": _MERGED,
        "letters": ["N/A", *string.ascii_lowercase], "digits": [*string.digits], "mnist": [*string.digits],
    }  # fmt: skip

    def __init__(self, root: Path, split: str, **kwargs: Any) -> None:
        self.split = verify_str_arg(split, "split", self.splits)
        super().__init__(root, **kwargs)
        self.classes = self.classes_split_dict[self.split]

    def _files(self) -> tuple[str, str]:
        start = os.path.join(self.raw_folder, f"emnist-{self.split}-{'train' if self.train else 'test'}")
        return f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte"

    def _wanted(self) -> list[str]:
        return [*self._files()]

    def download(self) -> None:
        """Fetch and unpack all splits, unless this one is there."""
        if self._check_exists():
            return
        download_and_extract_archive(self.url, self.raw_folder, md5=self.md5)
        packed = os.path.join(self.raw_folder, "gzip")
        for name in sorted(os.listdir(packed)):
            if name.endswith(".gz"):
                extract_archive(os.path.join(packed, name), self.raw_folder)
        shutil.rmtree(packed)


class QMNIST(MNIST):
    """MNIST made anew from its sources, with 60,000 test digits; with `compat=False` targets have all that is known."""

    subsets = {"train": "train", "test": "test", "test10k": "test", "test50k": "test", "nist": "nist"}
    mirrors = ["https://raw.githubusercontent.com/facebookresearch/qmnist/master/"]
    resources = {
        "train": [("qmnist-train-images-idx3-ubyte.gz", "ed72d4157d28c017586c42bc6afe6370"),
                  ("qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4")],
        "test": [("qmnist-test-images-idx3-ubyte.gz", "1394631089c404de565df7b7aeaf9412"),
                 ("qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa")],
        "nist": [("xnist-images-idx3-ubyte.xz", "7f124b3b8ab81486c9d8c2749c17f834"),
                 ("xnist-labels-idx2-int.xz", "5ed0e788978e45d4a8bd4b7caec3d79d")],
    }  # fmt: skip

    def __init__(
        self, root: Path, what: str | None = None, compat: bool = True, train: bool = True, **kwargs: Any
    ) -> None:
        self.what = verify_str_arg(
            ("train" if train else "test") if what is None else what, "what", tuple(self.subsets)
        )
        self.compat = compat
        self.resources = type(self).resources[self.subsets[self.what]]
        super().__init__(root, train, **kwargs)

    def _load_data(self) -> tuple[Any, Any]:
        images, labels = self._wanted()
        data, targets = read_image_file(images), read_sn3_pascalvincent_tensor(labels).long()
        if targets.ndim != 2:
            raise ValueError(f"targets should have 2 dimensions instead of {targets.ndim}")
        part = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(self.what, slice(None))
        return data[part], targets[part]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        target = self.targets[index]
        return self._transformed(to_image(self.data[index]), int(target[0]) if self.compat else target)

    def extra_repr(self) -> str:
        """Say which part it is."""
        return f"Split: {self.what}"
