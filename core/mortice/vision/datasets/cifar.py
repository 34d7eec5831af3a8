"""CIFAR-10 and CIFAR-100, from the published pickles, of which nothing is executed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mortice as mt
from mortice.serialize.machine import Machine, Owner
from mortice.vision.datasets.utils import check_integrity, download_and_extract_archive, require
from mortice.vision.datasets.vision import VisionDataset
from mortice.vision.pictures import to_array, to_image

_PLANE = 3 * 32 * 32  # bytes of a picture: 1024 of red, then of green, then of blue


class _Bytes:
    """Stands for a NumPy array of bytes, or for its dtype."""

    data: bytes = b""


class _Arrays(Owner):
    """Lets a pickle make arrays of bytes, in the ways that NumPy has pickled them, and nothing else."""

    _NAMES = {
        "numpy.ndarray", "numpy.dtype", "_codecs.encode", "numpy.core.multiarray._reconstruct",
        "numpy._core.multiarray._reconstruct", "numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer",
    }  # fmt: skip

    def find(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        return full.rpartition(".")[2] if full in self._NAMES else super().find(module, name)

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        made = _Bytes()
        if function == "encode":  # how Python 3 writes bytes in Python 2's format
            return args[0].encode("latin-1")
        if function == "_frombuffer":
            made.data = bytes(args[0])
        elif function == "dtype" and args[0] not in ("u1", b"u1"):
            raise ValueError(f"an array of {args[0]!r} where one of bytes was expected")
        return made

    def build(self, obj: Any, state: Any) -> None:
        if not isinstance(obj, _Bytes):
            super().build(obj, state)
        elif isinstance(state[-1], bytes):  # the end of an array's state; a dtype's has numbers
            obj.data = state[-1]

    def vouches(self, obj: Any) -> bool:
        return False


def _plain(value: Any) -> Any:
    """Return text for Python 2's strings, which are bytes here so that pictures stay bytes."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def read_batch(path: str) -> dict[str, Any]:
    """Read one of the pickles: its values by name, the bytes of its array under "data"."""
    try:
        with open(path, "rb") as file:
            found = Machine(file.read(), _Arrays(), encoding="bytes").run()
        batch = {_plain(k): v.data if isinstance(v, _Bytes) else v for k, v in found.items()}
        return {k: v if k == "data" else _plain(v) for k, v in batch.items()}
    except OSError:
        raise
    except Exception as error:  # whatever a damaged pickle leads to
        why = str(error).rstrip(".")
        raise RuntimeError(f"{path} is damaged or no batch of CIFAR: {why}. Remove it, and get it again.") from error


class CIFAR10(VisionDataset):
    """Small pictures of ten kinds, in pickles below `root`/cifar-10-batches-py."""

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {"filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888"}

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        folder = os.path.join(self.root, self.base_folder)  # type: ignore[arg-type]
        require(folder, [(name, md5) for name, md5 in self.train_list + self.test_list])
        self.targets: list[int] = []
        pictures = bytearray()
        for name, _ in self.train_list if train else self.test_list:
            entry = read_batch(os.path.join(folder, name))
            data, labels = entry.get("data"), entry.get("labels", entry.get("fine_labels"))
            sound = isinstance(data, bytes) and isinstance(labels, list) and all(isinstance(n, int) for n in labels)
            if not sound or not labels or len(data) != _PLANE * len(labels):
                there = (
                    f"{len(data)} bytes for {len(labels)} labels" if sound else f"the entries {sorted(map(str, entry))}"
                )
                raise RuntimeError(
                    f"{os.path.join(folder, name)} should have {_PLANE} bytes of data for each label; got {there}."
                )
            pictures += data
            self.targets += labels
        planes = mt.frombuffer(pictures, dtype=mt.uint8).reshape(-1, 3, 32, 32)
        self.data = to_array(planes.permute(0, 2, 3, 1).contiguous())
        text = "Dataset metadata file not found or corrupted. You can use download=True to download it"
        require(folder, [(self.meta["filename"], self.meta["md5"])], text)
        self.classes: list[str] = read_batch(os.path.join(folder, self.meta["filename"])).get(self.meta["key"], [])
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(to_image(self.data[index]), self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def download(self) -> None:
        """Fetch and unpack the archive, unless what it holds is there."""
        folder = os.path.join(self.root, self.base_folder)  # type: ignore[arg-type]
        if not all(check_integrity(os.path.join(folder, name), md5) for name, md5 in self.train_list + self.test_list):
            download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.tgz_md5)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """Say which part it is."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


class CIFAR100(CIFAR10):
    """Small pictures of a hundred kinds, in pickles below `root`/cifar-100-python."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}
