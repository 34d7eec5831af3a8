"""Writes `mortice/catalog.py`: which module defines what, for the names that are loaded at their first use.

Run it after adding a public name, an op or a free kernel: `python core/tests/write_catalog.py`. `test_lazy.py` compares,
and so does --check.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from pathlib import Path
from textwrap import wrap

CORE = Path(__file__).parents[1] / "mortice"
HEAD = '''"""Which module has which name, so that families of operations load at their first use. Written by tests/write_catalog.py.

Of what a module calls otherwise its own name comes second: `shown=own`.
"""

from __future__ import annotations
'''


def modules(package: str) -> list[object]:
    """Import the modules of a package, in alphabetical order."""
    path = [str(CORE.joinpath(*package.split(".")[1:]))]
    return [importlib.import_module(f"{package}.{m.name}") for m in pkgutil.iter_modules(path) if not m.ispkg]


def public() -> dict[str, list[str]]:
    """Read the names that `mortice/__init__.py` shows type checkers, and import nothing else for them."""
    tree = ast.parse((CORE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING")
    found: dict[str, list[str]] = {}
    for node in block.body:
        if isinstance(node, ast.Assign):  # the public name of what was imported as a private one
            shown = {old.id: new.id for new, old in zip(node.targets[0].elts, node.value.elts)}
            for module, names in found.items():
                found[module] = ["=".join([shown.get(n, n) for n in name.split("=")]) for name in names]
            continue
        assert isinstance(node, ast.ImportFrom)
        if node.module is None:
            found.setdefault("", []).extend(alias.name for alias in node.names)
            continue
        names = found.setdefault(node.module.removeprefix("mortice."), [])
        for alias in node.names:
            if alias.name == "*":
                names += importlib.import_module(node.module).__all__
            else:
                names.append(alias.name if alias.asname in (None, alias.name) else f"{alias.asname}={alias.name}")
    return found


def tensor_kernels() -> dict[str, list[str]]:
    """Say which module of `ops` gives the Tensor-level function of each kernel."""
    from mortice import mutation, node

    modules("mortice.ops")
    found: dict[str, list[str]] = {}
    for name, fn in vars(node.TENSOR_KERNELS).items():
        module = getattr(fn, "__module__", "")
        assert module.startswith("mortice."), f"{name}: no module says that it is its own"
        if module != mutation.__name__:
            found.setdefault(module.removeprefix("mortice."), []).append(name)
    return found


def ops() -> list[str]:
    """Return the modules that define ops."""
    from mortice import op

    modules("mortice.ops")
    return sorted({found.fn.__module__.removeprefix("mortice.") for found in op._ops.values()})


def free_kernels() -> dict[str, list[str]]:
    """Say which mixin of `backends` has each free kernel."""
    found: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    for module in modules("mortice.backends"):
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__name__.endswith("Kernels") and cls.__module__ == module.__name__:
                if cls.__name__ == "FreeKernels":
                    continue
                names = [n for n in vars(cls) if not n.startswith("__")]
                place = f"{cls.__module__.removeprefix('mortice.')}:{cls.__name__}"
                for name in names:
                    assert name not in seen, f"{name} is in {seen[name]} and {place}"
                    seen[name] = place
                if names:
                    found[place] = names
    return found


def text() -> str:
    """Return what `catalog.py` should be."""
    listed = wrap(", ".join(f'"{module}"' for module in ops()), 112)
    parts = [HEAD, "OPS = (", *(f"    {line}" for line in listed[:-1]), f"    {listed[-1]},", ")  # fmt: skip\n"]
    for title, table in (("PUBLIC", public()), ("TENSOR_KERNELS", tensor_kernels()), ("FREE_KERNELS", free_kernels())):
        parts.append(f"{title} = {{")
        for module in sorted(table):
            lines = wrap(" ".join(sorted(set(table[module]))), 108)
            if len(lines) == 1 and len(module) + len(lines[0]) < 106:
                parts.append(f'    "{module}": "{lines[0]}",')
                continue
            parts.append(f'    "{module}": (')
            parts += [f'        "{line}{" " if i + 1 < len(lines) else ""}"' for i, line in enumerate(lines)]
            parts.append("    ),")
        parts.append("}  # fmt: skip\n")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(None if (CORE / "catalog.py").read_text() == text() else "catalog.py is old: run `python core/tests/write_catalog.py`.")
    (CORE / "catalog.py").write_text(text())
