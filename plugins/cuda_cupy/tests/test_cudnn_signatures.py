"""The stand-in for cuDNN's frontend beside the frontend itself: neither the library nor a GPU is needed to ask what it takes."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

cudnn = pytest.importorskip("cudnn", reason="nvidia-cudnn-frontend is not installed here; `make cuda` brings it")
if "emulator" in (cudnn.__doc__ or "") or "stand-in" in (cudnn.__doc__ or ""):
    pytest.skip("this is the stand-in", allow_module_level=True)

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "emulator")]
import fake_cudnn  # noqa: E402
from signatures import takes  # noqa: E402

PLUGIN = HERE.parent / "mortice_cuda_cupy/cudnn"
COMPILED = cudnn._compiled_module


def _real(owner: Any, name: str) -> Any:
    """Return what tells a method's parameters: the compiled one where Python's hands on whatever it is given."""
    function = getattr(owner, name, None)
    told = takes(function) if function is not None else None
    return getattr(COMPILED.backend_graph, name, function) if told is not None and told.more and told.others else function


@pytest.mark.parametrize(
    ("mine", "real"),
    [(fake_cudnn.pygraph, cudnn.pygraph), (fake_cudnn.Tensor, cudnn.Tensor), (fake_cudnn._Lowered, COMPILED.backend_graph),
     (fake_cudnn, cudnn)],
    ids=["graph", "tensor", "lowered graph", "module"],
)  # fmt: skip
def test_what_the_stand_in_takes_the_frontend_takes(mine: Any, real: Any) -> None:
    refused, asked = {}, 0
    for name, function in vars(mine).items():
        private = name in ("_node", "_outside", "_launch", "_set", "at", "check", "install") or name.startswith("__")
        if private or not callable(function) or isinstance(function, type) or getattr(function, "__module__", "") != "fake_cudnn":
            continue
        if mine is fake_cudnn and name.startswith("_"):
            continue
        own, theirs = takes(function), _real(real, name)
        told = None if theirs is None else takes(theirs)
        if own is None or told is None:
            refused[name] = "is not there, or says nothing"
        elif why := told.refuses(max(own.needed, len(own.places)), own.names - set(own.places)):
            refused[name] = why
        asked += 1
    assert refused == {} and asked >= 3


def test_every_name_that_the_plugin_asks_the_frontend_for_is_there() -> None:
    graph, missing, seen = cudnn.pygraph, [], 0
    owners = {"library": cudnn, "graph": graph, "note": cudnn.numerical_note, "backend": COMPILED.backend_graph}
    for path in sorted(PLUGIN.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Attribute):
                continue
            at: Any = node
            parts = []
            while isinstance(at, ast.Attribute):
                parts.append(at.attr)
                at = at.value
            if isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id == "module":
                owner = cudnn
            elif isinstance(at, ast.Name) and at.id in owners:
                owner = owners[at.id]
            else:
                continue
            for part in reversed(parts):
                if not hasattr(owner, part):
                    missing.append(f"{path.name}:{node.lineno}: {part}")
                    break
                owner = getattr(owner, part)
            seen += 1
    assert missing == [] and seen > 20
    assert all(hasattr(cudnn.data_type, name) for name in ("HALF", "BFLOAT16", "FLOAT", "DOUBLE"))
    assert cudnn.Handle(7).backend_handle == 7 and "self._lowered_graph = " in inspect.getsource(graph)
