"""What every dataset of pictures has: where it lies, and the transforms of its pictures and targets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mortice.utils.data import Dataset


def _indented(head: str, value: Any) -> list[str]:
    first, *rest = repr(value).splitlines()
    return [head + first, *(" " * len(head) + line for line in rest)]


class VisionDataset(Dataset):
    """A dataset with a root folder and either `transforms` of pairs or a transform each of pictures and targets."""

    _repr_indent = 4

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        transforms: Callable[..., Any] | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transform, self.target_transform = transform, target_transform
        self.transforms = StandardTransform(transform, target_transform) if separate else transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def _transformed(self, picture: Any, target: Any) -> tuple[Any, Any]:
        """Return both as the transforms, which may have been replaced since, make them."""
        if self.transform is not None:
            picture = self.transform(picture)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return picture, target

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if getattr(self, "transforms", None) is not None:
            body.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *(" " * self._repr_indent + line for line in body)])

    def extra_repr(self) -> str:
        """Return further lines of the description."""
        return ""


class StandardTransform:
    """A transform of pictures and one of targets, as one of pairs."""

    def __init__(
        self, transform: Callable[..., Any] | None = None, target_transform: Callable[..., Any] | None = None
    ) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        return VisionDataset._transformed(self, input, target)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        lines = [type(self).__name__]
        for head, transform in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            lines += _indented(head, transform) if transform is not None else []
        return "\n".join(lines)
