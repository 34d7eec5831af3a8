"""`mortice-conformance new NAME`: write a plugin package, to be completed by its author or complete from the start.

`template/` is a whole backend in plain Python and the source of what is written; `files/` has what surrounds it.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import json
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from mortice.backends import API, REQUIRED
from mortice.backends.backend import REQUIRED_NAMES
from mortice_conformance.new.template.backend import TemplateBackend

KERNELS = ("plain", "todo")
LICENSES = ("MIT", "Apache-2.0", "BSD-3-Clause", "LicenseRef-Proprietary")
# They compute with NumPy, which warns where a backend must be silent.
_NUMPY_BASED = ("numpy", "array_api_strict")
_DISTRIBUTIONS = {"dask.array": "dask[array]", "array_api_strict": "array-api-strict"}
_HOUSEKEEPING = REQUIRED["housekeeping"].split()
_HERE = files(__package__)


class NewError(ValueError):
    """What was asked for cannot be written; the text says why and what to do."""


def create(name: str, directory: str | Path = ".", *, over: str | None = None, device: str | None = None,
           kernels: str = "plain", license: str = "MIT") -> Path:  # fmt: skip
    """Write a plugin package called `name` into a new folder, and return the folder.

    Args:
        name: the backend's name: lower-case letters, digits, - and _.
        directory: where the folder is made.
        over: an array-API namespace, such as "jax.numpy"; its functions are the kernels then.
        device: the device type that the backend claims: its own name by default, "cpu" with `over`.
        kernels: "todo" for methods that say what each must do, "plain" for the same ones in plain Python.
        license: an SPDX identifier.
    """
    words = _names(name)
    if over is not None and not all(part.isidentifier() for part in over.split(".")):
        raise NewError(f"new: expected an importable namespace, such as numpy or jax.numpy; got {over!r}.")
    words["device"] = device or ("cpu" if over else words["name"])
    if not words["device"].isidentifier():
        raise NewError(f"new: expected a device type that is a name, such as cpu or my_device; got {device!r}.")
    if license not in LICENSES:
        raise NewError(f"new: expected a license of {', '.join(LICENSES)}; got {license!r}.")
    target = Path(directory) / name
    if target.exists():
        raise NewError(f"new: expected a folder that is not there yet; {target} is. Choose another name, or remove it.")
    words |= {"license": license, "year": str(datetime.date.today().year), "api": str(API), "mortice": "0.1"}
    written = _over(words, over) if over else _from_scratch(words, kernels)
    for path, text in written.items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return target


def next_steps(folder: Path, over: str | None, kernels: str) -> str:
    """Return what to do with a folder that `create` has written."""
    words = _names(folder.name)
    name, written = words["name"], f"{words['module']}/{'__init__' if over else 'backend'}.py"
    place = folder if folder.is_absolute() else f"./{folder.as_posix()}"
    steps = [
        (f"pip install -e {place}", "install it, so that changes count at once"),
        (
            "python -m mortice backends",
            "see it listed" + (", with what it lacks" if not over and kernels == "todo" else ""),
        ),
        (f"mortice-conformance run {name}" + ("" if over else " --level L1"), "what conforms, and what does not yet"),
    ]
    width = max(len(command) for command, _ in steps)
    lines = [f"Wrote {folder}: the backend {name!r} in {written}. Next:", ""]
    return "\n".join(lines + [f"    {command:<{width}}   # {what}" for command, what in steps])


def signature(kernel: str) -> inspect.Signature:
    """Return how a kernel is called: a required one as the template takes it, a free one as the core's body does."""
    _, *taken = inspect.signature(getattr(TemplateBackend, kernel)).parameters.values()
    return inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in taken])


def must(kernel: str) -> str:
    """Return how a required kernel is called and what it must do, in the template's words; "" of one that it has not."""
    method = vars(TemplateBackend).get(kernel)
    return f"{kernel}{signature(kernel)}: {inspect.getdoc(method)}" if method else ""


def _names(name: str) -> dict[str, str]:
    """Return the names that follow from one: of the backend, the module, the distribution and the class."""
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise NewError(
            f"new: expected a name of lower-case letters, digits, - and _ that begins with a letter, such as my_device; "
            f"got {name!r}."
        )
    own = re.sub(r"^mortice[-_]", "", name).replace("-", "_")
    distribution = "mortice-" + own.replace("_", "-")
    from mortice.backends.plugins import entries

    holder = entries().get(own)
    if own in ("mortice", "conformance") or (holder is not None and holder.distribution != distribution):
        of = holder.distribution if holder is not None else f"mortice-{own}".replace("mortice-mortice", "mortice")
        raise NewError(f"new: the name {own!r} is taken by {of}. Choose another one.")
    title = "".join(part.capitalize() for part in own.split("_"))
    return {"name": own, "module": f"mortice_{own}", "distribution": distribution, "class": f"{title}Backend"}


