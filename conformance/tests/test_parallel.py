"""The kit in several processes: on a backend that ends its process in one kernel and never returns from another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, os, sys, time
sys.path[:0] = {path!r}
from mortice.backends import BackendInfo, plugins
from mortice_conformance import parallel
from mortice_conformance.catalog import catalog
from mortice_conformance.runner import KnownFailure
from mortice_conformance.subject import Subject
from mortice_cpu_numpy.backend import NumPyBackend


class Broken(NumPyBackend):
    name = "broken"

    def sinh(self, x):
        os._exit(7)

    def cosh(self, x):
        time.sleep(600)

    def synchronize(self, device):
        raise RuntimeError("the device is lost")


plugins.register(BackendInfo("broken", ("cpu",), lambda: Broken()), "broken")

if __name__ == "__main__":
    subject, wanted = Subject("broken"), ("sinh-float32", "cosh-float32", "exp-float32")
    items = [i for i in catalog(subject) if i.check in ("values", "unmodified") and "-".join(i.parts) in wanted]
    known = {{i.id: KnownFailure(i.id, "it ends") for i in items if "unmodified[sinh" in i.id}}
    seen = []
    results = parallel.run(items, "broken", known, seen.append, jobs=2, each=3)
    cut = parallel.run(items, "broken", {{}}, seen.append, jobs=2, within=0)
    print(json.dumps([[[r.id, r.outcome, r.message] for r in part] for part in (results, cut)] + [len(seen), len(items)]))
"""


def test_a_check_that_ends_or_hangs_its_process_loses_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(SCRIPT.format(path=sys.path))
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    results, cut, seen, count = json.loads(run.stdout.splitlines()[-1])
    found = {id: (outcome, message) for id, outcome, message in results}
    assert len(results) == count == 6 and seen == 12
    assert found["test_values[sinh-float32-broken]"] == ("failed", "ended the process, with exit code 7.")
    assert found["test_unmodified[sinh-float32-broken]"] == ("known", "it ends")
    assert found["test_values[cosh-float32-broken]"] == ("failed", "took more than 3 s; its process was ended.")
    assert found["test_values[exp-float32-broken]"][0] == found["test_unmodified[exp-float32-broken]"][0] == "passed"
    assert {(outcome, message) for _, outcome, message in cut} == {("failed", "not run: 0 s were over.")}
