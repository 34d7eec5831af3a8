"""Fourier transforms against their definition, in Python's complex numbers, for lengths of every kind of factor."""

from __future__ import annotations

import cmath
import random
from typing import Any

import pytest
from lists import array, flat  # noqa: E402

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 30, 31, 37, 49, 60, 64, 74, 97, 128]
LIMIT = {"complex64": 1e-6, "complex128": 1e-14}


def transform(row: list[complex], sign: int) -> list[complex]:
    n = len(row)
    roots = [cmath.exp(sign * 2j * cmath.pi * k / n) for k in range(n)]
    return [sum(v * roots[i * j % n] for j, v in enumerate(row)) for i in range(n)]


def near(found: list[Any], expected: list[Any], dtype: str) -> None:
    size = max(1.0, *(abs(v) for v in expected))
    assert len(found) == len(expected)
    assert max(abs(a - b) for a, b in zip(found, expected)) < 3 * LIMIT[dtype] * size


def drawn(n: int, seed: int) -> list[complex]:
    draw = random.Random(seed)
    return [complex(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(n)]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_every_length_there_and_back(k: Any, n: int, dtype: str) -> None:
    values = drawn(3 * n, n)
    rows = array(k, values, (3, n), dtype)
    columns = k.permute_dims(array(k, [values[j * n + i] for i in range(n) for j in range(3)], (n, 3), dtype), (1, 0))
    for x in (rows, columns):
        plain = flat(k, x)
        for kernel, sign, norm in (("fftn", -1, "backward"), ("ifftn", 1, "forward")):
            expected = [v for r in range(3) for v in transform(plain[r * n : (r + 1) * n], sign)]
            near(flat(k, getattr(k, kernel)(x, axes=(1,), norm=norm)), expected, dtype)
        for norm in ("backward", "forward", "ortho"):
            near(flat(k, k.ifftn(k.fftn(x, axes=(1,), norm=norm), axes=(1,), norm=norm)), plain, dtype)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_real_transforms_are_half_of_the_complex_ones(k: Any, n: int, dtype: str) -> None:
    real = {"complex64": "float32", "complex128": "float64"}[dtype]
    x = array(k, [v.real for v in drawn(2 * n, n)], (2, n), real)
    plain = flat(k, x)
    half = k.rfftn(x, axes=(1,), norm="backward")
    assert k.shape_of(half) == (2, n // 2 + 1)
    near(flat(k, half), [v for r in range(2) for v in transform(plain[r * n : (r + 1) * n], -1)[: n // 2 + 1]], dtype)
    again = k.irfftn(half, axes=(1,), n=n, norm="backward")
    assert k.dtype_of(again) is k.dtype_of(x)
    near(flat(k, again), plain, dtype)


def test_the_imaginary_parts_of_the_ends_do_not_count(k: Any) -> None:
    x = array(k, [1 + 5j, 2 - 1j, 3 + 7j], (3,), "complex128")
    plain = array(k, [1, 2 - 1j, 3], (3,), "complex128")
    there = lambda z: flat(k, k.irfftn(z, axes=(0,), n=4, norm="backward"))
    assert there(x) == there(plain)


def test_several_axes_go_one_after_the_other(k: Any) -> None:
    x = array(k, drawn(4 * 3 * 5, 1), (4, 3, 5), "complex128")
    both = k.fftn(k.fftn(x, axes=(2,), norm="ortho"), axes=(0,), norm="ortho")
    near(flat(k, k.fftn(x, axes=(0, 2), norm="ortho")), flat(k, both), "complex128")
    y = array(k, [v.real for v in drawn(4 * 3 * 6, 2)], (4, 3, 6), "float64")
    near(flat(k, k.irfftn(k.rfftn(y, axes=(1, 2), norm="ortho"), axes=(1, 2), n=6, norm="ortho")), flat(k, y), "complex128")


def test_a_long_line_comes_back(k: Any) -> None:
    for n in (65536, 32749):  # by small factors; by a convolution
        x = array(k, drawn(n, 3), (n,), "complex128")
        near(flat(k, k.ifftn(k.fftn(x, axes=(0,), norm="ortho"), axes=(0,), norm="ortho")), flat(k, x), "complex128")


@pytest.mark.usefixtures("modern")
def test_what_does_not_fit_is_refused(k: Any) -> None:
    z = array(k, [1, 2], (2,), "complex64")
    with pytest.raises(TypeError):
        k.fftn(array(k, [1, 2], (2,), "float32"), axes=(0,), norm="ortho")
    with pytest.raises(IndexError):
        k.fftn(z, axes=(1,), norm="ortho")
    with pytest.raises(RuntimeError):
        k.irfftn(z, axes=(0,), n=9, norm="ortho")
    with pytest.raises(ValueError):
        k.fftn(z, axes=(0,), norm="sideways")


def test_a_nan_stays_in_its_line(k: Any) -> None:
    for n in (6, 7, 16):
        x = array(k, [float("nan")] + [1.0] * (4 * n - 1), (4, n), "float64")
        half = k.rfftn(x, axes=(1,), norm="backward")
        for found in (half, k.irfftn(half, axes=(1,), n=n, norm="backward")):
            width = k.shape_of(found)[1]
            assert [v != v for v in flat(k, found)] == [True] * width + [False] * (3 * width)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2, 1), (0, 2), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(40, 3, 9), (5, 33, 4), (3, 6, 130), (70, 17, 1)])
def test_blocks_of_indices_and_lines_that_divide_unevenly(k: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    n, size, last = shape[0] * shape[1] * shape[2], shape[axes[-1]], axes[-1]
    z = array(k, drawn(n, n), shape, "complex128")
    one_by_one = z
    for axis in axes:
        one_by_one = k.fftn(one_by_one, axes=(axis,), norm="backward")
    near(flat(k, k.fftn(z, axes=axes, norm="backward")), flat(k, one_by_one), "complex128")
    x = k.real(z)
    whole = k.fftn(k.astype(x, k.dtype_of(z)), axes=axes, norm="ortho")
    near(flat(k, k.fftn_real(x, axes=axes, norm="ortho")), flat(k, whole), "complex128")
    half = k.rfftn(x, axes=axes, norm="ortho")
    near(flat(k, half), flat(k, k.getitem(whole, (*(slice(None),) * last, slice(0, size // 2 + 1)))), "complex128")
    near(flat(k, k.irfftn(half, axes=axes, n=size, norm="ortho")), flat(k, x), "complex128")
