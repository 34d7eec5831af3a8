"""Kernels that are launched directly, in the shapes and places that their plans tell apart; the CPU gives the law.

The conformance kit has all their dtypes and special values, in small arrays.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

import mortice as mt
from mortice import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no GPU here; test_emulated runs these on the stand-in")
FLOATS = [mt.float16, mt.bfloat16, mt.float32, mt.float64]


def same(found: Any, wanted: Any) -> None:
    """Check shape, dtype and values, to the bit."""
    assert found.is_cuda and found.dtype is wanted.dtype and found.shape == wanted.shape
    assert found.tolist() == wanted.tolist()


def close(found: Any, wanted: Any, rel: float = 1e-4) -> None:
    """Check shape, dtype and values."""
    assert found.is_cuda and found.dtype is wanted.dtype and found.shape == wanted.shape
    found, wanted = found.cpu().double(), wanted.double()
    assert bool(((found - wanted).abs() <= rel * (1 + wanted.abs())).all()), (found, wanted)


def whole(*shape: int, dtype: Any = mt.float32, seed: int = 0) -> Any:
    """Return whole numbers from -8 to 8: sums of them are exact in every order."""
    mt.manual_seed(seed)
    return mt.randint(-8, 9, shape).to(dtype)


# ---- elementwise ----

LAYOUTS = [
    ((4, 8), (4, 8)), ((5000,), (5000,)), ((33, 64), (64,)), ((33, 10), (10,)), ((64,), (33, 64)), ((4, 1), (4, 8)), ((4, 1), (1, 8)),
    ((2, 3, 4, 4), (3, 1, 1)), ((2, 3, 5, 1), (3, 1, 1)), ((2, 3, 4), (2, 1, 4)), ((2, 3, 4), ()), ((1, 6), (6, 1)), ((7, 1, 3), (1, 2, 1)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, mt.int32, mt.int64])
def test_operands_repeat_along_any_axes(dtype: Any) -> None:
    for left, right in LAYOUTS:
        x, y = whole(*left, dtype=dtype), whole(*right, dtype=dtype, seed=1)
        a, b = x.cuda(), y.cuda()
        for f in (mt.add, mt.sub, mt.mul, mt.maximum, mt.less, mt.eq):
            same(f(a, b), f(x, y))
        chosen = whole(*left, seed=2) > 0
        same(mt.where(chosen.cuda(), a, b), mt.where(chosen, x, y))
        same(mt.where(chosen.cuda(), a, 3), mt.where(chosen, x, 3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_with_products_and_quotients(dtype: Any) -> None:
    for n in (1, 7, 64, 5003):
        x, y, z = (whole(n, dtype=dtype, seed=i) for i in range(3))
        z = mt.where(z == 0, 4, z).sign() * 2  # quotients are exact
        for make in (
            lambda x, y, z: mt.addcmul(x, y, z), lambda x, y, z: mt.addcmul(x, y, z, value=0.5),
            lambda x, y, z: mt.add(x, y, alpha=3), lambda x, y, z: mt.sub(x, y, alpha=0.5),
            lambda x, y, z: mt.addcdiv(x, y, z, value=-2), lambda x, y, z: x.clone().add_(y, alpha=2),
            lambda x, y, z: mt.addcmul(x[1:], y[1:], z[1:], value=2), lambda x, y, z: mt.addcmul(x, y, z.flip(0)),
            lambda x, y, z: mt.addcmul(x, y[:1], z),
        ):  # fmt: skip
            same(make(x.cuda(), y.cuda(), z.cuda()), make(x, y, z))


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_and_places_that_are_not_aligned(dtype: Any) -> None:
    x = whole(5003, dtype=dtype)
    a = x.cuda()
    for part in (slice(None), slice(1, None), slice(3, 4100), slice(8, None), slice(0, 0), slice(5, 6)):
        u, v = x[part], a[part]
        for f in (
            lambda t: t + 1.5,
            lambda t: 2 - t,
            lambda t: 3 / t.sign(),
            lambda t: t * True,
            lambda t: t < 0.1,
            lambda t: t.abs().sqrt(),
            mt.relu,
        ):
            same(f(v), f(u))
        same(v + v.flip(0), u + u.flip(0))
        same(v.to(mt.float64), u.to(mt.float64))
        same(v.to(mt.int64), u.to(mt.int64))
        same(v.bool(), u.bool())
    same(a.reshape(1, -1).expand(2, -1) * 2, x.reshape(1, -1).expand(2, -1) * 2)


def test_fills_have_the_bits_of_their_number() -> None:
    for dtype in (*FLOATS, mt.int8, mt.uint8, mt.int32, mt.uint64, mt.bool):
        for n in (1, 7, 4097):
            same(mt.full((n,), 1, dtype=dtype, device="cuda"), mt.full((n,), 1, dtype=dtype))
    for value in (0.1, -2.5, float("inf"), 3.4e38):
        same(mt.full((3,), value, device="cuda"), mt.full((3,), value))
    same(mt.full((3,), 1e300, dtype=mt.float64, device="cuda"), mt.full((3,), 1e300, dtype=mt.float64))
    same(mt.full((3,), -7, dtype=mt.int16, device="cuda"), mt.full((3,), -7, dtype=mt.int16))


@pytest.mark.parametrize("dtype", [mt.uint8, mt.bfloat16, mt.float32, mt.float64, mt.complex64])
def test_transposed_copies(dtype: Any) -> None:
    x = whole(3, 40, 70).abs().to(dtype)
    a = x.cuda()
    for f in (
        lambda t: t[0].T, lambda t: t.transpose(1, 2), lambda t: t.permute(2, 0, 1), lambda t: t[:, ::2].transpose(1, 2),
        lambda t: t[:, :, 1:].transpose(1, 2), lambda t: t.transpose(0, 1), lambda t: t[0, :7].T, lambda t: t.flip(2).transpose(1, 2),
    ):  # fmt: skip
        same(f(a).contiguous(), f(x).contiguous())


# ---- reductions ----

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((5,), None), ((3, 40000), None), ((3, 40000), 1), ((40000, 3), 0), ((20, 33), 0), ((20, 33), 1), ((1000, 40), 0),
    ((2, 700, 5), 1), ((4, 3, 5, 6), (0, 2, 3)), ((4, 3, 5, 6), (2, 3)), ((4, 3, 5, 6), (0, 1)), ((4, 3, 5, 6), (1, 3)),
    ((4, 3, 5, 6), (0, 2)), ((300, 2, 64), (0, 2)), ((1, 1), 0), ((17000,), 0),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, mt.int64])
def test_sums_and_extremes(dtype: Any) -> None:
    for shape, axis in SHAPES:
        x = whole(*shape, dtype=dtype)
        a = x.cuda()
        for keepdim in (False, True):
            where: dict[str, Any] = {} if axis is None else {"dim": axis, "keepdim": keepdim}
            exact = dtype.itemsize > 2
            (same if exact else close)(a.sum(**where), x.sum(**where), *(() if exact else (2e-2,)))
            same(a.amax(**where), x.amax(**where))
            same(a.amin(**where), x.amin(**where))
            if dtype.is_floating_point:
                close(a.mean(**where), x.mean(**where), 1e-5 if exact else 2e-2)
    for f in (
        lambda t: t.T.sum(0),
        lambda t: t.T.sum(1, keepdim=True),
        lambda t: t.T.mean() if dtype.is_floating_point else t.T.sum(),
    ):
        y = whole(40, 50, dtype=dtype)
        close(f(y.cuda()), f(y), 2e-2)


def test_products_and_truth() -> None:
    x = whole(3, 9000)
    x[1] = 1.0
    x[2, 8000] = float("nan")
    a = x.cuda()
    for f in (
        lambda t: t.any(),
        lambda t: t.all(1),
        lambda t: (t[:, :7] == 9).any(0),
        lambda t: t[1].all(),
        lambda t: t.bool().all(0),
    ):
        same(f(a), f(x))
    y = mt.ones(2, 9000, dtype=mt.float64)
    y[0, 5], y[1, 8888] = 3.0, -0.5
    same(y.cuda().prod(1), y.prod(1))
    assert mt.isnan(a.amax(1)).tolist() == [False, False, True] and mt.isnan(a.T.amin(0)).tolist() == [
        False,
        False,
        True,
    ]


def test_the_same_sum_twice_has_the_same_bits() -> None:
    mt.manual_seed(0)
    x = mt.randn(3, 30000, device="cuda")
    for f in (lambda: x.sum(), lambda: x.sum(0), lambda: x.sum(1), lambda: x.mean()):
        assert f().tolist() == f().tolist()
    close(x.sum(1), x.cpu().double().sum(1).float(), 1e-4)


@pytest.mark.parametrize("dtype", [mt.bfloat16, mt.float32, mt.int64])
def test_places_are_those_of_the_first(dtype: Any) -> None:
    for shape, axis in (
        ((5,), 0),
        ((3, 40000), 1),
        ((3, 40000), None),
        ((700, 5), 0),
        ((2, 530, 40), 1),
        ((2, 30, 4), 1),
        ((2000,), 0),
        ((1, 1), None),
    ):
        x = whole(*shape, dtype=dtype)
        variants = [x]
        if dtype.is_floating_point:
            with_nan = x.clone()
            with_nan.reshape(-1)[1::3] = float("nan")
            variants += [
                with_nan,
                mt.full(shape, float("nan"), dtype=dtype),
                mt.full(shape, float("-inf"), dtype=dtype),
            ]
        for v in variants:
            same(v.cuda().argmax(axis), v.argmax(axis))
            same(v.cuda().argmin(axis), v.argmin(axis))


# ---- positions ----


@pytest.mark.parametrize("dtype", [mt.uint8, mt.float16, mt.float32, mt.float64, mt.complex128, mt.bool])
def test_reading_at_positions(dtype: Any) -> None:
    x = whole(6, 10, 8).abs().to(dtype)
    a = x.cuda()
    rows = mt.tensor([5, 0, 3, 3])
    for dim in (0, 1, 2, -1):
        same(a.index_select(dim, rows.cuda()), x.index_select(dim, rows))
        for shape in ((6, 10, 8), (2, 3, 4), (6, 10, 8)[:2] + (5,)):
            at = (whole(*shape, seed=3).abs() % 6).long()
            same(a.gather(dim, at.cuda()), x.gather(dim, at))
    same(a[1:, ::2, 3].index_select(1, rows.cuda() % 5), x[1:, ::2, 3].index_select(1, rows % 5))


@pytest.mark.parametrize("dtype", [*FLOATS, mt.int32, mt.int64, mt.uint8])
def test_adding_at_positions(dtype: Any) -> None:
    x = whole(6, 10, 8).abs().to(dtype)
    for dim in (0, 1, 2):
        for shape in ((6, 10, 8), (2, 3, 4)):
            at, values = (whole(*shape, seed=3).abs() % 6).long(), whole(*shape, seed=4).abs().to(dtype)
            same(x.cuda().scatter_add(dim, at.cuda(), values.cuda()), x.scatter_add(dim, at, values))
        shape = tuple(4 if i == dim else n for i, n in enumerate((6, 10, 8)))
        rows, values = mt.tensor([5, 0, 5, 3]), whole(*shape, seed=5).abs().to(dtype)
        same(x.cuda().index_add(dim, rows.cuda(), values.cuda()), x.index_add(dim, rows, values))


def test_gradients_of_overlapping_maxima() -> None:
    x = whole(2, 3, 9, 9).requires_grad_()
    a = x.detach().cuda().requires_grad_()
    for t in (x, a):
        mt.nn.functional.max_pool2d(t, 3, stride=2, padding=1).pow(2).sum().backward()
    same(a.grad, x.grad)


def test_captured_work_leaves_out_positions_that_are_not_there() -> None:
    table, at = mt.ones(4, 3, device="cuda", requires_grad=True), mt.tensor([0, 1, 3], device="cuda")
    scores, labels = mt.zeros(3, 4, device="cuda", requires_grad=True), mt.tensor([0, 1, 2], device="cuda")

    def step() -> Any:
        table.grad = scores.grad = None
        out = mt.nn.functional.embedding(at, table) * 2
        out.sum().backward()
        mt.nn.functional.cross_entropy(scores, labels).backward()
        return out

    with cuda.stream(cuda.Stream()):
        step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = step()
    at.copy_(mt.tensor([0, 1 << 40, 2], device="cuda"))
    labels.copy_(mt.tensor([3, -(1 << 40), 1], device="cuda"))
    graph.replay()
    assert out.tolist() == [[2] * 3, [0] * 3, [2] * 3] and table.grad.tolist() == [[2] * 3, [0] * 3, [2] * 3, [0] * 3]
    assert scores.grad[1].tolist() == [0] * 4 and scores.grad[0].tolist() != [0] * 4


@pytest.mark.parametrize("dtype", FLOATS)
def test_adding_at_places_of_transposed_arrays(dtype: Any) -> None:
    x, values = whole(6, 5, dtype=dtype).T, whole(5, 6, dtype=dtype, seed=1)
    at = mt.randint(0, 6, (5, 6))
    y = x.T.cuda().T
    assert not y.is_contiguous()
    same(y.scatter_add(1, at.cuda(), values.cuda()), x.scatter_add(1, at, values))
    same(y.index_add(1, at[0].cuda(), values.cuda()), x.index_add(1, at[0], values))
    same(y, x)


def test_strided_bfloat16_is_reduced_here_or_in_float32() -> None:
    x = whole(6, 5, 4, dtype=mt.bfloat16)
    y, z = x.permute(2, 0, 1)[::2], x.cuda().permute(2, 0, 1)[::2]
    for f in (mt.sum, mt.prod, mt.amax, mt.amin, mt.any, mt.all, mt.argmax, mt.argmin, mt.mean):
        for axis in (0, 1, 2):
            same(f(z, dim=axis), f(y, dim=axis))


@pytest.mark.parametrize("dtype", [mt.complex64, mt.complex128])
def test_logic_of_complex_numbers(dtype: Any) -> None:
    x = mt.tensor([0, 1j, 2, 0, 1 + 1j], dtype=dtype)
    y = mt.tensor([0, 0, 1, 1j, 1], dtype=dtype)
    for f in (mt.logical_and, mt.logical_or, mt.logical_xor):
        same(f(x.cuda(), y.cuda()), f(x, y))
    same(mt.logical_not(x.cuda()), mt.logical_not(x))
    same(mt.all(x.cuda()), mt.all(x))


# ---- operands that lie otherwise ----

VIEWS = [
    lambda x: x.transpose(0, 1), lambda x: x[:, ::2], lambda x: x[1:, :, 3:], lambda x: x.permute(2, 0, 1), lambda x: x.flip(1),
    lambda x: x[:, :1].expand(*x.shape), lambda x: x.permute(1, 0, 2)[::2], lambda x: x.reshape(12, 5, 2, 8).permute(2, 0, 3, 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [mt.uint8, mt.float16, mt.float32, mt.float64, mt.complex128])
def test_views_are_copied_and_computed_with(dtype: Any) -> None:
    x = whole(12, 10, 8).to(dtype)
    for view in VIEWS:
        mine, theirs = view(x.cuda()), view(x)
        same(mine.contiguous(), theirs.contiguous())
        same(mine.reshape(-1), theirs.reshape(-1))
        same(mine + 1, theirs + 1)
        same(mine * mine, theirs * theirs)
        same(mine + theirs.contiguous().cuda(), theirs + theirs)


def test_results_lie_as_their_operands_do() -> None:
    x = whole(4, 6, 5).cuda().permute(2, 0, 1)
    for y in (x + x, x * 2, mt.exp(x), 1 - x):
        assert y.stride() == x.stride()
    assert (x[:, :, ::2] + 1).is_contiguous()


def test_subnormal_numbers_stay() -> None:
    for dtype in (mt.float32, mt.bfloat16):
        x = mt.tensor([[1e-39, 2e-39], [-3e-39, 4.0]]).to(dtype)
        a = x.cuda()
        for f in (lambda v: v + v, lambda v: v.t() * 1.0, lambda v: v[:, :1] - v, lambda v: v.abs(), lambda v: v.clamp(-1.0, 1.0)):
            same(f(a), f(x))


def test_limits_that_are_numbers() -> None:
    nan, inf = float("nan"), float("inf")
    x = mt.tensor([nan, -inf, -1.5, -0.0, 0.25, 3.0, inf])
    for dtype in FLOATS:
        for low, high in ((-1.0, 1.0), (0.3, 0.2), (-inf, 0.1), (nan, 1.0), (0.0, nan)):
            a, b = x.to(dtype).cuda().clamp(low, high), x.to(dtype).clamp(low, high)
            assert repr(a.tolist()) == repr(b.tolist())


# ---- reductions that are one walk ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_variances_and_lengths(dtype: Any) -> None:
    rel = {mt.float16: 2e-3, mt.bfloat16: 2e-2, mt.float32: 2e-5, mt.float64: 1e-12}[dtype]
    for shape in ((7,), (2, 5), (64, 52), (2, 40_000), (3, 1500, 8), (5000, 3), (2, 3, 64, 7)):
        mt.manual_seed(3)
        x = (mt.randn(*shape) * 4 + 3).to(dtype)
        a = x.cuda()
        for f in (
            lambda t: t.var(), lambda t: t.var(-1), lambda t: t.var(0), lambda t: t.std(-1, keepdim=True),
            lambda t: t.var(-1, correction=0),
            lambda t: mt.linalg.vector_norm(t), lambda t: mt.linalg.vector_norm(t, dim=-1),
            lambda t: mt.linalg.vector_norm(t, dim=0),
        ):  # fmt: skip
            found, wanted = f(a), f(x)
            same(found.isnan(), wanted.isnan())
            close(found.nan_to_num(), wanted.nan_to_num(), rel)
    far = (mt.randn(100_000) + 1e4).to(mt.float64)
    close(far.to(mt.float32).cuda().var(), far.to(mt.float32).double().var().to(mt.float32), 1e-4)


def test_columns_of_all_widths() -> None:
    for shape in ((1000, 64), (1000, 63), (3, 700, 2), (5, 129, 40), (2, 65, 1000)):
        for dtype in (*FLOATS, mt.int32, mt.int64):
            x = whole(*shape, dtype=mt.float64).div(8).round().to(dtype)
            a = x.cuda()
            for dim in range(len(shape)):
                same(a.sum(dim), x.sum(dim))
                same(a.amax(dim), x.amax(dim))
            same((a > 0).any(0), (x > 0).any(0))
            part = x.reshape(-1)[1:].reshape(-1, 1)[: (x.numel() - 1) // 4 * 4].reshape(-1, 4)
            moved = a.reshape(-1)[1:].reshape(-1, 1)[: (x.numel() - 1) // 4 * 4].reshape(-1, 4)
            same(moved.sum(0), part.sum(0))
            same(a.argmax(), x.argmax())
            same(a.argmin(-1), x.argmin(-1))


def test_a_bias_that_comes_between_another_and_its_launch() -> None:
    from mortice_cuda_cupy import cublas

    linear = mt.nn.functional.linear
    x, w, *biases = whole(3, 8), whole(12, 8, seed=1), *[whole(12, seed=i) for i in (2, 3, 4)]
    a, b, *of_cuda = [t.cuda() for t in (x, w, *biases)]
    linear(a, b, of_cuda[0])
    plan = next(p for p in cublas.handle(0).plans.values() if p and p.shape == (3, 12))
    change, how = plan._set_bias
    came: list[Any] = []

    def interrupted(*told: Any) -> None:
        change(*told)
        if not came:  # as a signal's handler may
            came.append(None)
            came.append(linear(a, b, of_cuda[2]))

    plan._set_bias = interrupted, how
    same(linear(a, b, of_cuda[1]), linear(x, w, biases[1]))
    same(came[1], linear(x, w, biases[2]))
    plan._set_bias = change, how


# ---- attention by tiles and by products ----


def by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have products of matrices compute attention, however little it is."""
    monkeypatch.setattr("mortice_cuda_cupy.kernels.attention._tiles", defaultdict(lambda: False))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dtype", "tiles"), [(mt.float32, True), (mt.float32, False), (mt.float64, False)])
