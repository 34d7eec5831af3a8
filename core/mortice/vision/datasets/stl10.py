"""STL-10: larger pictures, few of them labelled, in plain files of bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mortice as mt
from mortice.vision.datasets.utils import check_integrity, download_and_extract_archive, require, verify_str_arg
from mortice.vision.datasets.vision import VisionDataset
from mortice.vision.pictures import to_array, to_image


class STL10(VisionDataset):
    """Pictures of 96 by 96 below `root`/stl10_binary; those without a label have -1."""

    base_folder = "stl10_binary"
    url = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"
    filename = "stl10_binary.tar.gz"
    tgz_md5 = "91f7769df0f17e558f3565bffb0c7dfb"
    class_names_file = "class_names.txt"
    folds_list_file = "fold_indices.txt"
    train_list = [
        ["train_X.bin", "918c2871b30a85fa023e0c44e0bee87f"],
        ["train_y.bin", "5a34089d4802c674881badbb80307741"],
        ["unlabeled_X.bin", "5242ba1fed5e4be9e1e742405eb56ca4"],
    ]
    test_list = [["test_X.bin", "7f263ba9f9e0b06b93213547f721ac82"], ["test_y.bin", "36f9794fa4beb8a2c72628de14fa638e"]]
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        folds: int | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.splits)
        if not (folds is None or isinstance(folds, int)):
            raise ValueError(f"Expected type None or int for argument folds, but got type {type(folds)}.")
        if folds is not None and folds not in range(10):
            raise ValueError(f"Value for argument folds should be in the range [0, 10), but got {folds}.")
        self.folds = folds
        if download:
            self.download()
        require(self._path(), [(name, md5) for name, md5 in self.train_list + self.test_list])
        pictures, labels = [], []
        for part in self.split.split("+"):
            found = self._bytes(f"{part}_X.bin").reshape(-1, 3, 96, 96).transpose(2, 3)  # which lie column by column
            known = -mt.ones(len(found), dtype=mt.int64)
            if part != "unlabeled":
                known = self._bytes(f"{part}_y.bin").long() - 1
            if part == "train" and folds is not None:
                with open(self._path(self.folds_list_file)) as file:
                    chosen = mt.tensor([int(i) for i in file.read().splitlines()[folds].split()])
                found, known = found[chosen], known[chosen]
            pictures.append(found)
            labels.append(known)
        self.data, self.labels = to_array(mt.cat(pictures).contiguous()), to_array(mt.cat(labels))
        if os.path.isfile(self._path(self.class_names_file)):
            with open(self._path(self.class_names_file)) as file:
                self.classes = file.read().splitlines()

    def _path(self, name: str = "") -> str:
        return os.path.join(self.root, self.base_folder, name)  # type: ignore[arg-type]

    def _bytes(self, name: str) -> Any:
        with open(self._path(name), "rb") as file:
            return mt.frombuffer(bytearray(file.read()), dtype=mt.uint8)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture = self.data[index]
        picture = picture.permute(1, 2, 0) if isinstance(picture, mt.Tensor) else picture.transpose(1, 2, 0)
        return self._transformed(to_image(picture), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def download(self) -> None:
        """Fetch and unpack the archive, unless what it holds is there."""
        if not all(check_integrity(self._path(name), md5) for name, md5 in self.train_list + self.test_list):
            download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.tgz_md5)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """Say which part it is."""
        return f"Split: {self.split}"
