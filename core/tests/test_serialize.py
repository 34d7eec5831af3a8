"""save and load: round trips, shared memory, places, files that are replaced as a whole, and what is refused.

Damaged and hostile files in number are in `test_serialize_hostile`, PyTorch's in `test_serialize_oracle`.
"""

import io
import os
import pathlib
import pickle
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
import zipfile
from collections import Counter, OrderedDict

import pytest
from checkpoint_files import repickled, round_trip

import mortice as mt
from mortice import nn
from mortice.serialization import UnpicklingError, add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from mortice.serialize import legacy
from mortice.utils import safetensors

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
          "complex128", "uint16", "uint32", "uint64"]  # fmt: skip


formats = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before 1.6"])


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_come_back_bit_for_bit(name, shape):
    x = (mt.arange(6)[: 6 if shape == (2, 3) else 1 if shape == () else 0].reshape(shape)).to(getattr(mt, name))
    y = round_trip(x)
    assert y.dtype is x.dtype and y.shape == x.shape and y.tolist() == x.tolist()


def test_containers_and_plain_values_come_back():
    obj = OrderedDict(a=[1, 2.5, None, "text", (True, b"bytes")], b={"lr": 0.1, 3: {1, 2}}, c=mt.float64, d=mt.Size([1, 2]))
    assert round_trip(obj) == obj


