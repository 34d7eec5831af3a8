"""What `import mortice` costs beside `import numpy`, each in a fresh interpreter, in interleaved rounds."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.harness import Ratio, Row

STATEMENTS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "mortice": "import mortice",
    "mortice and a tensor": "import mortice; mortice.ones(1)",
    "torch": "import torch",
}


def _seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True)
    return time.perf_counter() - start


def measure_imports(*, rounds: int, without: set[str]) -> list[Row]:
    """Time the imports, less the bare interpreter of the same round; the ratios are to numpy."""
    statements = {name: code for name, code in STATEMENTS.items() if name not in without}
    rows = {name: Row("import", f"import {name}") for name in statements if name != "nothing"}
    samples: dict[str, list[float]] = {}
    for name, code in list(statements.items()):
        try:
            _seconds(code)  # once unmeasured: byte code and the disk's cache
            samples[name] = []
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
            rows[name].problems.append(f"failed: {''.join(reason)}")
            del statements[name]
    for turn in range(rounds):
        order = list(statements.items())
        for name, code in order if turn % 2 == 0 else reversed(order):
            samples[name].append(_seconds(code))

    for name, row in rows.items():
        if name not in samples:
            continue
        net = [taken - bare for taken, bare in zip(samples[name], samples["nothing"], strict=True)]
        row.seconds["import"] = statistics.median(net)
        if name != "numpy" and "numpy" in samples:
            pairs = zip(net, samples["numpy"], samples["nothing"], strict=True)
            ratios = sorted(mine / max(numpy - bare, 1e-6) for mine, numpy, bare in pairs)
            low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
            row.ratios["numpy"] = Ratio(median, low, high)
    return list(rows.values())
