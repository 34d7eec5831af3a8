"""Write docs/doctor/report.html, the doctor's page of docs/doctor/digits.py: `python docs/doctor_report.py [--out FILE]`.

That program gives CrossEntropyLoss what a softmax made, and a tanh far too large values.
"""

from __future__ import annotations

import argparse
import os
import runpy
from pathlib import Path

import mortice as mt
from mortice import doctor

HERE = Path(__file__).resolve().parent / "doctor"


def main() -> None:
    """Train, watched, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "report.html")
    out = parser.parse_args().out.resolve()
    os.chdir(HERE)  # places are shown from here
    mt.manual_seed(0)
    with doctor.watch(quiet=True) as session:
        runpy.run_path(str(HERE / "digits.py"), run_name="__main__")
    session.report("html", out)
    print(session.report())


if __name__ == "__main__":
    main()
