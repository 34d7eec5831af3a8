"""Distances in ulp, rounding, and the tolerance table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mortice_conformance import references
from mortice_conformance.arrays import (
    BY_NAME,
    bfloat16_bits,
    bfloat16_values,
    from_host_buffer,
    host_buffer,
    rounded,
    spacing,
    ulps,
)
from mortice_conformance.suites.storage import content
from mortice_conformance.tolerance import ULP, allowed

F32, F64, F16, BF16 = (BY_NAME[n] for n in ("float32", "float64", "float16", "bfloat16"))
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("got", "want", "distance"),
    [
        (1.0, 1.0, 0), (1.0, 1 + 2.0**-23, 1), (2.0, 2 - 2.0**-23, 1), (INF, INF, 0), (-INF, INF, INF), (NAN, NAN, 0),
        (NAN, 1.0, INF), (1.0, NAN, INF), (0.0, -0.0, 0), (0.0, 1e-60, 0), (INF, 1e39, 0), (INF, 3.4028235e38, 1), (1.0, INF, INF),
    ],
)  # fmt: skip
def test_distance_in_ulp_of_float32(got: float, want: float, distance: float) -> None:
    found = float(ulps(np.float32(got), np.float64(want), F32))
    assert found == distance or abs(found - distance) < 0.6


def test_distance_of_complex_numbers_is_measured_at_their_size() -> None:
    assert ulps(np.complex64(1 + 1e-9j), np.complex128(1), BY_NAME["complex64"]) < 1
    assert ulps(np.complex64(1 + 1e-3j), np.complex128(1), BY_NAME["complex64"]) > 1000


def test_spacing_stops_at_the_smallest_normal_number() -> None:
    assert spacing(1.0, F32) == 2.0**-23
    assert spacing(0.0, F32) == spacing(1e-45, F32) == 2.0**-149
    assert spacing(1.5, F64) == 2.0**-52
    assert spacing(1.0, F16) == 2.0**-10


def test_bfloat16_rounds_to_nearest_even_and_keeps_nan() -> None:
    values = np.float32([1.0, 1.00390625, 1.01171875, -2.5, np.inf, np.nan, 3.4e38])
    back = bfloat16_values(bfloat16_bits(values))
    assert back[:5].tolist() == [1.0, 1.0, 1.015625, -2.5, np.inf]
    assert np.isnan(back[5]) and np.isinf(back[6])
    assert rounded(1.001, BF16) == 1.0


@pytest.mark.parametrize("name", sorted(BY_NAME))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_host_buffers_keep_every_bit(name: str, shape: tuple[int, ...]) -> None:
    d = BY_NAME[name]
    values = content(shape, d)
    back = from_host_buffer(host_buffer(values, d))
    assert back.shape == shape
    assert back.tobytes() == np.ascontiguousarray(values).tobytes()


def test_the_table_grows_with_the_root_of_the_terms_where_errors_add_up() -> None:
    assert allowed("reduction", F32, 100) == 10 * allowed("reduction", F32, 1)
    assert allowed("elementwise", F32, 100) == allowed("elementwise", F32, 1)
    assert allowed("exact", F32) == 0 and allowed("elementwise", BY_NAME["int64"]) == 0
    assert all(len(row) == 6 for row in ULP.values())


@pytest.mark.parametrize(
    ("fn", "x", "want"),
    [
        (references.erfcx, 0.5, 0.6156903441929258), (references.erfcx, 10.0, 0.05614099274382259),
        (references.erfcx, 30.0, 0.018795888861416751), (references.erfinv, 0.5, 0.4769362762044699),
        (references.erfinv, -0.9, -1.1630871536766743), (references.erfinv, 1.0, INF),
        (references.digamma, 1.0, -0.5772156649015329), (references.digamma, 0.1, -10.423754940411076),
        (references.digamma, -0.5, 0.03648997397857652), (references.lgamma, 0.5, 0.5723649429247001),
    ],
)  # fmt: skip
def test_references_give_known_values(fn: Any, x: float, want: float) -> None:
    got = float(fn(x))
    assert got == want or abs(got - want) <= 4e-15 * abs(want)


def test_zeta_and_polygamma_give_known_values() -> None:
    assert abs(float(references.zeta(2.0, 1.0)) - math.pi**2 / 6) < 1e-15
    assert abs(float(references.zeta(3.0, 1.0)) - 1.2020569031595942) < 1e-15
    assert abs(float(references.polygamma(1.0, 1)) - math.pi**2 / 6) < 1e-15
    assert abs(float(references.polygamma(1.0, 2)) + 2 * 1.2020569031595942) < 1e-14
