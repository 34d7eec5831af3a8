"""Weights by their address, and models of a folder that has a `hubconf.py`: PyTorch's torch.hub."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from mortice import serialization
from mortice.utils.fetch import digest, fetch

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-f37072fd.pth
_CONF = "hubconf.py"
_chosen: str | None = None


def get_dir() -> str:
    """Return the folder of what is fetched: the one set, else MORTICE_HOME, else ~/.cache/mortice."""
    return _chosen or os.environ.get("MORTICE_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "mortice")


_get_torch_home = get_dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the folder of what is fetched."""
    global _chosen
    _chosen = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file; with `hash_prefix` its SHA-256 checksum must begin so.

    What was at `dst` is replaced once the new file is whole.

    Raises:
        DownloadError: where it cannot be fetched, or is not what it should be.
    """
    dst = os.path.expanduser(dst)
    arrived = f"{dst}.new"
    fetch([url], arrived, _begins_with(hash_prefix), progress=progress)
    os.replace(arrived, dst)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Return what a saved file holds that lies at an address; it is fetched once and kept.

    It is kept in `checkpoints` below `get_dir()`, or in `model_dir`. With `check_hash` a name of the form
    `name-0123abcd.pth` gives the beginning of its SHA-256 checksum; as in PyTorch, other names give nothing to check.
    """
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.isfile(path):
        found = HASH_REGEX.search(name) if check_hash else None
        fetch([url], path, _begins_with(found.group(1) if found else None), progress=progress)
    return serialization.load(path, map_location=map_location, weights_only=weights_only)


load_url = load_state_dict_from_url  # as torch.utils.model_zoo calls it


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # programs that fetch files themselves import it from here
        return importlib.import_module(name).tqdm
    raise AttributeError(f"module 'mortice.hub' has no attribute {name!r}")


def _begins_with(prefix: str | None) -> Callable[[str], bool] | None:
    return None if prefix is None else lambda path: digest(path, "sha256").startswith(prefix)


# ---- models of a folder ----


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    verbose: bool = True,
    *,
    source: str = "local",
) -> Any:
    """Return the names of a folder's entry points: the functions of its `hubconf.py`."""
    conf = _conf(github, source)
    return [name for name, value in vars(conf).items() if callable(value) and not name.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    *,
    source: str = "local",
) -> str | None:
    """Return the docstring of an entry point."""
    return _entry(_conf(github, source), model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Return what the entry point `model` of a folder's `hubconf.py` makes of the arguments.

    Differs from torch: `source="local"` only. What is published is written for `import torch`.
    """
    if not isinstance(repo_or_dir, (str, os.PathLike)):
        raise ValueError(f"hub.load: repo_or_dir must be a path; got {type(repo_or_dir).__name__}.")
    return _entry(_conf(repo_or_dir, source), model)(*args, **kwargs)


def _conf(folder: str | os.PathLike[str], source: str) -> ModuleType:
    """Import a folder's `hubconf.py`, which may import what lies beside it and names what it needs as `dependencies`."""
    if source.lower() not in ("github", "local"):
        raise ValueError(f"Unknown source: '{source}'. Allowed values: 'github' | 'local'.")
    path = os.path.join(os.path.expanduser(folder), _CONF)
    if source.lower() == "github":
        raise RuntimeError(
            f"hub: {folder!r}: what is published on GitHub is written for `import torch`. Clone it, let it import "
            "mortice as torch, and give its folder with source='local'."
        )
    if not os.path.isfile(path):
        raise FileNotFoundError(f"hub: no {_CONF} in {os.path.dirname(path)!r}, which has a folder's entry points.")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    conf = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec.loader.exec_module(conf)
    finally:
        sys.path.remove(os.path.dirname(path))
    missing = [name for name in getattr(conf, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return conf


def _entry(conf: ModuleType, model: Any) -> Callable[..., Any]:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(conf, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found
