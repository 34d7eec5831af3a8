"""Write compatibility.md: `python docs/compatibility.py`. A test runs it with `--check`.

Every public name of PyTorch comes from `core/tests/oracle/public_names.txt`, whether mortice has it from mortice itself,
why not from `core/tests/oracle/omitted.toml`.
"""

from __future__ import annotations

import fnmatch
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
sys.path.insert(0, str(ROOT / "core"))

from tests.oracle.places import NAMES, place, recorded  # noqa: E402

HEAD = """# Which of PyTorch's names are here

Made from the code by `python docs/compatibility.py`; a test keeps it true. {version} has {total} public names in the
namespaces below, {here} of them ({share:.0%}) are in mortice. What is
different on purpose is in [differences.md](differences.md); what the comparison of values, gradients, dtypes, shapes and
errors covers is in `core/tests/oracle`.

| namespace | names | here | left out |
|---|---|---|---|
"""


def reasons() -> list[tuple[str, dict[str, list[str]]]]:
    """Return the groups of names left out: a reason, and patterns by namespace."""
    groups = tomllib.loads((ROOT / "core/tests/oracle/omitted.toml").read_text(encoding="utf-8"))["omitted"]
    return [(g["reason"], {k: v for k, v in g.items() if k != "reason"}) for g in groups]


def page() -> str:
    """Return the whole page."""
    table = recorded()
    version = NAMES.read_text(encoding="utf-8").splitlines()[0].partition("of ")[2].partition(", by")[0]
    here = {name: [n for n in names if hasattr(place("mortice", name), n)] for name, names in table.items()}
    total, have = sum(map(len, table.values())), sum(map(len, here.values()))
    text = [HEAD.format(version=version, total=total, here=have, share=have / total).rstrip("\n")]
    text += [f"| {k} | {len(v)} | {len(here[k])} | {len(v) - len(here[k])} |" for k, v in table.items()]
    text += ["", "## Left out, and why", ""]
    for reason, patterns in reasons():
        text += [f"**{reason}**", ""]
        for name, wanted in patterns.items():
            lacking = sorted(set(table[name]) - set(here[name]))
            covered = [n for n in lacking if any(fnmatch.fnmatchcase(n, p) for p in wanted)]
            text.append(f"- {name}: {', '.join(f'`{n}`' for n in covered)}")
        text.append("")
    text += ["## Here", ""]
    for name, names in here.items():
        text += [f"**{name}**: {', '.join(f'`{n}`' for n in names)}", ""]
    return "\n".join(text)


if __name__ == "__main__":
    new = page()
    if "--check" in sys.argv:
        old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        sys.exit(0 if old == new else "docs/compatibility.md is old: run `python docs/compatibility.py`.")
    PAGE.write_text(new, encoding="utf-8")
