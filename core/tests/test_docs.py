"""What the documents say is run: Python snippets of one page in order, links, and the generated pages."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("", "docs/", "core/", "conformance/", "examples/*/", "parts/*/", "plugins/*/")
PAGES = sorted(page for folder in FOLDERS for page in ROOT.glob(f"{folder}*.md"))
# ```python is run; ```python no-run needs what is not here, such as a GPU. A ```text that follows it at once is what it prints.
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^```python\n[^`]*^```\n+```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What pages tell to run: targets of the Makefile, modules of this repository, and its scripts.
COMMAND = re.compile(r"(?:^    |`|&& )(?:\.venv/bin/)?(make|python -m|python) ([\w./-]+)", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def name(page: Path) -> str:
    """Return a page's path as its id."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if SNIPPET.search(p.read_text(encoding="utf-8"))], ids=name)
def test_the_snippets_of_a_page_run(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = "\n".join(SNIPPET.findall(text))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # A page shows what the CPU prints; another backend adds its device.
    printed, *wanted = (re.sub(r", device='[\w:]+'", "", shown) for shown in (done.stdout, *PRINTED.findall(text)))
    missing = [shown for shown in wanted if shown not in printed]
    assert missing == [], done.stdout


@pytest.mark.any_backend
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    lost = []
    for kind, what in COMMAND.findall(page.read_text(encoding="utf-8")):
        if kind == "make":
            there = what in targets
        elif kind == "python -m":
            there = not what.startswith(("mortice", "benchmarks")) or importlib.util.find_spec(what) is not None
        else:
            there = not what.endswith(".py") or "/" not in what or any((at / what).exists() for at in (ROOT, page.parent))
        if not there:
            lost.append(f"{kind} {what}")
    assert lost == []


@pytest.mark.any_backend
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    lost = [to for to in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / to).exists()]
    assert lost == []


@pytest.mark.any_backend
@pytest.mark.parametrize("page", ["differences", "compatibility", "clients", "seeds"])
def test_a_generated_page_is_up_to_date(page: str) -> None:
    script = ROOT / "docs" / f"{page}.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
