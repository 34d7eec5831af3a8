"""mortice.vision: transforms, datasets, models and pictures, under torchvision's names. Only what handles files needs Pillow."""

from __future__ import annotations

__version__ = "0.28.0+mortice"  # the torchvision whose names these are
_PARTS = ("datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils")


def _is_tracing() -> bool:
    """Return False: nothing is traced. Programs ask by torchvision's private name."""
    return False


def disable_beta_transforms_warning() -> None:
    """Do nothing: programs of the time when `transforms.v2` was new call it."""


def get_image_backend() -> str:
    """Return "PIL": files of pictures are read with Pillow."""
    return "PIL"


def set_image_backend(backend: str) -> None:
    """Take "PIL", which reads files of pictures; no other library does."""
    if backend != "PIL":
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL'")


def __getattr__(name: str) -> object:
    # `mortice.vision.models` needs no import of its own, as in torchvision; loading waits for the first use.
    if name not in _PARTS:
        raise AttributeError(f"module 'mortice.vision' has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"mortice.vision.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
