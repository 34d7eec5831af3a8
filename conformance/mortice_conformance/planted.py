"""Planting bugs: a backend with wrong kernels must turn a quick run of the kit red; the share caught is published."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from typing import Any

from mortice.backends.plugins import load
from mortice_conformance import planted_behaviour, planted_numerics  # noqa: F401 - register their bugs
from mortice_conformance.catalog import Item, catalog
from mortice_conformance.planted_bugs import BUGS, Bug
from mortice_conformance.runner import FAILED, Result, run_item
from mortice_conformance.subject import Subject

# One dtype of each check is enough for a quick run; these are the ones that a bug may hide in.
_DTYPES = ("float16", "bfloat16", "float32", "float64", "int64", "bool", "complex64")
_NARROW = ("float32", "bfloat16")
_HOUSEKEEPING = frozenset("device_names device table overridden native".split())


def copy_of(backend_name: str, label: str) -> Any:
    """Return a fresh backend of the same kind under a name of its own."""
    sound = load(backend_name)
    kind = type(sound)
    copy = type("Planted" + kind.__name__, (kind,), {"name": f"{backend_name}~{label}"})()
    copy.rooted = sound.rooted  # as loading it would set
    return copy


def plant(bug: Bug) -> Subject:
    """Return the backend with the bug in it."""
    k = copy_of(bug.backend, bug.name)
    for kernel in bug.kernels:
        right = getattr(k, kernel)
        setattr(k, kernel, functools.wraps(right)(functools.partial(bug.wrong, k, right)))
    return Subject(k.name, k)


def quick(subject: Subject) -> list[Item]:
    """Return the checks of a quick run: every check, in few dtypes."""
    usual = {}
    for item in catalog(subject):
        dtype = item.parts[-1] if item.op and len(item.parts) > 1 else ""
        if dtype and dtype not in (_NARROW if item.check == "gradient_dtypes" else _DTYPES):
            continue
        usual[item.id] = item
    return list(usual.values())


@functools.cache
def trace(backend_name: str) -> dict[str, frozenset[str]]:
    """Run the quick checks on the sound backend; return, for each that passes, the kernels that it called."""
    k = copy_of(backend_name, "traced")
    called: set[str] = set()
    for name in dir(type(k)):
        if name.startswith("_") or name in _HOUSEKEEPING or not callable(getattr(k, name, None)):
            continue
        setattr(k, name, _recorded(name, getattr(k, name), called))
    for name, kernel in list(k.__dict__.items()):
        if (
            callable(kernel)
            and not name.startswith("_")
            and name not in _HOUSEKEEPING
            and not hasattr(kernel, "recorded")
        ):
            setattr(k, name, _recorded(name, kernel, called))
    subject = Subject(k.name, k)
    found = {}
    for item in quick(subject):
        called.clear()
        # A check that fails on the sound backend proves nothing about a planted bug.
        if run_item(item, subject).outcome != FAILED:
            found[_bare(item)] = frozenset(called)
    return found


def _recorded(name: str, kernel: Any, called: set[str]) -> Any:
    def record(*args: Any, **attrs: Any) -> Any:
        called.add(name)
        return kernel(*args, **attrs)

    record.recorded = True  # type: ignore[attr-defined]
    return record


def _bare(item: Item) -> str:
    return f"{item.check}[{'-'.join(item.parts)}]"


def hunt(bug: Bug) -> Result | None:
    """Return the first check that the bug turns red, None when none does."""
    calls = trace(bug.backend)
    subject = plant(bug)
    wrong = set(bug.kernels)
    items = [i for i in quick(subject) if wrong & calls.get(_bare(i), frozenset())]
    # Checks of the op or kernel itself first: a caught bug is then caught soon.
    items.sort(key=lambda i: not any(kernel == i.op or kernel in i.parts[0] for kernel in wrong))
    for item in items:
        result = run_item(item, subject)
        if result.outcome == FAILED:
            return result
    return None


def report(bugs: Iterable[Bug] = BUGS) -> tuple[dict[str, Any], str]:
    """Hunt every bug; return the outcome as data and as a Markdown page."""
    start = time.perf_counter()
    rows = []
    for bug in bugs:
        found = hunt(bug)
        rows.append(
            {
                "kernel": " ".join(bug.kernels),
                "bug": bug.name,
                "backend": bug.backend,
                "caught_by": found.id if found else "",
            }
        )
    caught = sum(bool(r["caught_by"]) for r in rows)
    share = caught / max(len(rows), 1)
    card = {
        "planted": len(rows),
        "caught": caught,
        "share": round(share, 4),
        "seconds": round(time.perf_counter() - start, 1),
        "bugs": rows,
    }
    lines = [
        "# Planted bugs",
        "",
        f"{caught} of {len(rows)} planted backend bugs ({100 * share:.1f} %) turn a quick run of the kit red. Made by",
        "`mortice-conformance planted --markdown FILE`.",
        "",
        "| kernel | bug | backend | first check that fails |",
        "|---|---|---|---|",
    ]
    for r in rows:
        check = r["caught_by"].replace(f"{r['backend']}~{r['bug']}", r["backend"])
        lines.append(f"| {r['kernel']} | {r['bug']} | {r['backend']} | {f'`{check}`' if check else '**not caught**'} |")
    return card, "\n".join(lines)
