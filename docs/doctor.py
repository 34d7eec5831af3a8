"""Write the doctor's pages: `python docs/doctor.py` makes docs/doctor/*.md, one for each rule, and the tables of docs/doctor.md.

Words come from the rules themselves, programs from the corpus, and what a program says, its curve and the figures from
running it. A test runs it with `--check`, which compares what needs no running.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import math
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "core" / "tests" / "doctor" / "corpus"
PAGES = ROOT / "docs" / "doctor"
GUIDE = ROOT / "docs" / "doctor.md"
MARK = "<!-- {}: made by docs/doctor.py -->"
LEVELS = {"error": "error", "warning": "warning", "info": "information"}


def rules() -> list[Any]:
    """Return mortice's own rules."""
    from mortice import doctor

    return [r for r in doctor.rules() if r.__module__.startswith("mortice.")]


def source(path: Path) -> str:
    """Return a program without the marks that the corpus needs."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^# (raises: .*|static)\n", "", text, flags=re.M)
    return re.sub(r" *# <- .*$", "", text, flags=re.M).strip() + "\n"


def program(rule: str, kind: str) -> Path | None:
    """Return the rule's `broken` or `correct` program."""
    found = CORPUS / rule / f"{kind}.py"
    if not found.exists():
        found = next(iter(sorted((CORPUS / rule).glob(f"{kind}*.py"))), found)
    return found if found.exists() else None


def page(rule: Any, said: str) -> str:
    """Return a rule's page; `said` is what the doctor said of the program."""
    style = " A matter of taste: reported under `watch(style=True)` only." if rule.style else ""
    lines = [f"# {rule.id}: {rule.title}", "", f"{(rule.__doc__ or '').splitlines()[0]}{style}", ""]
    lines += [f"**Level**: {LEVELS[rule.level]}. **Why it hurts**: {rule.why}", "", f"**What to do**: {rule.remedy}", ""]
    broken, correct = program(rule.id, "broken"), program(rule.id, "correct")
    if broken is None:
        return "\n".join(lines)
    lines += ["## A program that makes it", "", "```python", source(broken).rstrip(), "```", ""]
    if said:
        lines += ["What the doctor says:", "", "```text", said, "```", ""]
    if (PAGES / f"{rule.id}.svg").exists():
        lines += [f"![The loss with the mistake and without it]({rule.id}.svg)", ""]
    if correct is not None:
        change = difflib.unified_diff(source(broken).splitlines(), source(correct).splitlines(), lineterm="", n=1)
        shown = [line for line in list(change)[2:] if not line.startswith("@@")]
        whole = len(shown) > 24
        lines += ["## Without it", "", "```python" if whole else "```diff"]
        lines += source(correct).rstrip().splitlines() if whole else shown
        lines += ["```", ""]
    return "\n".join(lines)


def run(path: Path, rule: str) -> tuple[str, list[float]]:
    """Run a program under the doctor; return what is said of it and its losses."""
    from mortice import doctor

    text, space, error = path.read_text(encoding="utf-8"), {}, None
    if "\n# static" in "\n" + text:
        from mortice.doctor import static

        findings = static.check(path)
    else:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with doctor.watch(quiet=True) as session:
                try:
                    space = runpy.run_path(str(path), run_name="__main__")
                except Exception as caught:
                    error = caught
        findings = session.findings
    said = [f"{path.name}:{f.site.line}: {f.level} {f.rule} {f.message} {f.remedy}".rstrip() for f in findings if f.rule == rule]
    if error is not None and "# raises:" in text:
        said.append("\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]))
    return "\n".join(said), [float(v) for v in space.get("losses", [])]


def curve(with_it: list[float], without: list[float]) -> str:
    """Draw two losses over their steps; the few that tower over the rest are cut."""
    from mortice.doctor.tools.chart import Chart, Line

    sound = sorted(v for v in (*with_it, *without) if math.isfinite(v))
    top = 1.1 * sound[int(0.98 * (len(sound) - 1))]
    both = {"with the mistake": with_it, "without it": without}
    lines = [Line(name, list(range(1, len(v) + 1)), [min(y, top) for y in v]) for name, v in both.items()]
    return Chart("", "step", "loss", lines, []).svg()


def replaced(text: str, name: str, block: str) -> str:
    """Return the guide with the block of a name replaced."""
    begin, end = MARK.format(name), MARK.format(f"end of {name}")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{block.strip()}\n\n{end}{after}"


def index() -> str:
    """Return the table of all rules."""
    rows = [f"| [{r.id}](doctor/{r.id}.md) | {r.title} | {LEVELS[r.level]} |" for r in rules()]
    return "\n".join(["| id | mistake | level |", "|---|---|---|", *rows])


def output(*command: str) -> str:
    """Return what a command prints, with the folders of this machine left out."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT)
    return done.stdout.replace(f"{ROOT}/", "").strip()


def said_before(path: Path) -> str:
    """Return what a page says that the doctor says."""
    found = re.search(r"```text\n(.*?)\n```", path.read_text(encoding="utf-8") if path.exists() else "", re.S)
    return found[1] if found else ""


def main() -> int:
    """Write the pages, or compare them; returns 1 where they are not up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; return 1 where a page is out of date")
    arguments = parser.parse_args()
    stale = []
    PAGES.mkdir(exist_ok=True)
    wanted = {PAGES / f"{r.id}.md": r for r in rules()}
    for path, rule in wanted.items():
        said = said_before(path)
        if not arguments.check and (broken := program(rule.id, "broken")) is not None:
            said, losses = run(broken, rule.id)
            correct = program(rule.id, "correct")
            mended = run(correct, rule.id)[1] if losses and correct is not None else []
            if losses and mended:
                (PAGES / f"{rule.id}.svg").write_text(curve(losses, mended), encoding="utf-8")
        text = page(rule, said.replace(f"{ROOT}/", ""))
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not arguments.check:
                path.write_text(text, encoding="utf-8")
    for path in PAGES.glob("*.md"):
        if path not in wanted:
            stale.append(path)
            if not arguments.check:
                path.unlink()
    guide = replaced(GUIDE.read_text(encoding="utf-8"), "rules", index())
    if not arguments.check:
        figures = output("core/tests/doctor_corpus.py", "--markdown")
        guide = replaced(guide, "figures", figures)
        guide = replaced(guide, "transcript", f"```text\n{output('examples/doctor/digits_mistakes.py')}\n```")
    if GUIDE.read_text(encoding="utf-8") != guide:
        stale.append(GUIDE)
        if not arguments.check:
            GUIDE.write_text(guide, encoding="utf-8")
    for path in stale if arguments.check else ():
        print(f"{path.relative_to(ROOT)} is out of date; run: python docs/doctor.py")
    return int(arguments.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
