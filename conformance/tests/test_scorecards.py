"""Scorecards as files: small JSON, pages that stand alone, their difference, and the folder with an index."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mortice_conformance import cli, gallery, page, page_diff, scorecard
from mortice_conformance.runner import FAILED, KNOWN, PASSED, SKIPPED, WAITS, Result
from mortice_conformance.subject import Subject

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
LIMIT = 300_000
VOID = {"meta", "input", "br", "hr", "img", "link"}
OPTIONAL = {"tr", "td", "th", "option", "li", "p"}


def card(*outcomes: str, message: str = "a <b> & c https://example.org/1.") -> dict[str, Any]:
    """Return a scorecard with a check of each outcome."""
    names = [
        ("values", f"op{i}", f"op{i}:kind-float32") if i % 2 else ("storage", "", f"cast-to {i}") for i in range(99)
    ]
    results = [
        Result(f"test_{check}[{key}-strict]", check, op, i % 7, o, 0.012, "" if o == PASSED else message)
        for i, (o, (check, op, key)) in enumerate(zip(outcomes, names))
    ]
    return scorecard.make(Subject("strict"), results, 6, 1.25)


class Page(HTMLParser):
    """The elements of a page; those that must be closed are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.labelled = True
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.fetched += [str(found[n]) for n in ("src", "srcset", "action") if n in found]
        self.fetched += [str(found["href"])] if tag == "link" else []
        self.labelled &= tag not in ("input", "select") or "aria-label" in found
        if tag not in VOID | OPTIONAL:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID | OPTIONAL:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.text += data


def check_page(html: str) -> Page:
    """Check what every page must satisfy, and return it."""
    assert html.startswith("<!doctype html>") and "{{" not in html
    found = Page(html)
    assert found.open == [] and len(set(found.ids)) == len(found.ids)
    assert found.fetched == [] and not re.search(r"@import|url\(|fetch\(", html)
    assert found.labelled and 'lang="en"' in html and "prefers-color-scheme: dark" in html
    return found


def test_a_scorecard_comes_back_from_its_file(tmp_path: Path) -> None:
    made = card(PASSED, FAILED, SKIPPED, KNOWN, PASSED, FAILED, SKIPPED)
    scorecard.save_json(made, tmp_path / "a.json")
    back = scorecard.load_json(tmp_path / "a.json")
    by_id = sorted(made["tests"], key=lambda t: t["id"])
    assert sorted(back.pop("tests"), key=lambda t: t["id"]) == by_id
    made.pop("tests")
    assert back == json.loads(json.dumps(made))


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"format": 1}')
    with pytest.raises(ValueError, match="expected a scorecard of format 2. Make it anew with this kit."):
        scorecard.load_json(tmp_path / "old.json")


def test_the_page_shows_failures_with_reasons_and_links_without_a_script() -> None:
    html = page.render(card(PASSED, FAILED, SKIPPED, KNOWN))
    found = check_page(html)
    assert '<a href="https://example.org/1">' in html and "a &lt;b&gt; &amp; c" in html
    for text in (
        "test_values[op1:kind-float32-strict]",
        "Known failures",
        "Skipped",
        "robustness and memory",
        "L0",
        "strict",
    ):
        assert text in found.text


def test_text_in_a_message_cannot_become_a_part_of_the_page() -> None:
    html = page.render(card(FAILED, FAILED, message="</script><script>alert(1)</script> {{rows}}"))
    assert "alert(1)" in html and "<script>alert" not in html


def test_the_grid_has_a_cell_for_each_operation_and_dtype() -> None:
    html = page.render(card(PASSED, PASSED, PASSED, FAILED))
    assert "<tr><th scope=row>op1<td class=p>" in html and "<tr><th scope=row>op3<td class=f>" in html


def test_kernels_that_are_to_come_are_counted_apart() -> None:
    made = card(PASSED, FAILED, message=f"{WAITS} full, which is not written yet.")
    made["unwritten"] = ["full", "exp"]
    text = scorecard.terminal(made)
    assert "2 required kernels are not written yet" in text and "creation: full" in text and "elementwise: exp" in text
    assert "FAIL test_" not in text and "1 failed, 0 known" in text
    assert "Not written yet" in check_page(page.render(made)).text


def test_the_difference_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = card(PASSED, PASSED, FAILED, SKIPPED), card(PASSED, FAILED, PASSED)
    found = check_page(page_diff.render(old, new))
    for text in ("Newly failing", "Newly passing", "Gone", "worse", "test_values[op1:kind-float32]"):
        assert text in found.text
    assert "no change" in check_page(page_diff.render(old, old)).text
    for name, made in (("a", old), ("b", new)):
        scorecard.save_json(made, tmp_path / f"{name}.json")
    files = [str(tmp_path / n) for n in ("a.json", "b.json")]
    assert cli.main(["diff", *files, "--html", str(tmp_path / "out/diff.html")]) == 1
    assert (tmp_path / "out/diff.html").stat().st_size > 1000
    assert "newly failing: 1" in capsys.readouterr().out


def test_what_failed_and_is_now_a_known_failure_is_not_worse() -> None:
    text, worse = scorecard.diff(card(FAILED), card(KNOWN))
    assert not worse and "newly passing: 1" in text and "(failed -> known)" in text


def test_one_command_writes_a_folder_and_says_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = card(PASSED, KNOWN, SKIPPED)
    monkeypatch.setattr(gallery, "measure", lambda subject, quiet: (made | {"backend": subject.name}, []))
    arguments = ["scorecards", str(tmp_path / "cards"), "strict", "cpu_numpy", "--expect", "no_such"]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "strict: L6, 1 passed, 0 failed" in out and "NOT INSTALLED no_such: backend 'no_such'" in out
    files = {p.name for p in (tmp_path / "cards").iterdir()}
    assert files == {f"{n}.{s}" for n in ("strict", "cpu_numpy") for s in ("json", "html", "svg")} | {
        "README.md",
        "index.html",
    }
    assert "strict" in check_page((tmp_path / "cards/index.html").read_text()).text
    text = (tmp_path / "cards/README.md").read_text()
    assert "| strict: [page](strict.html), [JSON](strict.json) | ![L6](strict.svg) | 1 | none | 1 | 1 |" in text
    assert cli.main(["scorecards", str(tmp_path / "cards"), "no_such"]) == 1


CARDS = sorted((DOCS / "scorecards").glob("*.json"))


@pytest.mark.parametrize("path", CARDS, ids=lambda p: p.stem)
def test_a_published_scorecard_is_small_whole_and_tells_nothing_of_the_machine(path: Path) -> None:
    made = scorecard.load_json(path)
    assert made["asked"] == 6 and len(made["tests"]) > 5000 and made["environment"] == {}
    for file in (path, path.with_suffix(".html"), path.with_suffix(".svg")):
        text = file.read_text(encoding="utf-8")
        assert len(text.encode()) < LIMIT
        assert not re.search(r"/home/|/tmp/|/root/|/Users/|site-packages|File &quot;/|File ..?/", text), file
    check_page(path.with_suffix(".html").read_text(encoding="utf-8"))
    assert made["backend"] in (DOCS / "scorecards/README.md").read_text(encoding="utf-8")


def test_the_backends_of_this_repository_have_published_scorecards() -> None:
    assert {"cpu_numpy", "cpu_cext", "strict", "array_api_strict"} <= {p.stem for p in CARDS}
