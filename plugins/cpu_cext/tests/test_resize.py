"""Interpolation, sampling at grids, sliding blocks and padding against the default bodies on the same backend."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("mortice_cpu_cext._cext", reason="the extension is not built")

import mortice  # noqa: E402
from mortice.backends import Backend  # noqa: E402
from mortice_cpu_cext.backend import CextBackend  # noqa: E402

K = CextBackend()


def _input(shape, dtype=mortice.float64, seed=0):
    rng = random.Random(seed)
    size = 1
    for n in shape:
        size *= n
    return mortice.tensor([rng.randint(0, 99) for _ in range(size)]).reshape(shape).to(dtype)._buffer


def _near(got, want, tolerance=1e-9):
    assert tuple(K.shape_of(got)) == tuple(K.shape_of(want)) and K.dtype_of(got) is K.dtype_of(want)
    if 0 not in K.shape_of(got):
        gap = K.abs(K.subtract(K.astype(got, mortice.float64), K.astype(want, mortice.float64)))
        near = K.logical_or(K.less_equal(gap, tolerance), K.logical_and(K.isnan(got), K.isnan(want)))
        assert bytes(K.to_host(K.all(near)).view.cast("B"))[0] == 1


@pytest.mark.parametrize("scales", [None, (1.3, 0.7)])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "cubic", "lanczos"])
@pytest.mark.parametrize("sizes, out", [((5, 7), (10, 14)), ((9, 40), (4, 55)), ((6, 70), (6, 33)), ((1, 3), (4, 1))])
def test_interpolation_is_that_of_the_default_body(sizes, out, mode, antialias, scales):
    if mode.startswith("nearest") if antialias else mode == "lanczos":
        pytest.skip("nearest elements have no filter; Lanczos's is one")
    x = _input((2, 3, *sizes))
    if scales:
        out = tuple(max(1, int(n * s)) for n, s in zip(sizes, scales))
    for align in (False, True) if not mode.startswith("nearest") else (False,):
        settings = {"mode": mode, "align_corners": align, "scales": scales, "antialias": antialias}
        y = K.interpolate(x, size=out, **settings)
        _near(y, Backend.interpolate(K, x, size=out, **settings), 1e-9)
        shape = K.shape_of(x)
        _near(
            K.interpolate_grad(y, x_shape=shape, **settings), Backend.interpolate_grad(K, y, x_shape=shape, **settings), 1e-8
        )


@pytest.mark.parametrize("mode", ["linear", "cubic", "lanczos"])
@pytest.mark.parametrize("sizes, out", [
    ((5, 7), (10, 14)), ((9, 40), (4, 55)), ((70, 130), (33, 65)), ((1, 3), (4, 1)), ((300, 20), (300, 31)), ((260, 4), (9, 4)),
])  # fmt: skip
def test_resampled_bytes_are_those_of_the_default_body(sizes, out, mode):
    x = K.multiply(_input((2, 3, *sizes), mortice.uint8), 3)
    for antialias, align in [(True, False), *([(True, True), (False, False), (False, True)] if mode != "lanczos" else [])]:
        settings = {"mode": mode, "align_corners": align, "scales": None, "antialias": antialias}
        _near(K.interpolate(x, size=out, **settings), Backend.interpolate(K, x, size=out, **settings), 0)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
def test_nearest_elements_of_any_dtype_are_copied(dtype):
    x = _input((1, 2, 3, 4), getattr(mortice, dtype))
    got = K.interpolate(x, size=(6, 5), mode="nearest")
    rows, columns = mortice.tensor([0, 0, 1, 1, 2, 2])._buffer, mortice.tensor([0, 0, 1, 2, 3])._buffer
    want = K.take(K.take(x, rows, axis=2), columns, axis=3)
    assert K.dtype_of(got) is K.dtype_of(want) and tuple(K.shape_of(got)) == (1, 2, 6, 5)
    assert bytes(K.to_host(K.all(K.equal(got, want))).view.cast("B"))[0] == 1


@pytest.mark.parametrize("settings", [
    ((3, 3), (1, 1), (1, 1), (1, 1)), ((2, 3), (2, 1), (0, 2), (1, 2)), ((1, 1), (1, 1), (0, 0), (1, 1)), ((4, 4), (3, 3), (2, 2), (1, 1)),
])  # fmt: skip
def test_blocks_and_their_sums_are_those_of_the_default_bodies(settings):
    kernel, stride, padding, dilation = settings
    named = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    x = _input((2, 3, 9, 8))
    cols = K.unfold(x, **named)
    _near(cols, Backend.unfold(K, x, **named), 0)
    _near(K.fold(cols, output_size=(9, 8), **named), Backend.fold(K, cols, output_size=(9, 8), **named))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("widths", [((0, 0), (0, 0), (2, 1), (3, 0)), ((0, 0), (0, 0), (-1, 2), (1, -2)), ((0, 0), (1, 1), (1, 1), (2, 2))])
def test_padding_and_its_gradient_are_those_of_the_default_bodies(widths, mode):
    x = _input((2, 3, 5, 6), mortice.float32)
    out = K.pad_border(x, widths=widths, mode=mode, value=0)
    _near(out, Backend.pad_border(K, x, widths=widths, mode=mode, value=0), 0)
    _near(K.pad_border_grad(out, widths=widths, mode=mode), Backend.pad_border_grad(K, out, widths=widths, mode=mode), 1e-3)


def test_borders_wider_than_the_axis_are_refused():
    with pytest.raises(RuntimeError):
        K.pad_border(_input((1, 1, 3)), widths=((0, 0), (0, 0), (5, 0)), mode="reflect")


# Points inside, on the edges, far outside, and none at all.
_FAR = [-3.7, -1.0, 1.0, 1.5, 40.0, -1e30, float("inf"), float("-inf"), float("nan"), 0.0]


def _points(shape, dtype, seed):
    rng = random.Random(seed)
    size = 1
    for n in shape:
        size *= n
    numbers = [rng.choice(_FAR) if rng.random() < 0.2 else rng.uniform(-1.4, 1.4) for _ in range(size)]
    return mortice.tensor(numbers, dtype=mortice.float64).reshape(shape).to(dtype)._buffer


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes, out", [((5, 7), (10, 14)), ((1, 6), (3, 5)), ((3, 4, 2), (2, 9, 5))])
def test_sampling_at_a_grid_is_that_of_the_default_body(sizes, out, mode, padding, align):
    if mode == "cubic" and len(sizes) == 3:
        pytest.skip("cubic convolution is of two axes")
    settings = {"mode": mode, "padding": padding, "align_corners": align}
    for dtype, gap in ((mortice.float64, 1e-12), (mortice.float32, 1e-5), (mortice.float16, 0)):
        x, grid = _input((2, 3, *sizes), dtype), _points((2, *out, len(sizes)), dtype, 1)
        y = K.grid_sample(x, grid, **settings)
        _near(y, Backend.grid_sample(K, x, grid, **settings), gap)
        g = _input((2, 3, *out), dtype, seed=2)
        for needs in ((True, True), (True, False), (False, True)):
            got = K.grid_sample_grad(g, x, grid, needs=needs, **settings)
            want = Backend.grid_sample_grad(K, g, x, grid, needs=needs, **settings)
            for own, other, needed in zip(got, want, needs):
                assert (own is not None) == (other is not None) == needed
                if needed and dtype is not mortice.float16:  # sums of other orders round otherwise there
                    _near(own, other, 1e-9 if dtype is mortice.float64 else 0.1)


def test_sampling_is_the_same_for_any_number_of_threads():
    x, grid = _input((1, 5, 40, 50), mortice.float32), _points((1, 90, 80, 2), mortice.float32, 3)
    g = _input((1, 5, 90, 80), mortice.float32, seed=4)
    settings = {"mode": "linear", "padding": "reflection", "align_corners": False}
    before, found = mortice.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            mortice.set_num_threads(threads)
            arrays = [K.grid_sample(x, grid, **settings), *K.grid_sample_grad(g, x, grid, needs=(True, True), **settings)]
            found.append([bytes(K.to_host(a).view.cast("B")) for a in arrays])
    finally:
        mortice.set_num_threads(before)
    assert found[0] == found[1] == found[2]
