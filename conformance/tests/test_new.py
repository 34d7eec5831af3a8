"""`mortice-conformance new`: what it writes installs, loads, says what it lacks, and passes once its kernels are there."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mortice.backends import REQUIRED
from mortice_conformance import cli, new

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
KERNELS = [n for family, names in REQUIRED.items() if family != "housekeeping" for n in names.split()]


def python(*arguments: str, site: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with a folder on its path, and no backend chosen."""
    path = os.pathsep.join(filter(None, [str(site), *(p for p in sys.path if p), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path}
    env.pop("MORTICE_BACKEND", None)
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=300)


def installed(folder: Path) -> Path:
    """Make a written package importable and found, by its own pyproject.toml and without building it."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "\n".join(f"{k} = {v}" for k, v in project["entry-points"]["mortice"].items())
    (info / "entry_points.txt").write_text(f"[mortice]\n{points}\n")
    return folder


def test_a_new_package_loads_and_says_which_kernels_it_lacks(tmp_path: Path) -> None:
    site = installed(new.create("demo", tmp_path, kernels="todo"))
    listing = python("-m", "mortice", "backends", site=site)
    assert "50 required kernels are not written yet" in listing.stdout, listing.stderr
    run = python("-m", "mortice_conformance", "run", "demo", site=site)
    assert run.returncode == 1
    told = run.stdout.partition("By family:")[2]
    assert [n for n in KERNELS if n in told.split()] == KERNELS
    assert "FAIL test_" not in run.stdout  # nothing but the missing kernels is wrong with it
    assert "23 passed  48 failed, 43 skipped" in run.stdout  # as the guide shows


def test_a_kernel_that_is_not_written_says_what_it_is_to_do(tmp_path: Path) -> None:
    site = installed(new.create("demo", tmp_path, kernels="todo"))
    done = python("-c", "import mortice; mortice.ones(3, device='demo')", site=site)
    assert done.stderr.strip().endswith(
        "NotImplementedError: full: fill a new buffer of that shape with a Python number"
    )


def test_a_new_package_passes_once_its_kernels_are_there(tmp_path: Path) -> None:
    todo, plain = (new.create("demo", tmp_path / kernels, kernels=kernels) for kernels in ("todo", "plain"))
    bare, whole = ((p / "mortice_demo/backend.py").read_text() for p in (todo, plain))
    missing = {n.name for n in ast.walk(ast.parse(bare)) if isinstance(n, ast.FunctionDef)} - {
        n.name for n in ast.walk(ast.parse(whole)) if isinstance(n, ast.FunctionDef)
    }
    assert missing == set() and bare.count("raise NotImplementedError(") == len(KERNELS)
    run = python("-m", "mortice_conformance", "run", "demo", "--level", "L1", site=installed(plain))
    assert run.returncode == 0 and "reached L1" in run.stdout, run.stdout + run.stderr
    guide = (DOCS / "write_a_backend.md").read_text(encoding="utf-8")
    assert all(line in guide for line in run.stdout.splitlines() if line.startswith(("  L0", "  L1"))), run.stdout
    run = python("-m", "mortice_conformance", "run", "demo", "--only", "float32", "--level", "L3", site=plain)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("namespace", ["numpy", "array_api_strict"])
def test_a_package_over_a_namespace_passes_at_once(tmp_path: Path, namespace: str) -> None:
    pytest.importorskip(namespace, reason=f"{namespace} is not installed: no backend can be made over it")
    site = installed(new.create("over-it", tmp_path, over=namespace))
    run = python("-m", "mortice_conformance", "run", "over_it", "--level", "L1", site=site)
    assert run.returncode == 0, run.stdout + run.stderr
    found = python(
        "-c", "import mortice as mt\nwith mt.use_backend('over_it'): print((mt.ones(3) / 0).tolist())", site=site
    )
    assert found.stdout.strip() == "[inf, inf, inf]" and not found.stderr


def test_its_own_tests_and_readme_are_python_that_runs(tmp_path: Path) -> None:
    site = installed(new.create("demo", tmp_path))
    chosen = "found or made or required_kernels"
    run = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, str(site / "tests"), site=site)
    assert "3 passed" in run.stdout, run.stdout + run.stderr
    snippet = re.findall(r"^```python\n(.*?)^```", (site / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    done = python("-c", "\n".join(snippet), site=site)
    assert done.stdout.strip() == "tensor([2., 2., 2.], device='demo')", done.stderr


def test_every_way_to_start_writes_a_whole_package_without_a_word_left_open(tmp_path: Path) -> None:
    ways = {"a": {}, "b": {"kernels": "todo", "license": "Apache-2.0"}, "c": {"over": "torch", "device": "cuda"}}
    for name, options in ways.items():
        folder = new.create(f"{name}-package", tmp_path, **options)  # type: ignore[arg-type]
        files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
        module = f"mortice_{name}_package"
        due = {"pyproject.toml", "README.md", "LICENSE", ".gitignore", ".github/workflows/test.yml",
               "tests/test_conformance.py", f"{module}/__init__.py", f"{module}/known_failures.toml"}  # fmt: skip
        assert due <= set(files)
        for path, file in files.items():
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"\{\{\w|[Tt]emplate|TITLE", text), path
            if path.endswith(".py"):
                compile(text, path, "exec")
            if path.endswith(".toml"):
                tomllib.loads(text)
        project = tomllib.loads(files["pyproject.toml"].read_text())["project"]
        assert project["license"] == options.get("license", "MIT")
        assert project["entry-points"]["mortice"] == {f"{name}_package": module}
    assert '("cuda",)' in (tmp_path / "c-package/mortice_c_package/__init__.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["Demo"], "new: expected a name of lower-case letters, digits, - and _ that begins with a letter, such as "
                   "my_device; got 'Demo'."),
        (["2d"], "got '2d'."),
        (["../up"], "got '../up'."),
        (["strict"], "new: the name 'strict' is taken by mortice-conformance. Choose another one."),
        (["mortice-conformance"], "new: the name 'conformance' is taken by mortice-conformance. Choose another one."),
        (["x", "--over", "a b"], "new: expected an importable namespace, such as numpy or jax.numpy; got 'a b'."),
        (["x", "--device", "my-device"], "new: expected a device type that is a name, such as cpu or my_device; got 'my-device'."),
        (["x", "--license", "GPL"], "new: expected a license of MIT, Apache-2.0, BSD-3-Clause, LicenseRef-Proprietary; got 'GPL'."),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", *arguments, "--directory", str(tmp_path)]) == 2
    assert capsys.readouterr().err.strip().endswith(text)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "demo", "--directory", str(tmp_path)]) == 0
    assert "pip install -e" in capsys.readouterr().out
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert cli.main(["new", "demo", "--directory", str(tmp_path), "--over", "numpy"]) == 2
    assert "expected a folder that is not there yet" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_new_package_is_built_and_installed_by_pip(tmp_path: Path) -> None:
    try:
        setuptools = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        setuptools = "0"
    if int(setuptools.partition(".")[0]) < 77 or python("-m", "pip", "--version", site=tmp_path).returncode:
        pytest.skip("pip and setuptools 77 are needed to build a package without the network")
    folder, site = new.create("demo", tmp_path, kernels="todo"), tmp_path / "site"
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    done = python("-m", "pip", "install", *options, "--target", str(site), str(folder), site=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (site / "mortice_demo/known_failures.toml").exists()
    assert "demo   mortice-demo 0.1.0" in python("-m", "mortice", "backends", site=site).stdout


def test_the_guide_has_the_line_that_works() -> None:
    text = (DOCS / "write_a_backend.md").read_text(encoding="utf-8")
    assert "    mortice-conformance new demo && pip install ./demo && mortice-conformance run demo\n" in text


def test_a_dtype_that_a_backend_lacks_is_named_wherever_a_result_needs_it(tmp_path: Path) -> None:
    site = installed(new.create("demo", tmp_path))
    code = """
import mortice as mt
x = mt.ones(4, 2, device="demo")
calls = {
    "rfft": lambda: mt.fft.rfft(x), "view_as_complex": lambda: mt.view_as_complex(x), "complex": lambda: mt.complex(x, x),
    "eigvals": lambda: mt.linalg.eigvals(x[:2]), "cfloat": lambda: x.cfloat(), "add": lambda: x + 1j,
}
for name, call in calls.items():
    for _ in range(2):  # the second call takes a shorter way
        try:
            call()
        except mt.errors.DTypeError as error:
            assert "backend demo has no complex64" in str(error), error
        else:
            raise AssertionError(name)
print("named")
"""
    done = python("-c", code, site=site)
    assert done.stdout.strip() == "named", done.stderr
