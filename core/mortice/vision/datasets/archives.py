"""Unpacking zip, tar and compressed files: nothing outside the folder that was named, and nothing half-written."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

_COMPRESSED: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
_ARCHIVES = (".tar", ".zip")
_SHORT = {".tbz": ".bz2", ".tbz2": ".bz2", ".tgz": ".gz"}


def kind_of(file: str | os.PathLike[str]) -> tuple[str, str | None, str | None]:
    """Return the suffix of a file, the archive type and the compression that it stands for."""
    suffixes = Path(file).suffixes
    if not suffixes:
        raise RuntimeError(
            f"File '{file}' has no suffixes that could be used to detect the archive type and compression."
        )
    last, before = suffixes[-1], suffixes[-2] if len(suffixes) > 1 else ""
    if last in _SHORT:
        return last, ".tar", _SHORT[last]
    if last in _ARCHIVES:
        return last, last, None
    if last in _COMPRESSED:
        return (before + last, before, last) if before in _ARCHIVES else (last, None, last)
    known = sorted({*_SHORT, *_ARCHIVES, *_COMPRESSED})
    raise RuntimeError(f"Unknown compression or archive type: '{last}'.\nKnown suffixes are: '{known}'.")


def extract_archive(
    from_path: str | os.PathLike[str], to_path: str | os.PathLike[str] | None = None, remove_finished: bool = False
) -> str | Path:
    """Unpack an archive into a folder, its own by default, or a compressed file beside itself; return where it went.

    Raises:
        RuntimeError: for a suffix that is not known, a damaged file, or one with names that lead out of the folder.
    """
    suffix, archive, compression = kind_of(from_path)
    folder = os.path.dirname(from_path) if to_path is None else os.fspath(to_path)
    target = folder if archive else os.path.join(folder, os.path.basename(from_path).removesuffix(suffix))
    with _staged(folder) as stage:
        try:
            if archive == ".tar":
                _untar(from_path, stage, compression)
            elif archive == ".zip":
                _unzip(from_path, stage)
            else:
                assert compression is not None
                with (
                    _COMPRESSED[compression](from_path) as packed,
                    open(os.path.join(stage, os.path.basename(target)), "wb") as file,
                ):
                    shutil.copyfileobj(packed, file, 1 << 20)
        except (EOFError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, OSError, zipfile.zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:  # the disk's trouble, not the file's
                raise
            raise RuntimeError(
                f"extract_archive: {os.fspath(from_path)} is damaged or incomplete ({error}). Remove it and get it again."
            ) from error
    if remove_finished:
        os.remove(from_path)
    return target if isinstance(from_path, str) else Path(target)


@contextlib.contextmanager
def _staged(folder: str) -> Iterator[str]:
    """Give a folder on the same disk to unpack into; what lies in it goes to its place if nothing failed."""
    folder = folder or "."
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as stage:
        yield stage
        for here, folders, files in os.walk(stage):
            place = os.path.join(folder, os.path.relpath(here, stage))
            for name in folders:
                if not os.path.islink(os.path.join(here, name)):
                    os.makedirs(os.path.join(place, name), exist_ok=True)
            for name in files + [n for n in folders if os.path.islink(os.path.join(here, n))]:
                os.replace(os.path.join(here, name), os.path.join(place, name))


def _check(name: str, archive: Any, what: str = "name") -> None:
    # No part may go up, not even between others that go down: behind a link it would lead elsewhere.
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor or ".." in PureWindowsPath(name).parts:
        raise RuntimeError(
            f"extract_archive: {os.fspath(archive)} has the {what} {name!r}, which leads out of the folder."
        )


def _untar(path: Any, stage: str, compression: str | None) -> None:
    with tarfile.open(path, f"r:{compression[1:]}" if compression else "r:") as tar:
        members = tar.getmembers()
        for member in members:
            _check(member.name, path)
            if member.islnk() or member.issym():
                _check(member.linkname, path, "link to")
            elif not (member.isfile() or member.isdir()):
                raise RuntimeError(
                    f"extract_archive: {os.fspath(path)} has {member.name!r}, which is no file, folder or link."
                )
        # The filter also leaves out owners and set-user-id bits; the first releases of Python 3.11 have none.
        tar.extractall(stage, members, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def _unzip(path: Any, stage: str) -> None:
    with zipfile.ZipFile(path) as packed:
        for name in packed.namelist():
            _check(name, path)
        packed.extractall(stage)
