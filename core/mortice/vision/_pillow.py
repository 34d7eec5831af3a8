"""Pillow, imported where a PIL image is wanted and not before: tensors need none of it."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def pillow(module: str = "Image") -> Any:
    """Import and return a module of Pillow, such as "Image" or "ImageOps"."""
    try:
        return importlib.import_module(f"PIL.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "PIL":
            raise
        raise ModuleNotFoundError(
            "mortice.vision: image files and PIL images need Pillow, which is not installed (pip install 'mortice[vision]').",
            name="PIL",
        ) from error


def is_pil(value: Any) -> bool:
    """Tell whether an object is a PIL image, without importing Pillow."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)
