"""What is checked: files, the code cells of notebooks, and the files in folders."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import textwrap
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = frozenset("__pycache__ venv env node_modules site-packages build dist".split())
# Lines of a notebook that are no Python: magics, shell commands, help. Each becomes a `pass`, so that lines keep their numbers.
MAGIC = re.compile(r"^(\s*)(?:[%!?].*|\w+\s*=\s*[%!].*|[\w.]+\?{1,2}\s*)$")
SPOKEN = ("%%time", "%%timeit", "%%capture", "%%prun", "%%python3")  # magics of whole cells whose rest is Python still


@dataclass
class Source:
    """A program's text and tree.

    Attributes:
        text: all of it; the cells of a notebook one after the other.
        tree: None where nothing could be parsed.
        errors: why; of a notebook for each cell that could not.
        displayed: the last statements of a notebook's cells, whose values are shown.
        cells: of a notebook, (the first line in `text`, the cell's number) of each code cell.
    """

    filename: str
    text: str
    tree: ast.Module | None = None
    errors: list[SyntaxError] = field(default_factory=list)
    displayed: frozenset[ast.stmt] = frozenset()
    cells: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = self.text.splitlines()

    def line(self, number: int) -> str:
        """Return a line of the text."""
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def place(self, line: int) -> tuple[int, int]:
        """Return the cell (0 where it is no notebook) and the line in it of a line of the text."""
        if not self.cells:
            return 0, line
        first, cell = self.cells[max(bisect_right(self.cells, (line, len(self._lines))) - 1, 0)]
        return cell, line - first + 1


def read(path: str | Path) -> Source:
    """Read a file, in the encoding that it says."""
    data = Path(path).read_bytes()
    encoding = "utf-8" if str(path).endswith(".ipynb") else tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    return split(io.TextIOWrapper(io.BytesIO(data), encoding).read(), str(path))


def split(text: str, filename: str) -> Source:
    """Parse a program, or the cells of a notebook."""
    if filename.endswith(".ipynb"):
        return _notebook(text, filename)
    source = Source(filename, text)
    try:
        source.tree = _parse(text, filename)
    except SyntaxError as error:
        source.errors.append(error)
    return source


def _parse(text: str, filename: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in strings, which are none of our business
        try:
            return ast.parse(text, filename)
        except RecursionError:
            return ast.Module([], [])
        except ValueError as error:  # null bytes
            raise SyntaxError(str(error), (filename, 1, 1, "")) from None


def _notebook(text: str, filename: str) -> Source:
    try:
        notebook = json.loads(text)
        listed = (
            notebook["cells"]
            if "cells" in notebook
            else [c for sheet in notebook["worksheets"] for c in sheet["cells"]]
        )
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{filename} is no notebook: {error}") from None
    about = notebook.get("metadata", {})
    language = about.get("language_info", {}).get("name") or about.get("kernelspec", {}).get("language") or "python"
    if language not in ("python", "ipython"):
        listed = []
    lines: list[str] = []
    cells: list[tuple[int, int]] = []
    body: list[ast.stmt] = []
    displayed: list[ast.stmt] = []
    errors: list[SyntaxError] = []
    for number, cell in enumerate(listed, 1):
        if cell.get("cell_type") != "code":
            continue
        written = cell.get("source", cell.get("input", ""))
        written = written if isinstance(written, str) else "".join(written)
        cells.append((len(lines) + 1, number))
        first = len(lines)
        lines += written.splitlines() or [""]
        try:
            tree = _cell(written, filename)
        except SyntaxError as error:
            error.lineno = first + (error.lineno or 1)
            errors.append(error)
            continue
        ast.increment_lineno(tree, first)
        body += tree.body
        displayed += tree.body[-1:]
    return Source(filename, "\n".join(lines), ast.Module(body, []), errors, frozenset(displayed), cells)


def _cell(cell: str, filename: str) -> ast.Module:
    """Parse a cell without what only IPython understands."""
    cell = textwrap.dedent(cell)  # as IPython does
    try:
        return _parse(cell, filename)
    except SyntaxError:
        lines = cell.splitlines()
        first = next((line for line in lines if line.strip()), "")
        if first.startswith("%%") and not first.startswith(SPOKEN):
            return ast.Module([], [])  # another language
        plain = "\n".join(MAGIC.sub(r"\1pass", line) for line in lines)
        if plain == cell.rstrip("\n"):
            raise
    return _parse(plain, filename)


def files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files that are named, and all scripts and notebooks in the folders that are."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, inner, names in os.walk(path):
            inner[:] = sorted(n for n in inner if n not in SKIPPED and not n.startswith("."))
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith((".py", ".ipynb")))
