"""The doctor's static part: finds mistakes in the text of a program, for mortice and PyTorch alike, without running it.

Nothing that the program imports is imported, so that it need not be installed. Where the text does not tell, it is quiet.
"""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path

from mortice.doctor.finding import Finding, Site, silences
from mortice.doctor.static import attributes, layers, loops, losses, pictures
from mortice.doctor.static.meaning import Meaning
from mortice.doctor.static.program import Program
from mortice.doctor.static.rule import StaticRule, known
from mortice.doctor.static.sources import Source, read, split

__all__ = ["StaticRule", "check", "check_source", "rules"]

UNREADABLE = "D00"  # the id of a finding about a file that is no Python
# Without any of these a program is none of ours.
LIBRARIES = frozenset(
    "torch mortice torchvision torchtext torchaudio pytorch_lightning lightning ignite fastai timm".split()
)


def rules() -> list[type[StaticRule]]:
    """Return all static rules in the order of ids."""
    return sorted(known, key=lambda r: r.id)


def check(
    path: str | Path, *, select: Iterable[str] | None = None, ignore: Iterable[str] = (), style: bool = False
) -> list[Finding]:
    """Return the findings in a file: a script, or the code cells of a notebook.

    Args:
        path: the file.
        select: ids of the only rules to report; patterns such as "D0*" work.
        ignore: ids of rules that are not to report.
        style: also report matters of taste.
    """
    try:
        source = read(path)
    except (OSError, SyntaxError, ValueError) as error:
        return [_unreadable(str(path), f"{type(error).__name__}: {error}", 0, 0)]
    return _check(source, select, ignore, style)


def check_source(
    text: str,
    filename: str = "<source>",
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    style: bool = False,
) -> list[Finding]:
    """Return the findings in a program's text; options as `check`'s. A `filename` that ends in .ipynb is a notebook's."""
    try:
        source = split(text, filename)
    except ValueError as error:
        return [_unreadable(filename, f"{type(error).__name__}: {error}", 0, 0)]
    return _check(source, select, ignore, style)


def _check(source: Source, select: Iterable[str] | None, ignore: Iterable[str], style: bool) -> list[Finding]:
    selected, ignored = None if select is None else tuple(select), tuple(ignore)
    found = [
        _unreadable(source.filename, f"{e.msg}", e.lineno or 1, e.offset or 1)
        for e in source.errors
        if "D00" not in ignored
    ]
    if source.tree is not None:
        found += _look(source, selected, ignored, style)
    for each in found:
        _place(each, source)
    return sorted(found, key=lambda f: (f.values.get("cell", 0), f.site.line, f.values["column"], f.rule))


def _look(source: Source, selected: tuple[str, ...] | None, ignored: tuple[str, ...], style: bool) -> Iterator[Finding]:
    assert source.tree is not None
    try:
        program = Program(source.tree, source.displayed)
    except RecursionError:  # generated code with thousands of nested expressions
        return
    if not program.uses & LIBRARIES and not program.nodes.get(ast.Attribute):
        return
    if not program.uses & LIBRARIES and "torch" not in source.text:
        return
    meaning = Meaning(program)
    for rule in (r(program, meaning, source) for r in rules() if _wanted(r, selected, ignored, style)):
        try:
            _visit(rule, program)
        except RecursionError:
            continue
        for finding, node in rule.findings:
            if program.expected(node):
                continue
            last = program.statement(node)
            end = last.lineno if hasattr(last, "body") else last.end_lineno or last.lineno
            lines = {finding.site.line, end, getattr(node, "end_lineno", end)}
            if not any(silences(source.line(n), finding.rule) for n in lines):
                yield finding


def _visit(rule: StaticRule, program: Program) -> None:
    for name in dir(rule):
        if name.startswith("visit_"):
            visit = getattr(rule, name)
            for node in program.nodes.get(getattr(ast, name.removeprefix("visit_")), ()):
                visit(node)
    rule.finish()


def _wanted(rule: type[StaticRule], selected: tuple[str, ...] | None, ignored: tuple[str, ...], style: bool) -> bool:
    if any(fnmatch.fnmatch(rule.id, p) for p in ignored):
        return False
    if selected is not None:
        return any(fnmatch.fnmatch(rule.id, p) for p in selected)
    return style or not rule.style


def _unreadable(filename: str, message: str, line: int, column: int) -> Finding:
    return Finding(
        UNREADABLE,
        "error",
        "No Python that can be read",
        message,
        "",
        "",
        Site(filename, line),
        values={"column": column},
    )


def _place(finding: Finding, source: Source) -> None:
    """Turn a line of the whole notebook into a cell and a line in it."""
    cell, line = source.place(finding.site.line)
    if cell:
        finding.site = finding.site._replace(line=line)
        finding.values["cell"] = cell
