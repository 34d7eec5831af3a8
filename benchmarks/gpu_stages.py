"""One stage of `benchmarks.gpu` in a process of its own: each result is a line of JSON, written as soon as it is there."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import datetime
import gc
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import gpu_cases
from benchmarks.gpu_cases import GpuCase, Setup
from benchmarks.harness import Case, Library, Row, Timed, fill, measure, wave

ROOT = Path(__file__).resolve().parents[1]
EMULATOR = ROOT / "plugins/cuda_cupy/tests/emulator"
LIBRARIES = (
    "mortice", "mortice-cuda-cupy", "torch", "cupy-cuda13x", "cupy-cuda12x", "nvidia-cudnn-frontend", "nvidia-cudnn-cu13",
    "nvidia-cublas", "numpy", "ml_dtypes",
)  # fmt: skip
COMPARED = ("elementwise", "matmul", "convolution", "attention", "functions", "steps", "captured")
TOGETHER = 4  # programs at a time
LOST = 3  # the exit code of a stage whose device answers no more


class Stage:
    """What a stage is told, and where its results go."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.name, self.tiny, self.only, self.emulated = options.name, options.tiny, options.only, options.emulated
        self.after: str = options.after
        self.records: Path = options.records
        self.end = time.monotonic() + options.seconds

    def emit(self, **fields: Any) -> None:
        """Write a result; a line at once, since the process may be ended at any time."""
        with self.records.open("a") as file:
            file.write(json.dumps({"stage": self.name, **fields}) + "\n")

    def left(self, cases: list[GpuCase]) -> Iterator[GpuCase]:
        """Yield the cases behind the one that ended an earlier process; say before each which it is."""
        names = [case.name for case in cases]
        for case in cases[names.index(self.after) + 1 if self.after in names else 0 :]:
            self.emit(at=case.name)
            yield case

    def failed(self, name: str, error: Exception) -> None:
        """Note that a case failed; end the process where the device answers no more."""
        problem = f"{type(error).__name__}: {error}"
        traceback.print_exception(error)
        self.emit(row={"name": name, "seconds": {}, "allocated": {}, "reserved": {}, "problems": [problem]})
        self.check(self.libraries())

    def check(self, libraries: list[Library]) -> None:
        """End the process where the device answers no more: another one goes on."""
        try:
            for library in libraries:
                library.wait()
        except Exception as error:
            print(f"the device answers no more: {type(error).__name__}: {error}", file=sys.stderr)
            raise SystemExit(LOST) from error

    def libraries(self) -> list[Library]:
        """Return mortice, and PyTorch where it sees the GPU (on the stand-in: where it is installed)."""
        import mortice

        found = [Library("mortice", mortice, mortice.cuda.synchronize)]
        with contextlib.suppress(ImportError):
            torch = importlib.import_module("torch")
            if torch.cuda.is_available():
                found.append(Library("torch", torch, torch.cuda.synchronize))
            elif self.emulated:
                torch.set_num_threads(1)
                found.append(Library("torch", torch))
        return found

    def place(self, t: Any) -> Any:
        """Return the device on which a library makes tensors, for `with`."""
        return t.device("cuda" if t.cuda.is_available() else "cpu")


# ---- the machine ----


