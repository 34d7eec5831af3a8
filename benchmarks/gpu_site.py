"""A folder with this checkout installed, and with what it needs and the machine lacks: no network, no compiler needed."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = ("core", "plugins/cpu_numpy", "plugins/cuda_cupy", "conformance")
BUILD = ["setuptools>=77"]
LEFT_OUT = shutil.ignore_patterns("build", "tests", "*.egg-info", "__pycache__", "*.so")


class Uninstallable(RuntimeError):
    """The checkout cannot be installed here."""


def install(site: Path, wheels: Path | None) -> list[str]:
    """Fill the folder; return lines that say what was installed and what is missing.

    Raises:
        Uninstallable: where the checkout itself cannot be installed; the text has pip's own words.
    """
    made = site.with_suffix(".made")
    stamp = _stamp()
    if made.exists() and made.read_text() == stamp and site.is_dir():
        return [f"{site}: up to date"]
    shutil.rmtree(site, ignore_errors=True)
    said = []
    needed, optional = _needs()
    for requirement in (*needed, *optional):
        if _met(requirement):
            continue
        trouble = _pip(site, wheels, [requirement])
        kind = "missing" if requirement in needed else "missing, and done without"
        said.append(f"{requirement}: {f'{kind} ({trouble})' if trouble else f'installed from {wheels}'}")
    # Installing where a project lies would leave a build folder in the checkout, which the next installation reads.
    build = site.with_suffix(".build")
    shutil.rmtree(build, ignore_errors=True)
    for project in PROJECTS:
        shutil.copytree(ROOT / project, build / project, ignore=LEFT_OUT)
    if trouble := _pip(site, None, ["--no-build-isolation", *(f"./{project}" for project in PROJECTS)], build):
        said.append(f"pip cannot install the checkout, so its files are copied: {trouble}")
        try:
            _copy(build, site)
        except OSError as error:
            raise Uninstallable(f"the checkout cannot be installed: {error}. Before it:\n" + "\n".join(said)) from error
    shutil.rmtree(build)
    made.write_text(stamp)
    built = any((site / "mortice").glob("_engine*.so"))
    said.append(f"mortice from {ROOT}" + ("" if built else "; no C compiler, so without its accelerator"))
    return said


def _needs() -> tuple[list[str], list[str]]:
    """Return what the projects require beside each other, and what is better to have."""
    tables = [tomllib.loads((ROOT / p / "pyproject.toml").read_text())["project"] for p in PROJECTS]
    own = {table["name"] for table in tables}
    needed = dict.fromkeys(BUILD)
    for table in tables:
        needed |= dict.fromkeys(r for r in table["dependencies"] if not r.startswith(tuple(own)))
    extras = next(table["optional-dependencies"] for table in tables if table["name"] == "mortice-cuda-cupy")
    if PathFinder.find_spec("cupy") is None:
        needed |= dict.fromkeys(r.replace("[ctk]", "") for r in extras["cuda13"])
    return list(needed), list(extras["cudnn"])


def _met(requirement: str) -> bool:
    try:
        from packaging.requirements import Requirement
    except ModuleNotFoundError:
        from pip._vendor.packaging.requirements import Requirement

    wanted = Requirement(requirement)
    try:
        return wanted.specifier.contains(importlib.metadata.version(wanted.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False


def _copy(build: Path, site: Path) -> None:
    """Do what pip would: packages, the names by which plugins are found, and what is compiled."""
    site.mkdir(parents=True, exist_ok=True)
    for project in PROJECTS:
        table = tomllib.loads((build / project / "pyproject.toml").read_text())["project"]
        for package in sorted((build / project).iterdir()):
            if (package / "__init__.py").is_file():
                shutil.copytree(package, site / package.name, dirs_exist_ok=True)
        about = site / f"{table['name'].replace('-', '_')}-{table['version']}.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {table['name']}\nVersion: {table['version']}\n")
        groups = table.get("entry-points", {})
        lines = [f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in names.items()) for group, names in groups.items()]
        (about / "entry_points.txt").write_text("\n".join(lines))
    _compile(build / "core", site)


def _compile(project: Path, site: Path) -> None:
    """Compile what setuptools would, where there is a C compiler: small steps take much longer without it."""
    tool = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["setuptools"]
    flags = shlex.split(sysconfig.get_config_var("CFLAGS") or "-O2")
    for module in tool["ext-modules"]:
        made = site / (module["name"].replace(".", "/") + sysconfig.get_config_var("EXT_SUFFIX"))
        command = [os.environ.get("CC") or "cc", *flags, "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", *module["sources"]]
        command += [*module["extra-compile-args"], *module["extra-link-args"], "-o", str(made.resolve())]
        with contextlib.suppress(OSError):
            subprocess.run(command, cwd=project, capture_output=True)


def _pip(site: Path, wheels: Path | None, what: list[str], folder: Path = ROOT) -> str:
    """Install without a network; return the line that says why it failed, or nothing."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
    ]
    command += ["--no-warn-script-location", "--target", str(site.resolve()), "--upgrade"]
    command += ["--find-links", str(wheels.resolve())] if wheels else []
    path = os.pathsep.join(
        filter(None, (str(site.resolve()), os.environ.get("PYTHONPATH")))
    )  # a newer setuptools may lie there
    run = subprocess.run(
        [*command, *what], capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path}
    )
    if run.returncode == 0:
        return ""
    lines = [line for line in (run.stderr or run.stdout).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "error" in line.lower()), "pip said nothing")


def _stamp() -> str:
    """Return what tells whether the folder is that of this Python and these sources."""
    found = hashlib.sha256(sys.version.encode())
    for project in PROJECTS:
        for path in sorted((ROOT / project).rglob("*")):
            if path.suffix in {".py", ".c", ".cu", ".cuh", ".toml", ".json", ".css", ".html"} and path.is_file():
                found.update(f"{path.relative_to(ROOT)} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    return found.hexdigest()
