"""The plugin with CuPy itself, on a driver that does nothing (`driver/stub.py`): in processes of their own, as `make cuda` has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "driver"))
import stub  # noqa: E402

pytestmark = pytest.mark.skipif(bool(stub.missing()), reason=stub.missing() or "it is all here")


def _found(script: str, folder: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, *options, str(HERE / "driver" / script), str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert run.returncode == 0, run.stderr[-4000:]
    return json.loads(run.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.slow
def test_the_whole_kit_is_taken_by_cupy_and_stays_in_its_stream(tmp_path: Path) -> None:
    pytest.importorskip("mortice_conformance", reason="the conformance kit is not installed")
    found = _found("kit.py", tmp_path)
    assert found["ran"] > 7000 and found["launches"] > 1_000_000
    assert not found["failed"], "\n".join(found["failed"])[:8000]
    assert not found["strayed"], found["strayed"][:20]


def test_what_programs_do_is_taken_by_cupy(tmp_path: Path) -> None:
    found = _found("uses.py", tmp_path, "-W", "error")
    assert not found["failed"], "\n".join(found["failed"])[:8000]
    # A layer with its bias is one launch of cuBLASLt; its gradients are two products, and that of the first layer's input is not asked for.
    assert found["launched"] == {"launches": 10, "products": 5}