def machine(stage: Stage) -> None:
    """Print what the figures are of; fail where there is no GPU."""
    import mortice

    place = mortice.ones(1, device="cuda").device  # where there is none, the error says what is missing
    if stage.only == "step":
        _try_a_step(mortice)
    import cupy

    runtime = cupy.cuda.runtime
    numbers = {"runtime": runtime.runtimeGetVersion(), "driver": runtime.driverGetVersion()}
    print(json.dumps({
        "gpu": mortice.cuda.get_device_name(), "memory": mortice.cuda.get_device_properties().total_memory,
        "devices": mortice.cuda.device_count(), "backend": place.backend.name, "emulated": stage.emulated,
        "cuda": {name: f"{n // 1000}.{n % 1000 // 10}" for name, n in numbers.items()},
        "versions": {name: version for name in LIBRARIES if (version := _version(name))},
        "python": platform.python_version(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": _commit(),
        "torch sees it": len(stage.libraries()) > 1, "cudnn": mortice.backends.cudnn.version(),
    }))  # fmt: skip


def _try_a_step(t: Any) -> None:
    """End the process where a training step fails on the GPU or gives another loss than on the CPU: so would all else."""
    try:
        losses = []
        for at in ("cpu", "cuda"):
            model = fill(t, t.nn.Sequential(t.nn.Linear(8, 4), t.nn.ReLU(), t.nn.Linear(4, 2))).to(at)
            optimiser, x, y = t.optim.SGD(model.parameters(), lr=0.1), wave(t, 3, 8).to(at), t.arange(3).to(at) % 2
            for _ in range(2):
                optimiser.zero_grad()
                loss = t.nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimiser.step()
            losses.append(loss.item())
        if abs(losses[0] - losses[1]) > 1e-4:
            raise ArithmeticError(f"the loss of a step is {losses[0]} on the CPU and {losses[1]} on the GPU")
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return ""


# ---- the CUDA sources ----


def compile_kernels(stage: Stage) -> None:
    """Compile the plugin's kernels in several processes, float32 first: CuPy keeps them on disk, where later stages find them."""
    wanted = _kernels()
    if stage.tiny:
        wanted = wanted[:2]
    started, count, problems = time.perf_counter(), 0, []
    context = multiprocessing.get_context("spawn")
    jobs = 1 if stage.emulated else min(os.cpu_count() or 1, 12)
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        asked = [pool.submit(_compiled, *kernel, stage.emulated) for kernel in wanted]
        for kernel, answer in zip(wanted, asked):
            try:
                problem = answer.result(max(stage.end - time.monotonic(), 0))
            except concurrent.futures.TimeoutError:
                problems.append(f"{len(wanted) - count} kernels were not reached")
                pool.shutdown(wait=False, cancel_futures=True)
                break
            except concurrent.futures.BrokenExecutor as error:  # a kernel has ended its process
                problems.append(f"{kernel[2]} for {kernel[1]}, or one beside it: {error}")
                break
            count += 1
            if problem:
                problems.append(f"{kernel[2]} for {kernel[1]}: {problem}")
    stage.emit(note=f"{count} kernels in {time.perf_counter() - started:.1f} s by {jobs} processes")
    for problem in problems[:40]:
        stage.emit(note=problem)


def _kernels() -> list[tuple[int, str, str]]:
    """Return the program, by its number, the dtype and the name of each kernel."""
    from mortice_cuda_cupy import kernels  # noqa: F401  their sources are programs
    from mortice_cuda_cupy.kernels import attention, copying, elementwise, index, reduce, scan, sort  # noqa: F401
    from mortice_cuda_cupy.kernels.launch import PROGRAMS

    order = ("float32", "bfloat16", "int64", "float16", "float64")
    found = [
        (number, dtype.name, kernel)
        for number, program in enumerate(PROGRAMS)
        for dtype in program.types
        for kernel in program.kernels
    ]
    return sorted(found, key=lambda k: order.index(k[1]) if k[1] in order else len(order))


def _compiled(number: int, dtype: str, kernel: str, emulated: bool) -> str:
    """Compile and load a kernel; return what is wrong with it, or nothing."""
    if emulated:
        sys.path.insert(0, str(EMULATOR))
        importlib.import_module("emulated")
    _kernels()
    from mortice_cuda_cupy.kernels.launch import PROGRAMS

    program = PROGRAMS[number]
    try:
        made = program.get(next(d for d in program.types if d.name == dtype), kernel)
        # Of the registers that there are; kernels of more than 256 threads declare how many.
        threads, local = _resources(made)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:400]}"
    if threads < 256:
        return f"only {threads} threads have registers enough"
    return f"{local} bytes of a thread's values are in memory instead of registers" if local else ""


def _resources(kernel: Any) -> tuple[int, int]:
    """Return the threads that a block of a kernel may have, and the bytes of memory that stand for registers."""
    at = getattr(kernel, "ptr", 0)  # with several GPUs, and on the stand-in, it says nothing
    if not at:
        return 1024, 0
    import cupy

    ask = cupy.cuda.driver.funcGetAttribute
    return ask(0, at), ask(3, at)  # CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK and _LOCAL_SIZE_BYTES


# ---- random numbers ----


