"""`python -m mortice run`: scripts written for PyTorch, and libraries that they import, get mortice as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = """
import torch
from torch import Tensor

def twice(x: Tensor) -> Tensor:
    return torch.add(x, x)
"""
SCRIPT = """
import importlib.metadata, importlib.util, pickle, sys
assert importlib.util.find_spec("torch") is not None and importlib.metadata.version("torch").startswith("2.13.0+mortice")
import torch, torch.nn as nn, torchvision, torchvision.transforms as T
import torch.nn.functional as F
import torch.optim.adamw, torch.utils._pytree
from torch.autograd.gradcheck import gradcheck
from torch.utils.data import DataLoader, TensorDataset
import library, mortice
assert torch is mortice and nn is mortice.nn is torch.nn and torchvision is mortice.vision and F is mortice.nn.functional
assert nn.__spec__.name == "mortice.nn" and torch.__version__ >= "2.0" and __name__ == "__main__"
assert torch.autograd.gradcheck is gradcheck  # a part of this name is imported, and the function stays
assert importlib.metadata.version("torchvision").startswith("0.28.0") and importlib.metadata.version("pluggy")
try:
    import torch.nothing_of_the_kind
except ModuleNotFoundError as error:
    print(error)
model = pickle.loads(pickle.dumps(nn.Linear(1, 1)))
batches = DataLoader(TensorDataset(torch.arange(8.0).reshape(8, 1)), batch_size=4, num_workers=1)
print([tuple(model(x).shape) for (x,) in batches], library.twice(torch.ones(2)).tolist(), sys.argv[1:])
"""
EXPECTED = ["No module named 'torch.nothing_of_the_kind'", "[(4, 1), (4, 1)] [2.0, 2.0] ['a', '--epochs', '3']"]


def python(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=where, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path


def test_a_script_runs_as_it_is(scripts: Path) -> None:
    done = python("-m", "mortice", "run", "../train.py", "a", "--epochs", "3", where=scripts / "elsewhere")
    assert done.stdout.splitlines() == EXPECTED and done.returncode == 0, done.stderr


def test_so_does_a_module(scripts: Path) -> None:
    done = python("-m", "mortice", "run", "-m", "train", "a", "--epochs", "3", where=scripts)
    assert done.stdout.splitlines() == EXPECTED and done.returncode == 0, done.stderr


SHOWN = """
import torch
x = torch.ones(2, 3, dtype=torch.float64)
print(x.shape, x.shape[1:], x.dtype, x.layout, torch.channels_last, x.type(), x.type(x.type()).dtype)
print(x, getattr(torch, str(x.dtype).replace("torch.", "")) is x.dtype, f"{x.dtype}".split(".")[-1])
print(torch.ones(1).max(0))
print(type(x), type(torch.nn.Parameter(x)))
print(type(x.shape), type(x.dtype), type(x.device), isinstance(x.device, torch.device))
class Twice(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: x * 2)
print(str(Twice.apply(x.requires_grad_()).grad_fn).split(" at ")[0])
layer = torch.nn.Linear(1, 1)
called = torch.func.functional_call
acts = [lambda: setattr(layer, "weight", 3), lambda: called(layer, {"weight": 3}, x)]
for act in (*acts, lambda: layer.load_state_dict({"weight": 3}, strict=False)):
    try:
        act()
    except (TypeError, RuntimeError) as error:
        print(str(error).splitlines()[-1].strip())
