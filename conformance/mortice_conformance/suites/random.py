"""L4: random numbers are the golden ones, and do not depend on shape, device, chunking or thread."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any

import numpy as np

from mortice_conformance.arrays import BY_NAME, bfloat16_bits, from_host_buffer
from mortice_conformance.subject import Failure, Skip, Subject
from mortice_conformance.suites import suite

# Draws that a device without float64 makes in float32, to the last digits only.
_NEEDS_FLOAT64 = ("random_normal", "random_exponential")


@functools.cache
def golden() -> list[dict[str, Any]]:
    """Read the golden vectors."""
    file = importlib.resources.files("mortice_conformance") / "golden_random.json"
    return json.loads(file.read_text(encoding="utf-8"))["records"]  # type: ignore[no-any-return]


def _label(number: int) -> str:
    r = golden()[number]
    arguments = ",".join(str(v).replace(" ", "") for v in r["arguments"].values())
    return f"{r['draw'].removeprefix('random_')}-{arguments}-{r['seed']}+{r['offset']}".replace("[", "(").replace(
        "]", ")"
    )


def spelled(array: Any, dtype: Any) -> list[Any]:
    """Return elements as the golden vectors spell them: floats and words by their bits, integers in decimal."""
    if dtype.name == "bfloat16":
        array = bfloat16_bits(array)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "bi":
        return [int(v) for v in flat]
    return [format(int(v), f"0{2 * flat.itemsize}x") for v in flat.view(f"u{flat.itemsize}")]


def draw(subject: Subject, name: str, seed: int, offset: int, arguments: dict[str, Any]) -> tuple[Any, Any]:
    """Draw on the subject's device; returns (values, dtype)."""
    k = subject.backend
    buffer = getattr(k, name)(seed, offset, **arguments, device=subject.device)
    if k.device_of(buffer) is not subject.device:
        raise Failure(f"{name}: the result is on {k.device_of(buffer)}, {subject.device} was asked for.")
    return from_host_buffer(k.to_host(buffer)), k.dtype_of(buffer)


@suite("random", 4, each=range(len(golden())), to=_label)
def check_golden(subject: Subject, number: int) -> None:
    """Give the golden bits on every device."""
    r = golden()[number]
    arguments = {n: BY_NAME[v] if n == "dtype" else tuple(v) if n == "shape" else v for n, v in r["arguments"].items()}
    wide = BY_NAME["float64"]
    tested = 0
    for name in subject.devices:
        there = subject.on(name)
        if arguments.get("dtype", BY_NAME["int64"]) not in there.available:
            continue
        if r["draw"] in _NEEDS_FLOAT64 and wide not in there.available:
            continue
        tested += 1
        values, dtype = draw(there, r["draw"], int(r["seed"], 16), r["offset"], arguments)
        got = spelled(values, dtype)
        if got != r["values"]:
            raise Failure(f"{r['draw']} {r['arguments']} seed {r['seed']} offset {r['offset']} on {name}: expected "
                          f"{r['values']}; got {got}.")  # fmt: skip
    if not tested:
        raise Skip(f"no device has {arguments['dtype'].name}, or float64 to make it with")


@suite("random", 4)
def check_prefix(subject: Subject) -> None:
    """Give a longer draw the shorter one as its beginning, whatever the shape and where chunks meet."""
    d = BY_NAME["float32"]
    chunk = subject.backend.random_chunk
    long, _ = draw(subject, "random_uniform", 7, 3, {"shape": (chunk + 9,), "dtype": d})
    for shape in ((1,), (5,), (2, 3), (chunk + 9,), ()):
        n = int(np.prod(shape))
        values, _ = draw(subject, "random_uniform", 7, 3, {"shape": shape, "dtype": d})
        if values.shape != shape or not np.array_equal(values.reshape(-1), long[:n]):
            raise Failure(f"random_uniform {shape}: it is not the beginning of the longer draw.")
    for start in (1, 4, chunk):
        values, _ = draw(subject, "random_uniform", 7, 3 + start, {"shape": (5,), "dtype": d})
        if not np.array_equal(values, long[start : start + 5]):
            raise Failure(f"random_uniform: the draw at offset {start} is not the stream from there on.")


@suite("random", 4)
def check_moments(subject: Subject) -> None:
    """Have the mean and deviation of the distribution, also where the device has no float64."""
    n = 20_000
    for name in subject.devices:
        there = subject.on(name)
        for what, mean, deviation in (("uniform", 0.5, 12**-0.5), ("normal", 0.0, 1.0), ("exponential", 1.0, 1.0)):
            values, _ = draw(there, f"random_{what}", 1, 0, {"shape": (n,), "dtype": BY_NAME["float32"]})
            wide = values.astype(np.float64)
            if abs(wide.mean() - mean) > 0.05 or abs(wide.std() - deviation) > 0.05 or not np.isfinite(wide).all():
                raise Failure(f"random_{what} on {name}: mean {wide.mean():.4f}, deviation {wide.std():.4f}.")
