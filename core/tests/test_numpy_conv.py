"""cpu_numpy's convolutions against the default bodies, over geometries at random, and what it does to the allocator."""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys

import numpy as np
import pytest
from numpy_shim import Opaque, shim

from mortice.backends.nn_common import window_count

nn_conv = pytest.importorskip("mortice_cpu_numpy.nn_conv")
memory = pytest.importorskip("mortice_cpu_numpy.memory")
pytestmark = pytest.mark.any_backend


def geometry(draw):
    """Return a batch's shape, the filters' shape and the settings; every window count is positive."""
    nd, groups = draw.choice([1, 2, 2, 3]), draw.choice([1, 1, 3])
    inputs, outputs, n = (draw.choice(sizes) for sizes in ([1, 2, 5], [1, 4], [1, 3]))
    axes = []
    while len(axes) < nd:
        size, kernel, stride, padding, dilation = (draw.randint(*r) for r in ((1, 11), (1, 4), (1, 4), (0, 3), (1, 3)))
        if window_count(size, kernel, stride, padding, dilation) > 0:
            axes.append((size, kernel, stride, padding, dilation))
    sizes, kernel, *settings = zip(*axes)
    named = dict(zip(("stride", "padding", "dilation"), settings), groups=groups)
    return (n, inputs * groups, *sizes), (outputs * groups, inputs, *kernel), named


@pytest.mark.parametrize("block", [1, 4000, 1 << 19])
@pytest.mark.parametrize("seed", range(60))
def test_convolutions_are_those_of_the_default_bodies(seed, block, monkeypatch):
    monkeypatch.setattr(nn_conv, "_BLOCK", block)
    kernels, rng = nn_conv.ConvOverrides(), np.random.default_rng(seed)
    x_shape, w_shape, settings = geometry(random.Random(seed))
    x, w = rng.standard_normal(x_shape), rng.standard_normal(w_shape)
    g = rng.standard_normal(kernels.conv(x, w, **settings).shape)
    for name, operands, shapes in (
        ("conv", (x, w), {}),
        ("conv_input_grad", (g, w), {"x_shape": x_shape}),
        ("conv_weight_grad", (g, x), {"w_shape": w_shape}),
    ):
        found = getattr(kernels, name)(*operands, **shapes, **settings)
        expected = getattr(shim, name)(*map(Opaque, operands), **shapes, **settings).array
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)


def test_an_input_that_lies_otherwise_in_memory():
    rng = np.random.default_rng(0)
    settings = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
    x, w = rng.standard_normal((2, 9, 8, 3)).transpose(0, 3, 1, 2), rng.standard_normal((4, 3, 3, 3))
    found = nn_conv.ConvOverrides().conv(x, w, **settings)
    np.testing.assert_array_equal(found, nn_conv.ConvOverrides().conv(x.copy(), w, **settings))


@pytest.mark.parametrize("name", ["MORTICE_KEEP_MEMORY", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"])
def test_memory_is_left_alone_where_the_user_says_so(name, monkeypatch):
    monkeypatch.setenv(name, "0")
    assert memory.keep_freed_memory() is False


def test_memory_is_left_alone_where_the_library_is_not_glibc(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert memory.keep_freed_memory() is False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone keeps memory on demand")
def test_freed_arrays_are_used_again():
    count = """
import resource, mortice
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        x * x + x
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
x = mortice.ones(1 << 20)
faults()
print(faults())
"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "MORTICE_KEEP"))}
    clean["MORTICE_BACKEND"] = "cpu_numpy"
    kept, returned = (
        int(subprocess.run([sys.executable, "-c", count], env=env, capture_output=True, text=True, check=True).stdout)
        for env in (clean, {**clean, "MORTICE_KEEP_MEMORY": "0"})
    )
    assert kept * 10 < returned
