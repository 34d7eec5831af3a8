"""What datasets share: checksums, downloads, archives, and checks of arguments; torchvision.datasets.utils' names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from mortice.utils.fetch import DownloadError, digest, fetch
from mortice.vision.datasets.archives import extract_archive

__all__ = [
    "DownloadError", "calculate_md5", "check_integrity", "check_md5", "download_and_extract_archive",
    "download_file_from_google_drive", "download_url", "extract_archive", "iterable_to_str", "list_dir", "list_files", "verify_str_arg",
]  # fmt: skip

Path = str | os.PathLike[str]
T = TypeVar("T", str, bytes)


def calculate_md5(fpath: Path, chunk_size: int = 1024 * 1024) -> str:
    """Return the MD5 checksum of a file."""
    return digest(fpath, "md5", chunk_size)


def check_md5(fpath: Path, md5: str, **kwargs: Any) -> bool:
    """Tell whether a file has that MD5 checksum."""
    return md5 == calculate_md5(fpath, **kwargs)


def check_integrity(fpath: Path, md5: str | None = None) -> bool:
    """Tell whether a file is there, and has that MD5 checksum if one is given."""
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


def download_url(
    url: str | Sequence[str],
    root: Path,
    filename: Path | None = None,
    md5: str | None = None,
    max_redirect_hops: int = 3,
) -> None:
    """Fetch a file into a folder unless it is there with that checksum; of several addresses the first that has it.

    Differs from torch: what broke off is resumed, and a file is put in its place whole or not at all.
    """
    urls = [url] if isinstance(url, str) else list(url)
    path = os.path.join(os.path.expanduser(root), filename or os.path.basename(urls[0]))
    fetch(urls, path, None if md5 is None else lambda p: check_md5(p, md5), max_redirect_hops)


def download_file_from_google_drive(file_id: str, root: Path, filename: Path | None = None, md5: str | None = None) -> None:
    """Fetch a file that Google Drive shares under a number into a folder, unless it is there with that checksum."""
    download_url(f"https://drive.usercontent.google.com/download?id={file_id}&export=download&confirm=t", root, filename or file_id, md5)


def download_and_extract_archive(
    url: str | Sequence[str],
    download_root: Path,
    extract_root: Path | None = None,
    filename: Path | None = None,
    md5: str | None = None,
    remove_finished: bool = False,
) -> None:
    """Fetch an archive and unpack it."""
    download_root = os.path.expanduser(download_root)
    filename = filename or os.path.basename(url if isinstance(url, str) else url[0])
    download_url(url, download_root, filename, md5)
    extract_archive(os.path.join(download_root, filename), extract_root or download_root, remove_finished)


def _listed(root: Path, prefix: bool, wanted: Any) -> list[str]:
    root = os.path.expanduser(root)
    found = [name for name in os.listdir(root) if wanted(os.path.join(root, name))]
    return [os.path.join(root, name) for name in found] if prefix else found


def list_dir(root: Path, prefix: bool = False) -> list[str]:
    """Return the folders in a folder, as paths with `prefix`."""
    return _listed(root, prefix, os.path.isdir)


def list_files(root: Path, suffix: str | tuple[str, ...], prefix: bool = False) -> list[str]:
    """Return the files in a folder whose names end so, as paths with `prefix`."""
    return _listed(root, prefix, lambda path: os.path.isfile(path) and path.endswith(suffix))


def iterable_to_str(iterable: Iterable[Any]) -> str:
    """Return values in quotes, with commas between."""
    return "'" + "', '".join(map(str, iterable)) + "'"


def verify_str_arg(
    value: T, arg: str | None = None, valid_values: Iterable[T] | None = None, custom_msg: str | None = None
) -> T:
    """Return the value if it is a string and one of those that are valid."""
    if not isinstance(value, str):
        place = "" if arg is None else f" for argument {arg}"
        raise ValueError(f"Expected type str{place}, but got type {type(value)}.")
    if valid_values is not None and value not in valid_values:
        raise ValueError(
            custom_msg
            or f"Unknown value '{value}' for argument {arg}. Valid values are {{{iterable_to_str(valid_values)}}}."
        )
    return value


NOT_FOUND = "Dataset not found or corrupted. You can use download=True to download it"


def require(folder: Path, files: Iterable[tuple[str, str | None]], text: str = NOT_FOUND) -> None:
    """Refuse to go on without files of these names and MD5 checksums, naming the first that is missing or differs."""
    for name, md5 in files:
        path = os.path.join(folder, name)
        if not check_integrity(path, md5):
            state = "differs from what was published" if os.path.isfile(path) else "is not there"
            if os.path.isfile(f"{path}.gz"):
                state += ", but its .gz is, which download=True verifies and unpacks"
            raise RuntimeError(f"{text}. ({path} {state}.)")