"""


@pytest.mark.needs("cpu")
def test_sizes_and_dtypes_are_shown_as_pytorchs(scripts: Path) -> None:
    (scripts / "shown.py").write_text(SHOWN)
    done = python("-m", "mortice", "run", "shown.py", where=scripts)
    assert done.stdout.splitlines() == [
        "torch.Size([2, 3]) torch.Size([3]) torch.float64 torch.strided torch.channels_last torch.DoubleTensor torch.float64",
        "tensor([[1., 1., 1.],", "        [1., 1., 1.]], dtype=torch.float64) True float64",
        "torch.return_types.max(", "values=tensor(1.),", "indices=tensor(0))",
        "<class 'torch.Tensor'> <class 'torch.nn.parameter.Parameter'>",
        "<class 'torch.Size'> <class 'torch.dtype'> <class 'torch.device'> True",
        "<torch.autograd.function.TwiceBackward object",
        "cannot assign 'int' as parameter 'weight' (torch.nn.Parameter or None expected)",
        "3 is not an instance of torch.Tensor",
        'While copying the parameter named "weight", expected torch.Tensor or Tensor-like object from checkpoint but received '
        "<class 'int'>",
    ], done.stderr  # fmt: skip


PATCHES = """
import sys, torch
print([n for n in ("nn.init", "nn.modules.linear", "autograd.function") if f"torch.{n}" not in sys.modules])
init = sys.modules["torch.nn.init"]
init.xavier_uniform_ = lambda weight: print("asked", tuple(weight.shape))
torch.nn.MultiheadAttention(4, 2)
print(callable(torch.autograd.gradcheck), torch.nn.init is init)
"""


def test_parts_that_are_loaded_are_found_and_patched_in_sys_modules(scripts: Path) -> None:
    (scripts / "patches.py").write_text(PATCHES)
    done = python("-m", "mortice", "run", "patches.py", where=scripts)
    assert done.stdout.splitlines() == ["[]", "asked (12, 4)", "True True"], done.stderr


COMPILED = """
def _load_lib(lib):
    raise OSError(f"{lib} is compiled against PyTorch")
"""
HEARS = """
import inspect
from torchaudio._extension import THERE, utils
print(THERE, "OSError" in inspect.getsource(utils))
"""


def test_a_library_computes_in_python_what_it_has_compiled_against_pytorch(scripts: Path) -> None:
    extension = scripts / "torchaudio" / "_extension"
    extension.mkdir(parents=True)
    (extension / "utils.py").write_text(COMPILED)
    (extension / "__init__.py").write_text('from .utils import _load_lib\nTHERE = _load_lib("_torchaudio")\n')
    (scripts / "hears.py").write_text(HEARS)
    done = python("-m", "mortice", "run", "hears.py", where=scripts)
    assert done.stdout == "False True\n", done.stderr


KEPT = """
import pickle, torch
kept = [torch.arange(2.0), torch.nn.Parameter(torch.ones(1)), torch.nn.Linear(1, 1)]
pickle.dump(kept, open("kept.pkl", "wb"))
torch.save([*kept[:2], kept[2].state_dict()], "kept.pt")
pickle.dump([kept[0].shape, kept[0].device, kept[0].dtype], open("of_it.pkl", "wb"))
"""
READ_AGAIN = """
import pickle, mortice, mortice.nn
for read in (pickle.load(open("kept.pkl", "rb")), mortice.load("kept.pt")):
    print(read[0].tolist(), type(read[0]) is mortice.Tensor, type(read[1]) is mortice.nn.Parameter)
