"""Where do two runs part? The first step and the first layer whose activations, gradients or parameters differ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import mortice
from mortice.doctor import events, probes
from mortice.doctor.events import all_tensors
from mortice.doctor.memory import Notes
from mortice.doctor.mistakes import checks
from mortice.doctor.rule import Rule
from mortice.doctor.session import Session
from mortice.doctor.tools.chart import Chart, Line, Mark, Plotted
from mortice.doctor.tools.result import Result
from mortice.doctor.tools.sandbox import real
from mortice.utils.data.fetch import generators_kept, seed_everything

KEPT = 256  # elements of each tensor, evenly spread; beside them its mean and root mean square, of all elements
STEPS = 20


class Seen(NamedTuple):
    """One tensor of a run: "input", "activation", "loss", "gradient" or "parameter", whose, and what is kept of it."""

    step: int
    kind: str
    name: str
    shape: tuple[int, ...]
    values: list[float]

    def __str__(self) -> str:
        return f"step {self.step}, {self.kind}{f' of {self.name}' if self.name else ''}"


class Trace:
    """A recorded run.

    Attributes:
        seen: in the order in which it came.
        steps: how many steps optimisers took.
        name: what to call it.
    """

    def __init__(self, name: str, seen: list[Seen], steps: int) -> None:
        self.name, self.seen, self.steps = name, seen, steps

    def save(self, path: Any) -> None:
        """Write it as JSON, to compare another run with it later or elsewhere."""
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"name": self.name, "steps": self.steps, "seen": [list(s) for s in self.seen]}, out)

    @classmethod
    def load(cls, path: Any) -> Trace:
        """Read what `save` wrote."""
        with open(path, encoding="utf-8") as text:
            found = json.load(text)
        seen = [Seen(step, kind, name, tuple(shape), values) for step, kind, name, shape, values in found["seen"]]
        return cls(found["name"], seen, found["steps"])

    def losses(self) -> list[float]:
        """Return the losses of all backwards."""
        return [s.values[0] for s in self.seen if s.kind == "loss"]

    def __repr__(self) -> str:
        return f"Trace({self.name!r}, {self.steps} steps, {len(self.seen)} tensors)"


class _Enough(BaseException):
    """Ends a run that has been recorded for long enough; no `except Exception` of the program's stops it."""


class _Closely(Session):
    """A session that never ceases to look closely, since each step of a run is recorded."""

    def look(self, closely: bool) -> None:
        pass


