"""What the training doctor costs: `python -m benchmarks.doctor [--backend NAME]`.

On: blocks of training steps with and without it, in turn, in one process. Off: processes in pairs, one that has watched a
run before and one that has never heard of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks.models import resnet20

BARS = {"tiny MLP 64-64-10, batch 32": 1.25, "ResNet-20, 32x32, batch 128": 1.10}


def tiny(t: Any) -> Callable[[], Any]:
    """Two layers on digits' shapes, from a loader, as a beginner writes it: loss and accuracy each step."""
    from mortice.utils.data import DataLoader, TensorDataset

    nn = t.nn
    t.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer, criterion = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(t.rand(3200, 8, 8), t.randint(0, 10, (3200,))), batch_size=32, shuffle=True)
    batches: Any = iter(())

    def step() -> Any:
        nonlocal batches
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        images, labels = batch
        optimizer.zero_grad()
        out = model(images.view(images.size(0), -1))
        loss = criterion(out, labels)
        loss.backward()
        optimizer.step()
        return (out.argmax(1) == labels).sum().item()

    return step


PROGRAMS: dict[str, tuple[Callable[[Any], Callable[[], Any]], int]] = dict(zip(BARS, ((tiny, 1000), (resnet20, 12))))


def block(step: Callable[[], Any], steps: int) -> float:
    """Return the seconds that a step takes, over a block of them."""
    began = perf_counter()
    for _ in range(steps):
        step()
    return (perf_counter() - began) / steps


def on(name: str, rounds: int) -> list[tuple[float, float]]:
    """Time a program's blocks without and with the doctor, in turn."""
    import mortice
    from mortice import doctor
    from mortice.doctor import probes

    make, steps = PROGRAMS[name]
    step = make(mortice)
    session = doctor.Session(quiet=True)
    block(step, steps // 4)
    found = []
    for _ in range(rounds):
        off = block(step, steps)
        probes.attach(session)
        try:
            found.append((off, block(step, steps)))
        finally:
            probes.detach(session)
    return found


def child(name: str, used: bool) -> float:
    """Return the time of a step in this process, which has watched a run before or not."""
    import mortice

    make, steps = PROGRAMS[name]
    step = make(mortice)
    if used:
        from mortice import doctor

        with doctor.watch(quiet=True):
            block(step, 20)
    block(step, steps // 4)
    return min(block(step, steps // 4) for _ in range(5))


def main() -> int:
    """Print the table; returns 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.doctor", description=__doc__)
    parser.add_argument("--backend", help="mortice's backend (default: the one it chooses)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds in turn (default 7)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    import mortice

    if options.backend:
        mortice.set_backend(options.backend)
    if options.child:
        print(json.dumps(child(options.child[0], options.child[1] == "used")))
        return 0
    figures: dict[str, Any] = {"backend": mortice.default_backend(), "programs": {}}
    print(f"{'':<30}{'a step':>10}{'on / off':>10}{'bar':>7}{'used / never':>14}")
    missed = 0
    for name, bar in BARS.items():
        pairs = on(name, options.rounds)
        off, ratio = statistics.median(p[0] for p in pairs), statistics.median(b / a for a, b in pairs)
        command = [sys.executable, "-m", "benchmarks.doctor"]
        command += ["--backend", options.backend] if options.backend else []
        runs = [
            [
                json.loads(subprocess.run([*command, "--child", name, kind], check=True, capture_output=True).stdout)
                for kind in ("used", "never")
            ]
            for _ in range(options.rounds)
        ]
        idle = statistics.median(a / b for a, b in runs)
        missed += ratio > bar
        figures["programs"][name] = {"seconds": off, "on": ratio, "bar": bar, "off": idle}
        print(f"{name:<30}{off * 1e3:>7.2f} ms{ratio:>10.3f}{bar:>7.2f}{idle:>14.3f}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
