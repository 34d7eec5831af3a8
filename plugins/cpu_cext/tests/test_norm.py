"""Softmax and normalisation: each kernel against its default body in float64, on sizes around the vectors' and any layout."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import pytest

import mortice as mt
from mortice.backends import Backend
from mortice.dtype import by_name

EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}
LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 257, 1000, 4097)


def draw(*shape: int, dtype: str = "float32", seed: int = 0, scale: float = 1.0) -> Any:
    """Return a buffer of normal numbers that the dtype holds."""
    g = mt.Generator().manual_seed(seed + sum(shape))
    return (mt.randn(*shape, generator=g) * scale).to(getattr(mt, dtype))._buffer


def wide(k: Any, x: Any) -> Any:
    return None if x is None else k.astype(x, by_name("float64"))


def flat(k: Any, x: Any) -> list[float]:
    found = k.to_host(k.reshape(k.copy(wide(k, x)), (math.prod(k.shape_of(x)),))).tolist()
    return list(found)


def close(k: Any, got: Any, want: Any, dtype: str, ulps: float = 8, floor: float = 1e-6) -> None:
    """Compare with values computed in float64; errors are in units of the largest value's last place."""
    assert tuple(k.shape_of(got)) == tuple(k.shape_of(want))
    a, b = flat(k, got), flat(k, want)
    size = max([floor, *[abs(v) for v in b if math.isfinite(v)]])
    for x, y in zip(a, b):
        assert (math.isnan(x) and math.isnan(y)) or x == y or abs(x - y) <= ulps * EPS[dtype] * size, (x, y, size)


def check(k: Any, name: str, dtype: str, *operands: Any, ulps: float = 8, **attributes: Any) -> Any:
    """Run a kernel and its default body; return what the kernel made."""
    got = getattr(k, name)(*operands, **attributes)
    want = getattr(Backend, name)(k, *[wide(k, x) for x in operands], **attributes)
    pairs = zip(got, want) if isinstance(got, tuple) else [(got, want)]
    for i, (a, b) in enumerate(pairs):
        if i == 0:
            close(k, a, b, dtype, ulps)
        else:  # statistics: never in less than float32, and as good as the numbers that they are of, which are about 1
            close(k, a, b, "float64" if dtype == "float64" else "float32", ulps, floor=1.0)
    return got


# ---- softmax ----


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("n", LENGTHS)
def test_softmax_of_rows_and_its_gradient_agree_with_the_default_body(k: Any, n: int, dtype: str, name: str) -> None:
    x, g = draw(5, n, dtype=dtype, scale=4), draw(5, n, dtype=dtype, seed=1)
    y = check(k, name, dtype, x, axis=1)
    check(k, f"{name}_grad", dtype, g, y, axis=-1, ulps=32)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    "shape,axis", [((7, 3), 0), ((2, 5, 33), 1), ((300, 2), 0), ((3, 2, 300), 1), ((4, 70, 3, 5), 1), ((1, 9), 0)]
)
def test_softmax_down_columns_and_its_gradient_agree_with_the_default_body(
    k: Any, shape: tuple[int, ...], axis: int, name: str
) -> None:
    x, g = draw(*shape, scale=4), draw(*shape, seed=1)
    y = check(k, name, "float32", x, axis=axis)
    check(k, f"{name}_grad", "float32", g, y, axis=axis, ulps=32)


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_takes_any_strides(k: Any, axis: int) -> None:
    x = k.permute_dims(draw(40, 33), (1, 0))
    check(k, "softmax", "float32", x, axis=axis)
    check(k, "softmax", "float32", k.getitem(x, (slice(None, None, -2), slice(1, None, 3))), axis=axis)
    check(k, "log_softmax", "float32", k.broadcast_to(draw(40, 1), (40, 8)), axis=axis)


@pytest.mark.parametrize("n", [3, 16, 40])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_infinities_and_nan_is_that_of_the_default_body(k: Any, name: str, axis: int, n: int) -> None:
    for values in (
        [math.inf, 1.0],
        [-math.inf, 1.0],
        [-math.inf, -math.inf],
        [math.nan, 1.0],
        [1e4, -1e4],
        [88.0, -104.0],
    ):
        row = (values * n)[:n]
        x = mt.tensor([row, row[::-1]])
        check(k, name, "float32", (x if axis else x.t().contiguous())._buffer, axis=axis)


