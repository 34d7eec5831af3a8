"""Damaged and hostile files: each loads right or raises one kind of error; nothing runs, and memory stays bounded.

The files are made and read in a process of its own, whose memory is limited and which watches for what must not happen.
"""

import contextlib
import io
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

import pytest

COUNTS = {"zip": 1000, "legacy": 500, "safetensors": 1000}
ROOM = 400 << 20  # bytes of address space beyond what the process has when it begins; the files have about 10 KB
FORBIDDEN = (
    "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.forkpty", "subprocess.Popen", "pty.spawn",
    "socket.connect", "os.remove", "os.mkdir", "os.rename", "shutil.rmtree", "ctypes.dlopen", "exec", "compile",
)  # fmt: skip


@pytest.mark.parametrize("kind", COUNTS)
def test_mutated_files_load_right_or_raise(kind):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, __file__, kind, folder], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        counts = dict(part.split("=") for part in done.stdout.split())
        assert int(counts["files"]) >= COUNTS[kind] and int(counts["loaded"]) > 0 and int(counts["refused"]) > 300
        assert os.listdir(folder) == []


# ---- below runs in that process ----


def state():
    import mortice as mt

    weight = mt.arange(600.0).reshape(20, 30)
    return {
        "weight": weight, "part": weight[3:, ::2], "turned": weight.t(), "half": mt.ones(7, dtype=mt.bfloat16),
        "flags": mt.tensor([True, False]), "words": mt.arange(5).to(mt.uint16), "step": mt.tensor(3.5),
        "empty": mt.zeros(0, 3), "nested": [{"lr": 0.1, "betas": (0.9, 0.999)}, None, "text", b"bytes", {1, 2}, 1 << 80],
    }  # fmt: skip


def plain(value):
    """Return what can be compared with ==."""
    if hasattr(value, "tolist"):
        return (str(value.dtype), tuple(value.shape), repr(value.tolist()))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


class Payload:
    """Pickles as a call."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def global_build(module, name, state):
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + pickle.dumps(state, 2)[2:-1] + b"b."


def payloads(folder):
    """Yield pickles that would do harm."""
    import shutil

    command = f"touch {folder}/canary"
    for protocol in range(6):
        for call in [
            Payload(os.system, command), Payload(eval, "__import__('os').mkdir('x')"), Payload(exec, "import os"),
            Payload(subprocess.Popen, ["touch", f"{folder}/canary"]), Payload(shutil.rmtree, folder),
            Payload(open, f"{folder}/canary", "w"), Payload(getattr, os, "system"), Payload(bytearray, 1 << 45),
            Payload(__import__, "antigravity"), Payload(pickle.loads, b"cos\nsystem\n."), Payload(range, 3, 1 << 70),
            Payload(Payload, eval, "1"), Payload(type, "X", (), {}), Payload(map, print, [1]), Payload(io.FileIO, "x", "w"),
        ]:  # fmt: skip
            try:
                yield pickle.dumps({"x": [call]}, protocol)
            except Exception:
                continue
    yield b"cos\nsystem\n(S'" + command.encode() + b"'\ntR."
    yield b"(S'" + command.encode() + b"'\nios\nsystem\n."
    yield b"(cos\nsystem\nS'" + command.encode() + b"'\no."
    yield b"\x80\x02cmortice.serialize\nsave\nK\x01X\x08\x00\x00\x00abcdefgh\x86R."
    yield b"\x80\x02ctorch\nload\nX\x03\x00\x00\x00abc\x85R."
    for name in ("float32", "FloatStorage", "Tensor", "Size", "device"):
        yield global_build("torch", name, (None, {"itemsize": 1, "name": "float64", "numel": 3}))
        yield global_build("torch", name, {"numel": 3})
    yield global_build("torch._utils", "_rebuild_tensor_v2", (None, {"__code__": 1, "function": 2}))
    yield global_build("collections", "OrderedDict", {"items": 3})
    yield b"\x80\x02ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsK\x01sb."
    yield b"\x80\x02}" + b")" + b"2\x86" * 60 + b"K\x01s."  # a key that holds itself twice, sixty times over
    yield b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    yield b"\x80\x02" + b")" + b"\x85" * 100_000 + b"."
    yield b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s."
    yield b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"x."
    yield b"\x80\x05\x96" + struct.pack("<Q", 1 << 62) + b"x."
    yield b"\x80\x02\x8b" + struct.pack("<I", 0xFFFFFFFF) + b"x."
    yield b"\x80\x02" + b"}" * 50_000 + b"."
    yield b"\x80\x02(((((((t."


def rezip(data, change, compression=zipfile.ZIP_STORED):
    """Write an archive anew, with right checksums, after `change(name, bytes)`."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", compression) as new:
        for name in old.namelist():
            changed = change(name, old.read(name))
            if changed is not None:
                new.writestr(name, changed)
    return out.getvalue()


