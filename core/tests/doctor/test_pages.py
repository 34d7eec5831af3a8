"""The doctor's pages in docs are those that its rules and the corpus make."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_pages_are_up_to_date():
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "doctor.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
