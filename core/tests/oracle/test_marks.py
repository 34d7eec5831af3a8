"""What compares with PyTorch is marked so: without the mark it runs nowhere, since the rest of the suite has no PyTorch."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = [f for folder in ("core/tests", "conformance/tests", "plugins/cpu_cext/tests") for f in sorted((ROOT / folder).rglob("test_*.py"))]
ASKING = [f for f in FILES if 'importorskip("torch"' in f.read_text(encoding="utf-8") and f != Path(__file__)]


@pytest.mark.parametrize("file", ASKING, ids=lambda f: f.stem)
def test_a_file_that_asks_for_pytorch_marks_what_does(file: Path) -> None:
    assert "pytest.mark.oracle" in file.read_text(encoding="utf-8")


def test_there_are_such_files() -> None:
    assert len(ASKING) > 20
