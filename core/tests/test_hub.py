"""Weights fetched from a real server by their address, and models of a folder with a `hubconf.py`."""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

import mortice as mt
from mortice import hub

CONF = '''
dependencies = ["math"]
from beside import Net as _Net

def net(width, bias=True):
    """A layer of some width."""
    return _Net(width, bias)
'''


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Serve a folder with a state dict, whose name ends in the start of its checksum."""
    folder, seen = tmp_path / "served", []
    folder.mkdir()
    mt.save({"weight": mt.arange(6.0).reshape(2, 3)}, folder / "net.pth")
    checksum = hashlib.sha256((folder / "net.pth").read_bytes()).hexdigest()[:8]
    (folder / "net.pth").rename(folder / f"net-{checksum}.pth")
    (folder / "other-00000000.pth").write_bytes(b"not it")
    handler = type("Noting", (SimpleHTTPRequestHandler,), {"log_message": lambda self, *args: seen.append(self.path)})
    monkeypatch.setenv("MORTICE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hub, "_chosen", None)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_address[1]}/", name=f"net-{checksum}.pth", seen=seen)
        server.shutdown()
        thread.join()


def test_a_state_dict_is_fetched_once_and_kept(served, tmp_path) -> None:
    for check in (True, False):
        state = hub.load_state_dict_from_url(served.url + served.name + "?download=1", check_hash=check, weights_only=True)
        assert state["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert len(served.seen) == 1
    assert (tmp_path / "home/checkpoints" / served.name).is_file() and hub.get_dir() == str(tmp_path / "home")
    from mortice.utils.model_zoo import load_url

    load_url(served.url + served.name, model_dir=str(tmp_path / "own"), file_name="mine.pth")
    assert (tmp_path / "own/mine.pth").is_file()
    hub.set_dir(tmp_path / "chosen")
    hub.load_state_dict_from_url(served.url + served.name)
    assert (tmp_path / "chosen/checkpoints" / served.name).is_file()


def test_a_file_with_another_checksum_is_refused(served, tmp_path) -> None:
    with pytest.raises(RuntimeError, match="the checksum of what arrived differs"):
        hub.load_state_dict_from_url(served.url + "other-00000000.pth", check_hash=True)
    (tmp_path / "kept").write_text("what was there")
    with pytest.raises(RuntimeError, match="the checksum of what arrived differs"):
        hub.download_url_to_file(served.url + served.name, tmp_path / "kept", hash_prefix="ffff0000")
    assert (tmp_path / "kept").read_text() == "what was there"
    hub.download_url_to_file(served.url + served.name, tmp_path / "kept", hash_prefix=served.name[4:12])
    assert mt.load(tmp_path / "kept")["weight"].shape == (2, 3)
    assert not any(path.name.startswith("kept.") for path in tmp_path.iterdir())


def test_what_is_not_there_is_an_error(served, tmp_path) -> None:
    with pytest.raises(RuntimeError, match="could not fetch nothing.pth(.|\n)*404"):
        hub.load_state_dict_from_url(served.url + "nothing.pth")
    assert not (tmp_path / "home/checkpoints/nothing.pth").exists()


def test_models_of_a_folder(tmp_path) -> None:
    (tmp_path / "hubconf.py").write_text(CONF)
    (tmp_path / "beside.py").write_text("from mortice import nn\n\ndef Net(n, bias):\n    return nn.Linear(n, 1, bias)\n")
    assert hub.list(tmp_path) == ["net"] and hub.help(tmp_path, "net") == "A layer of some width."
    made = hub.load(tmp_path, "net", 3, bias=False, source="local")
    assert made.weight.shape == (1, 3) and made.bias is None
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(tmp_path, "other", source="local")
    with pytest.raises(RuntimeError, match="is written for `import torch`. Clone it"):
        hub.load("someone/something", "net")
    with pytest.raises(ValueError, match="Unknown source: 'web'"):
        hub.load(tmp_path, "net", source="web")
    with pytest.raises(FileNotFoundError, match="no hubconf.py in"):
        hub.load(tmp_path / "nowhere", "net", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['a_library_that_is_not_there']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: a_library_that_is_not_there"):
        hub.list(tmp_path)