def overlapping(data):
    """Return an archive whose storages are all the same bytes."""
    big, out = bytes(1 << 20), io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        new.writestr("archive/data.pkl", pickled_storages(3000))
        new.writestr("archive/data/0", big)
        info = new.getinfo("archive/data/0")
        for i in range(1, 3000):
            copy = zipfile.ZipInfo(f"archive/data/{i}")
            copy.header_offset, copy.file_size, copy.compress_size, copy.CRC = info.header_offset, 1 << 20, 1 << 20, info.CRC
            new.filelist.append(copy)
            new.NameToInfo[copy.filename] = copy
    return out.getvalue()


def pickled_storages(n, numel=1 << 18, size=1 << 18):
    """Return a pickle of tensors, one a storage."""
    out = [b"\x80\x02]("]
    for i in range(n):
        key = str(i).encode()
        out.append(
            b"ctorch._utils\n_rebuild_tensor_v2\n(((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX"
            + struct.pack("<I", len(key)) + key + b"X\x03\x00\x00\x00cpuJ" + struct.pack("<i", numel)
            + b"tQK\x00J" + struct.pack("<i", size) + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
        )  # fmt: skip
    return b"".join(out) + b"e."


def mutated(data, chance):
    """Return bytes with a few of them changed, moved, lost or repeated."""
    data, kind = bytearray(data), chance.randrange(6)
    at = chance.randrange(len(data))
    if kind == 0:
        del data[at:]
    elif kind == 1:
        for _ in range(chance.randrange(1, 9)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == 2:
        data[at : at + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(9))
    elif kind == 3:
        to = chance.randrange(len(data))
        part = data[at : at + chance.randrange(1, 60)]
        data[to : to + len(part)] = part
    elif kind == 4:
        data[at] = chance.choice(b"\x00\x01\x7f\x80\xff.(})]}RbQctu0e")
    else:
        data[at : at + 4] = struct.pack("<I", chance.choice([0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 20]))
    return bytes(data)


def zip_files(folder):
    """Yield files, each with whether it must load as the original if it loads."""
    import mortice as mt

    buffer = io.BytesIO()
    mt.save(state(), buffer)
    data, chance = buffer.getvalue(), random.Random(1)
    yield data, True
    for change in payloads(folder):
        yield rezip(data, lambda name, old, change=change: change if name.endswith("data.pkl") else old), False
    yield rezip(data, lambda name, old: old, zipfile.ZIP_DEFLATED), True
    bomb = bytes(1 << 26)
    for target in ("data.pkl", "data/0", "byteorder"):
        yield rezip(data, lambda name, old, t=target: bomb if name.endswith(t) else old, zipfile.ZIP_DEFLATED), True
        yield rezip(data, lambda name, old, t=target: None if name.endswith(t) else old), target == "byteorder"
    yield rezip(data, lambda name, old: b"big" if name.endswith("byteorder") else old), False
    yield overlapping(data), False
    for numel, size in ((1 << 30, 1 << 30), (-1, 4), (4, 1 << 30), (4, -1), (0, 0), (4, 4)):
        pickled = pickled_storages(1, numel, size)
        yield rezip(data, lambda name, old, p=pickled: p if name.endswith("data.pkl") else old), False
    while True:
        yield mutated(data, chance), True
        which = chance.choice(["data.pkl", "data.pkl", "data.pkl", "data/0", "data/1"])
        yield rezip(data, lambda name, old, w=which: mutated(old, chance) if name.endswith(w) else old), False


def legacy_files(folder):
    import mortice as mt

    buffer = io.BytesIO()
    mt.save(state(), buffer, _use_new_zipfile_serialization=False)
    data, chance = buffer.getvalue(), random.Random(2)
    head = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    yield data, True
    for payload in payloads(folder):
        yield head + payload + pickle.dumps([], 2), False
    yield data.replace(b"little_endian\x88", b"little_endian\x89"), True
    yield head + pickle.dumps([], 2) + pickle.dumps(["0"], 2) + struct.pack("<q", 1 << 60), False
    while True:
        yield mutated(data, chance), False


def safetensors_files(folder):
    from mortice.utils import safetensors

    tensors = {k: v.clone() for k, v in state().items() if hasattr(v, "shape")}
    data, chance = safetensors.save(tensors, {"format": "pt"}), random.Random(3)
    n = int.from_bytes(data[:8], "little")
    yield data, True
    for header in [
        b"[" * 100_000, b'{"a":' * 50_000, b'{"a":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', b'{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}', b"{}", b"null", b'"x"', b"", b"\xff\xfe", b"{" * 9,
        b'{"a":{"dtype":"U8","shape":[true,4],"data_offsets":[0,4]}}', b'{"a":{"dtype":[],"shape":[4],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"U8","shape":' + str([1] * 100).encode() + b',"data_offsets":[0,1]}}',
        b'{"__metadata__":{"a":1}}', b'{"__metadata__":3}', b'{"a":3}', b'{"a":{"dtype":"U8","shape":[0,1e400],"data_offsets":[0,0]}}',
        b'{"a":{"dtype":"F32","shape":[0,4611686018427387904,3],"data_offsets":[0,0]}}',
    ]:  # fmt: skip
        for tail in (b"", bytes(1), bytes(4)):
            yield len(header).to_bytes(8, "little") + header + tail, False
    for length in (0, 1, n - 1, n + 1, 1 << 20, 1 << 40, (1 << 64) - 1):
        yield length.to_bytes(8, "little") + data[8:], False
    while True:
        yield mutated(data, chance), False
        yield data[:8] + mutated(data[8 : 8 + n], chance)[:n].ljust(n) + data[8 + n :], False


def main(kind, folder):
    import resource

    import mortice as mt
    import mortice.methods.typed  # these are imported now, so that loading imports nothing
    import mortice.nn
    import mortice.serialize.objects
    from mortice.backends import plugins
    from mortice.serialization import UnpicklingError
    from mortice.utils import safetensors

    for name in plugins.list_backends():  # nor a backend: a file may name the device of any
        with contextlib.suppress(mt.errors.BackendNotFound):
            plugins.load(name)
    for coding in ("cp437", "raw_unicode_escape", "unicode_escape", "latin1", "ascii"):  # the library's own imports
        "x".encode(coding).decode(coding)
    os.chdir(folder)
    files = {"zip": zip_files, "legacy": legacy_files, "safetensors": safetensors_files}[kind](folder)
    errors = safetensors.SafetensorError if kind == "safetensors" else UnpicklingError
    watched = []

    def load(data):
        if kind == "safetensors":
            return safetensors.load(data)
        return mt.load(io.BytesIO(data), weights_only=None if len(data) % 2 else False)

    def watch(event, args):
        if watched and (event in FORBIDDEN or (event == "open" and args[1] not in (None, "r", "rb"))):
            watched.append((event, args))

    original = plain(load(next(files)[0]))
    sys.addaudithook(watch)
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = {"files": 0, "loaded": 0, "refused": 0}
    for data, exact in files:
        count["files"] += 1
        watched[:] = [None]
        try:
            found = load(data)
        except errors as error:
            text = str(error)
            assert text.startswith(("load: ", "safetensors: ")) and "MemoryError" not in text, text[:500]
            count["refused"] += 1
        except RuntimeError as error:  # the name of a device was changed
            assert type(error) is RuntimeError and "Pass map_location='cpu'" in str(error), error
            count["refused"] += 1
        else:
            count["loaded"] += 1
            if exact:
                assert plain(found) == original, (count, plain(found))
            del found
        assert watched == [None], watched[1][:500]
        watched.clear()
        if count["files"] >= COUNTS[kind]:
            break
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 << 10, f"{grown} KB"
    print(*(f"{k}={v}" for k, v in count.items()), f"kilobytes={grown}")


if __name__ == "__main__":
    main(*sys.argv[1:])
