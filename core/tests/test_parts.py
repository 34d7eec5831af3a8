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


def project(part: str) -> tuple[dict, str]:
    """Return a part's settings and its package's name."""
    own = tomllib.loads((HERE / "parts" / part / "pyproject.toml").read_text())
    return own, own["tool"]["setuptools"]["packages"]["find"]["include"][0]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_in_its_own_wheel_and_not_in_the_core_s(part: str) -> None:
    setuptools = pytest.importorskip("setuptools", reason="what goes into a wheel is asked of setuptools")
    own, package = project(part)
    assert own["project"]["name"] == f"mortice-{part}"
    assert own["project"]["version"] == CORE["project"]["version"]
    assert CORE["project"]["optional-dependencies"][part] == [f"mortice-{part}"]
    find = own["tool"]["setuptools"]["packages"]["find"]
    inside = setuptools.find_namespace_packages(str(HERE / "parts" / part), include=find["include"])
    folders = {p.parent for p in (HERE / "core" / package.replace(".", "/")).rglob("*.py")}
    assert package.endswith(f".{part}") and len(inside) == len(folders) and package in inside
    left_out = CORE["tool"]["setuptools"]["packages"]["find"]["exclude"]
    assert all(any(fnmatch(name, pattern) for pattern in left_out) for name in inside)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_not_installed_says_how_to_get_it(part: str) -> None:
    package = project(part)[1]
    above = package.rpartition(".")[0]
    code = (
        f"import sys; sys.modules['{package}'] = None\n"
        f"import mortice\nassert not hasattr({above}, '{part}')\n{package}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pip install 'mortice[{part}]'" in done.stderr.splitlines()[-1], done.stderr
