"""Arrays from lists and back for the tests of indexing and sorting: plain Python says what is right."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator
from typing import Any

from mortice.backends import HostBuffer
from mortice.dtype import DType, by_name


def array(k: Any, values: list[Any], shape: tuple[int, ...], dtype: str = "int64") -> Any:
    """Make an array of the values, in row-major order."""
    wide = "complex128" if dtype.startswith("complex") else "float64" if "float" in dtype else "int64"
    if wide == "complex128":
        data = struct.pack(f"{2 * len(values)}d", *itertools.chain(*[(complex(v).real, complex(v).imag) for v in values]))
    else:
        data = struct.pack(f"{len(values)}{'d' if wide == 'float64' else 'q'}", *values)
    return k.astype(k.from_host(HostBuffer(data, shape, by_name(wide)), k.device("cpu")), by_name(dtype))


def shuffled(k: Any, values: list[Any], shape: tuple[int, ...], dtype: str, draw: random.Random) -> Any:
    """Make the same array with its axes in another order in memory, or every second element of a longer one."""
    x = array(k, values, shape, dtype)
    order = list(range(len(shape)))
    draw.shuffle(order)
    back = tuple(order.index(i) for i in range(len(shape)))
    x = k.permute_dims(k.copy(k.permute_dims(x, tuple(order))), back)
    if draw.random() < 0.3 and shape:
        x = k.getitem(k.concat([x, x], axis=0), (slice(None, shape[0]),))
        x = k.getitem(k.flip(x, 0), (slice(None, None, -1),))
    return x


def flat(k: Any, x: Any) -> list[Any]:
    """Return the elements in row-major order."""
    found = k.to_host(x).tolist()
    for _ in k.shape_of(x)[1:]:
        found = list(itertools.chain(*found))
    return found if k.shape_of(x) else [found]


def places(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Walk through all indices, row-major."""
    return itertools.product(*[range(n) for n in shape])


def at(shape: tuple[int, ...], place: tuple[int, ...]) -> int:
    """Return the position in row-major order."""
    position = 0
    for n, i in zip(shape, place):
        position = position * n + i
    return position


def some(d: DType, n: int, draw: random.Random) -> list[Any]:
    """Draw small whole numbers that the dtype has."""
    low = 0 if d.kind in "bu" else -9
    return [draw.randint(low, 1 if d.kind == "b" else 9) for _ in range(n)]
