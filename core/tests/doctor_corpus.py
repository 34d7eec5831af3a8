"""Run the doctor over the corpus: `python core/tests/doctor_corpus.py [ID ...]` prints recall and false warnings.

A program in `doctor/corpus/ID/` is called `broken*` or `correct*`. A broken one marks the line that the finding must name with
`# <- ID`; one whose mistake ends in an error says so by `# raises: part of the message`; one that the static part is to
find, without running it, says `# static`; one about a matter of taste says `# style`. A correct one must give no
warning and no error, whatever rule it is near.
`broken.py` and `correct.py` are the pair on the rule's page in docs and leave their `losses`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import runpy
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "doctor" / "corpus"
# Rules that no program can commit: built in, and tested elsewhere.
BUILT_IN = {"D46": "workers watch their parent; tested in test_data_processes.py"}


@dataclass
class Program:
    """A program of the corpus and what is expected of it."""

    path: Path

    def __post_init__(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        self.rule = self.path.parent.name
        self.broken = self.path.name.startswith("broken")
        lines = text.splitlines()
        self.lines = {i for i, line in enumerate(lines, 1) if re.search(rf"#\s*<-\s*{self.rule}\b", line)}
        raises = re.search(r"^# raises: (.+)$", text, re.M)
        self.raises = raises and raises[1]
        self.static = "\n# static" in "\n" + text
        self.style = "\n# style" in "\n" + text
        if self.broken and not (self.lines or self.raises):
            raise ValueError(f"{self.path}: a broken program marks a line with `# <- {self.rule}` or says `# raises:`.")

    @property
    def name(self) -> str:
        """Its rule and file."""
        return f"{self.rule}/{self.path.stem}"


def programs(rules: list[str] | None = None) -> Iterator[Program]:
    """Yield the programs of the corpus, of some rules only if given."""
    for path in sorted(CORPUS.glob("*/*.py")):
        if not rules or path.parent.name in rules:
            yield Program(path)


@dataclass
class Outcome:
    """What came of a program: whether as expected, why not, and the findings."""

    program: Program
    good: bool
    problem: str
    findings: list[Any]
    error: BaseException | None
    seconds: float


def run(program: Program) -> Outcome:
    """Run a program under the doctor, or look at its text where that is what is asked."""
    from mortice import doctor

    began, error = time.perf_counter(), None
    if program.static:
        from mortice.doctor import static

        findings = static.check(program.path, style=True)
    else:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with doctor.watch(strict=True, quiet=True, style=program.style) as session:
                    runpy.run_path(str(program.path), run_name="__main__")
            except (Exception, SystemExit) as caught:
                error = caught
        findings = session.findings
    problem = _problem(program, findings, error)
    return Outcome(program, not problem, problem, findings, error, time.perf_counter() - began)


def _problem(program: Program, findings: list[Any], error: BaseException | None) -> str:
    if program.broken and program.raises:
        said = "\n".join([str(error), *getattr(error, "__notes__", ())])
        if error is None or program.raises not in said:
            return f"expected an error with {program.raises!r}; got {type(error).__name__}: {said}"
        return ""
    if error is not None:
        return "it failed: " + "".join(traceback.format_exception(error))
    grave = [f for f in findings if f.level != "info"]
    if not program.broken:
        mine = [f for f in findings if f.rule == program.rule]
        return "false: " + "; ".join(map(str, grave or mine)) if grave or mine else ""
    mine = [f for f in findings if f.rule == program.rule]
    if not mine:
        return "missed" + (f"; found {', '.join(sorted({f.rule for f in findings}))} instead" if findings else "")
    if not any(f.site.line in program.lines and Path(f.site.file) == program.path for f in mine):
        return f"named the wrong line: {', '.join(str(f.site) for f in mine)}; expected {sorted(program.lines)}"
    others = {f.rule for f in grave} - {program.rule}
    allowed = set(re.findall(r"# <- ([CD]\d+)", program.path.read_text(encoding="utf-8")))
    return (
        f"false beside it: {'; '.join(str(f) for f in grave if f.rule in others - allowed)}" if others - allowed else ""
    )


def main() -> int:
    """Run the corpus and print the figures; returns 1 where they miss the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", nargs="*", help="only these")
    parser.add_argument("--backend", help="the backend to run on")
    parser.add_argument("--markdown", action="store_true", help="print the figures as a table of Markdown")
    arguments = parser.parse_args()
    if arguments.backend:
        import mortice

        mortice.set_backend(arguments.backend)
    outcomes = [run(p) for p in programs(arguments.rules)]
    broken = [o for o in outcomes if o.program.broken]
    correct = [o for o in outcomes if not o.program.broken]
    found = sum(o.good or o.problem.startswith("false beside") for o in broken)
    false = sum("false" in o.problem.partition(":")[0] for o in outcomes)
    if arguments.markdown:
        print("| rule | broken programs | named | correct programs | without a warning |\n|---|---|---|---|---|")
        for rule in sorted({o.program.rule for o in outcomes}):
            b, c = [o for o in broken if o.program.rule == rule], [o for o in correct if o.program.rule == rule]
            print(f"| {rule} | {len(b)} | {sum(o.good for o in b)} | {len(c)} | {sum(o.good for o in c)} |")
    else:
        for o in outcomes:
            if not o.good:
                print(f"{o.program.name}: {o.problem}")
        slow = max(outcomes, key=lambda o: o.seconds)
        print(f"slowest: {slow.program.name}, {slow.seconds:.1f} s of {sum(o.seconds for o in outcomes):.1f} s")
    recall = found / len(broken) if broken else 1.0
    print(f"recall {recall:.1%} ({found} of {len(broken)} broken programs), {false} false warnings in "
          f"{len(outcomes)} programs ({len(correct)} correct ones)")  # fmt: skip
    return int(recall < 0.95 or false > 0 or not all(o.good for o in correct))


if __name__ == "__main__":
    sys.exit(main())
