"""Running a catalog without pytest: outcomes, times, known failures. The pytest plugin shares everything but the loop."""

from __future__ import annotations

import importlib.resources
import linecache
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from mortice.backends import cudnn
from mortice.backends.plugins import entries
from mortice_conformance.catalog import Item
from mortice_conformance.subject import Skip, Subject

PASSED, FAILED, SKIPPED, KNOWN, UNEXPECTED = "passed", "failed", "skipped", "known", "unexpectedly passed"
# How the message of a failure begins whose only reason is a kernel that is to come.
WAITS = "waits for the kernel"
# How a line of a message begins that says what is due.
NOTE = "due: "


@dataclass
class Result:
    """What became of one check."""

    id: str
    check: str
    op: str
    level: int
    outcome: str
    seconds: float = 0.0
    message: str = ""

    @property
    def bad(self) -> bool:
        """Whether the run fails by it."""
        return self.outcome in (FAILED, UNEXPECTED)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return asdict(self)


@dataclass(frozen=True)
class KnownFailure:
    """A failure that a plugin declares: it is not counted, and it must fail."""

    id: str
    reason: str
    link: str = ""


def known_failures(backend: Any) -> dict[str, KnownFailure]:
    """Read `known_failures.toml` from the package that the backend comes from."""
    entry = entries().get(getattr(backend, "name", ""))
    # A plugin need not have a class of its own; its `load` it always has.
    source = entry.info.load if entry and entry.info and entry.backend is backend else type(backend)
    package = source.__module__.partition(".")[0]
    try:
        file = importlib.resources.files(package) / "known_failures.toml"
        text = file.read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError, TypeError, AttributeError):  # the last for what a script defines
        return {}
    found = {}
    for entry in tomllib.loads(text).get("failure", []):
        if not entry.get("id") or not entry.get("reason"):
            raise ValueError(
                f"{package}/known_failures.toml: each [[failure]] needs an id and a reason; got {entry!r}."
            )
        if entry["id"] in found:
            raise ValueError(f"{package}/known_failures.toml: {entry['id']} is there twice.")
        found[entry["id"]] = KnownFailure(entry["id"], entry["reason"], entry.get("link", ""))
    return found


def unknown_ids(known: dict[str, KnownFailure], items: Iterable[Item]) -> list[str]:
    """Return the ids of declared failures that no check has."""
    return sorted(set(known) - {i.id for i in items})


def execute(item: Item, subject: Subject) -> None:
    """Run one check. An array library's own warnings are errors: results are IEEE 754's, in silence."""
    # PyTorch lets convolutions of a vendor's library round float32 and add in any order unless told otherwise; here told.
    *_, deterministic, rounding, _ = cudnn.set_flags(_deterministic=True, _allow_tf32=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.filterwarnings("ignore", "Casting complex values to real")  # done to know what is discarded
            item.run(subject)
    except RuntimeWarning as warning:
        warning.add_note("no warning: results are IEEE 754's, in silence. With NumPy: `with np.errstate(all=\"ignore\")`.")
        raise
    finally:
        cudnn.set_flags(_deterministic=deterministic, _allow_tf32=rounding)


def run_item(item: Item, subject: Subject) -> Result:
    """Run one check and say what became of it."""
    start = time.perf_counter()
    outcome, message = PASSED, ""
    try:
        execute(item, subject)
    except Skip as skip:
        outcome, message = SKIPPED, str(skip)
    except AssertionError as failure:
        outcome, message = FAILED, "\n".join([str(failure), *_notes(failure)])
    except NotImplementedError as error:
        # The skeleton of a new backend: each kernel that is not written yet names itself.
        kernel = str(error).partition(":")[0]
        outcome = FAILED
        message = (
            f"{WAITS} {kernel}, which is not written yet." if kernel in subject.backend.unwritten else _shown(error)
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a check raises is a failure of the backend or of core, and is shown as such
        outcome, message = FAILED, _shown(error)
    return Result(item.id, item.check, item.op, item.level, outcome, time.perf_counter() - start, message)


def _notes(error: BaseException) -> list[str]:
    """Return what a check has added to an error, as lines that the terminal's scorecard shows too."""
    return [f"{NOTE}{note}" for note in getattr(error, "__notes__", ())]


def _shown(error: BaseException) -> str:
    """Return an error with where it was raised, by modules: where these lie is nobody's business who reads a scorecard."""
    frames = []
    for frame, line in list(traceback.walk_tb(error.__traceback__))[-3:]:
        code, module = frame.f_code, frame.f_globals.get("__name__", "?")
        frames.append((module, line, code.co_name, linecache.getline(code.co_filename, line)))
    try:
        told = str(error)
    except Exception as second:  # a class of the library's own
        told = f"what it says cannot be shown: {type(second).__name__}"
    return f"{type(error).__name__}: {told}\n{''.join(traceback.format_list(frames))}" + "\n".join(_notes(error))


def judge(result: Result, known: dict[str, KnownFailure]) -> Result:
    """Turn the outcome of a declared failure round: it must fail."""
    declared = known.get(result.id)
    if declared is None:
        return result
    if result.outcome == FAILED:
        result.outcome, result.message = KNOWN, f"{declared.reason} {declared.link}".strip()
    elif result.outcome == PASSED:
        result.outcome = UNEXPECTED
        result.message = f"declared as a known failure ({declared.reason}), but it passes. Remove the entry."
    return result


def run(
    items: Iterable[Item], subject: Subject, known: dict[str, KnownFailure] | None = None,
    seen: Callable[[Result], None] | None = None,
) -> list[Result]:  # fmt: skip
    """Run checks and return their results; `seen` is called with each."""
    results = []
    for item in items:
        result = judge(run_item(item, subject), known or {})
        results.append(result)
        if seen is not None:
            seen(result)
    return results
