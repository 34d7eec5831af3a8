"""mortice.vision: transforms, datasets, models, pictures of tensors and image files, under torchvision's names."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    # `mortice.vision.transforms` needs no import of its own, as in torchvision; loading waits for the first use.
    if name not in ("datasets", "io", "models", "transforms", "utils"):
        raise AttributeError(f"module 'mortice.vision' has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"mortice.vision.{name}")