@pytest.mark.parametrize("write", [pickle.dumps, lambda t: mt.save(t, io.BytesIO())])
def test_hooks_that_a_file_does_not_keep_are_told_of(write):
    x, known, layer = mt.ones(2, requires_grad=True), mt.ones(2, requires_grad=True), mt.nn.Linear(1, 1).weight
    x.register_hook(lambda g: g)
    layer.register_hook(lambda g: g)
    known.register_hook(mt.utils.hooks.unserializable_hook(lambda g: g))
    with pytest.warns(UserWarning, match="backward hook .* will not be serialized"):
        write(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write([known, layer, x.detach()])


def test_the_version_in_a_checkpoint_comes_back():
    buffer = io.BytesIO()
    mt.save({"version": mt.__version__}, buffer)
    found = mt.load(io.BytesIO(buffer.getvalue()))["version"]
    assert found == mt.__version__ and found > "2.9"


def test_a_model_and_its_optimizer_come_back(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = mt.optim.Adam(model.parameters())
    model(mt.ones(2, 3)).sum().backward()
    optimizer.step()
    mt.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c.pt")
    loaded = mt.load(tmp_path / "c.pt")
    other = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    other.load_state_dict(loaded["model"])
    assert all(a.tolist() == b.tolist() for a, b in zip(model.parameters(), other.parameters()))
    assert loaded["optimizer"]["state"][0]["exp_avg"].tolist() == optimizer.state_dict()["state"][0]["exp_avg"].tolist()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    mt.save({"a": 1}, path)
    before = path.read_bytes()
    with pytest.raises(Exception, match="pickle"):
        mt.save({"a": lambda: None}, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.pt"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        mt.save(1, tmp_path / "nowhere" / "x.pt")


# ---- shared memory ----


@formats
def test_views_come_back_sharing_memory(zipped):
    x = mt.arange(24.0).reshape(4, 6)
    sent = {"row": x[1], "x": x, "turned": x.t(), "part": x[1:3, 2:5], "step": x[:, ::2], "wide": x[:1].expand(3, 6),
            "detached": x[2:].detach(), "same": x, "parameter": nn.Parameter(x[0])}  # fmt: skip
    got = round_trip(sent, zipped)
    assert got["same"] is got["x"] and all(got[k].stride() == v.stride() for k, v in sent.items())
    got["x"].mul_(2)
    assert all(got[k].tolist() == (v * 2).tolist() for k, v in sent.items())
    assert all(t._base is None and t.is_leaf for t in got.values())
    alone = round_trip({"a": mt.ones(2), "b": mt.ones(2)}, zipped)
    alone["a"].fill_(5)
    assert alone["b"].tolist() == [1, 1]


@formats
def test_views_of_memory_that_nobody_shows_whole_come_back_sharing(zipped):
    x = mt.arange(40.0).reshape(5, 8)
    left, right = x[:, :3], x[:, 4:]
    row, first, turned = right[1], x[0, :2], mt.arange(6).reshape(2, 3).t()
    del x
    got = round_trip([left, right, row, first, turned, turned[0]], zipped)
    for a, b in zip(got, [left, right, row, first, turned, turned[0]]):
        assert a.tolist() == b.tolist() and a.stride() == b.stride()
    got[1].fill_(-1)
    assert got[2].tolist() == [-1] * 4 and got[0].tolist() == left.tolist()


def test_tied_weights_stay_tied(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

    mt.save(Tied().state_dict(), tmp_path / "c.pt")
    got = mt.load(tmp_path / "c.pt")
    got["a.weight"].fill_(2)
    assert got["b.weight"].tolist() == [[2.0] * 3] * 3
    assert os.path.getsize(tmp_path / "c.pt") < 3000


def test_rows_are_written_where_memory_has_no_such_strides():
    x = mt.arange(6).reshape(2, 3)
    got = round_trip([x[::-1], x, x.flip(0)])
    assert [t.tolist() for t in got] == [x[::-1].tolist(), x.tolist(), x.flip(0).tolist()]


def test_a_backend_without_addresses_saves_and_loads():
    with mt.use_backend("strict"):
        w = mt.arange(6.0).reshape(2, 3)
        got = round_trip({"w": w, "t": w.t(), "same": w.detach(), "p": nn.Parameter(w)})
        assert got["t"].tolist() == w.t().tolist() and got["w"].device == w.device
        got["w"].fill_(1)
        assert got["same"].tolist() == [[1] * 3] * 2
        buffer = io.BytesIO()
        mt.save({"w": w.t()}, buffer)
    buffer.seek(0)
    assert mt.load(buffer, map_location="cpu")["w"].device == mt.device("cpu")


# ---- where tensors go ----


def relabelled(location):
    """Return a file whose tensor was on another device."""
    buffer, out = io.BytesIO(), io.BytesIO()
    mt.save({"x": mt.arange(3.0, device="cpu")}, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            word = b"X" + len(location).to_bytes(4, "little") + location.encode()
            new.writestr(name, data.replace(b"X\x03\0\0\0cpu", word))
    out.seek(0)
    return out


def test_map_location_is_a_device_a_dict_or_a_function():
    seen = []

    def keep(storage, location):
        seen.append((location, len(storage), storage.device))
        return storage

    for where in ("cpu", mt.device("cpu"), {"cuda:7": "cpu"}, {"cuda:7": mt.device("cpu")}, keep, lambda s, l: s.cpu(),
                  lambda s, l: "cpu"):  # fmt: skip
        assert mt.load(relabelled("cuda:7"), map_location=where)["x"].tolist() == [0, 1, 2]
    assert seen == [("cuda:7", 12, mt.zeros(1).device)]
    for options in ({}, {"map_location": {"cuda:1": "cpu"}}, {"map_location": lambda s, l: None}):
        with pytest.raises(RuntimeError, match="cuda:7"):
            mt.load(relabelled("cuda:7"), **options)
    with pytest.raises(RuntimeError, match="were on 'cuda:7', which is not here .* Pass map_location='cpu'."):
        mt.load(relabelled("cuda:7"))
    with pytest.raises(ZeroDivisionError):  # the caller's own error stays what it is
        mt.load(relabelled("cuda:7"), map_location=lambda s, l: 1 / 0)


def test_the_default_device_does_not_move_what_is_loaded():
    buffer, here = io.BytesIO(), mt.zeros(1).device
    mt.save(mt.ones(2, device="cpu"), buffer)
    buffer.seek(0)
    with mt.device("strict:1"):
        assert mt.load(buffer).device == here


# ---- files ----


def test_paths_files_and_buffers(tmp_path):
    class Only:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)
            return len(data)

    class Stingy(io.RawIOBase):
        """Takes and gives a few bytes at a time, as sockets and pipes may."""

        def __init__(self, data=b""):
            self.inner = io.BytesIO(data)

        def writable(self):
            return True

        def write(self, data):
            return self.inner.write(bytes(data[:7]))

        def readinto(self, into):
            return self.inner.readinto(memoryview(into)[:1000])

        def read(self, n=-1):
            return self.inner.read(n)

        def seek(self, *args):
            return self.inner.seek(*args)

        def tell(self):
            return self.inner.tell()

        readable = seekable = writable

    x = mt.arange(5000.0)
    only, stingy = Only(), Stingy()
    mt.save(x, only)
    mt.save(x, stingy)
    assert only.data == stingy.inner.getvalue()
    assert mt.load(Stingy(only.data)).tolist() == x.tolist()
    for path in (str(tmp_path / "a.pt"), pathlib.Path(tmp_path / "b.pt")):
        mt.save(x, path)
        assert mt.load(path).tolist() == x.tolist() and mt.load(path, mmap=True).tolist() == x.tolist()
    with open(tmp_path / "c.pt", "wb", buffering=0) as file:
        mt.save(x, file)
    with open(tmp_path / "c.pt", "rb") as file:
        assert mt.load(file).tolist() == x.tolist()
    for wrong in (3, None):
        with pytest.raises(AttributeError, match="expected a path or a file opened for"):
            mt.save(x, wrong)
        with pytest.raises(AttributeError, match="expected a path or a file opened for"):
            mt.load(wrong)


@pytest.mark.parametrize("zipped", [True, False])
def test_what_a_file_object_could_not_read_is_told_as_it_was(zipped):
    class Failing(io.BytesIO):
        def read(self, *size):
            raise TimeoutError("the disk is slow")

        readline = readinto = read

    buffer = io.BytesIO()
    mt.save(mt.ones(3), buffer, _use_new_zipfile_serialization=zipped)
    with pytest.raises(TimeoutError, match="the disk is slow"):
        mt.load(Failing(buffer.getvalue()))


@pytest.mark.parametrize("write", [mt.save, safetensors.save_file], ids=["save", "safetensors"])
def test_links_modes_and_devices_are_respected(tmp_path, write):
    real, link = tmp_path / "real", tmp_path / "link"
    write({"x": mt.ones(1)}, real)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~mask
    real.chmod(0o640)
    link.symlink_to(real)
    write({"x": mt.ones(3)}, link)
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]
    before = os.stat("/dev/null")
    write({"x": mt.ones(3)}, "/dev/null")
    assert os.stat("/dev/null").st_ino == before.st_ino and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError):
        write({"x": mt.ones(3)}, tmp_path)


CRASH = """
    import os, resource, signal, sys
    import mortice as mt
    from mortice.utils import safetensors
    path, how, kind = sys.argv[1:]
    if how == "full disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    else:
        os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
    save = mt.save if kind == "save" else safetensors.save_file
    save({"x": mt.zeros(1_000_000)}, path)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX")
@pytest.mark.parametrize("kind", ["save", "safetensors"])
@pytest.mark.parametrize("how", ["full disk", "killed"])
def test_a_crash_in_the_middle_leaves_the_old_file(tmp_path, how, kind):
    path = tmp_path / "x.pt"
    (mt.save if kind == "save" else safetensors.save_file)({"a": mt.ones(2)}, path)
    before = path.read_bytes()
    script = textwrap.dedent(CRASH)
    done = subprocess.run([sys.executable, "-c", script, path, how, kind], capture_output=True, text=True, timeout=60)
    assert done.returncode == (1 if how == "full disk" else -signal.SIGKILL)
    assert path.read_bytes() == before
    if how == "full disk":
        assert "File too large" in done.stderr and os.listdir(tmp_path) == ["x.pt"]


def test_saving_and_loading_need_little_more_memory_than_one_tensor(tmp_path):
    state = {str(i): mt.zeros(500_000) for i in range(8)}  # 2 MB each
    tracemalloc.start()
    try:
        mt.save(state, tmp_path / "c.pt")
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
        tracemalloc.reset_peak()
        got = mt.load(tmp_path / "c.pt")
        assert tracemalloc.get_traced_memory()[1] < 19 << 20
        assert got["7"].sum().item() == 0
    finally:
        tracemalloc.stop()


@pytest.mark.needs("sharing")
def test_a_mapped_file_takes_no_memory(tmp_path):
    mt.save({str(i): mt.zeros(500_000) for i in range(8)}, tmp_path / "c.pt")
    tracemalloc.start()
    try:
        got = mt.load(tmp_path / "c.pt", mmap=True)
        assert tracemalloc.get_traced_memory()[1] < 3 << 20 and got["7"].sum().item() == 0
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("device", ["cpu", "strict:0"])
def test_memory_that_went_to_a_device_can_still_be_seen_as_another_dtype(device):
    read = mt.serialize.reading.Storage(bytearray(mt.tensor([1.0, 2.0]).cpu()._host().tobytes())).to(device)
    assert read.tensor(mt.float32, 0, (2,), (1,)).tolist() == [1, 2] and len(read) == 8
    assert read.tensor(mt.int32, 1, (1,), (1,)).tolist() == [0x40000000] and read.to("cpu").tensor(mt.uint8, 7, (), ()).item() == 0x40


def test_equal_objects_give_equal_files():
    def made():
        buffer = io.BytesIO()
        mt.save({"x": mt.arange(3), "y": [1.5, None]}, buffer)
        return buffer.getvalue()

    assert made() == made()


# ---- what is refused, and what can be allowed ----


class Settings:
    def __init__(self, depth):
        self.depth = depth

    def __eq__(self, other):
        return self.depth == other.depth

    __hash__ = None


class Slotted:
    __slots__ = ("a",)


def doubled(x):
    return 2 * x


class Deferred:
    def __reduce__(self):
        return doubled, (21,)


def test_what_is_no_weight_is_refused_in_pytorchs_words_unless_the_environment_asks_for_all(monkeypatch, tmp_path):
    path, layer = tmp_path / "layer.pt", mt.nn.Linear(2, 1)
    mt.save(layer, path)
    words = r"Weights only load failed\..*GLOBAL \S+Linear was not an allowed global by default"
    with pytest.raises(UnpicklingError, match=words):
        mt.load(path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert mt.equal(mt.load(path).weight, layer.weight)
    with pytest.raises(UnpicklingError, match=words):  # what was said counts
        mt.load(path, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD`"):
        mt.load(path)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(UnpicklingError, match=words):
        mt.load(path, weights_only=False)


@pytest.mark.parametrize("weights_only", [None, True, False])
def test_other_classes_are_refused_until_they_are_allowed(weights_only):
    slotted = Slotted()
    slotted.a = 1
    for value in (Deferred(),) if weights_only is False else (Settings(3), slotted, Deferred()):
        text = r"the file asks for \S*(Settings|Slotted|doubled), .*add_safe_globals|the file calls 'doubled'"
        with pytest.raises(UnpicklingError, match=text):
            round_trip({"x": value}, weights_only=weights_only)
    with safe_globals([Settings, Slotted, doubled]):
        assert round_trip(Settings(3), weights_only=weights_only) == Settings(3)
        assert round_trip(slotted, weights_only=weights_only).a == 1
        assert round_trip(Deferred(), weights_only=weights_only) == 42
    with pytest.raises(UnpicklingError):
        round_trip(Deferred(), weights_only=weights_only)


def test_what_reaches_the_system_is_refused_although_it_was_allowed():
    with safe_globals([os.mkdir]), pytest.raises(UnpicklingError, match=r"unsupported GLOBAL (posix|nt)\.mkdir whose module"):
        round_trip(os.mkdir, weights_only=True)


def test_the_list_of_allowed_names():
    assert get_safe_globals() == []
    add_safe_globals([Settings, (doubled, "old.name")])
    try:
        assert get_safe_globals() == [Settings, (doubled, "old.name")]
        with safe_globals([Slotted]):
            assert len(get_safe_globals()) == 3
        assert len(get_safe_globals()) == 2
    finally:
        clear_safe_globals()
    assert get_safe_globals() == []
    for wrong in (3, (Settings, 3), (Settings,)):
        with pytest.raises(ValueError, match="add_safe_globals: expected"):
            add_safe_globals([wrong])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 3), nn.BatchNorm1d(3)])
        self.activation = nn.functional.relu
        self.config = {"sizes": mt.Size([1, 2]), "dtype": mt.float16}
        self.register_buffer("count", mt.zeros(1), persistent=False)

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


@formats
def test_whole_modules_are_read_when_asked_for(zipped):
    net = Net().eval()
    net.alias = net.layers[0].weight
    for refused in ({}, {"weights_only": True}):
        with pytest.raises(UnpicklingError, match="or read modules and plain objects with weights_only=False"):
            round_trip(net, zipped, **refused)
    got = round_trip(net, zipped, weights_only=False)
    x = mt.randn(4, 2)
    assert type(got) is Net and got(x).tolist() == net(x).tolist() and not got.training
    assert got.alias is got.layers[0].weight and isinstance(got.alias, nn.Parameter)
    assert list(got.state_dict()) == list(net.state_dict()) and got.config == net.config and got.count.tolist() == [0]


@pytest.mark.parametrize("weights_only", [True, False])
def test_no_code_is_executed_and_nothing_of_ours_is_changed(tmp_path, weights_only):
    class Evil:
        def __init__(self, *call):
            self.call = call

        def __reduce__(self):
            return self.call

    def state_of(name, state):
        return b"\x80\x02c" + name + b"\n" + pickle.dumps(state, 2)[2:-1] + b"b."

    made = tmp_path / "made"
    for data, text in [
        (pickle.dumps(Evil(os.mkdir, (str(made),)), 2), "asks for (posix|nt).mkdir"),
        (pickle.dumps(Evil(eval, ("1",)), 2), "asks for builtins.eval"),
        (b"\x80\x02cmortice.serialize\nsave\nK\x01X\x01\0\0\0a\x86R.", "asks for mortice.serialize.save"),
        (b"\x80\x02cmortice.ops.unary\nexp\nK\x01\x85R.", "asks for mortice.ops.unary.exp|calls 'exp'"),
        (b"\x80\x02cmortice.nn.modules\nLinear\n)R.", "asks for|calls"),
        (state_of(b"torch\nfloat32", (None, {"itemsize": 1})), "gives state to a DType"),
        (state_of(b"torch\nTensor", {"numel": 1}), "gives state to a type"),
        (state_of(b"torch._utils\n_rebuild_tensor_v2", {"function": 1}), "gives state to a Known"),
        (state_of(b"collections\nOrderedDict", {"a": 1}), "gives state to a Known"),
        (b"\x80\x02ccollections\nOrderedDict\n)R}X\x05\0\0\0itemsK\x01sb.", "sets the attribute 'items' of a OrderedDict"),
        (b"\x80\x02}]K\x01s.", "a list cannot be a key"),
        (b"\x80\x02})" + b"2\x86" * 60 + b"K\x01s.", "a key has more than 1000 parts"),
        (b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.", "a bytearray is made of bytes"),
        (b"\x80\x02K\x01K\x02a.", "appends to a int"), (b"\x80\x02K\x01K\x02K\x03s.", "sets items of a int"),
        (b"\x80\x02(K\x01\x90.", "damaged|adds to"), (b"\x80\x02P1\n.", "an instruction b'P'"), (b"\x80\x02", "no end"),
    ]:  # fmt: skip
        with pytest.raises(UnpicklingError, match=text):
            mt.load(repickled(data), weights_only=weights_only)
    assert not made.exists() and mt.float32.itemsize == 4 and mt.float32.name == "float32"
    assert round_trip(mt.ones(2)).tolist() == [1, 1]


def test_foreign_files_are_told_apart(tmp_path):
    with pytest.raises(UnpicklingError, match="expected a checkpoint of PyTorch or mortice; 'BytesIO' is none"):
        mt.load(io.BytesIO(b"not a checkpoint"))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        new.writestr("a/constants.pkl", b"")
        new.writestr("a/data.pkl", pickle.dumps(1, 2))
    for error in UnpicklingError, EOFError:  # PyTorch's is an EOFError
        with pytest.raises(error, match=r"call .seek\(0\) first"):
            mt.load(out)
    out.seek(0)
    with pytest.raises(UnpicklingError, match="TorchScript program"):
        mt.load(out)
    with pytest.raises(FileNotFoundError):
        mt.load(tmp_path / "none.pt")
    with pytest.raises(RuntimeError, match="files are read without pickle"):
        mt.load(out, pickle_module=zipfile)
    with pytest.raises(ValueError, match="in order to use mmap"):
        mt.load(out, mmap=True)
    with pytest.raises(ValueError, match="pickle_protocol from 2 to 5; got 1"):
        mt.save(1, out, pickle_protocol=1)
    with pytest.raises(TypeError, match="unexpected arguments colour"):
        mt.load(out, colour=1)


def test_text_of_python_2_is_read():
    data = b"\x80\x02U\x02a\xe4."
    assert mt.load(repickled(data), encoding="latin1") == "aä" and mt.load(repickled(data), encoding="bytes") == b"a\xe4"
    assert mt.load(repickled(pickle.dumps([{1}, frozenset([2]), Counter("aab"), range(3), 1j, bytearray(b"x")], 2))) == [
        {1}, {2}, Counter("aab"), range(3), 1j, bytearray(b"x")]  # fmt: skip


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", "bytes"])
def test_tensors_beside_text_of_python_2_are_read(encoding, weights_only):
    key, text = b"U\x0217", "ż".encode()
    parts = [pickle.dumps(part, 2) for part in (legacy._MAGIC, legacy._VERSION, legacy._SYSTEM)]
    parts += [b"\x80\x02](U\x02", text, b"ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\n", key]
    parts += [b"U\x03cpuK\x02NtQK\x00K\x02\x85K\x01\x85\x89NtRe.", b"\x80\x02](", key, b"e.", struct.pack("<qff", 2, 1.5, 2.5)]
    read, tensor = mt.load(io.BytesIO(b"".join(parts)), encoding=encoding, weights_only=weights_only)
    assert (read, tensor.tolist()) == (text if encoding == "bytes" else "ż", [1.5, 2.5])


# ---- safetensors ----


def test_safetensors_come_back(tmp_path):
    x = mt.arange(12.0).reshape(3, 4)
    sent = {"x": x, "t": x.clone().t(), "bf": mt.ones(3, dtype=mt.bfloat16), "e": mt.zeros(0, 2), "s": mt.tensor(2)}
    sent["p"] = nn.Parameter(x * 2)
    safetensors.save_file(sent, tmp_path / "a.safetensors", metadata={"epoch": "1"})
    for got in (safetensors.load_file(tmp_path / "a.safetensors"), safetensors.load(safetensors.save(sent))):
        assert {k: (v.tolist(), v.dtype, v.shape) for k, v in got.items()} == {
            k: (v.tolist(), v.dtype, v.shape) for k, v in sent.items()
        }
    with safetensors.safe_open(tmp_path / "a.safetensors") as file:
        assert file.keys() == ["bf", "e", "p", "s", "t", "x"] and file.metadata() == {"epoch": "1"}
        assert file.get_tensor("s").item() == 2
        with pytest.raises(safetensors.SafetensorError, match="has no tensor 'q'; it has bf, e"):
            file.get_tensor("q")
    assert int.from_bytes(safetensors.save(sent)[:8], "little") % 8 == 0


def test_safetensors_refuse_what_they_cannot_hold(tmp_path):
    x = mt.arange(4.0)
    for bad, error, text in [
        ({"a": x, "b": x[1:]}, RuntimeError, r"Some tensors share memory.*\['a', 'b'\]"),
        ({"a": x, "b": x}, RuntimeError, "Some tensors share memory"),
        ({1: x}, ValueError, "expected a dict of names and tensors; got 1"), ({"a": 3}, ValueError, "got 'a': int"),
        ({"__metadata__": x}, ValueError, "got '__metadata__'"), ([x], ValueError, "got list"),
        ({"a": x.to(mt.complex128)}, ValueError, "the format has no complex128"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            safetensors.save_file(bad, tmp_path / "a")
    with pytest.raises(ValueError, match="expected metadata to be a dict of texts"):
        safetensors.save({"a": x}, {"a": 1})
    assert os.listdir(tmp_path) == []
    got = safetensors.load(safetensors.save({"a": x[:2], "b": x[2:]}))  # parts that do not overlap are fine
    assert got["a"].tolist() == [0, 1] and got["b"].tolist() == [2, 3]


def test_damaged_safetensors_say_what_is_wrong():
    def file(header, data=b""):
        return len(header).to_bytes(8, "little") + header + data

    entry = b'{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}'
    for data, text in [
        (b"", "a header of 0 bytes in a file of 0"), ((1 << 60).to_bytes(8, "little"), "a header of"),
        (file(b"[]"), "no header"), (file(b"{"), "the header cannot be read"),
        (file(b'{"a":' + entry % (0, 4) + b"}"), "the tensors have 4 bytes, the file has 0"),
        (file(b'{"a":' + entry % (4, 8) + b"}", bytes(8)), "'a' begins at 4, 0 was expected"),
        (file(b'{"a":' + entry % (0, 4) + b',"b":' + entry % (0, 4) + b"}", bytes(4)), "'b' begins at 0, 4 was expected"),
        (file(b'{"a":' + entry % (0, 4) + b',"a":' + entry % (0, 4) + b"}", bytes(4)), "a name appears twice"),
        (file(b'{"a":' + entry % (0, 8) + b"}", bytes(8)), "does not fill its place"),
        (file(b'{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}}', b"x"), "the dtype 'F4', which mortice does not have"),
    ]:  # fmt: skip
        with pytest.raises(safetensors.SafetensorError, match=text):
            safetensors.load(data)


# ---- storages ----


@pytest.mark.needs("addresses")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@formats
def test_a_storage_comes_back_and_shares_its_memory(zipped):
    x = mt.arange(10.0)
    storage, part = round_trip([x.storage(), x[3:5]], zipped)
    assert isinstance(storage, mt.TypedStorage) and storage.dtype is mt.float32 and storage.tolist() == list(range(10))
    part.fill_(7.0)
    assert storage[4] == 7 and storage.data_ptr() == part.data_ptr() - 12
    assert storage.clone().tolist() == storage.tolist() and mt.Tensor(storage).tolist() == storage.tolist()
    again = round_trip(storage, zipped)
    assert again.tolist() == storage.tolist()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@formats
def test_a_storage_of_bytes_and_an_empty_one_come_back(zipped):
    x = mt.tensor([1, -2], dtype=mt.int16)
    found, empty = round_trip([x.untyped_storage(), mt.zeros(0).storage()], zipped)
    assert found.dtype is mt.uint8 and found.tolist() == [1, 0, 254, 255] and empty.tolist() == []


@formats
def test_what_is_saved_to_an_open_file_can_be_read_by_its_name(zipped, tmp_path):
    with open(tmp_path / "a.pt", "wb") as file:
        mt.save(mt.arange(3), file, _use_new_zipfile_serialization=zipped)
        assert mt.load(tmp_path / "a.pt").tolist() == [0, 1, 2]