of_it = pickle.load(open("of_it.pkl", "rb"))
assert of_it == [mortice.Size([2]), mortice.device("cpu"), mortice.float32] and type(of_it[0]) is mortice.Size, of_it
"""


def test_what_the_script_keeps_is_read_where_mortice_is_itself(scripts: Path) -> None:
    (scripts / "keep.py").write_text(KEPT)
    kept = python("-m", "mortice", "run", "keep.py", where=scripts)
    assert kept.returncode == 0, kept.stderr
    read = python("-c", READ_AGAIN, where=scripts)
    assert read.stdout.splitlines() == ["[0.0, 1.0] True True"] * 2, read.stderr


LAYERS = """
import copy, io, pickle, torch, torch.nn as nn, torch.fx as fx
print(type(nn.Linear(1, 1)), nn.ReLU.__module__, nn.BatchNorm1d.__module__, nn.Unflatten.__module__, nn.Module.__module__)
class Mine(nn.Linear): pass
model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), Mine(3, 1))
x, file = torch.ones(1, 2), io.BytesIO()
torch.save(model, file)
assert b"ctorch.nn.modules.activation\\nReLU\\n" in file.getvalue()
again = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(io.BytesIO(file.getvalue()), weights_only=False)]
print([(torch.equal(m(x), model(x)), type(m[0]) is nn.Linear, type(m[2]) is Mine) for m in again])
print([n.op for n in fx.symbolic_trace(model[:2]).graph.nodes])
pickle.dump(model[:2], open("layers.pkl", "wb"))
"""


def test_layers_have_the_names_that_libraries_keep_in_files(scripts: Path) -> None:
    (scripts / "layers.py").write_text(LAYERS)
    done = python("-m", "mortice", "run", "layers.py", where=scripts)
    assert done.stdout.splitlines() == [
        "<class 'torch.nn.modules.linear.Linear'> torch.nn.modules.activation torch.nn.modules.batchnorm "
        "torch.nn.modules.flatten torch.nn.modules.module",
        str([(True, True, True)] * 3),
        "['placeholder', 'call_module', 'call_module', 'output']",
    ], done.stderr  # fmt: skip
    read = python("-c", "import pickle; print(pickle.load(open('layers.pkl', 'rb')))", where=scripts)
    assert read.stdout.startswith("Sequential(\n  (0): Linear(in_features=2,"), read.stderr


WRITES = """
import torch, torch.nn as nn, torch.nn.functional as F
def shifts(module, args, kwargs): return (args[0] + kwargs.pop("by", 1),), kwargs
hooked = nn.Linear(4, 4)
hooked.register_forward_pre_hook(shifts, with_kwargs=True)
hooked.act = F.gelu
models = [
    nn.Sequential(hooked, nn.ReLU(), nn.utils.weight_norm(nn.Linear(4, 2))),
    nn.LSTM(4, 3, 2, bidirectional=True),
    nn.TransformerEncoderLayer(4, 2, 8, dropout=0, batch_first=True),
    nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.Flatten(), nn.Softmax(-1)),
]
x = torch.rand(2, 4)
out = [m.eval()(x[None])[0] if i in (1, 2) else m.eval()(x) for i, m in enumerate(models)]
torch.save((models, x, out), "whole.pt")
"""
READS = """
import sys, torch
def shifts(module, args, kwargs): return (args[0] + kwargs.pop("by", 1),), kwargs
models, x, out = torch.load("whole.pt", weights_only=False)
for i, (model, y) in enumerate(zip(models, out)):
    made = model(x[None])[0] if i in (1, 2) else model(x)
    torch.testing.assert_close(made, y)
torch.testing.assert_close(models[0][0](x, by=2), models[0][0](x + 1, by=1))
assert type(models[0][0]._forward_hooks).__name__ == sys.argv[1], type(models[0][0]._forward_hooks)
print(models[0][0].act is torch.nn.functional.gelu, models[2].activation is torch.nn.functional.relu, "mortice" in sys.modules)
"""


@pytest.mark.oracle
def test_whole_models_in_files_are_pytorchs_and_ours_again(scripts: Path) -> None:
    pytest.importorskip("torch", reason="the oracle is PyTorch")
    (scripts / "writes.py").write_text(WRITES)
    (scripts / "reads.py").write_text(READS)
    written = python("-m", "mortice", "run", "writes.py", where=scripts)
    assert written.returncode == 0, written.stderr
    for reading, expected in ((("reads.py", "OrderedDict"), False), (("-m", "mortice", "run", "reads.py", "HookDict"), True)):
        read = python(*reading, where=scripts)
        assert read.stdout.split() == ["True", "True", str(expected)], read.stderr


OPTIMIZERS = """
import copy, pickle, torch
from torch.optim import lr_scheduler, swa_utils
print(*(c.__module__ for c in (torch.optim.SGD, torch.optim.AdamW, torch.optim.SparseAdam, torch.optim.Muon, torch.optim.Optimizer)))
print(lr_scheduler.StepLR.__module__, lr_scheduler.ReduceLROnPlateau.__module__, swa_utils.AveragedModel.__module__)
x = torch.ones(2, requires_grad=True)
made = torch.optim.SGD([x], lr=0.5, momentum=0.9)
x.sum().backward()
made.step()
for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
    again.step()
    print(type(again) is torch.optim.SGD, len(again.state), again.param_groups[0]["params"][0].tolist())