def random_streams(stage: Stage) -> None:
    """Compare what is drawn on the GPU with what the same seeds give on the CPU, bit for bit."""
    import mortice as mt

    draws: dict[str, Callable[[int, str], Any]] = {
        **{f"rand, {d}": lambda n, at, d=d: mt.rand(n, dtype=getattr(mt, d), device=at) for d in _FLOATS},
        **{f"randn, {d}": lambda n, at, d=d: mt.randn(n, dtype=getattr(mt, d), device=at) for d in _FLOATS},
        "randint": lambda n, at: mt.randint(-5, 1000, (n,), device=at),
        "randint, 62 bits": lambda n, at: mt.randint(0, 3 << 60, (n,), device=at),
        "randperm": lambda n, at: mt.randperm(n, device=at),
        "bernoulli": lambda n, at: mt.bernoulli(mt.full((n,), 0.3, device=at)),
        "dropout": lambda n, at: mt.nn.functional.dropout(mt.ones(n, device=at), 0.4),
    }
    for name, draw in draws.items():
        for n in (1, 7, 1000) if stage.tiny else (1, 7, 1000, 1_000_003):
            found = []
            try:
                for at in ("cpu", "cuda"):
                    mt.manual_seed(20_261_121)
                    mt.rand(3, device=at)  # so that the stream does not begin at its first word
                    found.append(_bits(draw(n, at).cpu()))
                different = int((found[0] != found[1]).sum())
            except Exception as error:  # the other draws still count
                stage.emit(note=f"{name}, {n:,}: {type(error).__name__}: {error}")
                different = n
            stage.emit(row={"name": f"{name}, {n:,}", "count": n, "different": different})


_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _bits(x: Any) -> Any:
    import mortice as mt

    return x.view({2: mt.int16, 4: mt.int32, 8: mt.int64}[x.element_size()]) if x.dtype.is_floating_point else x


# ---- the ten programs ----


def programs(stage: Stage) -> None:
    """Run each program in a process of its own, several at a time."""
    from program_runs import SMALL

    if stage.only:
        return _program(stage, stage.only)

    def run(name: str) -> None:
        left = max(stage.end - time.monotonic(), 1)
        command = [
            sys.executable,
            "-m",
            "benchmarks.gpu_stages",
            "programs",
            "--only",
            name,
            "--records",
            str(stage.records),
        ]
        command += ["--tiny"] * stage.tiny + ["--emulated"] * stage.emulated
        try:
            done = subprocess.run(command, timeout=left, capture_output=True, text=True)
            problem = "" if done.returncode == 0 else _last_line(done.stderr) or f"exit code {done.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"not done after {left:.0f} s"
        if problem:
            stage.emit(row={"name": name, "holds": False, "problem": problem})

    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(run, ("mlp", "sine_lbfgs") if stage.tiny else SMALL))


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _program(stage: Stage, name: str) -> None:
    """Train a program on the CPU and from the same weights on the GPU, in float32 and in float64."""
    import program_runs as runs

    import mortice as mt

    sys.path.insert(0, str(runs.PROGRAMS))
    example_data = importlib.import_module("example_data")
    images, labels = example_data.load_digits()
    build, train = runs.SMALL[name]
    train = {**train, "steps": 4 if stage.tiny else train["steps"]}
    for dtype, relative, near in (
        ("float32", runs.KINKED.get(name, runs.FLOAT32), runs.NEAR_0),
        ("float64", runs.MAGNIFIED.get(name, runs.FLOAT64), 1e-12),
    ):
        mt.set_default_dtype(getattr(mt, dtype))
        example_data.load_digits = lambda dtype=dtype: (images.astype(dtype), labels.copy())
        program = runs.load(name)
        mt.manual_seed(0)
        there, here = (runs.modules_of(program.build(**build)) for _ in range(2))
        for a, b in zip(there, here):
            a.load_state_dict(b.state_dict())
            a.to("cuda")
        wanted = runs.curves_of(program.train(*here, **train))
        started = time.perf_counter()
        found = runs.curves_of(program.train(*there, **train))
        worst = max(_apart(f, w, near) for curve, values in wanted.items() for f, w in zip(found[curve], values))
        curve = next(iter(wanted))
        stage.emit(row={
            "name": f"{name}, {dtype}", "holds": worst <= relative, "apart": worst, "allowed": relative,
            "losses": [wanted[curve][0], wanted[curve][-1]], "on the GPU": [found[curve][0], found[curve][-1]],
            "seconds": time.perf_counter() - started,
        })  # fmt: skip


def _apart(found: float, wanted: float, near: float) -> float:
    """Return the relative difference, less what counts as none."""
    return max(abs(found - wanted) - near, 0.0) / max(abs(wanted), near)


# ---- beside PyTorch ----


def compare(stage: Stage) -> None:
    """Time the cases of a group in both libraries, in interleaved rounds."""
    libraries = stage.libraries()
    if len(libraries) < 2:
        stage.emit(note="PyTorch is not here, or does not see the GPU: no ratio is taken.")
    rounds, min_time = (2, 0.0) if stage.tiny else (7, 0.015)
    for case in stage.left([case for case in _cases(stage) if stage.only in case.name]):
        gc.collect()
        try:
            for library in libraries:
                library.module.cuda.empty_cache()
            placed = Case(stage.name, case.name, _placed(stage, case.setup))
            row = measure(placed, libraries, rounds=rounds, min_time=min_time, between=lambda: None)
        except Exception as error:
            stage.failed(case.name, error)
        else:
            stage.emit(row=_plain(row, case))
            stage.check(libraries)


