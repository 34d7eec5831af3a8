"""Everything that is asked of a machine with a GPU, in one command and without a network: `make gpu`, `python -m benchmarks.gpu`.

The conformance kit on cuda_cupy, the ten programs, the random streams and the comparison with PyTorch CUDA run as stages, each
in a process and a time of its own. Results are kept as they come, so that what fails or hangs costs its own figures only; the
report says for each bar whether it was reached. Where there is no GPU it says so, writes nothing and fails.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import gpu_report, gpu_site

ROOT = Path(__file__).resolve().parents[1]
# In seconds, what each stage may take; the kit takes what is left, and something is kept for it.
# In this order: time may run out, and whole steps tell the most.
LIMITS = {
    "compile": 60, "steps": 60, "captured": 50, "memory": 40, "elementwise": 60, "random": 40, "matmul": 45, "convolution": 60,
    "attention": 45, "functions": 40, "programs": 90, "kit": 540,
}  # fmt: skip
KEPT_FOR_THE_KIT, CLOSING, ASKING = 150, 10, 120
MINUTES = 8
RETRIES = 3  # of a stage whose process a case has ended, without that case and what was before it
EMULATED = 20  # times as long on the stand-in: there only a hang is to be ended


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs/gpu", metavar="DIR", help="where results go (default docs/gpu)"
    )
    parser.add_argument("--stage", action="append", choices=list(LIMITS), help="only this one; may be repeated")
    parser.add_argument("--minutes", type=float, help=f"for all of it (default {MINUTES}; on the stand-in {EMULATED} times that)")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="wheels of what is missing; none are fetched")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 12), help="processes of the kit")
    parser.add_argument(
        "--report", type=Path, nargs="+", metavar="FILE", help="only put records together into one report"
    )
    parser.add_argument(
        "--installed", action="store_true", help="take mortice as it is installed; else this checkout's"
    )
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: to see that everything runs")
    parser.add_argument(
        "--emulated", action="store_true", help="on the tests' stand-in for CuPy: no figure says anything"
    )
    options = parser.parse_args(arguments)
    if options.minutes is None:
        options.minutes = MINUTES * (EMULATED if options.emulated else 1)
    if options.emulated and options.out == ROOT / "docs/gpu":
        parser.error("--emulated needs --out: its results are nothing to publish")
    return options


def lacking(machine: dict[str, Any]) -> list[str]:
    """Return what a machine lacks without which figures are missing or say less, to be told before time is spent on them."""
    found = [] if machine["torch sees it"] else ["PyTorch is not here or does not see the GPU: no ratio will be measured"]
    if not machine["cudnn"]:
        found.append("mortice is without cuDNN (nvidia-cudnn-frontend): convolution and attention are measured without it")
    return found


def lost(case: str, problem: str) -> dict[str, Any]:
    """Return the result of a case that has none."""
    return {"name": case, "seconds": {}, "allocated": {}, "reserved": {}, "problems": [problem]}


class Run:
    """The stages of one call."""

    def __init__(self, options: argparse.Namespace, path: list[str], end: float) -> None:
        self.options, self.end = options, end
        self.records = options.out / "records.jsonl"
        self.log = options.out / "run.log"
        path = [*path, str(ROOT), os.environ.get("PYTHONPATH", "")]
        # The CPU's side is the reference backend's.
        self.environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "MORTICE_BACKEND": "cpu_numpy",
            "PYTHONUNBUFFERED": "1",
        }  # fmt: skip

    def machine(self) -> dict[str, Any]:
        """Return what the figures are of; the program ends here where there is no GPU."""
        command = self._command("machine") + ["--only", "step"] * (not self.options.stage)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=ROOT, env=self.environment, timeout=ASKING, start_new_session=True
            )
        except subprocess.TimeoutExpired as error:
            raise SystemExit(f"benchmarks.gpu: the GPU did not answer within {ASKING} s.") from error
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            # What is foreseen is one line; of anything else the way there is wanted too.
            reason = "\n".join(lines[-1 if done.returncode == 2 else -40 :]) or f"exit code {done.returncode}"
            raise SystemExit(
                "benchmarks.gpu: no GPU that mortice can use, so nothing was measured or written"
                + ("" if done.returncode == 2 else "; stages that --stage names are run nevertheless")
                + f".\n{reason}"
            )
        return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]

    def write(self, **record: Any) -> None:
        """Add a record, on a line of its own even where a stage was ended in the middle of one."""
        with self.records.open("a") as file:
            file.write("\n" + json.dumps(record) + "\n")

    def stage(self, name: str, kept: float) -> None:
        """Run a stage within its time, and note how it ended."""
        allowed = LIMITS[name] * (EMULATED if self.options.emulated else 1)
        limit = min(allowed, self.end - time.monotonic() - kept)
        self.write(stage=name, begin=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
        if limit < 5:
            self.write(stage=name, end={"status": "not run: no time was left"})
            return
        print(f"{name}: at most {limit:.0f} s", flush=True)
        start, status, said, after = time.monotonic(), "ok", "", ""
        for _ in range(RETRIES):
            left = limit - (time.monotonic() - start)
            code, words = self._process(name, left, after)
            if code is None:
                status = f"ended after {limit:.0f} s"
            elif code and not (name == "kit" and code == 1):  # by 1 the kit says that checks failed
                status, said = f"failed with exit code {code}", words
                reached = self._reached(name)
                if reached and reached != after and limit - (time.monotonic() - start) > 10:
                    # A GPU that has met an error refuses all else in that process.
                    after = reached
                    self.write(stage=name, row=lost(after, f"{status}: {said}"))
                    continue
            break
        if name == "kit":
            self._note_kit(start)
        self.write(stage=name, end={"status": status, "seconds": time.monotonic() - start, "said": said})
        print(f"{name}: {status}{f': {said}' if said else ''}, {time.monotonic() - start:.0f} s", flush=True)

    def _process(self, name: str, limit: float, after: str) -> tuple[int | None, str]:
        """Run a stage once; return its exit code, None where its time was up, and the last that it said."""
        with self.log.open("ab") as log:
            log.write(f"==== {name}{f', after {after}' if after else ''}\n".encode())
            log.flush()
            began = log.tell()
            command = self._kit(limit) if name == "kit" else self._command(name, seconds=limit)
            process = subprocess.Popen(
                command + ["--after", after] * bool(after), stdout=log, stderr=subprocess.STDOUT, cwd=ROOT,
                env=self.environment, start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self._end(process)
        return code, self._last(began)

    def _reached(self, name: str) -> str:
        """Return the case that a stage was at, if it has said so."""
        found = ""
        for record in gpu_report.read([self.records]):
            if record.get("stage") == name:
                found = "" if "begin" in record else record.get("at", found)
        return found

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End what a stage has left running: the processes of its session."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def _last(self, began: int) -> str:
        with self.log.open("rb") as log:
            log.seek(began)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def _command(self, name: str, seconds: float | None = None) -> list[str]:
        command = [sys.executable, "-m", "benchmarks.gpu_stages", name]
        if seconds is not None:
            command += ["--records", str(self.records.resolve()), "--seconds", str(seconds - 2)]
        return command + ["--tiny"] * self.options.tiny + ["--emulated"] * self.options.emulated

    def _kit(self, limit: float) -> list[str]:
        kit = ["-m", "mortice_conformance"]
        if self.options.emulated:
            kit = [str(ROOT / "plugins/cuda_cupy/tests/emulator/emulated.py")]
        card = self.options.out.resolve() / "cuda_cupy"
        command = [sys.executable, *kit, "run", "cuda_cupy", "--jobs", str(self.options.jobs)]
        command += ["--within", str(limit - 20), "--json", f"{card}.json", "--html", f"{card}.html"]
        return command + ["--level", "L1", "--only", "exp"] * self.options.tiny

    def _note_kit(self, start: float) -> None:
        """Count what the kit found; its scorecard lies beside the report."""
        file = self.options.out / "cuda_cupy.json"
        if not file.exists() or time.time() - file.stat().st_mtime > time.monotonic() - start:
            return
        card = json.loads(file.read_text())
        count = lambda outcome: sum(row[outcome] for row in card["levels"].values())
        not_run = sum(test.get("message", "").startswith("not run:") for test in card["tests"])
        self.write(stage="kit", row={
            "reached": card["reached"], "passed": count("passed"), "failed": count("failed") + count("unexpectedly passed"),
            "not run": not_run, "known": count("known"), "skipped": count("skipped"),
        })  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the stages asked for and write the report; the exit status tells whether every bar that was measured holds."""
    options = parse(arguments)
    if options.report:
        options.out.mkdir(parents=True, exist_ok=True)
        return _close(options.report, options.out)
    end = time.monotonic() + options.minutes * 60 - CLOSING
    path: list[str] = []
    if not options.installed:
        site = ROOT / "out/gpu/site"
        site.parent.mkdir(parents=True, exist_ok=True)
        try:
            print(*gpu_site.install(site, options.wheels), sep="\n", flush=True)
        except gpu_site.Uninstallable as error:
            raise SystemExit(f"benchmarks.gpu: {error}") from error
        path = [str(site)]
    run = Run(options, path, end)
    machine = run.machine()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.stage:
        run.records.unlink(missing_ok=True)
    run.write(machine=machine)
    print(f"{machine['gpu']}, commit {machine['commit']}", *lacking(machine), sep="\n", flush=True)
    chosen = options.stage or list(LIMITS)
    for name in chosen:
        run.stage(name, kept=KEPT_FOR_THE_KIT if "kit" in chosen and name != "kit" else 0)
    return _close([run.records], options.out)


def _close(records: list[Path], folder: Path) -> int:
    report = gpu_report.collected(gpu_report.read(records))
    files = gpu_report.write(report, folder)
    print(f"\n{gpu_report.summary(report)}\n", *(f"written: {file}" for file in files), sep="\n")
    return 1 if any(bar["verdict"] == gpu_report.MISSED for bar in report["bars"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
