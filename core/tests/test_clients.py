"""Each library of clients/ in a process of its own, where SciPy is imported with SCIPY_ARRAY_API=1."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parent / "clients").glob("test_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem.removeprefix("test_"))
def test_its_functions_take_tensors(file: Path) -> None:
    library = file.stem.removeprefix("test_")
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed: it is not tried with tensors")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    done = subprocess.run(
        command, env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
