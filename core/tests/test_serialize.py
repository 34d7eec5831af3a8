"""save and load: round trips, PyTorch's files in both directions, and files that are damaged or hostile."""

import io
import os
import pickle
import random
from collections import OrderedDict

import pytest

import mortice as mt
from mortice import nn

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"]


def round_trip(obj):
    buffer = io.BytesIO()
    mt.save(obj, buffer)
    buffer.seek(0)
    return mt.load(buffer)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_come_back_bit_for_bit(name, shape):
    x = (mt.arange(6)[: 6 if shape == (2, 3) else 1 if shape == () else 0].reshape(shape)).to(getattr(mt, name))
    y = round_trip(x)
    assert y.dtype is x.dtype and y.shape == x.shape and y.tolist() == x.tolist()


def test_containers_and_plain_values_come_back():
    obj = OrderedDict(a=[1, 2.5, None, "text", (True, b"bytes")], b={"lr": 0.1, 3: {1, 2}}, c=mt.float64, d=mt.Size([1, 2]))
    assert round_trip(obj) == obj


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


def test_no_code_is_executed(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    buffer = io.BytesIO()
    mt.save({"x": mt.ones(1)}, buffer)
    import zipfile

    hostile = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(buffer.getvalue())) as old, zipfile.ZipFile(hostile, "w") as new:
        for name in old.namelist():
            new.writestr(name, pickle.dumps(Evil(), 2) if name.endswith("data.pkl") else old.read(name))
    hostile.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="the file asks for posix.mkdir|nt.mkdir"):
        mt.load(hostile)
    assert not (tmp_path / "made").exists()


def test_damaged_files_raise_one_clear_error():
    buffer = io.BytesIO()
    mt.save({"w": mt.arange(100).float(), "n": 3}, buffer)
    whole, chance = buffer.getvalue(), random.Random(0)
    for i in range(200):
        data = bytearray(whole)
        if i % 2:
            del data[chance.randrange(len(data)) :]
        else:
            for _ in range(4):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            mt.load(io.BytesIO(bytes(data)))
        except pickle.UnpicklingError as error:
            assert str(error).startswith("load: ")
    with pytest.raises(pickle.UnpicklingError, match="is none, or is damaged"):
        mt.load(io.BytesIO(b"not a checkpoint"))


@pytest.mark.oracle
def test_files_go_both_ways_with_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    ours = {n: (mt.arange(6).reshape(2, 3) % 2).to(getattr(mt, n)) for n in DTYPES}
    mt.save(ours, tmp_path / "ours.pt")
    theirs = torch.load(tmp_path / "ours.pt", weights_only=True)
    assert all(theirs[n].tolist() == ours[n].tolist() and str(theirs[n].dtype) == f"torch.{n}" for n in DTYPES)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.rand(2, 1, 5, 5)).sum().backward()
    optimizer.step()
    wide = torch.arange(12.0).reshape(3, 4)
    saved = {"model": model.state_dict(), "opt": optimizer.state_dict(), "t": wide.t(), "part": wide[1:, 2:]}
    torch.save(saved, tmp_path / "theirs.pt")
    back = mt.load(tmp_path / "theirs.pt")
    assert list(back["model"]) == list(saved["model"])
    assert all(back["model"][k].tolist() == v.tolist() for k, v in saved["model"].items())
    assert back["t"].tolist() == saved["t"].tolist() and back["part"].tolist() == saved["part"].tolist()
    assert back["opt"]["state"][0]["step"].item() == 1
