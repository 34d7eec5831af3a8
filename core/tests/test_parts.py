"""Parts of mortice that are distributions of their own: their sources lie in the core's tree, and its wheel leaves them out."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent.parent
PARTS = sorted(p.name for p in (HERE / "parts").iterdir() if p.is_dir())
CORE = tomllib.loads((HERE / "core/pyproject.toml").read_text())


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_in_its_own_wheel_and_not_in_the_core_s(part: str) -> None:
    setuptools = pytest.importorskip("setuptools", reason="what goes into a wheel is asked of setuptools")
    own = tomllib.loads((HERE / "parts" / part / "pyproject.toml").read_text())
    assert own["project"]["name"] == f"mortice-{part}"
    assert own["project"]["version"] == CORE["project"]["version"]
    assert CORE["project"]["optional-dependencies"][part] == [f"mortice-{part}"]
    find = own["tool"]["setuptools"]["packages"]["find"]
    inside = setuptools.find_namespace_packages(str(HERE / "parts" / part), include=find["include"])
    folders = {p.parent for p in (HERE / "core/mortice" / part).rglob("*.py")}
    assert len(inside) == len(folders) and f"mortice.{part}" in inside
    left_out = CORE["tool"]["setuptools"]["packages"]["find"]["exclude"]
    assert all(any(fnmatch(package, pattern) for pattern in left_out) for package in inside)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_not_installed_says_how_to_get_it(part: str) -> None:
    code = (
        f"import sys; sys.modules['mortice.{part}'] = None\n"
        f"import mortice\nassert not hasattr(mortice, '{part}')\nmortice.{part}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pip install 'mortice[{part}]'" in done.stderr.splitlines()[-1], done.stderr
