"""What the plugin asks of cuDNN, asked of the real one for devices that are only described: no GPU is needed, none runs.

It tells that every graph is valid, that there are plans for it and that they compile, for the layouts, dtypes and switches
that the plugin uses; what the kernels compute it does not tell.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import cudnn_without_gpu  # noqa: E402

HERE = Path(__file__).parent
reason = cudnn_without_gpu.missing()
pytestmark = pytest.mark.skipif(bool(reason), reason=f"cuDNN cannot be asked: {reason}")

# One process for all: libraries that were given a libcuda cannot be given another.
PROGRAM = """
import json, sys
sys.path[:0] = {path!r}
import cudnn_without_gpu
cudnn_without_gpu.stand_in()
import types
sys.modules.setdefault("cupy", types.ModuleType("cupy"))
sys.modules["cupy"].cuda = types.SimpleNamespace(
    get_current_stream=lambda: types.SimpleNamespace(ptr=0), alloc=None, MemoryPool=object)
sys.modules["cupy"].ndarray = object
sys.modules["cupy"].ascontiguousarray = None
import plans_of_cudnn
for line in sys.stdin:
    print(json.dumps(plans_of_cudnn.answer(json.loads(line))), flush=True)
"""


@pytest.fixture(scope="module")
def ask() -> Any:
    """Return what answers a question (see `plans_of_cudnn`) by a process that has cuDNN and no GPU."""
    code = PROGRAM.format(path=[str(HERE), str(HERE.parent)])
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(**question: Any) -> Any:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    yield ask
    process.communicate()


KINDS = ["conv", "conv_input_grad", "conv_weight_grad"]
# x, w, stride, padding, dilation
CONVOLUTIONS: dict[str, list[list[int]]] = {
    "resnet": [[8, 64, 32, 32], [64, 64, 3, 3], [1, 1], [1, 1], [1, 1]],
    "strided": [[8, 3, 33, 35], [24, 3, 3, 2], [2, 1], [1, 0], [1, 2]],
    "one axis": [[4, 16, 1, 100], [32, 16, 1, 5], [1, 2], [0, 2], [1, 1]],
    "three axes": [[2, 8, 7, 9, 11], [16, 8, 3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1]],
    "pointwise": [[4, 32, 14, 14], [64, 32, 1, 1], [1, 1], [0, 0], [1, 1]],
    "groups": [[4, 32, 14, 14], [64, 8, 3, 3], [1, 1], [1, 1], [1, 1]],
    "depthwise": [[4, 32, 14, 14], [32, 1, 3, 3], [1, 1], [1, 1], [1, 1]],
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("case", "version"), [*[(case, 90) for case in CONVOLUTIONS], ("resnet", 80), ("depthwise", 80)]
)
def test_convolutions_have_plans(ask: Any, case: str, version: int, dtype: str) -> None:
    for name in KINDS:
        for last in (False, True):
            told = ask(kind=name, version=version, dtype=dtype, sizes=CONVOLUTIONS[case], last=last)
            assert told["plan"] is not None, (name, last, told)
            assert told["by_address"] and told["operands"] == told["declared"]


@pytest.mark.parametrize("switch", ["allow_tf32", "deterministic", "both"])
@pytest.mark.parametrize("name", KINDS)
def test_switches_leave_a_plan(ask: Any, name: str, switch: str) -> None:
    flags = {"allow_tf32": {"allow_tf32": False}, "deterministic": {"deterministic": True},
             "both": {"allow_tf32": False, "deterministic": True}}[switch]  # fmt: skip
    free = ask(kind=name, version=90, dtype="float32", sizes=CONVOLUTIONS["resnet"], last=False)
    told = ask(kind=name, version=90, dtype="float32", sizes=CONVOLUTIONS["resnet"], last=False, flags=flags)
    assert told["plan"] is not None
    if "allow_tf32" in flags:
        assert told["plan"] != free["plan"]  # the first choice uses tensor cores


ATTENTION: dict[str, dict[str, Any]] = {
    "plain": {}, "causal": {"causal": True}, "joint projection": {"joint": True, "causal": True}, "odd lengths": {"length": 33, "keys": 77},
    "mask": {"bias": [1, 1]}, "mask of each": {"bias": [2, 4], "length": 40, "keys": 24}, "other values": {"value": 32},
    "dropout": {"dropout": True, "causal": True}, "dropout and mask": {"dropout": True, "bias": [1, 1]},
    "deterministic": {"flags": {"deterministic": True}},
}  # fmt: skip


def axes(operands: Any) -> Any:
    """Return operands by what their axes are, in any order: the gradient's graph turns keys and values round."""
    return [[sorted(zip(dims, strides)), dtype] for dims, strides, dtype in operands]


@pytest.mark.parametrize("name", ["attention", "attention_grad"])
@pytest.mark.parametrize("case", ATTENTION)
def test_attention_has_plans(ask: Any, case: str, name: str) -> None:
    for version, dtype in ((90, "float16"), (80, "bfloat16")):
        told = ask(kind=name, version=version, dtype=dtype, **ATTENTION[case])
        assert told["plan"] is not None, (version, dtype, told)
        assert told["by_address"] and axes(told["operands"]) == axes(told["declared"])
