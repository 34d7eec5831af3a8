"""Write seeds.md: `python docs/seeds.py`. A test runs it with `--check`.

The rows come from `core/tests/seeds/rows.toml`, their tests from the tests themselves, which are parsed and not run: one
whose name begins with rows (`test_CR01_...`, `test_VD06_VD07_...`) or that carries the marker `seed("CR01", ...)`. A row
that has neither a test nor a reason, and a test of a row that there is not, is an error.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "seeds.md"
ROWS = ROOT / "core" / "tests" / "seeds" / "rows.toml"
TESTS = ("core/tests", "plugins/*/tests", "conformance/tests")
NAMED = re.compile(r"test((?:_[a-z]{2}\d{2})+)(?:_|$)", re.IGNORECASE)

HEAD = """# What the founding notes ask for, row by row

Made by `python docs/seeds.py` from `core/tests/seeds/rows.toml` and the tests; a test keeps it true. mortice began from
the notes of a PyTorch user: what was tried, what surprised, what went wrong in training. Each of their {total} rows is
here. {tested} have tests, which check PyTorch's behaviour of today where the notes are old or wrong; {other} are otherwise
here, or have nothing to run, and say why{both}.{lacking}
"""


def marked(decorator: ast.expr) -> list[str]:
    """Return the rows of a `seed` marker, none of another decorator."""
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "pytest.mark.seed":
        return []
    return [ast.literal_eval(row) for row in decorator.args]


def tests() -> dict[str, list[str]]:
    """Return the tests of each row, as file::name."""
    found: dict[str, list[str]] = {}
    for path in sorted(p for folder in TESTS for p in ROOT.glob(f"{folder}/**/test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.seed(" not in source and not NAMED.search(source):
            continue  # most need no parsing
        place = path.relative_to(ROOT).as_posix().removeprefix("core/tests/")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                match = NAMED.match(node.name)
                rows = match[1].upper().split("_")[1:] if match else []
                for row in dict.fromkeys([*rows, *(r for d in node.decorator_list for r in marked(d))]):
                    found.setdefault(row, []).append(f"{place}::{node.name}")
    return found


def page() -> str:
    """Return the whole page."""
    table = tomllib.loads(ROWS.read_text(encoding="utf-8"))
    systems, reasons, lacking = table["rows"], table["differences"], table.get("not_yet", {})
    rows = {row for system in systems.values() for row in system}
    covered = tests()
    if strange := (covered.keys() | reasons.keys() | lacking.keys()) - rows:
        sys.exit(f"{ROWS.name} has no such rows: {', '.join(sorted(strange))}")
    if missing := rows - covered.keys() - reasons.keys() - lacking.keys():
        sys.exit(f"rows without a test and without a reason: {', '.join(sorted(missing))}")
    both = len(reasons.keys() & covered.keys())
    text = [
        HEAD.format(
            total=len(rows),
            tested=len(covered),
            other=len(reasons),
            both=f" ({both} of them with tests too)" if both else "",
            lacking=f" {len(lacking)} do not work yet." if lacking else "",
        )  # fmt: skip
    ]
    for system, subjects in systems.items():
        text += [f"## {system}", "", "| row | what the notes ask | tests | otherwise here |", "|---|---|---|---|"]
        for row, subject in subjects.items():
            named = "<br>".join(f"`{test}`" for test in covered.get(row, []))
            reason = f"not yet: {lacking[row]}" if row in lacking else reasons.get(row, "")
            text.append(f"| {row} | {subject} | {named} | {reason} |")
        text.append("")
    return "\n".join(text)


if __name__ == "__main__":
    new = page()
    if "--check" in sys.argv:
        old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        sys.exit(0 if old == new else "docs/seeds.md is old: run `python docs/seeds.py`.")
    PAGE.write_text(new, encoding="utf-8")
