"""`mortice.summary`: shapes, parameters and multiply-adds are right on every backend, and the model is left as it was."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mortice as mt
from mortice import nn
from mortice.backends import plugins

BACKENDS = [b for b in ("cpu_numpy", "cpu_cext", "strict") if b in plugins.list_backends()]


class Net(nn.Module):
    """Has what summaries get wrong: a module with two names, a parameter of its own, layers never called, called twice."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(8, 8)
        self.same = self.head
        self.unused = nn.Linear(3, 3).requires_grad_(False)
        self.scale = nn.Parameter(mt.ones(8))

    def forward(self, x):
        x = self.body(x).mean((2, 3)) * self.scale
        return {"out": self.head(self.head(x)), "parts": (x, None)}


TABLE = """\
layer                  output shape                             parameters  multiply-adds
-----------------------------------------------------------------------------------------
Net                    out [2, 8], parts ([2, 8], None)                  8
  body: Sequential     [2, 8, 4, 5]
    0: Conv2d          [2, 8, 4, 5]                                    224          8,640
    1: BatchNorm2d     [2, 8, 4, 5]                                     16
    2: ReLU            [2, 8, 4, 5]
    3: Dropout         [2, 8, 4, 5]
  head: Linear         [2, 8] (2 calls)                                 72            256
  same: Linear         [2, 8] (2 calls)               shared with head
  unused: Linear       not called                            12 frozen
-----------------------------------------------------------------------------------------
parameters     332 (320 trainable, 12 not)
multiply-adds  8,896 (17,792 FLOPs)
memory         1.3 kB parameters, 72 B buffers, 480 B input, 5.2 kB outputs of layers"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_table_is_the_same_on_every_backend(backend):
    with mt.use_backend(backend):
        found = mt.summary(Net(), (2, 3, 4, 5))
    lines, wanted = str(found).splitlines(), TABLE.splitlines()
    assert [line.split() for line in lines if "---" not in line] == [
        line.split() for line in wanted if "---" not in line
    ]
    row = found.rows[0]
    assert row["output"] == {"out": [2, 8], "parts": ([2, 8], None)} and row["mult_adds"] == 8896 and row["calls"] == 1
    assert json.loads(json.dumps(found.to_dict()))["totals"]["flops"] == 17792


def test_the_model_and_the_generator_are_left_as_they_were():
    model = Net()
    model.body[3].eval()
    model.body[1].num_batches_tracked += 3
    before = {k: t.clone() for k, t in model.state_dict().items()}
    versions = {k: t._version for k, t in model.state_dict(keep_vars=True).items()}
    modes, state = [m.training for m in model.modules()], mt.get_rng_state()
    buffers = [id(b) for b in model.buffers()]
    for mode in ("train", "eval", "same"):
        mt.summary(model, mt.rand(4, 3, 6, 6, generator=mt.Generator().manual_seed(0)), mode=mode)
        assert all(mt.equal(t, before[k]) for k, t in model.state_dict().items())
        assert {k: t._version for k, t in model.state_dict(keep_vars=True).items()} == versions
        assert [m.training for m in model.modules()] == modes and [id(b) for b in model.buffers()] == buffers
        assert mt.equal(mt.get_rng_state(), state) and all(p.grad is None for p in model.parameters())
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_pass_that_fails_leaves_no_hooks():
    model = Net()
    modes = [m.training for m in model.modules()]
    with pytest.raises(RuntimeError):
        mt.summary(model, (2, 5, 4, 4))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert [m.training for m in model.modules()] == modes and not mt.tracing.watchers()


# What is run, on inputs of which sizes, and its multiply-adds, counted by hand.
COUNTS = {
    "linear": (lambda: nn.Linear(3, 5), [(2, 4, 3)], 2 * 4 * 3 * 5),
    "conv in groups": (lambda: nn.Conv2d(4, 6, (3, 2), stride=2, groups=2), [(2, 4, 9, 8)], 2 * 6 * 4 * 4 * 2 * 3 * 2),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3), [(2, 4, 9)], 2 * 6 * 7 * 4 * 3),
    "transposed conv": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), [(2, 4, 5, 5)], 2 * 4 * 25 * 6 * 9),
    "rnn": (lambda: nn.RNN(3, 5), [(4, 2, 3)], 8 * (15 + 25)),
    "gru": (lambda: nn.GRU(3, 5, bidirectional=True), [(4, 2, 3)], 2 * 8 * 3 * (15 + 25)),
    "lstm": (lambda: nn.LSTM(3, 5, 2, batch_first=True), [(2, 4, 3)], 8 * 4 * (15 + 25) + 8 * 4 * (25 + 25)),
    "lstm with projection": (lambda: nn.LSTM(3, 5, proj_size=2), [(4, 2, 3)], 8 * (4 * (15 + 10) + 10)),
    "lstm cell": (lambda: nn.LSTMCell(3, 5), [(2, 3)], 2 * 4 * (15 + 25)),
    "attention": (
        lambda: nn.MultiheadAttention(8, 2, batch_first=True), [(2, 3, 8), (2, 5, 8), (2, 5, 8)],
        2 * (3 + 5 + 5) * 64 + 2 * 2 * 3 * 5 * (4 + 4) + 2 * 3 * 64,
    ),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", COUNTS)
def test_multiply_adds_are_exact_on_every_backend(kind, backend):
    make, sizes, want = COUNTS[kind]
    with mt.use_backend(backend):
        found = mt.summary(make(), sizes, mode="train")
    assert found.totals["mult_adds"] == want


def test_several_inputs_dicts_and_integers():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.mix = nn.Embedding(10, 4), nn.Bilinear(4, 3, 2)

        def forward(self, tokens, x, *, shift=None):
            out = self.mix(self.words(tokens), x)
            return out if shift is None else out + shift

    named = mt.summary(Two(), {"tokens": (5,), "x": (5, 3), "shift": mt.ones(2)}, dtypes=[mt.int64, None, None])
    placed = mt.summary(Two(), (mt.zeros(5, dtype=mt.int64), mt.ones(5, 3)))
    sized = mt.summary(Two(), input_size=[(5,), (5, 3)], dtypes=[mt.int64, mt.float32])
    assert [r["output"] for r in named.rows] == [r["output"] for r in placed.rows] == [r["output"] for r in sized.rows]
    assert named.totals["input_bytes"] == placed.totals["input_bytes"] + 8 == 40 + 60 + 8
    short = mt.summary(nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))), (1, 2), depth=1)
    assert "0: Sequential  [1, 3]                15             10" in str(short) and "Linear" not in str(short)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mt.summary(nn.ReLU()), TypeError, "summary: expected either input_data or input_size; got neither."),
        (lambda: mt.summary(nn.ReLU(), (1,), mode="x"), ValueError,
         "summary: expected mode to be 'eval', 'train' or 'same'; got 'x'."),
        (lambda: mt.summary(nn.ReLU(), 3), TypeError, "summary: expected a tensor, a size, or several of them; got int."),
        (lambda: mt.summary(nn.ReLU(), (1,), dtypes=[]), ValueError, "summary: expected a dtype for each of 1 inputs; got 0."),
    ],
)  # fmt: skip
def test_mistakes_are_told(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def test_the_command_line(tmp_path):
    (tmp_path / "nets.py").write_text(
        "import mortice as mt\nclass Net(mt.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.words = mt.nn.Embedding(7, 3)\n    def forward(self, tokens, x):\n        return self.words(tokens) @ x\n"
        "ready = mt.nn.Linear(3, 4)\nnumber = 3\n"
    )

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "mortice", "summary", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
        )

    done = run("nets:Net", "--input", "tokens=5:int64", "--input", "x=3,2", "--json", "--backend", BACKENDS[0])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["totals"]["mult_adds"] == 30
    done = run("nets.py:ready", "--input", "2,3")
    assert done.stdout.splitlines()[2].split() == ["Linear", "[2,", "4]", "16", "24"], done.stderr
    for arguments, text in (
        (("nets", "--input", "1"), "expected MODULE:CALLABLE, such as package.models:Net or net.py:net; got 'nets'."),
        (("nets:number", "--input", "1"), "TypeError: 'int' object is not callable"),
        (("nets:ready", "--input", "1,a"), "--input: expected a size such as 1,3,224,224 or 8,128:int64; got '1,a'."),
        (("nets:ready", "--input", "1:int"), None),
        (("nowhere:x", "--input", "1"), "No module named 'nowhere'"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and (text is None or text in done.stderr), done.stderr