def _cases(stage: Stage) -> Iterator[GpuCase]:
    if stage.name == "captured":
        for eager, ready in zip(gpu_cases.steps(stage.tiny), gpu_cases.steps(stage.tiny, capturable=True)):
            yield GpuCase(eager.name, _captured(eager.setup, ready.setup))
        return
    if stage.name == "elementwise":
        yield gpu_cases.copies(stage.tiny)
    yield from getattr(gpu_cases, stage.name)(stage.tiny)


def _placed(stage: Stage, setup: Setup) -> Setup:
    """Make the operands on the GPU; the timed calls run without that, as it costs PyTorch a look at every call."""

    def run(t: Any) -> Timed:
        with stage.place(t):
            return setup(t)

    return run


WARMING = 3


def _captured(eager: Setup, ready: Setup) -> Setup:
    """Capture mortice's step as a graph and replay it; PyTorch's runs eagerly, after as many steps."""

    def run(t: Any) -> Timed:
        if t.__name__ != "mortice":
            step = eager(t)
            for _ in range(WARMING):
                step()
            return step
        step, side, graph = ready(t), t.cuda.Stream(), t.cuda.CUDAGraph()
        side.wait_stream(t.cuda.current_stream())
        with t.cuda.stream(side):
            for _ in range(WARMING):
                step()
        t.cuda.current_stream().wait_stream(side)
        with t.cuda.graph(graph):
            result = step()

        def replay() -> Any:
            graph.replay()
            return result

        return replay

    return run


def _plain(row: Row, case: GpuCase) -> dict[str, Any]:
    found: dict[str, Any] = {"name": row.name, "seconds": row.seconds, "problems": row.problems}
    if case.traffic:
        found["traffic"] = case.traffic
    if "torch" in row.ratios:
        # As the bars have it: PyTorch's time over mortice's.
        ratio = row.ratios["torch"]
        found |= {"ratio": 1 / ratio.median, "low": 1 / ratio.high, "high": 1 / ratio.low}
    return found


def memory(stage: Stage) -> None:
    """Measure the peak memory of three eager training steps, as each library's allocator counts it."""
    for case in stage.left(list(gpu_cases.steps(stage.tiny))):
        found: dict[str, Any] = {"name": case.name, "allocated": {}, "reserved": {}, "problems": []}
        for library in stage.libraries():
            t = library.module
            if not t.cuda.is_available():
                continue
            gc.collect()
            t.cuda.empty_cache()
            before = t.cuda.memory_allocated(), t.cuda.memory_reserved()
            try:
                with stage.place(t):
                    step = case.setup(t)
                t.cuda.synchronize()
                gc.collect()
                t.cuda.empty_cache()
                t.cuda.reset_peak_memory_stats()
                for _ in range(3):
                    step()
                t.cuda.synchronize()
            except Exception as error:  # the other steps still count
                traceback.print_exc()
                found["problems"].append(f"{library.name} failed: {type(error).__name__}: {error}")
                continue
            found["allocated"][library.name] = t.cuda.max_memory_allocated() - before[0]
            found["reserved"][library.name] = t.cuda.max_memory_reserved() - before[1]
            del step
        stage.check(stage.libraries())
        sizes = found["allocated"]
        if len(sizes) == 2:
            found["ratio"] = sizes["mortice"] / max(sizes["torch"], 1)
        stage.emit(row=found)


STAGES: dict[str, Callable[[Stage], None]] = {
    "machine": machine, "compile": compile_kernels, "random": random_streams, "programs": programs,
    **dict.fromkeys(COMPARED, compare), "memory": memory,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run one stage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_stages", description=__doc__)
    parser.add_argument("name", choices=list(STAGES))
    parser.add_argument("--records", type=Path, default=Path(os.devnull))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--after", default="", metavar="CASE", help="go on behind that case")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--emulated", action="store_true")
    options = parser.parse_args(arguments)
    sys.path.append(str(ROOT / "core/tests"))
    if options.emulated:
        sys.path.insert(0, str(EMULATOR))
        importlib.import_module("emulated")
    try:
        STAGES[options.name](Stage(options))
    except RuntimeError as error:
        if options.name != "machine":
            raise
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
