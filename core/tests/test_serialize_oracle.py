"""Checkpoints beside PyTorch: whole models' weights in both directions with equal outputs, and the formats' corners."""

import io
import sys
import types
import zipfile

import pytest

import mortice as mt

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
np = pytest.importorskip("numpy", reason="the oracle needs it")
pytestmark = pytest.mark.oracle


def resnet18(lib, width=8, classes=10):
    """ResNet-18 at a small width, from a library's own modules."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outside)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outside)
            self.downsample = None
            if stride != 1 or inside != outside:
                self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + (x if self.downsample is None else self.downsample(x)))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            inside = width
            for i in range(4):
                outside = width * 2**i
                stride = 1 if i == 0 else 2
                setattr(self, f"layer{i + 1}", nn.Sequential(Block(inside, outside, stride), Block(outside, outside, 1)))
                inside = outside
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(inside, classes)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(self.avgpool(x).flatten(1))

    return ResNet()


def gpt2(lib, vocabulary=61, context=16, width=24, heads=3, layers=3):
    """GPT-2's shape, with the output tied to the embedding."""
    nn, f = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1 = nn.LayerNorm(width)
            self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
            self.ln_2 = nn.LayerNorm(width)
            self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

        def forward(self, x):
            b, t, c = x.shape
            parts = self.attn["c_attn"](self.ln_1(x)).split(width, dim=2)
            q, k, v = (p.view(b, t, heads, c // heads).transpose(1, 2) for p in parts)
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attn["c_proj"](y.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.mlp["c_proj"](f.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(vocabulary, width)
            self.wpe = nn.Embedding(context, width)
            self.h = nn.ModuleList([Block() for _ in range(layers)])
            self.ln_f = nn.LayerNorm(width)
            self.lm_head = nn.Linear(width, vocabulary, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, tokens):
            x = self.wte(tokens) + self.wpe(lib.arange(tokens.shape[1]))
            for block in self.h:
                x = block(x)
            return self.lm_head(self.ln_f(x))

    return GPT()


IMAGES = np.random.RandomState(0).randn(2, 3, 64, 64).astype("float32")
TOKENS = np.random.RandomState(0).randint(0, 61, (2, 16))
MODELS = {"resnet18": (resnet18, IMAGES), "gpt2": (gpt2, TOKENS)}


def trained(build, lib, data):
    """Return a model whose weights and statistics have left their initial values, its optimizer, and its output."""
    lib.manual_seed(0)
    model = build(lib)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        (model(lib.from_numpy(data)) ** 2).mean().backward()
        optimizer.step()
    model.eval()
    with lib.no_grad():
        return model, optimizer, model(lib.from_numpy(data)).numpy()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("here", "there"), [(torch, mt), (mt, torch)], ids=["from torch", "to torch"])
def test_weights_give_the_same_outputs_on_the_other_side(tmp_path, name, here, there, zipped):
    build, data = MODELS[name]
    model, optimizer, wanted = trained(build, here, data)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    here.save(state, tmp_path / "c.pt", _use_new_zipfile_serialization=zipped)
    loaded = there.load(tmp_path / "c.pt")
    other = build(there)
    assert str(other.load_state_dict(loaded["model"])) == "<All keys matched successfully>"
    assert list(loaded["model"]) == list(state["model"]) and loaded["model"]._metadata == state["model"]._metadata
    other.eval()
    with there.no_grad():
        found = other(there.from_numpy(data)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
    again = there.optim.Adam(other.parameters(), lr=1.0)
    again.load_state_dict(loaded["optimizer"])
    assert again.param_groups[0]["lr"] == 1e-3
    moment = optimizer.state_dict()["state"][0]["exp_avg_sq"].numpy()
    np.testing.assert_array_equal(again.state_dict()["state"][0]["exp_avg_sq"].numpy(), moment)
    if name == "gpt2":
        tied = loaded["model"]
        tied["wte.weight"].fill_(7)
        assert tied["lm_head.weight"][0, 0].item() == 7


def round_trip(obj, here, there, **options):
    buffer = io.BytesIO()
    here.save(obj, buffer, **options)
    buffer.seek(0)
    return there.load(buffer)


both_ways = pytest.mark.parametrize(("here", "there"), [(torch, mt), (mt, torch)], ids=["from torch", "to torch"])
formats = pytest.mark.parametrize("zipped", [True, False])


@both_ways
@formats
def test_views_share_memory_on_the_other_side(here, there, zipped):
    x = here.arange(24.0).reshape(4, 6)
    sent = {"row": x[1], "x": x, "turned": x.t(), "part": x[1:3, 2:5], "step": x[:, ::2], "wide": x[:1].expand(3, 6)}
    got = round_trip(sent, here, there, _use_new_zipfile_serialization=zipped)
    assert all(got[k].tolist() == v.tolist() and tuple(got[k].stride()) == tuple(v.stride()) for k, v in sent.items())
    got["x"][1, 2] = x[1, 2] = 100.0
    assert all(got[k].tolist() == v.tolist() for k, v in sent.items())


@both_ways
@formats
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_kind_of_value_crosses(here, there, zipped, protocol):
    names = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
             "complex128", "uint16", "uint32", "uint64"]  # fmt: skip
    sent = {n: (here.arange(6).reshape(2, 3) % 2).to(getattr(here, n)) for n in names}
    sent |= {f"{n} 0-d": sent[n][1, 1].clone() for n in names} | {f"{n} empty": sent[n][:0].clone() for n in names}
    if protocol == 2:  # what torch.load's own restricted reader takes
        sent["size"], sent["dtype"], sent["device"] = here.Size([1, 2]), here.float16, here.device("cpu")
    plain = {"a": [1, -5, 1 << 70, 2.5, None, True, "tëxt", b"bytes"], "t": (1, (2,)), "s": {1, "b"}, "c": 1 + 2j}
    if here is torch:
        sent["conj"] = torch.tensor([1 + 2j]).conj()
    got = round_trip({"tensors": sent, "plain": plain}, here, there, pickle_protocol=protocol,
                     _use_new_zipfile_serialization=zipped) if there is mt or protocol == 2 else None  # fmt: skip
    if got is None:
        return
    assert got["plain"] == plain
    for name, value in sent.items():
        found = got["tensors"][name]
        if hasattr(value, "tolist"):
            assert found.tolist() == value.tolist() and str(found.dtype).split(".")[1] == str(value.dtype).split(".")[1]
            assert tuple(found.shape) == tuple(value.shape)
        elif name != "size":
            assert str(found).replace("torch", "mortice") == str(value).replace("torch", "mortice")
        else:
            assert type(found) is there.Size and tuple(found) == (1, 2)


@both_ways
def test_parameters_and_attributes_cross(here, there):
    p = here.nn.Parameter(here.ones(2))
    q = here.nn.Parameter(here.ones(2), requires_grad=False)
    leaf, marked = here.ones(2, requires_grad=True), here.zeros(1)
    marked.note = {"k": [1]}
    p.note = "mine"
    got = round_trip([p, q, leaf, marked, p], here, there)
    assert type(got[0]) is there.nn.Parameter and got[0].requires_grad and got[4] is got[0] and got[0].note == "mine"
    assert type(got[1]) is there.nn.Parameter and not got[1].requires_grad
    assert type(got[2]) is there.Tensor and got[2].requires_grad and got[3].note == {"k": [1]}


@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_parameter_of_a_class_of_its_own_is_read_as_one(monkeypatch, requires_grad):
    got = []
    for lib in (torch, mt):
        kind = type("Tagged", (lib.Tensor,), {"__module__": __name__})
        monkeypatch.setitem(globals(), "Tagged", kind)
        file = io.BytesIO()
        lib.save(lib.nn.Parameter(lib.ones(2).as_subclass(kind), requires_grad), file)
        file.seek(0)
        with lib.serialization.safe_globals([kind]):
            read = lib.load(file)
        got.append((type(read) is kind, isinstance(read, lib.nn.Parameter), read.requires_grad))
    assert got[1] == got[0] == (True, True, requires_grad)


def test_files_without_checksums_and_mapped_files_are_read(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"x": torch.arange(1000.0), "y": torch.arange(3) > 0}, tmp_path / "c.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    for options in ({}, {"mmap": True}):
        got = mt.load(tmp_path / "c.pt", **options)
        assert got["x"].tolist() == list(range(1000)) and got["y"].tolist() == [False, True, True]
        got["x"].fill_(1)  # of the mapping, and not of the file
    for computed in (False, True):
        mt.serialization.set_crc32_options(computed)
        assert mt.serialization.get_crc32_options() is computed
        mt.save({"x": mt.arange(1000.0)}, tmp_path / "d.pt")
        assert all(bool(info.CRC) is computed for info in zipfile.ZipFile(tmp_path / "d.pt").infolist())
        assert torch.load(tmp_path / "d.pt", mmap=True)["x"].tolist() == list(range(1000))


def _big_endian(value, told):
    """Return a file of PyTorch's as a big-endian machine writes it."""
    file, out = io.BytesIO(), io.BytesIO()
    value.untyped_storage().byteswap(value.dtype)
    torch.save(value, file)
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(out, "w") as written:
        for name in archive.namelist():
            if not name.endswith("byteorder"):
                written.writestr(name, archive.read(name))
            elif told:
                written.writestr(name, told)
    return out.getvalue()


@pytest.mark.parametrize("dtype", ["int64", "float16", "complex64", "bool"])
def test_files_of_big_endian_machines_are_read(dtype):
    file = _big_endian(torch.tensor([3, 0, 1], dtype=getattr(torch, dtype)), b"big")
    assert mt.load(io.BytesIO(file)).tolist() == torch.load(io.BytesIO(file)).tolist() == [3 if dtype != "bool" else 1, 0, 1]
    silent = _big_endian(torch.tensor([3, 0, 1], dtype=getattr(torch, dtype)), b"")
    kinds = mt.serialization.LoadEndianness
    try:
        mt.serialization.set_default_load_endianness(kinds.BIG)
        assert mt.serialization.get_default_load_endianness() is kinds.BIG
        assert mt.load(io.BytesIO(silent)).tolist() == mt.load(io.BytesIO(file)).tolist()
    finally:
        mt.serialization.set_default_load_endianness(None)
    with pytest.raises(mt.serialization.UnpicklingError, match="expected bytes in the order little or big; got b'middle'"):
        mt.load(io.BytesIO(_big_endian(torch.ones(1), b"middle")))
    for lib in (torch, mt):
        with pytest.raises(TypeError):
            lib.serialization.set_default_load_endianness("big")


def test_numpy_values_need_to_be_allowed_as_in_pytorch():
    from numpy._core.multiarray import _reconstruct, scalar

    names = [scalar, _reconstruct, np.ndarray, np.dtype, type(np.dtype("float64")), type(np.dtype("int32"))]
    value = {"best": np.float64(2.5), "history": np.arange(3, dtype="int32")}
    for here in (mt, torch):
        for there in (mt, torch):
            with pytest.raises(Exception, match="numpy"):
                round_trip(value, here, there)
            with there.serialization.safe_globals(names):
                got = round_trip(value, here, there)
            assert got["best"] == 2.5 and got["history"].tolist() == [0, 1, 2]


def test_what_pytorch_does_not_load_by_default_is_not_loaded():
    with pytest.raises(mt.serialization.UnpicklingError, match="torch.nn.modules.linear.Linear"):
        round_trip(torch.nn.Linear(1, 1), torch, mt)
    file = io.BytesIO()
    torch.save(torch.eye(2).to_sparse(), file, _use_new_zipfile_serialization=False)
    with pytest.raises(mt.serialization.UnpicklingError, match="expected a layout of sparse tensors; got 'torch.sparse_xyz'"):
        mt.load(io.BytesIO(file.getvalue().replace(b"torch.sparse_coo", b"torch.sparse_xyz")))
    with pytest.raises(mt.serialization.UnpicklingError, match="argparse.Namespace"):
        round_trip(__import__("argparse").Namespace(a=1), torch, mt)


SCRIPT = """
from functools import partial
import LIB as torch
from LIB import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.utils.weight_norm(nn.Linear(3, 3))
        self.act, self.rnn = torch.tanh, nn.LSTM(3, 2, batch_first=True, bidirectional=True)
        self.norm = partial(nn.functional.layer_norm, normalized_shape=(4,), eps=0.5)
        self.prior = torch.distributions.Normal(torch.zeros(4), 2.0)
        self.handle = self.fc.register_forward_hook(self.note)
        self.fc.register_forward_pre_hook(doubled, with_kwargs=True)
        self.seen = 0

    def note(self, module, args, output):
        self.seen += 1

    def forward(self, x):
        y, _ = self.rnn(self.act(self.fc(x, scale=2.0)))
        return self.norm(y) + self.prior.stddev

def doubled(module, args, kwargs):
    return (args[0] * kwargs.pop("scale"),), kwargs

class Half(torch.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        return [group["lr"] / 2 for group in self.optimizer.param_groups]
"""


def training(lib, x, parts, steps=3):
    """Return the weights after each of some steps of training, and the learning rates."""
    model, optimizer, schedules = parts
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        (model(lib.from_numpy(x)) ** 2).sum().backward()
        optimizer.step()
        for schedule in schedules:
            schedule.step()
        seen.append([p.detach().numpy().copy() for p in model.parameters()] + [np.array(s.get_last_lr()) for s in schedules])
    return seen


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Couldn't retrieve source code")
@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"])
def test_a_script_s_own_model_optimiser_and_schedules_go_on_here(monkeypatch, kind, zipped):
    scripts = {}
    for name in ("torch", "mortice"):
        scripts[name] = types.ModuleType("my_script")
        monkeypatch.setitem(sys.modules, "my_script", scripts[name])
        scripts[name].__file__ = "my_script.py"
        exec(SCRIPT.replace("LIB", name), vars(scripts[name]))
    monkeypatch.setitem(sys.modules, "my_script", scripts["torch"])
    torch.manual_seed(0)
    x = np.random.RandomState(0).randn(2, 5, 3).astype("float32")
    model = scripts["torch"].Block()
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01)
    lr = torch.optim.lr_scheduler
    schedules = [
        scripts["torch"].Half(optimizer), lr.SequentialLR(optimizer, [lr.LinearLR(optimizer), lr.StepLR(optimizer, 1)], [2]),
        lr.CosineAnnealingWarmRestarts(optimizer, 2), lr.MultiStepLR(optimizer, [3, 4]),
    ]  # fmt: skip
    parts = [model, optimizer, schedules]
    training(torch, x, parts)
    file = io.BytesIO()
    torch.save(parts, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    monkeypatch.setitem(sys.modules, "my_script", scripts["mortice"])
    with pytest.raises(mt.serialization.UnpicklingError, match="the file asks for my_script.Block"):
        mt.load(file)
    file.seek(0)
    mine = mt.load(file, weights_only=False)
    assert type(mine[0]) is scripts["mortice"].Block and mine[0].seen == 3 and str(mine[0]) == str(model)
    for got, want in zip(training(mt, x, mine), training(torch, x, parts)):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    mine[0].handle.remove()
    mine[0](mt.from_numpy(x))
    assert mine[0].seen == 6


def test_big_archives_use_fields_that_both_read(tmp_path, monkeypatch):
    from mortice.serialize import archive

    monkeypatch.setattr(archive, "_LIMIT", 2000)  # instead of 4 GiB
    mt.save({"x": mt.arange(1000.0), "y": mt.arange(10), "z": mt.arange(600)}, tmp_path / "c.pt")
    assert (tmp_path / "c.pt").read_bytes().count(b"PK\6\6") == 1
    for lib in (mt, torch):
        for options in ({}, {"mmap": True}):
            got = lib.load(tmp_path / "c.pt", **options)
            assert [got[k].sum().item() for k in "xyz"] == [499500, 45, 179700]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "uint16", "complex64"])
def test_safetensors_go_both_ways_with_the_package(tmp_path, dtype):
    package = pytest.importorskip("safetensors.torch", reason="the other side is the safetensors package")
    from mortice.utils import safetensors

    base = np.arange(12).reshape(3, 4) % 5
    ours = {"a": mt.tensor(base).to(getattr(mt, dtype)), "b.c": mt.tensor(base).to(getattr(mt, dtype)).t()[1],
            "empty": mt.zeros(0, 2), "0-d": mt.tensor(3.0)}  # fmt: skip
    safetensors.save_file(ours, tmp_path / "ours.safetensors", {"format": "pt", "ü": "ß"})
    theirs = package.load_file(tmp_path / "ours.safetensors")
    assert {k: v.tolist() for k, v in theirs.items()} == {k: v.tolist() for k, v in ours.items()}
    with package.safe_open(tmp_path / "ours.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt", "ü": "ß"}
    package.save_file(theirs, tmp_path / "theirs.safetensors", {"epoch": "3"})
    back = safetensors.load_file(tmp_path / "theirs.safetensors")
    assert {k: (v.tolist(), v.dtype) for k, v in back.items()} == {k: (v.tolist(), v.dtype) for k, v in ours.items()}
    with safetensors.safe_open(tmp_path / "theirs.safetensors", framework="pt") as file:
        assert file.metadata() == {"epoch": "3"} and file.keys() == sorted(ours)
        assert file.get_tensor("b.c").tolist() == ours["b.c"].tolist()
    assert package.load(safetensors.save(ours))["a"].tolist() == ours["a"].tolist()