class _Recorder(Rule):
    """Notes what a run computes."""

    id, title = "(recorder)", "records a run"

    def start(self) -> None:
        self.seen: list[Seen] = []
        self.met = Notes()
        self.limit = STEPS
        self.calls: dict[str, int] = {}

    def _note(self, kind: str, name: str, t: Any) -> None:
        if not t.numel():
            return
        flat = real(t).reshape(-1)
        n = flat.shape[0]
        size = [flat.mean(), flat.square().mean().sqrt()] if n > 1 else []
        if n > KEPT:
            flat = flat[:: -(-n // KEPT)]
        values = flat.tolist() + [float(s) for s in size]
        self.seen.append(Seen(self.session.steps, kind, name, tuple(t.shape), values))

    def _all(self, kind: str, name: str, data: Any) -> None:
        tensors = all_tensors(data)
        for i, t in enumerate(tensors):
            self._note(kind, name if len(tensors) == 1 else f"{name}[{i}]", t)

    def forward_pre(self, event: events.Forward) -> None:
        if len(self.session.running) > 1:
            return
        module = event.module
        if module not in self.met:
            self.met[module] = True
            for name, p in module.named_parameters():
                self._note("first value", f"{type(module).__name__}.{name}", p)
        self._all("input", self.session.name(module), list(event.args))

    def forward(self, event: events.Forward) -> None:
        name = self.session.name(event.module)
        times = self.calls[name] = self.calls.get(name, 0) + 1
        self._all("activation", name if times == 1 else f"{name}, call {times}", event.output)

    def backward(self, event: events.Backward) -> None:
        for loss in event.losses:
            self._note("loss", "", loss)

    def step(self, event: events.Step) -> None:
        for p in reversed(event.params):  # as backward comes to them
            if p.grad is not None:
                self._note("gradient", self.session.parameter(p), p.grad)

    def stepped(self, event: events.Step) -> None:
        for p in event.params:
            self._note("parameter", self.session.parameter(p), p)
        self.calls.clear()
        if self.session.steps + 1 >= self.limit:
            raise _Enough


def record(program: Callable[[], Any], *, steps: int = STEPS, seed: int = 0, backend: str | None = None) -> Trace:
    """Run a program for some steps and return what it computed: activations, losses, gradients and parameters.

    Args:
        program: builds and trains a model; it is ended after so many steps.
        steps: of optimisers, all together.
        seed: random numbers begin with it, and are put back afterwards.
        backend: the backend to run on, as `mortice.set_backend` names it.
    """
    if not callable(program):
        raise TypeError(f"record: expected a program to call, without arguments; got {type(program).__name__}.")
    session = _Closely(only=(), quiet=True, strict=True)
    recorder = _Recorder(session)
    recorder.limit = steps
    session.rules.append(recorder)
    for event in ("forward_pre", "forward", "backward", "step", "stepped"):
        session.handlers[event].append((recorder, getattr(recorder, event)))
    name = f"{getattr(program, '__name__', 'run')}{f' on {backend}' if backend else ''}"
    with generators_kept(), _on(backend):
        seed_everything(seed)
        probes.attach(session)
        try:
            with mortice.enable_grad():
                program()
        except _Enough:
            pass
        finally:
            probes.detach(session)
    last = max((s.step for s in recorder.seen if s.kind == "parameter"), default=-1)
    return Trace(name, recorder.seen, last + 1)


@contextmanager
def _on(backend: str | None) -> Iterator[None]:
    if backend is None:
        yield
    else:
        with mortice.use_backend(backend):
            yield


class Comparison(Plotted, Result):
    """What `compare` returns.

    Attributes:
        first, second: the runs, as traces.
        parted: where they part: step, kind and name; None where they do not, within the tolerance.
        by: the largest difference there, relative to the size of the tensor.
        different: where they differ at all, be it in the last bit.
        largest: the largest difference within the tolerance.
    """

    def __init__(self, first: Trace, second: Trace) -> None:
        super().__init__("compare")
        self.first, self.second = first, second
        self.parted: Seen | None = None
        self.by = self.largest = 0.0
        self.different: Seen | None = None

    def lines(self) -> list[str]:
        n = min(len(self.first.seen), len(self.second.seen))
        said = [
            f"{self.first.name} and {self.second.name}: {n} tensors in {min(self.first.steps, self.second.steps)} steps"
        ]
        if self.parted is not None:
            return said
        if self.different is None:
            return [*said, "the same to the last bit"]
        by = f"{self.largest:.1e} of a tensor's size at most" if self.largest else "noise around 0"
        return [*said, f"the same but for {by}, first at {self.different}"]

    def chart(self) -> Chart:
        lines = []
        for trace in (self.first, self.second):
            losses = trace.losses()
            lines.append(Line(trace.name, [float(i) for i in range(len(losses))], losses))
        marks = [] if self.parted is None else [Mark(f"part at step {self.parted.step}", float(self.parted.step))]
        return Chart("Two runs", "backward", "loss", lines, marks)


def compare(
    run_a: Callable[[], Any] | Trace,
    run_b: Callable[[], Any] | Trace | None = None,
    *,
    backends: Sequence[str] | None = None,
    steps: int = STEPS,
    seed: int = 0,
    rtol: float = 1e-3,
    atol: float = 1e-6,
) -> Comparison:
    """Tell at which step and in which layer two training runs part: inputs, activations, loss, gradients, parameters.

    Args:
        run_a, run_b: programs (functions without arguments that build and train), or traces that `record` gave.
        backends: the names of two, to run one program on both.
        steps: programs are ended after so many.
        seed: random numbers of each program begin with it.
        rtol, atol: a difference counts from rtol times the largest value of its tensor, plus atol.
    """
    if (run_b is None) == (backends is None) or (backends is not None and len(backends) != 2):
        raise TypeError(
            "compare: expected two runs, or one program and two backends; got "
            f"{'one run' if run_b is None else 'two runs'} and backends={backends!r}."
        )
    site = events.here()
    if backends is not None:
        if isinstance(run_a, Trace):
            raise TypeError("compare: expected a program to run on both backends; got a trace, which was run already.")
        first, second = (record(run_a, steps=steps, seed=seed, backend=name) for name in backends)
    else:
        first, second = (
            run if isinstance(run, Trace) else record(run, steps=steps, seed=seed)  # type: ignore[arg-type]
            for run in (run_a, run_b)
        )
    result = Comparison(first, second)
    result.site = site
    _compare(result, rtol, atol)
    return result.told()


def _compare(result: Comparison, rtol: float, atol: float) -> None:
    for a, b in zip(result.first.seen, result.second.seen):
        if (a.kind, a.name) != (b.kind, b.name) or a.shape != b.shape:
            result.parted = a
            mine, theirs = (f"{s.kind} of {s.name or 'the backward'} {s.shape}" for s in (a, b))
            result.find(
                checks.RunsPart, f"The runs do different things from step {a.step}: {mine} in one, {theirs} in the other.",
                remedy="Compare programs of the same model and the same loop.", step=a.step, name=a.name,
            )  # fmt: skip
            return
        difference, size = _difference(a.values, b.values)
        if difference == 0:
            continue
        result.different = result.different or a
        if not difference <= rtol * size + atol:
            result.parted, result.by = a, difference / size if size else math.inf
            _say(result, a, b, difference)
            return
        if difference > atol:  # else it is noise around 0
            result.largest = max(result.largest, difference / size)
    short, long = sorted((result.first, result.second), key=lambda t: len(t.seen))
    if len(short.seen) < len(long.seen):
        result.parted = long.seen[len(short.seen)]
        result.find(
            checks.RunsPart,
            f"{short.name} ends where {long.name} goes on, at {result.parted}.",
            step=result.parted.step,
            remedy="",
        )


def _difference(a: list[float], b: list[float]) -> tuple[float, float]:
    """Return the largest difference and the largest value; NaN in both is no difference, in one it is infinite."""
    difference = size = 0.0
    for x, y in zip(a, b):
        if x == y or (x != x and y != y):
            size = max(size, abs(x)) if math.isfinite(x) else size
        elif math.isfinite(x) and math.isfinite(y):
            difference, size = max(difference, abs(x - y)), max(size, abs(x), abs(y))
        else:
            difference = math.inf
    return difference, size


REMEDIES = {
    "first value": "The models begin differently: seed before each is built, and build them in the same order.",
    "input": "The batches differ: look at shuffling, at random transforms and at generators of the loader.",
    "activation": "Look at this layer: dropout or another random number, train and eval mode, or its kernel on one of the backends.",
    "loss": "The outputs were the same: look at the loss, its options and the targets.",
    "gradient": "Activations and loss were the same: look at the backward of this layer and those behind it, and at zero_grad.",
    "parameter": "Gradients were the same: look at the optimizer, its options and its learning rate.",
}


def _say(result: Comparison, a: Seen, b: Seen, difference: float) -> None:
    places = [
        i for i, (x, y) in enumerate(zip(a.values, b.values)) if abs(x - y) == difference or not math.isfinite(x - y)
    ]
    x, y = (a.values[places[0]], b.values[places[0]]) if places else (a.values[0], b.values[0])
    what = {"first value": f"the first value of {a.name}", "loss": "the loss"}.get(a.kind, f"the {a.kind} of {a.name}")
    before = ""
    if result.different is not None and result.different is not a:
        before = f" Rounding apart, the first difference was at {result.different}."
    result.find(
        checks.RunsPart,
        f"{result.first.name} and {result.second.name} part at step {a.step} in {what}: {x:.6g} and {y:.6g}.{before}",
        remedy=REMEDIES.get(a.kind), step=a.step, kind=a.kind, name=a.name, difference=difference,
    )  # fmt: skip
