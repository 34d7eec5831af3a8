"""Street View House Numbers, from the published MATLAB files."""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import mortice as mt
from mortice.vision.datasets.utils import download_url, require, verify_str_arg
from mortice.vision.datasets.vision import VisionDataset
from mortice.vision.pictures import to_array, to_image

_COMPRESSED, _MATRIX = 15, 14
_NUMBERS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}


def _parts(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield the kind and bytes of each element, of which short ones lie in their own tag."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}2I", data, at)
        start, at = at + 8, at + 8 + size + (0 if kind == _COMPRESSED else -size % 8)
        if kind >> 16:
            kind, size, start, at = kind & 0xFFFF, kind >> 16, start - 4, start
        if start + size > len(data):
            raise ValueError("it ends too early")
        yield kind, data[start : start + size]


def read_mat(path: str) -> dict[str, tuple[tuple[int, ...], str, bytes]]:
    """Read the matrices of numbers of a MATLAB file (level 5): shape, struct's code, and elements, first size fastest."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    if data[:8] != b"MATLAB 5" or data[126:128] not in (b"IM", b"MI"):
        raise RuntimeError(f"{path} is no MATLAB file of level 5: got {bytes(data[:19])!r} at its start.")
    order = "<" if data[126:128] == b"IM" else ">"
    found = {}
    try:
        for kind, body in _parts(data[128:], order):
            if kind == _COMPRESSED:
                kind, body = next(_parts(memoryview(zlib.decompress(body)), order))
            if kind == _MATRIX:
                parts = list(_parts(body, order))
                if len(parts) == 4 and parts[3][0] in _NUMBERS:  # flags, sizes, name, and real numbers
                    sizes = struct.unpack(f"{order}{len(parts[1][1]) // 4}i", parts[1][1])
                    found[bytes(parts[2][1]).decode()] = sizes, order + _NUMBERS[parts[3][0]], bytes(parts[3][1])
    except (ValueError, StopIteration, struct.error, zlib.error) as error:
        raise RuntimeError(f"{path} is damaged: {error}. Remove it, and get it again.") from error
    return found


class SVHN(VisionDataset):
    """Digits of house numbers; the digit 0, which the files call 10, is class 0."""

    split_list = {
        "train": [
            "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
            "train_32x32.mat",
            "e26dedcc434d2e4c54c9b2d4a06d8373",
        ],
        "test": [
            "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
            "test_32x32.mat",
            "eb5a983be6a315427106f1b164d9cef3",
        ],
        "extra": [
            "http://ufldl.stanford.edu/housenumbers/extra_32x32.mat",
            "extra_32x32.mat",
            "a93ce644f1a588dc4d68dda5feec44a7",
        ],
    }

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", tuple(self.split_list))
        self.url, self.filename, self.file_md5 = self.split_list[split]
        if download:
            self.download()
        require(self.root, [(self.filename, self.file_md5)])  # type: ignore[arg-type]
        path = os.path.join(self.root, self.filename)  # type: ignore[arg-type]
        found = read_mat(path)
        (sizes, code, pictures), (_, label_code, labels) = (found.get(k, ((), "", b"")) for k in "Xy")
        digits = [int(v) for (v,) in struct.iter_unpack(label_code, labels)] if label_code else []
        if code[1:] != "B" or sizes != (32, 32, 3, len(digits)) or math.prod(sizes) != len(pictures):
            raise RuntimeError(
                f"{path} should have bytes X of (32, 32, 3, n) and n labels y; got {sizes} and {len(digits)}."
            )
        # What lies there with its first size fastest is, with its last size fastest, in the order of sizes turned round.
        planes = mt.frombuffer(bytearray(pictures), dtype=mt.uint8).reshape(sizes[::-1])
        self.data = to_array(planes.permute(0, 1, 3, 2).contiguous())
        self.labels = to_array(mt.tensor(digits, dtype=mt.int64).remainder(10))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture = self.data[index]
        picture = picture.permute(1, 2, 0) if isinstance(picture, mt.Tensor) else picture.transpose(1, 2, 0)
        return self._transformed(to_image(picture), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def download(self) -> None:
        """Fetch the file, unless it is there."""
        download_url(self.url, self.root, self.filename, self.file_md5)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """Say which part it is."""
        return f"Split: {self.split}"
