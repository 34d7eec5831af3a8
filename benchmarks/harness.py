"""The measuring: each case runs in every library in interleaved rounds, and the median of the ratios counts.

A round times every library once, in an order that alternates, so a slow moment of the machine meets them
all. The garbage collector stays on, as it is for a user; a collection runs before each timing. One Python
call and one step of the timing loop are in every figure.
"""

from __future__ import annotations

import gc
import itertools
import math
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

Timed = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One thing to measure. `setup` takes the module (`mortice` or `torch`) and returns the function to time.

    Its result is compared between the libraries before anything is timed. `jax` is the same thing for
    `jax.numpy`, where it has one; it must wait for its result.
    """

    group: str
    name: str
    setup: Callable[[Any], Timed]
    jax: Callable[[Any], Timed] | None = None


@dataclass(frozen=True)
class Library:
    """A library in the comparison; the first one is the subject, the others are what it is compared with."""

    name: str
    module: Any
    wait: Timed = lambda: None  # until all its work is done, where that goes on by itself


@dataclass
class Ratio:
    """The subject's time over the other library's: the median over the rounds, and the quartiles."""

    median: float
    low: float
    high: float


@dataclass
class Row:
    """The result of one case."""

    group: str
    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, Ratio] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the row in plain types."""
        return asdict(self)


# Seconds between the turns of two libraries: OpenMP's workers spin on their cores for milliseconds after their last job.
SETTLING = 0.02


def wave(t: Any, *shape: int) -> Any:
    """Return a float32 tensor of smooth values in [-1, 1], the same in every library."""
    return t.sin(t.arange(math.prod(shape), dtype=t.float32) * 0.7).reshape(shape)


def positive(t: Any, *shape: int) -> Any:
    """Return a float32 tensor of values from 0.1 to 1.1, the same in every library."""
    return (wave(t, *shape) + 1.2) * 0.5


def fill(t: Any, model: Any) -> Any:
    """Give the model's parameters the same values in every library, and return it."""
    with t.no_grad():
        for parameter in model.parameters():
            shape = tuple(parameter.shape)
            parameter.copy_(wave(t, *shape) / math.sqrt(math.prod(shape[1:]) or 1))
    return model


def settle() -> None:
    """Let the processor come to rest before the next timing."""
    gc.collect()
    time.sleep(SETTLING)


def measure(
    case: Case, libraries: list[Library], *, rounds: int, min_time: float, between: Callable[[], None] = settle
) -> Row:
    """Time one case in each library. A library that fails is named in `problems` and left out of the row."""
    row = Row(case.group, case.name)
    timed: dict[str, Timed] = {}
    values: dict[str, float | None] = {}
    for library in libraries:
        setup = case.jax if library.name == "jax" else case.setup
        if setup is None:
            continue
        try:
            function = setup(library.module)
            values[library.name] = _digest(function())
        except Exception as error:  # a missing name is a result too, and the other cases still count
            traceback.print_exc()
            row.problems.append(f"{library.name} failed: {type(error).__name__}: {error}")
            continue
        timed[library.name] = function
    row.problems += _disagreements(values)

    wait = {library.name: library.wait for library in libraries}
    number = {name: _calls_for(function, wait[name], min_time) for name, function in timed.items()}
    samples: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(rounds):
        for name in timed if turn % 2 == 0 else reversed(timed):
            between()
            timed[name]()  # into warm caches again
            samples[name].append(_time(timed[name], wait[name], number[name]) / number[name])

    row.seconds = {name: statistics.median(times) for name, times in samples.items()}
    subject = libraries[0].name
    for name in samples:
        if name != subject and subject in samples:
            row.ratios[name] = _ratio(samples[subject], samples[name])
    return row


def _time(function: Timed, wait: Timed, number: int) -> float:
    turns = itertools.repeat(None, number)
    wait()
    start = time.perf_counter()
    for _ in turns:
        function()
    wait()
    return time.perf_counter() - start


def _calls_for(function: Timed, wait: Timed, min_time: float) -> int:
    """Return how many calls fill `min_time`; finding it out is the warm-up."""
    number = 1
    while (taken := _time(function, wait, number)) < min_time:
        number = max(number + 1, min(number * 10, math.ceil(number * min_time / max(taken, 1e-9) * 1.1)))
    return number


def _ratio(subject: list[float], other: list[float]) -> Ratio:
    ratios = sorted(mine / theirs for mine, theirs in zip(subject, other, strict=True))
    if len(ratios) < 3:
        return Ratio(statistics.median(ratios), ratios[0], ratios[-1])
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(statistics.median(ratios), low, high)


def _digest(value: Any) -> float | None:
    """Return one number that stands for a result, or None where there is nothing to compare."""
    if value is None:
        return None
    if hasattr(value, "detach"):  # of what may cancel the sum says nothing
        value = value.detach().double().abs()
    return float(value.sum())


def _disagreements(values: dict[str, float | None]) -> list[str]:
    known = [(name, value) for name, value in values.items() if value is not None]
    return [
        f"results differ: {known[0][0]} {known[0][1]:.6g}, {name} {value:.6g}"
        for name, value in known[1:]
        if not math.isclose(known[0][1], value, rel_tol=1e-3, abs_tol=1e-3)
    ]


def duration(seconds: float) -> str:
    """Spell a time in the unit that fits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def header(names: list[str], width: int = 40) -> str:
    """Return the head of the table: a column a library, then the subject's ratio to each of the others."""
    columns = "".join(f"{name:>12}" for name in names)
    return f"{'':{width}}{columns}" + "".join(f"{names[0] + '/' + name:>26}" for name in names[1:])


def line(row: Row, columns: list[str], others: list[str], width: int = 40) -> str:
    """Return one row of the table, and a line under it for each problem."""
    text = f"{row.name:{width}}"
    for name in columns:
        text += f"{duration(row.seconds[name]) if name in row.seconds else '-':>12}"
    for name in others:
        ratio = row.ratios.get(name)
        text += f"{f'{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})' if ratio else '-':>26}"
    return "\n".join([text, *(f"  ! {problem}" for problem in row.problems)])


def summary(rows: list[Row], names: list[str]) -> str:
    """Return the geometric mean of the ratios to each other library, and how many rows are clearly behind."""
    found = []
    for name in names[1:]:
        ratios = [row.ratios[name] for row in rows if name in row.ratios]
        if ratios:
            mean = math.exp(statistics.fmean(math.log(ratio.median) for ratio in ratios))
            behind = sum(ratio.low > 1 for ratio in ratios)  # with noise alone, half of the medians are above 1
            found.append(f"geometric mean {names[0]}/{name} {mean:.2f}; clearly slower in {behind} of {len(ratios)}")
    return "; ".join(found)
