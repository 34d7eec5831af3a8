"""The time that the host takes for a training step, with CuPy itself on a driver that does nothing: no GPU is faster than that.

`python plugins/cuda_cupy/tests/driver/host_time.py`, where CuPy is installed. What the real driver takes for a launch comes on top, as
it does in every library; convolutions are cuDNN's, which does nothing either (`no_cudnn.py`).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import no_cudnn
import stub

ROOT = Path(__file__).parents[4]
ROUNDS = 100


def main() -> None:
    """Print the microseconds of each step, the least of many, and those of a launch."""
    with tempfile.TemporaryDirectory() as folder:
        counts = stub.install(Path(folder))
    no_cudnn.install()
    stub.plugin()
    sys.path.insert(0, str(ROOT))
    import mortice as mt
    from benchmarks.gpu_cases import steps

    launched = lambda: sum(count.value for count in counts.values()) + no_cudnn.runs
    for case in steps(False):
        with mt.device("cuda"):
            step = case.setup(mt)
        stub.idle()
        for _ in range(3):
            before = launched()
            step()
        launches, times = launched() - before, []
        for _ in range(ROUNDS):
            start = time.thread_time()
            step()
            times.append(time.thread_time() - start)
        took = min(times) * 1e6
        print(f"{case.name:40}{took:8.0f} us, {launches} launches, {took / launches:.1f} us each")


if __name__ == "__main__":
    if reason := stub.missing():
        sys.exit(reason)
    main()