def test_attention_and_its_gradients(dtype: Any, tiles: bool, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not tiles:
        by_products(monkeypatch)
    for shape, keys in (
        ((2, 3, 40, 8), 40), ((2, 7, 4), 9), ((1, 2, 5, 16), 3), ((1, 1, 3, 8), 1100), ((70, 33), 64), ((2, 2, 65, 50), 31),
    ):  # fmt: skip
        mt.manual_seed(1)
        one = [mt.randn(*shape, dtype=dtype), mt.randn(*shape[:-2], keys, shape[-1], dtype=dtype)]
        one.append(mt.randn(*shape[:-2], keys, 12, dtype=dtype))
        found = []
        for device in ("cuda", "cpu"):
            leaves = [t.detach().to(device).requires_grad_() for t in one]
            # As heads lie after a projection.
            views = [t.transpose(0, -2).contiguous().transpose(0, -2) for t in leaves]
            out = mt.nn.functional.scaled_dot_product_attention(*views, is_causal=causal)
            out.backward(out.detach() + 0.5)
            found.append([out.detach(), *[t.grad for t in leaves]])
        for mine, theirs in zip(*found):
            close(mine, theirs, 1e-4 if dtype is mt.float32 else 1e-11)
    never = mt.full((1, 3, 4), float("-inf"), dtype=dtype)
    q = mt.ones(1, 2, 4, dtype=dtype)
    for key in (never, never + float("nan"), mt.cat([never, never + float("inf"), never], 1)[:, 2:5]):
        a = mt.nn.functional.scaled_dot_product_attention(q.cuda(), key.cuda(), mt.ones(1, 3, 5, dtype=dtype).cuda())
        wanted = mt.nn.functional.scaled_dot_product_attention(q, key, mt.ones(1, 3, 5, dtype=dtype))
        assert mt.equal(a.isnan().cpu(), wanted.isnan()) and a.nan_to_num().tolist() == wanted.nan_to_num().tolist()


def test_many_scores_of_attention_are_never_there_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    by_products(monkeypatch)
    monkeypatch.setattr("mortice_cuda_cupy.kernels.attention._LITTLE", 1 << 22)
    q, k, v = (mt.ones(32, 256, 16, device="cuda", requires_grad=True) for _ in range(3))
    out = mt.nn.functional.scaled_dot_product_attention(q, k, v)
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    out.backward(mt.ones_like(out))
    assert cuda.max_memory_allocated() - before < 4 * 32 * 256 * 256 and bool((q.grad.abs() < 1e-5).all())


def test_the_range_of_indices_is_read_at_once() -> None:
    for dtype in (mt.int32, mt.int64):
        for values in ([3], [-7, 2, 9], list(range(-40, 5000)), list(range(70_000, -3, -1))):
            k = mt.tensor(0, device="cuda").device.backend
            assert k.index_range(mt.tensor(values, dtype=dtype, device="cuda")._buffer) == (min(values), max(values))
    with pytest.raises(IndexError, match="Target 4 is out of bounds for 3 classes"):
        mt.nn.functional.cross_entropy(mt.ones(2, 3, device="cuda"), mt.tensor([1, 4], device="cuda"))


def test_arrays_are_joined_by_kernels() -> None:
    for dtype in (mt.uint8, mt.float16, mt.float32, mt.complex64, mt.complex128):
        for count in (1, 2, 8, 11, 20):
            parts = [whole(3, 1 + i % 4, 5, seed=i).to(dtype) for i in range(count)]
            moved = [p.cuda() for p in parts]
            same(mt.cat(moved, 1), mt.cat(parts, 1))
            even = [whole(4, 6, seed=i).to(dtype) for i in range(count)]
            for dim in (0, 1, 2, -1):
                same(mt.stack([p.cuda() for p in even], dim), mt.stack(even, dim))
            same(mt.cat([p.cuda().t() for p in even] + [mt.ones(0, 4, dtype=dtype, device="cuda")]), mt.cat([p.t() for p in even]))
            same(mt.stack([p.cuda().sum() for p in even]), mt.stack([p.sum() for p in even]))
            same(mt.cat([p.cuda().reshape(-1)[1:] for p in even]), mt.cat([p.reshape(-1)[1:] for p in even]))


def test_many_arrays_are_joined_while_work_is_captured() -> None:
    parts, graph = [mt.full((2,), float(i), device="cuda") for i in range(12)], cuda.CUDAGraph()
    with cuda.graph(graph):
        out, heap = mt.cat(parts), mt.stack(parts)
    graph.replay()
    assert out.tolist() == [i // 2 for i in range(24)] and heap[:, 0].tolist() == list(range(12))


def test_few_elements_of_an_axis_longer_than_32_bits_count() -> None:
    from mortice.dtype import float32
    from mortice_cuda_cupy.kernels.index import READ

    x, at, out = mt.arange(10, device="cuda"), mt.tensor([2, 7, 9], device="cuda"), mt.zeros(3, dtype=mt.int64, device="cuda")
    for kernel in ("take", "gather"):
        # The axis is said to go on behind the memory that is there.
        launch = READ.get(float32, f"{kernel}<u64, unsigned>")
        launch((1,), (32,), (x._buffer, at._buffer, out._buffer, 3, 3, 1, (1 << 32) + 5))
        assert out.tolist() == [2, 7, 9]


def test_running_statistics_stay_where_they_are() -> None:
    layer, law = mt.nn.BatchNorm2d(3).cuda(), mt.nn.BatchNorm2d(3)
    places, version = [b.data_ptr() for b in layer.buffers()], layer.running_var._version
    x = whole(4, 3, 5, 5).float()
    layer(x.cuda()), law(x)
    assert [b.data_ptr() for b in layer.buffers()][:2] == places[:2] and layer.running_var._version == version + 1
    close(layer.running_mean, law.running_mean, 1e-6), close(layer.running_var, law.running_var, 1e-5)
