"""Datasets that are folders of files: a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mortice.vision._pillow import pillow
from mortice.vision.datasets.vision import VisionDataset

Path = str | os.PathLike[str]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Tell whether a name ends with one of the extensions, in small letters or capitals."""
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


def is_image_file(filename: str) -> bool:
    """Tell whether a name ends as those of image files do."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: Path) -> tuple[list[str], dict[str, int]]:
    """Return the folders in a folder in alphabetical order, and the number of each."""
    entries = list(os.scandir(directory))
    classes = sorted(entry.name for entry in entries if entry.is_dir())
    if not classes:
        images = sum(is_image_file(entry.name) for entry in entries)
        hint = (
            f" It holds {images} image{'s'[: images > 1]} itself, where root/class/image.png is wanted: pass "
            f"{os.path.dirname(os.path.abspath(directory))}, or move the images into a folder for each class."
        )
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}." + (hint if images else ""))
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(
    directory: Path,
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """Return (path, class) of the valid files below the folders of the classes, folder by folder and sorted."""
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    found: dict[str, list[tuple[str, int]]] = {}
    for name in sorted(class_to_idx):
        found[name] = []
        for here, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            for path in (os.path.join(here, file) for file in sorted(files)):
                if has_file_allowed_extension(path, extensions) if extensions is not None else is_valid_file(path):  # type: ignore[misc]
                    found[name].append((path, class_to_idx[name]))
    empty = sorted(name for name, samples in found.items() if not samples)
    if empty and not allow_empty:
        text = "" if len(empty) < len(found) else f"Found 0 files in subfolders of: {directory}. "
        text += f"Found no valid file for the classes {', '.join(empty)}. "
        if extensions is not None:
            text += f"Supported extensions are: {extensions if isinstance(extensions, str) else ', '.join(extensions)}"
        raise FileNotFoundError(text)
    return [sample for samples in found.values() for sample in samples]


class DatasetFolder(VisionDataset):
    """Files of any kind, in a folder for each class; `loader` reads one."""

    def __init__(
        self,
        root: Path,
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader, self.extensions = loader, extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)  # type: ignore[arg-type]
        self.samples = self.make_dataset(
            self.root, self.class_to_idx, extensions=extensions, is_valid_file=is_valid_file, allow_empty=allow_empty
        )
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(
        directory: Any,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """Return (path, class) of each sample; a subclass may look for them elsewhere."""
        if class_to_idx is None:  # not to be found by the function, where a subclass has a method for it
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: Path) -> tuple[list[str], dict[str, int]]:
        """Return the classes and the number of each; a subclass may choose others."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


def pil_loader(path: Path) -> Any:
    """Read an image file as RGB, and say which file it is that cannot be read."""
    image = pillow()
    with open(path, "rb") as file:
        try:
            return image.open(file).convert("RGB")
        except (OSError, SyntaxError, ValueError, EOFError) as error:
            kind = image.UnidentifiedImageError if isinstance(error, image.UnidentifiedImageError) else OSError
            raise kind(f"pil_loader: {os.fspath(path)} is no image that can be read: {error}") from error


default_loader = pil_loader


class ImageFolder(DatasetFolder):
    """Image files, in a folder for each class."""

    def __init__(
        self,
        root: Path,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
