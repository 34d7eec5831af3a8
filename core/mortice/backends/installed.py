"""The entry points of installed distributions, read without importlib.metadata, whose import costs more than all of this.

Directories of `sys.path` are read here; whatever else may hold distributions is left to importlib.metadata.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Point:
    """An entry point: its name, and what it names, `module` or `module:attribute`."""

    def __init__(self, name: str, value: str) -> None:
        self.name, self.value = name, value

    def load(self) -> Any:
        """Import what it names."""
        module, _, attributes = self.value.partition(":")
        found = import_module(module)
        for attribute in attributes.split(".") if attributes else ():
            found = getattr(found, attribute)
        return found


class Distribution:
    """An installed distribution, by a function that returns the text of one of its files."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self.read = read

    def identity(self) -> tuple[str, str]:
        """Return its name and version, empty where its metadata has none that can be read."""
        found = {"name": "", "version": ""}
        for file in ("METADATA", "PKG-INFO"):
            try:
                text = self.read(file)
            except Exception:  # the plugin itself may be sound
                continue
            for line in text.split("\n\n", 1)[0].splitlines():
                key, _, value = line.partition(":")
                if key.lower() in found:
                    found[key.lower()] = value.strip()
        return found["name"], found["version"]

    def points(self, group: str) -> list[Point]:
        """Return its entry points of a group; raises ValueError when its list is none."""
        found, here = [], False
        for line in map(str.strip, self.read("entry_points.txt").splitlines()):
            if line.startswith("["):
                here = line.replace(" ", "") == f"[{group}]"
            elif here and line and not line.startswith("#"):
                name, equals, value = line.partition("=")
                value = value.partition("[")[0].replace(" ", "")  # without extras
                if not equals or not all([part.isidentifier() for part in value.replace(":", ".").split(".")]):
                    raise ValueError(f"expected lines such as 'name = module'; got {line!r}")
                found.append(Point(name.strip(), value))
        return found


def distributions() -> Iterator[Distribution]:
    """Yield what is installed and has entry points, in the order of `sys.path`."""
    finders = [f for f in sys.meta_path if hasattr(f, "find_distributions")]
    if len(finders) != 1 or getattr(finders[0], "__name__", "") != "PathFinder":
        yield from _by_metadata()
        return
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except FileNotFoundError:
            continue
        except OSError:  # a zip file
            yield from _by_metadata(path=[place])
            continue
        if any([name.endswith(".egg") for name in names]):
            yield from _by_metadata(path=[place])
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                folder = os.path.join(place, name)
                if os.path.isfile(os.path.join(folder, "entry_points.txt")):
                    yield Distribution(lambda file, folder=folder: _read(os.path.join(folder, file)))  # type: ignore[misc]


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _by_metadata(**where: Any) -> Iterator[Distribution]:
    from importlib.metadata import distributions as find

    for found in find(**where):
        yield Distribution(lambda file, found=found: found.read_text(file) or "")  # type: ignore[misc]
