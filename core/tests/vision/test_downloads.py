"""Downloads from a real server that breaks off, sends too much or goes away; archives that are damaged or hostile."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError

import pytest

from mortice.utils import fetch
from mortice.vision import datasets
from mortice.vision.datasets import utils

DATA = bytes(range(256)) * 2000
MD5 = hashlib.md5(DATA).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves `files`; sends at most `breaks_at` bytes of an answer where that is set; notes what was asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        server.seen.append((self.path, self.headers.get("Range")))
        data = server.files.get(self.path.strip("/"))
        if isinstance(data, str):
            self.send_response(302)
            self.send_header("Location", data)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if data is None:
            self.send_error(404)
            return
        wanted, start = self.headers.get("Range"), 0
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        self.send_response(206 if wanted and server.ranges else 200)
        if wanted and server.ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", '"' + hashlib.md5(data).hexdigest() + '"')
        self.end_headers()
        body = data[start:]
        if server.breaks_at is not None and len(body) > server.breaks_at:
            self.wfile.write(body[: server.breaks_at])
            self.close_connection = True
            return
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        made.daemon_threads = True
        made.files, made.seen, made.breaks_at, made.ranges = {}, [], None, True
        made.url = f"http://127.0.0.1:{made.server_address[1]}/"
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_a_file_is_fetched_once(server, tmp_path):
    server.files["a.bin"] = DATA
    for _ in range(2):
        utils.download_url(server.url + "a.bin", tmp_path, md5=MD5)
    assert (tmp_path / "a.bin").read_bytes() == DATA and os.listdir(tmp_path) == ["a.bin"]
    assert server.seen == [("/a.bin", None)]
    assert utils.check_integrity(tmp_path / "a.bin", MD5) and utils.calculate_md5(tmp_path / "a.bin") == MD5
    assert not utils.check_integrity(tmp_path / "b.bin") and not utils.check_integrity(tmp_path / "a.bin", "0" * 32)


def test_a_connection_that_breaks_off_is_taken_up_where_it_was(server, tmp_path):
    server.files["a.bin"], server.breaks_at = DATA, 200_000
    utils.download_url(server.url + "a.bin", tmp_path, "other.bin", MD5)
    assert (tmp_path / "other.bin").read_bytes() == DATA
    assert [r for _, r in server.seen] == [None, "bytes=200000-", "bytes=400000-"]


def test_a_server_without_ranges_starts_again_and_gives_up_in_the_end(server, tmp_path):
    server.files["a.bin"], server.breaks_at, server.ranges = DATA, 200_000, False
    with pytest.raises(URLError, match="the connection broke off after 200000 of 512000 bytes"):
        utils.download_url(server.url + "a.bin", tmp_path, md5=MD5)
    assert os.listdir(tmp_path) == ["a.bin.part"]
    server.breaks_at = None
    utils.download_url(server.url + "a.bin", tmp_path, md5=MD5)
    assert os.listdir(tmp_path) == ["a.bin"] and utils.check_md5(tmp_path / "a.bin", MD5)


def test_another_process_goes_on_from_what_arrived(server, tmp_path):
    server.files["a.bin"] = DATA
    (tmp_path / "a.bin.part").write_bytes(DATA[:300_000])
    utils.download_url(server.url + "a.bin", tmp_path, md5=MD5)
    assert (tmp_path / "a.bin").read_bytes() == DATA and server.seen == [("/a.bin", "bytes=300000-")]


@pytest.mark.parametrize("part", [b"older" * 1000, DATA + b"more", DATA])
def test_what_is_left_of_an_older_file_is_not_kept(server, tmp_path, part):
    server.files["a.bin"] = DATA
    (tmp_path / "a.bin.part").write_bytes(part)
    utils.download_url(server.url + "a.bin", tmp_path, md5=MD5)
    assert (tmp_path / "a.bin").read_bytes() == DATA and os.listdir(tmp_path) == ["a.bin"]


def test_without_a_checksum_nothing_is_taken_up_from_before(server, tmp_path):
    server.files["a.bin"] = DATA
    (tmp_path / "a.bin.part").write_bytes(b"unknown")
    utils.download_url(server.url + "a.bin", tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == DATA and server.seen == [("/a.bin", None)]


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    server.files["a.bin"] = DATA
    with pytest.raises(RuntimeError, match="File not found or corrupted"):
        utils.download_url(server.url + "a.bin", tmp_path, md5="0" * 32)
    assert os.listdir(tmp_path) == []


def test_mirrors_are_tried_in_order_and_all_named(server, tmp_path):
    server.files |= {"second/a.bin": DATA, "bad/a.bin": b"bad"}
    mirrors = [server.url + f"{n}/a.bin" for n in ("first", "bad", "second")]
    utils.download_url(mirrors, tmp_path, md5=MD5)
    assert [path for path, _ in server.seen] == ["/first/a.bin", "/bad/a.bin", "/second/a.bin"]
    with pytest.raises(fetch.DownloadError) as caught:
        utils.download_url(mirrors[:2], tmp_path, "b.bin", MD5)
    assert str(caught.value) == (
        f"could not fetch b.bin:\n  {mirrors[0]}: HTTP Error 404: Not Found\n  {mirrors[1]}: File not found or corrupted: "
        f"the checksum of what arrived differs.\nTry again, or get it by other ways and put it at {tmp_path / 'b.bin'}"
    )


def test_redirections_are_followed_a_few_times(server, tmp_path):
    server.files |= {"a.bin": DATA, "one": "/a.bin", "loop": "/loop"}
    utils.download_url(server.url + "one", tmp_path, "a.bin", MD5)
    with pytest.raises(URLError, match="redirect"):
        utils.download_url(server.url + "loop", tmp_path, "b.bin", MD5)


def test_without_a_network_it_says_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.MNIST, "mirrors", ["http://127.0.0.1:9/"])
    with pytest.raises(RuntimeError) as caught:
        datasets.MNIST(tmp_path, download=True)
    place = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
    assert str(caught.value).startswith(
        "could not fetch train-images-idx3-ubyte.gz:\n  http://127.0.0.1:9/train-images"
    )
    assert str(caught.value).endswith(f"get it by other ways and put it at {place}")


def test_processes_that_fetch_the_same_file_wait_for_each_other(server, tmp_path):
    server.files["a.bin"], server.breaks_at = DATA, 50_000
    threads = [
        threading.Thread(target=utils.download_url, args=(server.url + "a.bin", tmp_path, None, MD5)) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (tmp_path / "a.bin").read_bytes() == DATA and os.listdir(tmp_path) == ["a.bin"]
    assert len(server.seen) == 11  # the parts of one download


def test_an_archive_is_fetched_and_unpacked(server, tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("folder/a.txt", "text")
    server.files["a.zip"] = file.getvalue()
    md5 = hashlib.md5(file.getvalue()).hexdigest()
    utils.download_and_extract_archive(
        server.url + "a.zip", tmp_path / "down", tmp_path / "up", md5=md5, remove_finished=True
    )
    assert (tmp_path / "up/folder/a.txt").read_text() == "text" and os.listdir(tmp_path / "down") == []


# ---- archives ----


def tar_of(path, mode, *members):
    """Write a tar file of (name, content or None for a folder, link target) and TarInfo."""
    with tarfile.open(path, mode) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o4755
            tar.addfile(info, io.BytesIO(content))


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz"])
def test_tar_archives(tmp_path, suffix):
    mode = {"": "w", "gz": "w:gz", "tgz": "w:gz", "bz2": "w:bz2", "tbz2": "w:bz2", "xz": "w:xz"}[
        suffix.rpartition(".")[2].replace("tar", "")
    ]
    archive = tmp_path / f"a{suffix}"
    tar_of(archive, mode, ("d/x.txt", b"x"), link("d/y.txt", "x.txt"), ("z.txt", b"z"))
    assert utils.extract_archive(str(archive), str(tmp_path / "to")) == str(tmp_path / "to")
    assert (tmp_path / "to/d/y.txt").read_bytes() == b"x" and sorted(os.listdir(tmp_path / "to")) == ["d", "z.txt"]
    assert os.stat(tmp_path / "to/z.txt").st_mode & 0o7000 == 0
    (tmp_path / "to/z.txt").write_bytes(b"older")
    assert utils.extract_archive(archive, tmp_path / "to", remove_finished=True) == tmp_path / "to"
    assert (tmp_path / "to/z.txt").read_bytes() == b"z" and not archive.exists()


@pytest.mark.parametrize("suffix, opened", [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)])
def test_compressed_files(tmp_path, suffix, opened):
    with opened(tmp_path / f"a.bin{suffix}", "wb") as file:
        file.write(DATA)
    assert utils.extract_archive(tmp_path / f"a.bin{suffix}") == tmp_path / "a.bin"
    assert (tmp_path / "a.bin").read_bytes() == DATA


@pytest.mark.parametrize(
    "member",
    [
        ("../evil", b""), ("/evil", b""), ("a/../../evil", b""), ("..\\evil", b""), ("C:\\evil", b""), link("l", "/etc"),
        link("l", "../outside"), link("l", "x/../../y"), link("l", "../evil", tarfile.LNKTYPE), link("f", "", tarfile.FIFOTYPE),
        link("dev", "", tarfile.CHRTYPE),
    ],
)  # fmt: skip
def test_nothing_leaves_the_folder_of_a_tar_archive(tmp_path, member):
    tar_of(tmp_path / "a.tar", "w", ("good", b"good"), member)
    with pytest.raises(RuntimeError, match="which leads out of the folder|which is no file, folder or link"):
        utils.extract_archive(tmp_path / "a.tar", tmp_path / "to")
    assert os.listdir(tmp_path / "to") == [] and sorted(os.listdir(tmp_path)) == ["a.tar", "to"]


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_nothing_leaves_the_folder_of_a_zip_archive(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("good", "good")
        packed.writestr(name, "evil")
    with pytest.raises(RuntimeError, match="which leads out of the folder"):
        utils.extract_archive(tmp_path / "a.zip", tmp_path / "to")
    assert os.listdir(tmp_path / "to") == []


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip", "a.gz", "a.bz2", "a.xz"])
@pytest.mark.parametrize("part", [0, 3, 0.5, 0.9])
def test_a_damaged_archive_leaves_nothing_half_written(tmp_path, name, part):
    content = os.urandom(100_000)
    if ".tar" in name:
        tar_of(tmp_path / name, "w:gz" if name.endswith("gz") else "w", ("one", content), ("two", content))
    elif name == "a.zip":
        with zipfile.ZipFile(tmp_path / name, "w") as packed:
            packed.writestr("one", content)
    else:
        (tmp_path / name).write_bytes({"a.gz": gzip, "a.bz2": bz2, "a.xz": lzma}[name].compress(content))
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(part * len(whole)) if isinstance(part, float) else part])
    try:
        utils.extract_archive(tmp_path / name, tmp_path / "to")
    except RuntimeError as error:
        assert str(error).startswith(f"extract_archive: {tmp_path / name} is damaged or incomplete (")
    else:
        assert part == 0 and name in ("a.gz", "a.bz2", "a.xz"), (
            "damage was not noticed"
        )  # nothing, compressed, is nothing
        return
    assert os.listdir(tmp_path / "to") == []


def test_suffixes_that_are_no_archives():
    with pytest.raises(RuntimeError, match="File 'a' has no suffixes that could be used to detect the archive type"):
        utils.extract_archive("a")
    with pytest.raises(RuntimeError, match="Unknown compression or archive type: '.rar'.\nKnown suffixes are: "):
        utils.extract_archive("a.rar")


def test_arguments_are_checked():
    assert utils.verify_str_arg("a", "split", ("a", "b")) == "a"
    with pytest.raises(ValueError, match=r"^Unknown value 'c' for argument split. Valid values are \{'a', 'b'\}.$"):
        utils.verify_str_arg("c", "split", ("a", "b"))
    with pytest.raises(ValueError, match="^Expected type str for argument split, but got type <class 'int'>.$"):
        utils.verify_str_arg(1, "split")


def test_files_and_folders_are_listed(tmp_path):
    (tmp_path / "a.png").touch()
    (tmp_path / "b.txt").touch()
    (tmp_path / "c").mkdir()
    assert utils.list_dir(tmp_path) == ["c"] and utils.list_files(tmp_path, ".png") == ["a.png"]
    assert utils.list_files(tmp_path, (".png",), prefix=True) == [str(tmp_path / "a.png")]
