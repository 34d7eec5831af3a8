"""Conversions between all dtypes: what C defines, and what is settled where C leaves it open."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from mortice.backends import DTYPES, HostBuffer
from mortice.dtype import by_name

NAMES = [d.name for d in DTYPES]


def array(k: Any, numbers: list[float]) -> Any:
    view = struct.pack(f"{len(numbers)}d", *numbers)
    return k.from_host(HostBuffer(view, (len(numbers),), by_name("float64")), k.device("cpu"))


def to(k: Any, x: Any, dtype: str) -> Any:
    return k.to_host(k.astype(x, by_name(dtype))).tolist()


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("n", [1, 5, 700])
def test_small_numbers_stay(k: Any, source: str, target: str, n: int) -> None:
    numbers = [float(i % 2 if "bool" in (source, target) else i % 100) for i in range(n)]
    x = k.astype(array(k, numbers), by_name(source))
    assert to(k, x, target) == numbers
    back = k.getitem(x, (slice(None, None, -2),))
    assert to(k, back, target) == numbers[::-2]
    wide = k.broadcast_to(k.getitem(x, (slice(0, 1),)), (3,))
    assert to(k, wide, target) == numbers[:1] * 3


def test_floats_to_integers(k: Any) -> None:
    x = array(k, [1.9, -1.9, 127.5, -128.7, 255.0])
    assert to(k, x, "int32") == [1, -1, 127, -128, 255] == to(k, k.astype(x, by_name("float32")), "int64")
    assert to(k, x, "int8")[:4] == [1, -1, 127, -128] and to(k, x, "uint8")[4] == 255
    lost = array(k, [math.nan, math.inf, -math.inf, 1e30])
    for dtype in ("float64", "float32", "bfloat16"):
        y = k.astype(lost, by_name(dtype))
        assert to(k, y, "int32") == [-(2**31)] * 4 and to(k, y, "int64") == [-(2**63)] * 4
    assert to(k, array(k, [2.0**63, 2.0**64 - 2048, -1.0]), "uint64") == [2**63, 2**64 - 2048, 2**64 - 1]


def test_truth(k: Any) -> None:
    x = array(k, [0.0, -0.0, 0.25, math.nan, -3.0])
    for dtype in ("float64", "float32", "float16", "bfloat16", "complex64"):
        assert to(k, k.astype(x, by_name(dtype)), "bool") == [False, False, True, True, True]
    z = k.complex(array(k, [0.0, 0.0]), array(k, [0.0, 2.0]))
    assert to(k, z, "bool") == [False, True] and to(k, z, "float32") == [0.0, 0.0]


def test_integers_keep_their_low_bits(k: Any) -> None:
    x = k.astype(array(k, [300.0, -1.0, 65535.0]), by_name("int64"))
    assert to(k, x, "uint8") == [44, 255, 255] and to(k, x, "int8") == [44, -1, -1]
    assert to(k, x, "uint64") == [300, 2**64 - 1, 65535] and to(k, x, "int16") == [300, -1, -1]


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 40])
def test_halves_round_to_even(k: Any, source: str, n: int) -> None:
    pairs = [(1 + 2**-11, 1.0), (1 + 3 * 2**-11, 1 + 2**-9), (65519.0, 65504.0), (65520.0, math.inf), (2.0**-25, 0.0),
             (3 * 2.0**-25, 2.0**-23), (2.0**-24, 2.0**-24), (-(2.0**-14), -(2.0**-14))]  # fmt: skip
    for number, want in pairs:
        assert to(k, k.astype(array(k, [number] * n), by_name(source)), "float16") == [want] * n
    for number, want in ((1 + 2**-8, 1.0), (1 + 3 * 2**-8, 1 + 2**-6), (3.4e38, math.inf), (-1.0, -1.0)):
        assert to(k, k.astype(array(k, [number] * n), by_name(source)), "bfloat16") == [want] * n


def test_doubles_are_rounded_once(k: Any) -> None:
    # Rounded to float first, these would lie halfway between two halves and go to the wrong one.
    assert to(k, array(k, [1 + 2**-11 + 2.0**-40, 1 + 2**-11 - 2.0**-40]), "float16") == [1 + 2**-10, 1.0]
    assert to(k, array(k, [1 + 2**-8 + 2.0**-40, 1 + 3 * 2**-8 - 2.0**-40]), "bfloat16") == [1 + 2**-7, 1 + 2**-7]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_half_survives(k: Any, dtype: str) -> None:
    bits = struct.pack("65536H", *range(65536))
    x = k.from_host(HostBuffer(bits, (65536,), by_name(dtype)), k.device("cpu"))
    for wide in ("float32", "float64"):
        back = bytes(k.to_host(k.astype(k.astype(x, by_name(wide)), by_name(dtype))).view)
        numbers = to(k, x, wide)
        wrong = [
            i for i in range(65536) if numbers[i] == numbers[i] and back[2 * i : 2 * i + 2] != bits[2 * i : 2 * i + 2]
        ]
        assert not wrong