pickle.dump(made, open("optimizer.pkl", "wb"))
"""


def test_optimizers_have_the_names_that_pytorch_gives_them(scripts: Path) -> None:
    (scripts / "optimizers.py").write_text(OPTIMIZERS)
    done = python("-m", "mortice", "run", "optimizers.py", where=scripts)
    assert done.stdout.splitlines()[:2] == [
        "torch.optim.sgd torch.optim.adamw torch.optim.sparse_adam torch.optim torch.optim.optimizer",
        "torch.optim.lr_scheduler torch.optim.lr_scheduler torch.optim.swa_utils",
    ], done.stderr  # fmt: skip
    assert [line[:7] for line in done.stdout.splitlines()[2:]] == ["True 1 "] * 2
    read = python("-c", "import pickle; print(type(pickle.load(open('optimizer.pkl', 'rb'))))", where=scripts)
    assert read.stdout == "<class 'mortice.optim.sgd.SGD'>\n", read.stderr


DATA = """
import io, pickle, torch, torch.utils.data as data
class Mine(data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, i): return i
made = data.TensorDataset(torch.arange(2)), data.Subset(Mine(), [1]), data.DataLoader(Mine()), data.RandomSampler(Mine())
print(*(type(m).__module__ for m in made), Mine.__mro__[1].__module__)
file = io.BytesIO()
torch.save(made[0], file)
assert b"ctorch.utils.data.dataset\\nTensorDataset\\n" in file.getvalue()
again = torch.load(io.BytesIO(file.getvalue()), weights_only=False), *pickle.loads(pickle.dumps(made[1:]))
print([type(a) is type(m) for a, m in zip(again, made)], again[0][1][0].item(), list(again[1]), [x.item() for x in again[2]])
print([x.item() for x in data.DataLoader(Mine(), num_workers=1)])
pickle.dump(made[0], open("data.pkl", "wb"))
"""


def test_so_have_data_sets_and_what_loads_from_them(scripts: Path) -> None:
    (scripts / "data.py").write_text(DATA)
    done = python("-m", "mortice", "run", "data.py", where=scripts)
    assert done.stdout.splitlines() == [
        "torch.utils.data.dataset torch.utils.data.dataset torch.utils.data.dataloader torch.utils.data.sampler "
        "torch.utils.data.dataset",
        "[True, True, True, True] 1 [1] [0, 1]", "[0, 1]",
    ], done.stderr  # fmt: skip
    read = python("-c", "import pickle; print(pickle.load(open('data.pkl', 'rb'))[1][0].item())", where=scripts)
    assert read.stdout == "1\n", read.stderr


@pytest.mark.oracle
def test_those_names_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    from mortice.nn.modules import as_pytorch_names

    names = {layer.__name__: place for layer, place in as_pytorch_names()}
    theirs = {n: getattr(torch.nn.modules, n).__module__ for n in names if hasattr(torch.nn.modules, n)}
    assert len(theirs) > 140 and theirs == {n: names[n] for n in theirs}


SPAWNED = """
import torch, torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset

def work(rank, asked):
    import mortice
    assert torch is mortice
    torch.manual_seed(0)
    assert (torch.ones(1) * torch.ones((), dtype=torch.float64)).dtype == torch.float32
    asked.put((rank, torch.rand(1).item()))

if __name__ == "__main__":
    context = mp.get_context("spawn")
    asked = context.Queue()
    mp.spawn(work, args=(asked,), nprocs=1)
    torch.manual_seed(0)
    print(asked.get() == (0, torch.rand(1).item()))
    batches = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    print([x.tolist() for (x,) in batches])
"""


@pytest.mark.parametrize("how", [("spawned.py",), ("-m", "spawned"), ("--random", "philox", "spawned.py")])
def test_processes_that_it_spawns_get_mortice_and_the_same_random_numbers(scripts: Path, how: tuple[str, ...]) -> None:
    (scripts / "spawned.py").write_text(SPAWNED)
    done = python("-m", "mortice", "run", *how, where=scripts)
    assert done.stdout.splitlines() == ["True", "[[0.0, 1.0], [2.0, 3.0]]"], done.stderr


def test_what_the_script_raises_or_returns_is_what_the_command_does(scripts: Path) -> None:
    (scripts / "leave.py").write_text("import torch\nraise SystemExit(3)")
    (scripts / "fail.py").write_text("import torch\ntorch.ones(2) + torch.ones(3)")
    assert python("-m", "mortice", "run", "leave.py", where=scripts).returncode == 3
    failed = python("-m", "mortice", "run", "fail.py", where=scripts)
    assert failed.returncode == 1 and "fail.py" in failed.stderr and "ShapeError" in failed.stderr
    assert python("-m", "mortice", "run", where=scripts).returncode == 2
    absent = python("-m", "mortice", "run", "absent.py", "--epochs", "3", where=scripts)
    assert absent.returncode == 2 and absent.stderr.endswith("python -m mortice run: error: no such file: absent.py\n")


MAIN = """
import atexit, os, pickle, sys

