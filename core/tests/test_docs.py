"""What the documents say is run: Python snippets of one page in order, links, and the generated pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")])
# ```python is run; ```python no-run needs what is not here, such as a GPU.
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def name(page: Path) -> str:
    """Return a page's path as its id."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if SNIPPET.search(p.read_text(encoding="utf-8"))], ids=name)
def test_the_snippets_of_a_page_run(page: Path, tmp_path: Path) -> None:
    code = "\n".join(SNIPPET.findall(page.read_text(encoding="utf-8")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    lost = [to for to in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / to).exists()]
    assert lost == []


@pytest.mark.parametrize("page", ["differences", "compatibility", "clients", "seeds"])
def test_a_generated_page_is_up_to_date(page: str) -> None:
    script = ROOT / "docs" / f"{page}.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
