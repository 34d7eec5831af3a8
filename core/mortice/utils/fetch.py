"""Downloads: resumed where they broke off, verified, and put in place whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

_CHUNK = 1 << 16
_TRIES = 5  # of one address in a row without a single new byte
_TIMEOUT = 60.0  # seconds without a byte


class DownloadError(urllib.error.URLError, RuntimeError):
    """A file that could not be fetched, or is not what it should be."""

    def __str__(self) -> str:
        return str(self.reason)


def digest(path: str | os.PathLike[str], kind: str = "md5", chunk_size: int = 1 << 20) -> str:
    """Return a checksum of a file in hexadecimal."""
    found = hashlib.new(kind, usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(chunk_size):
            found.update(chunk)
    return found.hexdigest()


def fetch(
    urls: Sequence[str],
    path: str,
    matches: Callable[[str], bool] | None = None,
    redirects: int = 3,
    progress: bool = True,
) -> None:
    """Fetch a file from the first address that has it, unless it is there.

    What has arrived when all fail is kept beside `path` as `.part`; the next call goes on from there if `matches` can
    tell at the end whether the whole is right.
    """
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    part, failures = f"{path}.part", []
    with _alone(part) as file:
        if _is_right(path, matches):
            _let_go(file)
            os.remove(part)
            return
        if matches is None:
            file.truncate(0)
        for url in urls:
            try:
                resumed = file.seek(0, os.SEEK_END) > 0
                _receive(url, file, redirects, progress)
                if matches is not None and not matches(part) and resumed:  # the file has changed since it was begun
                    file.truncate(0)
                    _receive(url, file, redirects, progress)
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{url}: {error}")
                continue
            if _is_right(part, matches):
                _let_go(file)
                os.replace(part, path)
                return
            failures.append(f"{url}: File not found or corrupted: the checksum of what arrived differs.")
            file.truncate(0)
        if not os.path.getsize(part):
            _let_go(file)
            os.remove(part)
    raise DownloadError(
        f"could not fetch {os.path.basename(path)}:\n  "
        + "\n  ".join(failures)
        + f"\nTry again, or get it by other ways and put it at {path}"
    )


def _is_right(path: str, matches: Callable[[str], bool] | None) -> bool:
    return os.path.isfile(path) and (matches is None or matches(path))


@contextlib.contextmanager
def _alone(path: str) -> Iterator[BinaryIO]:
    """Open a file for appending, after other processes that write it have finished with it."""
    while True:
        file = open(path, "a+b", buffering=0)  # noqa: SIM115
        try:
            _lock(file)
            # Whoever held it before may have put it in its place or removed it.
            if _lies_at(path, file):
                yield file
                return
        finally:
            file.close()


def _lies_at(path: str, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(file: Any) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows, where two processes must not fetch one file at a time
        return
    fcntl.flock(file, fcntl.LOCK_EX)


def _let_go(file: BinaryIO) -> None:
    if os.name == "nt":  # where an open file can be neither moved nor removed
        file.close()


def _receive(url: str, file: BinaryIO, redirects: int, progress: bool) -> None:
    """Append to the file what it lacks of what lies at the address, asking again where a connection breaks off."""
    tries, validator, most = 0, None, 0
    while True:
        have = file.seek(0, os.SEEK_END)
        headers = {"User-Agent": "mortice", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if validator is not None:
                headers["If-Range"] = validator
        try:
            with _opener(redirects).open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as answer:
                if have and not _continues(answer, have):
                    file.truncate(0)
                    have = 0
                etag = answer.headers.get("ETag") or ""
                validator = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
                length = answer.headers.get("Content-Length")
                total = None if length is None else have + int(length)
                with _bar(os.path.basename(url), have, total, progress) as advance:
                    while chunk := answer.read(_CHUNK):
                        file.write(chunk)
                        advance(len(chunk))
            got = file.seek(0, os.SEEK_END)
            if total is None or got >= total:
                return
            error: Exception = ConnectionError(f"the connection broke off after {got} of {total} bytes")
        except urllib.error.HTTPError as refusal:
            with refusal:
                if refusal.code != 416 or not have:  # nothing lies beyond what is here
                    raise
                if refusal.headers.get("Content-Range") == f"bytes */{have}":
                    return
            file.truncate(0)
            error = refusal
        except (http.client.HTTPException, ConnectionError, TimeoutError) as broken:
            error = broken
        # What is sent again from the start is no progress until it reaches further than before.
        got = file.seek(0, os.SEEK_END)
        tries, most = (0, got) if got > max(most, have) else (tries + 1, most)
        if tries >= _TRIES:
            raise error


def _opener(redirects: int) -> urllib.request.OpenerDirector:
    handler = urllib.request.HTTPRedirectHandler()
    handler.max_redirections = redirects
    return urllib.request.build_opener(handler)


def _continues(answer: Any, have: int) -> bool:
    return answer.status == 206 and (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")


@contextlib.contextmanager
def _bar(name: str, have: int, total: int | None, progress: bool) -> Iterator[Callable[[int], Any]]:
    """Show how far it is where tqdm is installed and somebody watches."""
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or not progress or not sys.stderr.isatty():
        yield lambda n: None
        return
    with tqdm(desc=name, total=total, initial=have, unit="B", unit_scale=True, unit_divisor=1024) as bar:
        yield bar.update