class Kept:
    pass

def leave():
    print(type(pickle.loads(pickle.dumps(kept))) is Kept, vars(sys.modules["__main__"]) is globals())

kept = Kept()
atexit.register(leave)
print(__file__, __name__, __spec__, __package__, type(__builtins__), sys.argv, sys.path[0])
os.chdir(os.path.dirname(__file__))
"""


def test_a_script_is_main_as_python_has_it(scripts: Path) -> None:
    (scripts / "main.py").write_text(MAIN)
    there = scripts / "elsewhere"
    expected, done = (python(*how, "../main.py", "a", where=there) for how in ((), ("-m", "mortice", "run")))
    assert done.stdout == expected.stdout and done.stderr == "" and len(done.stdout.splitlines()) == 2


DUCK = """
import sys, torch
assert torch.torch is torch and torch.__name__ == "torch" and "mortice.overrides" not in sys.modules

class Plain:
    print(sys._getframe(1).f_code.co_name)  # libraries look for the statement here

assert "mortice.overrides" not in sys.modules  # calls pay for asking only when there is somebody to ask

@str
class Decorated(
    Plain,
):
    seen = Plain

assert "mortice.overrides" not in sys.modules

class Diagonal:
    shape = (2, 2)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__

print(torch.linalg.cholesky(Diagonal()), torch.add(Diagonal(), torch.ones(2)))
"""


def test_functions_ask_classes_that_are_no_tensors(scripts: Path) -> None:
    (scripts / "duck.py").write_text(DUCK)
    done = python("-m", "mortice", "run", "duck.py", where=scripts)
    assert done.stdout.split()[-1] == "add" and "cholesky" in done.stdout, done.stderr
    assert done.stdout.startswith("<module>\n")


def test_it_comes_before_pytorch_or_not_at_all(scripts: Path) -> None:
    (scripts / "torch.py").write_text("")  # stands for PyTorch
    late = "import torch\nfrom mortice.utils import as_torch\nas_torch.install()"
    done = python("-c", late, where=scripts)
    assert done.returncode == 1 and "expected PyTorch not to be imported yet; got 'torch' in sys.modules" in done.stderr
    twice = "from mortice.utils import as_torch\nas_torch.install(); as_torch.install()\nimport mortice, torch\nassert torch is mortice"
    done = python("-c", twice, where=scripts)
    assert done.returncode == 0, done.stderr


SAVED = """
import pickle, torch
torch.manual_seed(0)
t = torch.arange(6.0).reshape(2, 3).t()
plain = {"t": t, "p": torch.nn.Parameter(torch.ones(2)), "m": torch.nn.Linear(1, 1), "h": t[1:].bfloat16(), "b": t > 2}
pickle.dump(plain, open("plain.pkl", "wb"))
"""
READ = """
import pickle, torch
read = pickle.load(open("plain.pkl", "rb"))
assert isinstance(read["p"], torch.nn.Parameter) and read["m"](read["t"][:1, :1]).shape == (1, 1)
print(read["t"].tolist(), read["t"].stride(), read["h"].tolist(), read["h"].dtype == torch.bfloat16, read["b"].tolist())
"""


@pytest.mark.oracle
def test_plain_pickles_of_pytorch_are_read(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for name, text in {"saved": SAVED, "read": READ}.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert python("saved.py", where=tmp_path).returncode == 0
    given, expected = python("-m", "mortice", "run", "read.py", where=tmp_path), python("read.py", where=tmp_path)
    assert given.stdout == expected.stdout and given.returncode == 0, given.stderr
