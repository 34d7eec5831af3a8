"""The stand-in beside CuPy itself: what one takes the other must take, or tests pass that fail on a GPU. No GPU is needed."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed here; `make cuda` brings it")
ml_dtypes = pytest.importorskip("ml_dtypes")
if "stand-in" in (cupy.__doc__ or "") or "emulator" in (cupy.__doc__ or ""):
    pytest.skip("this is the stand-in", allow_module_level=True)

import numpy as np  # noqa: E402

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "emulator")]
import fake_array  # noqa: E402
import fake_cupy  # noqa: E402
import fake_runtime  # noqa: E402
from signatures import takes  # noqa: E402

PLUGIN = HERE.parent / "mortice_cuda_cupy"
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def _roots() -> dict[str, Any]:
    import cupyx
    from cupy.lib.stride_tricks import as_strided

    return {"cupy": cupy, "cupyx": cupyx, "as_strided": as_strided, "ndarray": cupy.ndarray}


def _calls() -> list[tuple[str, str, int, bool, set[str]]]:
    """Return the plugin's calls of CuPy: where, of what, how many values, whether there are more, and names."""
    found = []
    for path in sorted(PLUGIN.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            parts, at = [], node.func
            while isinstance(at, ast.Attribute):
                parts.append(at.attr)
                at = at.value
            if isinstance(at, ast.Name) and at.id in _roots() and (parts or at.id == "as_strided"):
                open_ended = any(isinstance(a, ast.Starred) for a in node.args) or any(
                    k.arg is None for k in node.keywords
                )
                found.append((
                    f"{path.name}:{node.lineno}", ".".join([at.id, *reversed(parts)]),
                    sum(not isinstance(a, ast.Starred) for a in node.args), open_ended, {k.arg for k in node.keywords if k.arg},
                ))  # fmt: skip
    return found


def test_cupy_takes_what_the_plugin_gives() -> None:
    refused, unknown, calls = [], set(), _calls()
    for place, name, count, open_ended, names in calls:
        value: Any = _roots()[name.partition(".")[0]]
        for part in name.split(".")[1:]:
            value = getattr(value, part)
        wanted = takes(value)
        if wanted is None:
            unknown.add(name)
        elif why := wanted.refuses(count, names):
            if not (open_ended and "missing" in why):
                refused.append(f"{place}: {name}: {why}")
    assert not refused and len(calls) > 80
    # Objects that say nothing of what they take.
    assert unknown <= {"cupy.cuda.runtime.CUDARuntimeError"}, unknown


def test_cublas_is_found_through_the_module_that_loads_it() -> None:
    """The module wants cuBLAS itself, which is large: that it names the library is all that can be asked."""
    import cupy_backends.cuda.libs

    [library] = Path(cupy_backends.cuda.libs.__path__[0]).glob("cublas.*.so")
    text = library.read_bytes()
    assert b"libcublas.so." in text
    # Its functions ask whether the stream is captured, to refuse. The plugin calls none of them.
    assert b"runtime_streamIsCapturing" in text


def _public(owner: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if not name.startswith("_")}


CLASSES: dict[str, tuple[Any, Any]] = {
    "ndarray": (fake_array.ndarray, cupy.ndarray),
    **{name: (getattr(fake_runtime, name), getattr(cupy.cuda, name))
       for name in ("Device", "Event", "Graph", "MemoryPointer", "MemoryPool", "Stream", "PinnedMemoryPool")},
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_what_the_stand_ins_classes_take_cupy_s_take(name: str) -> None:
    fake, real = CLASSES[name]
    members: dict[str, Any] = {}
    for part in reversed(fake.__mro__[:-1]):
        members |= _public(part)
    lacking = [member for member in members if not hasattr(real, member)]
    assert lacking == []
    refused = {}
    for member, value in {**members, "": fake}.items():
        if (
            not callable(value)
            or isinstance(value, property)
            or (not member and name in ("ndarray", "MemoryPointer", "Graph"))
        ):
            continue  # the plugin makes none of these itself
        mine, theirs = takes(value), takes(getattr(real, member) if member else real)
        if mine is None or theirs is None:
            refused[member] = "says nothing"
        elif why := _wider(mine, theirs):
            refused[member or name] = why
    assert refused == {}


def _wider(mine: Any, theirs: Any) -> str:
    """Say what the stand-in would take and CuPy would not, or nothing."""
    if not theirs.more and mine.more:
        return "takes any number of values"
    if not theirs.more and [
        a for a, b in zip(mine.places, theirs.places) if a != b and (a in theirs.names or b in mine.names)
    ]:
        return f"{mine.places} are {theirs.places} in CuPy"
    if not theirs.more and len(mine.places) > len(theirs.places):
        return f"takes {len(mine.places)} values; CuPy {len(theirs.places)}"
    if mine.needed < theirs.needed:
        return f"must be given {mine.needed} values; in CuPy {theirs.needed}"
    return "" if theirs.others else ", ".join(sorted(mine.names - theirs.names - set(mine.places)))


FUNCTIONS = sorted(
    name for name, value in vars(fake_cupy).items()
    if not name.startswith("_") and inspect.isfunction(value) and name != "install"
)  # fmt: skip


def test_what_the_stand_ins_functions_take_cupy_s_take() -> None:
    import cupyx
    from cupy.lib import stride_tricks

    refused = {}
    for name in FUNCTIONS:
        fake = getattr(fake_cupy, name)
        real = next((getattr(m, name) for m in (cupy, cupy.cuda, cupyx, stride_tricks) if hasattr(m, name)), None)
        if real is None:
            refused[name] = "is not there"
            continue
        mine, theirs = takes(fake), takes(real)
        if mine is None or theirs is None:
            refused[name] = "says nothing"
        elif not mine.more and (why := _wider(mine, theirs)):
            refused[name] = why
    assert refused == {} and len(FUNCTIONS) > 90


# ---- which dtype CuPy's functions compute in ----

DTYPES = [
    np.dtype(n)
    for n in "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
]
DTYPES.insert(-2, BFLOAT16)


def _ufuncs() -> list[str]:
    return [name for name in FUNCTIONS if hasattr(getattr(cupy, name, None), "_ops")]


def _of_cupy(name: str, dtypes: list[Any], weak: list[Any]) -> Any:
    """Return the dtype of CuPy's result, or that it refuses."""
    function = getattr(cupy, name)
    known = [d for d, w in zip(dtypes, weak) if not w]
    order = lambda d: {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}[d.kind]
    weaks = tuple([w if w and order(np.dtype(w)) <= max(map(order, known)) else False for w in weak])
    op = function._ops._guess_routine_from_in_types(tuple(dtypes), weaks if any(weaks) else None)
    if op is None:
        return "refused"
    try:
        op.check_valid()
    except (AttributeError, TypeError) as error:
        if isinstance(error, TypeError):
            return "refused"
    return np.dtype(op.out_types[0])


def _of_stand_in(name: str, dtypes: list[Any], weak: list[Any]) -> Any:
    arguments = [w(2) if w else fake_cupy.empty((1,), d) for d, w in zip(dtypes, weak)]
    for x in arguments:
        if isinstance(x, fake_array.ndarray):
            x._a[...] = 1
    try:
        return getattr(fake_cupy, name)(*arguments).dtype
    except TypeError:
        return "refused"


@pytest.mark.parametrize("name", _ufuncs())
def test_the_stand_in_computes_in_cupy_s_dtypes(name: str) -> None:
    fake_runtime.start(1)
    different = {}
    count = getattr(cupy, name).nin
    for d in DTYPES:
        cases: list[tuple[list[Any], list[Any]]] = [([d] * count, [False] * count)]
        if count == 2:
            for kind in (bool, int, float):
                if d == BFLOAT16 or kind is complex:
                    continue  # numbers beside bfloat16 are converted before
                cases += [([d, np.dtype(kind)], [False, kind]), ([np.dtype(kind), d], [kind, False])]
        for dtypes, weak in cases:
            mine, theirs = _of_stand_in(name, dtypes, weak), _of_cupy(name, dtypes, weak)
            # What CuPy refuses the stand-in must refuse; what only the stand-in refuses, no test can rely on.
            if mine != theirs and mine != "refused":
                different[tuple(map(str, dtypes)), tuple(map(str, weak))] = (str(mine), str(theirs))
    assert different == {}