def _over(words: dict[str, str], namespace: str) -> dict[str, str]:
    """Return the files of a plugin over an array-API namespace."""
    quiet = namespace in _NUMPY_BASED
    library = _DISTRIBUTIONS.get(namespace, namespace.partition(".")[0].replace("_", "-"))
    needs = [library, *(["numpy"] if quiet and library != "numpy" else [])]
    words = words | {
        "namespace": namespace,
        "import": "array_api_compat.numpy" if namespace == "numpy" else namespace,
        "maker": "NamespaceBackend" if quiet else "from_namespace",
        "make": f'NamespaceBackend(Quiet(xp), {{"{words["device"]}": None}})'
        if quiet
        else f'from_namespace(xp, "{words["name"]}", devices={{"{words["device"]}": None}}, register=False)',
        "quiet": _filled("quiet.py", words) if quiet else "",
        "needs": " ".join(needs),
        "about": f"{namespace} as a backend of mortice",
        "requires": _requires(words, *needs),
    }
    return {f"{words['module']}/__init__.py": _filled("over.py", words), **_surroundings(words, "README.over.md")}


def _from_scratch(words: dict[str, str], kernels: str) -> dict[str, str]:
    """Return the files of a plugin with kernels of its own, from the template."""
    if kernels not in KERNELS:
        raise NewError(f"new: expected kernels of {' or '.join(KERNELS)}; got {kernels!r}.")
    words = words | {
        "about": f"{words['name']}, a backend of mortice",
        "requires": _requires(words),
        "kernels": "Write the kernels, a family at a time: each method says what it must do."
        if kernels == "todo"
        else "Replace the kernels, one at a time: `plain.py` computes them in plain Python, slowly.",
    }
    module, template = words["module"], _HERE / "template"
    text = (template / "backend.py").read_text(encoding="utf-8")
    found = {
        f"{module}/__init__.py": (template / "__init__.py").read_text(encoding="utf-8"),
        f"{module}/backend.py": _unwritten(text) if kernels == "todo" else text,
    }
    if kernels == "plain":
        found[f"{module}/plain.py"] = (template / "plain.py").read_text(encoding="utf-8")
    return {path: _renamed(text, words) for path, text in found.items()} | _surroundings(words, "README.kernels.md")


def _surroundings(words: dict[str, str], readme: str) -> dict[str, str]:
    """Return the files that every plugin has."""
    license = f"SPDX-License-Identifier: {words['license']}\n\nPut the text of the licence here.\n"
    return {
        "pyproject.toml": _filled("pyproject.toml", words),
        "README.md": _filled(readme, words),
        "LICENSE": _filled("LICENSE", words) if words["license"] == "MIT" else license,
        ".gitignore": _filled("gitignore", words),
        ".github/workflows/test.yml": _filled("test.yml", words),
        "tests/test_conformance.py": _filled("test_conformance.py", words),
        f"{words['module']}/known_failures.toml": _filled("known_failures.toml", words),
        f"{words['module']}/py.typed": "",
    }


def _requires(words: dict[str, str], *libraries: str) -> str:
    return ", ".join(f'"{need}"' for need in (f"mortice>={words['mortice']}", *libraries))


def _filled(file: str, words: dict[str, str]) -> str:
    """Return a file with its {{words}} put in."""
    source: Traversable = _HERE / "files" / f"{file}.in"
    text = source.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: words[found[1]], text)


def _renamed(text: str, words: dict[str, str]) -> str:
    """Return the template's source under the plugin's names."""
    text = text.replace(f"{__package__}.template", words["module"]).replace("TITLE", words["name"])
    text = text.replace("TemplateBackend", words["class"]).replace("mortice-template", words["distribution"])
    for line in ('("template",)', '["template"]'):
        text = text.replace(line, line.replace("template", words["device"]))
    return text.replace('BackendInfo("template"', f'BackendInfo("{words["name"]}"').replace(
        "`template`", f"`{words['name']}`"
    )


def _unwritten(source: str) -> str:
    """Replace the body of each required kernel by an error that says what it must do."""
    lines = source.splitlines()
    backend: Any = next(
        n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "TemplateBackend"
    )
    for method in reversed([n for n in backend.body if isinstance(n, ast.FunctionDef)]):
        if method.name in REQUIRED_NAMES and method.name not in _HOUSEKEEPING:
            first, what = method.body[1].lineno - 1, re.split(r"[.:;]", ast.get_docstring(method) or "")[0]
            text = json.dumps(f"{method.name}: {what[:1].lower()}{what[1:]}")
            lines[first : method.end_lineno] = [f"        raise NotImplementedError({text})"]
    return "\n".join(line for line in lines if not line.endswith("import plain")) + "\n"
