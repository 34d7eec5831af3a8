"""What a file of the core reads from another one is there, in branches too that no test happens to run."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mortice

pytestmark = pytest.mark.any_backend
CORE = Path(mortice.__file__).parent
FAMILIES = sorted({p.relative_to(CORE).parts[0] for p in CORE.rglob("*.py")} - {"__pycache__", "__main__.py"})
TYPES_ALONE = {("mortice.graph", "Hooks")}  # there for type checkers


def _imported(tree: ast.AST) -> list[tuple[str, str, str]]:
    """Return (module, name, name here) of all that is imported by name from the core."""
    return [
        (node.module, a.name, a.asname or a.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mortice"
        for a in node.names
        if a.name != "*"
    ]


def _found(module: str, name: str) -> Any:
    held = import_module(module)
    return getattr(held, name) if hasattr(held, name) else import_module(f"{module}.{name}")


def _lacking(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    imported = [(m, n, own) for m, n, own in _imported(tree) if (m, n) not in TYPES_ALONE]
    missing, modules = [], {}
    for module, name, own in imported:
        try:
            found = _found(module, name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mortice"):
                missing.append(f"{module}.{name}")
            continue
        if isinstance(found, ModuleType):
            modules[own] = found
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    reads = [(n.value.id, n.attr) for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)]
    return missing + [f"{m}.{a}" for m, a in reads if m in modules and m not in bound and not hasattr(modules[m], a)]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_file_reads_from_another_is_there(family: str) -> None:
    place = CORE / family
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    assert {str(p.relative_to(CORE)): lacking for p in files if (lacking := _lacking(p))} == {}
