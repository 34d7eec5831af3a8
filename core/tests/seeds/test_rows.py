"""The table of the founding notes tells what it lacks: rows without answers, answers without rows."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Return docs/seeds.py with rows and tests of its own."""
    spec = importlib.util.spec_from_file_location("docs_seeds", ROOT / "docs" / "seeds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text(
        "def test_AA01_AA02_two_rows(): pass\n"
        "class TestB:\n    @pytest.mark.seed('AA03')\n    @pytest.mark.slow\n    def test_marked(self): pass\n"
        "def test_AA04x_is_no_row(): pass\n# def test_AA05_is_a_comment(): pass\n"
    )
    rows = tmp_path / "rows.toml"
    rows.write_text('rows.System = {AA01 = "one", AA02 = "two", AA03 = "three"}\n[differences]\nAA02 = "On purpose."\n')
    for name, value in {"ROOT": tmp_path, "TESTS": ("tests",), "ROWS": rows}.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_rows_are_found_by_name_and_by_marker(script):
    assert script.tests() == {
        "AA01": ["tests/test_a.py::test_AA01_AA02_two_rows"], "AA02": ["tests/test_a.py::test_AA01_AA02_two_rows"],
        "AA03": ["tests/test_a.py::test_marked"],
    }  # fmt: skip
    assert "| AA02 | two | `tests/test_a.py::test_AA01_AA02_two_rows` | On purpose. |" in script.page()
    assert "Each of their 3 rows" in script.page() and "(1 of them with tests too)" in script.page()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('AA03 = "three"', 'AA03 = "three", AA09 = "nine"', "without a test and without a reason: AA09"),
        ('AA03 = "three"', 'AA04 = "four"', "no such rows: AA03"),
        ('AA02 = "On', 'AA08 = "On', "no such rows: AA08"),
    ],
)
def test_what_is_missing_is_told(script, old, new, said):
    script.ROWS.write_text(script.ROWS.read_text().replace(old, new))
    with pytest.raises(SystemExit, match=said):
        script.page()


def test_rows_that_do_not_work_are_told(script):
    script.ROWS.write_text(script.ROWS.read_text() + '[not_yet]\nAA03 = "It is slow."\n')
    assert "1 do not work yet" in script.page() and "| not yet: It is slow. |" in script.page()


def test_the_table_has_every_row_once():
    systems = tomllib.loads((ROOT / "core/tests/seeds/rows.toml").read_text(encoding="utf-8"))["rows"]
    rows = [row for system in systems.values() for row in system]
    assert len(rows) == len(set(rows)) == 399 and len(systems) == 30
    for system in systems.values():  # numbered without gaps, by what their letters mean
        for letters in {row[:2] for row in system}:
            numbers = sorted(int(row[2:]) for row in system if row.startswith(letters))
            assert numbers == list(range(1, len(numbers) + 1))
