"""CelebA: faces of celebrities with 40 attributes, from the published text files and pictures."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from typing import Any

import mortice as mt
from mortice.vision._pillow import pillow
from mortice.vision.datasets.archives import extract_archive
from mortice.vision.datasets.utils import (
    NOT_FOUND,
    check_integrity,
    download_file_from_google_drive,
    require,
    verify_str_arg,
)
from mortice.vision.datasets.vision import VisionDataset

_SPLITS = ("train", "valid", "test", "all")


class CelebA(VisionDataset):
    """Aligned faces below `root`/celeba, with what `target_type` names: "attr", "identity", "bbox", "landmarks", or several."""

    base_folder = "celeba"
    file_list = [
        ("0B7EVK8r0v71pZjFTYXZWM3FlRnM", "00d2c5bc6d35e252742224ab0c1e8fcb", "img_align_celeba.zip"),
        ("0B7EVK8r0v71pblRyaVFSWGxPY0U", "75e246fa4810816ffd6ee81facbd244c", "list_attr_celeba.txt"),
        ("1_ee_0u7vcNLOfNLegJRHmolfH5ICW-XS", "32bd1bd63d3c78cd57e08160ec5ed1e2", "identity_CelebA.txt"),
        ("0B7EVK8r0v71pbThiMVRxWXZ4dU0", "00566efa6fedff7a56946cd1c10f1c16", "list_bbox_celeba.txt"),
        ("0B7EVK8r0v71pd0FJY3Blby1HUTQ", "cc24ecafdb5b50baae59b03474781f8c", "list_landmarks_align_celeba.txt"),
        ("0B7EVK8r0v71pY0NSMzRuSXJEVkk", "d32c9cbf5e040fd4025c592c306e6668", "list_eval_partition.txt"),
    ]

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        target_type: list[str] | str = "attr",
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = split
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        if not self.target_type and target_transform is not None:
            raise RuntimeError("target_transform is specified but target_type is empty")
        if download:
            self.download()
        require(self._path(), self._texts())
        if not os.path.isdir(self._path("img_align_celeba")):
            raise RuntimeError(f"{NOT_FOUND}. ({self._path('img_align_celeba')} is not there.)")
        lower = verify_str_arg(split.lower() if isinstance(split, str) else split, "split", _SPLITS)
        _, names, parts = self._read("list_eval_partition.txt", 0)
        chosen = [i for i, (part,) in enumerate(parts) if lower == "all" or part == _SPLITS.index(lower)]
        self.filename = [names[i] for i in chosen]

        def read(name: str, head: int = 2) -> tuple[list[str], Any]:
            header, _, rows = self._read(name, head)
            return header, mt.tensor([rows[i] for i in chosen], dtype=mt.int64)

        self.identity = read("identity_CelebA.txt", 0)[1]
        self.bbox = read("list_bbox_celeba.txt")[1]
        self.landmarks_align = read("list_landmarks_align_celeba.txt")[1]
        self.attr_names, signs = read("list_attr_celeba.txt")
        self.attr = (signs > 0).long()  # the file has -1 and 1

    def _path(self, *names: str) -> str:
        return os.path.join(self.root, self.base_folder, *names)  # type: ignore[arg-type]

    def _texts(self) -> list[tuple[str, str]]:
        return [(name, md5) for _, md5, name in self.file_list if name.endswith(".txt")]

    def _read(self, name: str, head: int) -> tuple[list[str], list[str], list[list[int]]]:
        """Return the last of the lines at the head, the names of the pictures, and their numbers."""
        with open(self._path(name)) as file:
            lines = list(csv.reader(file, delimiter=" ", skipinitialspace=True))
        rows = lines[head:]
        return lines[head - 1] if head else [], [row[0] for row in rows], [[int(v) for v in row[1:]] for row in rows]

    def _target(self, kind: str, index: int) -> Any:
        if kind == "identity":
            return self.identity[index, 0]
        held = {"attr": self.attr, "bbox": self.bbox, "landmarks": self.landmarks_align}.get(kind)
        if held is None:
            raise ValueError(f'Target type "{kind}" is not recognized.')
        return held[index]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture = pillow().open(self._path("img_align_celeba", self.filename[index]))
        picture.load()  # which closes the file
        target: Any = [self._target(kind, index) for kind in self.target_type]
        if self.transform is not None:
            picture = self.transform(picture)
        if not target:
            return picture, None
        target = tuple(target) if len(target) > 1 else target[0]
        return picture, target if self.target_transform is None else self.target_transform(target)

    def __len__(self) -> int:
        return len(self.attr)

    def download(self) -> None:
        """Fetch the files and unpack the pictures, unless they are there."""
        if os.path.isdir(self._path("img_align_celeba")) and all(check_integrity(self._path(n), md5) for n, md5 in self._texts()):
            return
        for number, md5, name in self.file_list:
            download_file_from_google_drive(number, self._path(), name, md5)
        extract_archive(self._path("img_align_celeba.zip"))

    def extra_repr(self) -> str:
        """Say which part it is, and what its targets are."""
        return f"Target type: {self.target_type}\nSplit: {self.split}"
