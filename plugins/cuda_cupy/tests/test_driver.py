"""The plugin with CuPy itself, on a driver that does nothing (`driver/stub.py`): in a process of its own, as `make cuda` has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "driver"))
import stub  # noqa: E402

pytestmark = pytest.mark.skipif(bool(stub.missing()), reason=stub.missing() or "it is all here")


def test_what_programs_do_is_taken_by_cupy(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(HERE / "driver/uses.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert run.returncode == 0, run.stderr[-4000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert not found["failed"], "\n".join(found["failed"])[:8000]
    # A layer with its bias is one launch of cuBLASLt; its gradients are two products, and that of the first layer's input is not asked for.
    assert found["launched"] == {"launches": 10, "products": 5}