def test_softmax_of_one_number_and_of_none(k: Any) -> None:
    assert flat(k, k.softmax(mt.tensor(3.0)._buffer, axis=0)) == [1.0]
    assert flat(k, k.softmax_grad(mt.tensor(3.0)._buffer, mt.tensor(1.0)._buffer, axis=0)) == [0.0]
    for shape in ((0, 3), (3, 0), (2, 0, 2)):
        assert k.shape_of(k.softmax(draw(*shape), axis=1)) == shape


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("shape,axis", [((5, 17), 1), ((5, 300), 0), ((2, 9, 40), 1), ((3, 0), 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_agrees_with_the_default_body(
    k: Any, shape: tuple[int, ...], axis: int, keepdims: bool, dtype: str
) -> None:
    check(k, "logsumexp", dtype, draw(*shape, dtype=dtype, scale=4), axis=axis, keepdims=keepdims)


def test_logsumexp_of_infinities(k: Any) -> None:
    inf = math.inf
    x = mt.tensor([[inf, 1.0], [-inf, -inf], [-inf, 2.0]])
    assert flat(k, k.logsumexp(x._buffer, axis=1)) == [inf, -inf, 2.0]
    assert flat(k, k.logsumexp(x.t().contiguous()._buffer, axis=0)) == [inf, -inf, 2.0]


# ---- rows ----


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("n", LENGTHS[1:])
def test_layer_norm_and_its_gradients_agree_with_the_default_body(k: Any, n: int, dtype: str) -> None:
    x, g = draw(6, n, dtype=dtype, scale=3), draw(6, n, dtype=dtype, seed=1)
    w, b = draw(n, dtype=dtype, seed=2), draw(n, dtype=dtype, seed=3)
    _, mean, rstd = check(k, "layer_norm", dtype, x, w, b, ndim=1, eps=1e-3)
    check(k, "layer_norm", dtype, x, None, b, ndim=1, eps=1e-3)
    check(k, "layer_norm", dtype, x, w, None, ndim=1, eps=1e-3)
    check(k, "layer_norm_grad", dtype, g, x, w, mean, rstd, ndim=1, eps=1e-3, ulps=300)
    check(k, "layer_norm_grad", dtype, g, x, ndim=1, eps=1e-3, ulps=300)
    check(k, "layer_norm_weight_grad", dtype, g, x, mean, rstd, ndim=1, eps=1e-3, ulps=32)
    _, rrms = check(k, "rms_norm", dtype, x, w, ndim=1, eps=1e-3)
    check(k, "rms_norm_grad", dtype, g, x, w, rrms, ndim=1, eps=1e-3, ulps=300)
    check(k, "rms_norm_weight_grad", dtype, g, x, ndim=1, eps=1e-3, ulps=32)


@pytest.mark.parametrize("rows,n", [(1, 4), (8, 5), (9, 5), (100, 33), (3000, 20), (700, 200)])
def test_all_gradients_of_rows_at_once_are_those_alone(k: Any, rows: int, n: int) -> None:
    x, g, w = draw(rows, n), draw(rows, n, seed=1), draw(n, seed=2)
    _, mean, rstd = k.layer_norm(x, w, None, ndim=1, eps=1e-5)
    d_x, d_w, d_b = k.layer_norm_grads(g, x, w, mean, rstd, ndim=1, eps=1e-5, needs=(True, True, True))
    close(k, d_x, Backend.layer_norm_grad(k, wide(k, g), wide(k, x), wide(k, w), ndim=1, eps=1e-5), "float32", 32)
    close(k, d_w, Backend.layer_norm_weight_grad(k, wide(k, g), wide(k, x), ndim=1, eps=1e-5), "float32", 32)
    close(k, d_b, k.sum(wide(k, g), axis=0), "float32", 32)
    assert k.layer_norm_grads(g, x, w, mean, rstd, ndim=1, eps=1e-5, needs=(False, False, True))[:2] == (None, None)


def test_norms_over_several_axes_and_of_no_rows(k: Any) -> None:
    check(k, "layer_norm", "float32", draw(3, 4, 5, 6), draw(5, 6), draw(5, 6, seed=1), ndim=2, eps=1e-5)
    out, mean, rstd = k.layer_norm(draw(0, 4), ndim=1, eps=1e-5)
    assert k.shape_of(out) == (0, 4) and k.shape_of(mean) == k.shape_of(rstd) == (0, 1)
    assert flat(k, k.layer_norm_weight_grad(draw(0, 4), draw(0, 4), ndim=1, eps=1e-5)) == [0.0] * 4


def test_a_mean_far_from_zero_costs_no_digits_of_the_variance(k: Any) -> None:
    x = mt.tensor([1e4 + 0.125 * (i % 8) for i in range(4096)])
    _, mean, rstd = k.layer_norm(x._buffer, ndim=1, eps=0.0)
    assert flat(k, mean) == [pytest.approx(1e4 + 0.4375, rel=1e-7)]
    assert flat(k, rstd) == [pytest.approx(1 / math.sqrt(0.125**2 * 63 / 12), rel=1e-5)]
    _, mean, var = k.batch_norm(x.reshape(1, 1, 4096)._buffer, eps=0.0)
    assert flat(k, var) == [pytest.approx(0.125**2 * 63 / 12, rel=1e-5)]


# ---- channels ----

CHANNELS = [
    (6, 3),
    (100, 17),
    (5, 4, 1),
    (4, 3, 7),
    (4, 40, 15),
    (3, 5, 16),
    (3, 2, 5, 7),
    (2, 3, 30, 30),
    (2, 2, 70, 70),
    (9, 300, 3),
]


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("shape", CHANNELS)
def test_batch_norm_and_its_gradients_agree_with_the_default_body(k: Any, shape: tuple[int, ...], dtype: str) -> None:
    x, g, c = draw(*shape, dtype=dtype, scale=3), draw(*shape, dtype=dtype, seed=1), shape[1]
    w, b = draw(c, dtype=dtype, seed=2), draw(c, dtype=dtype, seed=3)
    _, mean, var = check(k, "batch_norm", dtype, x, w, b, eps=1e-3, ulps=16)
    check(k, "batch_norm_grad", dtype, g, x, w, mean, var, eps=1e-3, ulps=64)
    check(k, "batch_norm_grad", dtype, g, x, eps=1e-3, ulps=64)
    check(k, "batch_norm_weight_grad", dtype, g, x, mean, var, eps=1e-3, ulps=64)
    check(k, "batch_norm_eval", dtype, x, mean, var, w, b, eps=1e-3)
    check(k, "batch_norm_eval_grad", dtype, g, var, w, eps=1e-3)
    check(k, "batch_norm_eval_weight_grad", dtype, g, x, mean, var, eps=1e-3, ulps=64)
    d_x, d_w, d_b = k.batch_norm_grads(g, x, w, mean, var, eps=1e-3, needs=(True, True, True))
    for got, alone in (
        (d_x, k.batch_norm_grad(g, x, w, mean, var, eps=1e-3)),
        (d_w, k.batch_norm_weight_grad(g, x, mean, var, eps=1e-3)),
    ):
        assert flat(k, got) == flat(k, alone)
    close(k, d_b, k.sum(wide(k, g), axis=(0, *range(2, len(shape)))), dtype, 32)


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize(
    "shape,groups",
    [((3, 6), 3), ((3, 6, 5), 2), ((2, 8, 4, 4), 4), ((2, 4, 9, 11), 4), ((2, 6, 20, 20), 1), ((3, 4, 70), 2)],
)
def test_group_norm_and_its_gradients_agree_with_the_default_body(
    k: Any, shape: tuple[int, ...], groups: int, dtype: str
) -> None:
    x, g, c = draw(*shape, dtype=dtype, scale=3), draw(*shape, dtype=dtype, seed=1), shape[1]
    w, b = draw(c, dtype=dtype, seed=2), draw(c, dtype=dtype, seed=3)
    _, mean, rstd = check(k, "group_norm", dtype, x, w, b, groups=groups, eps=1e-3, ulps=16)
    check(k, "group_norm", dtype, x, None, None, groups=groups, eps=1e-3, ulps=16)
    check(k, "group_norm_grad", dtype, g, x, w, mean, rstd, groups=groups, eps=1e-3, ulps=300)
    check(k, "group_norm_weight_grad", dtype, g, x, mean, rstd, groups=groups, eps=1e-3, ulps=64)
    d_x, d_w, d_b = k.group_norm_grads(g, x, w, mean, rstd, groups=groups, eps=1e-3, needs=(True, True, True))
    close(k, d_x, Backend.group_norm_grad(k, *[wide(k, v) for v in (g, x, w)], groups=groups, eps=1e-3), dtype, 300)
    close(k, d_w, Backend.group_norm_weight_grad(k, wide(k, g), wide(k, x), groups=groups, eps=1e-3), dtype, 64)
    close(k, d_b, k.sum(wide(k, g), axis=(0, *range(2, len(shape)))), dtype, 32)


def test_channels_take_any_strides(k: Any) -> None:
    last = k.permute_dims(draw(2, 5, 6, 3), (0, 3, 1, 2))
    check(k, "batch_norm", "float32", last, draw(3), draw(3, seed=1), eps=1e-5)
    check(k, "group_norm", "float32", last, draw(3), draw(3, seed=1), groups=3, eps=1e-5)
    check(k, "batch_norm_grad", "float32", k.broadcast_to(draw(2, 1, 5, 1), (2, 3, 5, 6)), last, eps=1e-5, ulps=64)


# ---- threads and misuse ----


def test_results_do_not_depend_on_the_number_of_threads(k: Any) -> None:
    from mortice_cpu_cext import _cext

    x, g = draw(900, 300), draw(900, 300, seed=1)
    images = k.reshape(draw(8, 64 * 40 * 40), (8, 64, 40, 40))
    before = _cext._get_num_threads()
    found = []
    try:
        for n in (1, 2, 3):
            _cext._set_num_threads(n)
            found.append([
                flat(k, v) for v in (
                    k.softmax(x, axis=1), k.softmax(x, axis=0), k.layer_norm_weight_grad(g, x, ndim=1, eps=1e-5),
                    k.batch_norm(images, eps=1e-5)[1], k.batch_norm(images, eps=1e-5)[2],
                )
            ])  # fmt: skip
    finally:
        _cext._set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("modern")
def test_wrong_operands_are_refused(k: Any) -> None:
    x = draw(3, 4)
    for call in (
        lambda: k.softmax(x, axis=2),
        lambda: k.softmax(mt.arange(3)._buffer, axis=0),
        lambda: k.softmax_grad(x, draw(4, 3), axis=0),
        lambda: k.layer_norm(x, draw(3), ndim=1),
        lambda: k.layer_norm(x, ndim=3),
        lambda: k.layer_norm(x),
        lambda: k.batch_norm(draw(3)),
        lambda: k.batch_norm(x, draw(3)),
        lambda: k.batch_norm_eval(x, draw(3), draw(4)),
        lambda: k.group_norm(x, groups=3),
        lambda: k.group_norm(x, groups=0),
        lambda: k.layer_norm_grads(x, x, None, None, None, ndim=1, eps=1e-5, needs=(True,)),
    ):
        with pytest.raises((TypeError, RuntimeError, ValueError, IndexError)):
            call()


NETWORK = """
import sys
import mortice as mt
from mortice.nn import functional as F
from mortice_cpu_cext import _cext

x = mt.linspace(-2, 2, 2 * 3 * 6 * 6).reshape(2, 3, 6, 6).sin_().requires_grad_()
w = mt.linspace(-1, 1, 3 * 3 * 9).reshape(3, 3, 3, 3).cos_().requires_grad_()
y = F.max_pool2d(F.gelu(F.batch_norm(F.conv2d(x, w, padding=1), None, None, training=True)), 2)
y = F.softmax(F.layer_norm(F.silu(F.group_norm(y, 3)).flatten(1), (27,)), -1).logsumexp(0)
loss = F.cross_entropy(y[None], mt.tensor([4])) + y.std() + mt.fft.fft(y).abs().sum() + F.avg_pool2d(x, 3).norm()
loss.backward()
mt.optim.Adam([w]).step()
print(hasattr(_cext, "batch_norm"), *[t.sum().item() for t in (loss, x.grad, w.grad, w)])
"""


def test_a_processor_without_avx2_takes_the_default_bodies() -> None:
    found = []
    for level in ("baseline", "avx2"):
        environment = {**os.environ, "MORTICE_ISA": level, "MORTICE_BACKEND": "cpu_cext"}
        done = subprocess.run([sys.executable, "-c", NETWORK], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        offered, *numbers = done.stdout.split()
        found.append((offered, [float(number) for number in numbers]))
    (_, few), (offered, many) = found
    assert offered == "True"
    assert few == pytest.approx(many, rel=1e-4)
