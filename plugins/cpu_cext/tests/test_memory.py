"""The allocator: what it counts, keeps and gives back; and that running out of memory is an exception, everywhere."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import mortice as mt
from mortice.dtype import by_name

MIB = 1 << 20


@pytest.fixture
def stats(k: Any) -> Callable[[], dict[str, int]]:
    device = k.device("cpu")
    gc.collect()
    k.empty_cache(device)
    k.reset_peak_memory(device)
    kept = mt.zeros(MIB)
    if not k.memory_stats(device)["reserved"]:
        pytest.skip("built with a sanitizer, which brings an allocator of its own")
    del kept
    k.empty_cache(device)
    k.reset_peak_memory(device)
    return lambda: k.memory_stats(device) | {"allocated": k.memory_allocated(device)}


def test_it_counts_and_keeps_and_gives_back(k: Any, stats: Callable[[], dict[str, int]]) -> None:
    before = stats()
    x = mt.zeros(4 * MIB)
    y = x[10:]
    after = stats()
    assert 16 * MIB <= after["allocated"] - before["allocated"] <= 17 * MIB
    assert after["peak_allocated"] >= after["allocated"] and after["reserved"] >= after["allocated"]
    del x
    assert stats()["allocated"] == after["allocated"], "a view keeps the memory"
    address = y.data_ptr()
    del y
    assert stats()["allocated"] == before["allocated"]
    assert stats()["reserved"] == after["reserved"], "freed memory is kept"
    assert mt.zeros(4 * MIB).data_ptr() + 40 == address, "and taken again"
    k.empty_cache(k.device("cpu"))
    assert stats()["reserved"] <= before["reserved"]
    assert stats()["peak_allocated"] == after["peak_allocated"]
    k.reset_peak_memory(k.device("cpu"))
    assert stats()["peak_allocated"] < after["peak_allocated"]


def test_freed_neighbours_become_one_block(k: Any, stats: Callable[[], dict[str, int]]) -> None:
    parts = [mt.zeros(MIB) for _ in range(64)]
    reserved = stats()["reserved"]
    for order in (parts[::2], parts[1::2]):
        for x in order:
            x.data = mt.zeros(0)
    del parts, order, x
    whole = mt.zeros(7 * MIB // 4)
    assert stats()["reserved"] == reserved
    del whole


def test_memory_stays_near_its_peak(k: Any, stats: Callable[[], dict[str, int]]) -> None:
    """Sizes that change from step to step do not pile up."""
    for step in range(40):
        x = mt.zeros((step * 7919) % 997 * 30_000 + 1)
        x = x + 1
        del x
    found = stats()
    assert found["peak_reserved"] <= 1.25 * found["peak_allocated"] + 130 * MIB


def with_gradient(f: Callable[..., Any], *inputs: Any) -> tuple[Any, ...]:
    """The gradients of the sum of what `f` gives."""
    inputs = tuple(x.detach().requires_grad_() for x in inputs)
    out = f(*inputs)
    return mt.autograd.grad((out[0] if isinstance(out, tuple) else out).sum(), inputs)


def stepped(optimiser: Callable[..., Any], x: Any, y: Any) -> Any:
    """A parameter after two steps."""
    parameter = mt.nn.Parameter(x.clone())
    steps = optimiser([parameter, mt.nn.Parameter(y.clone())])
    for _ in range(2):
        parameter.grad = y.clone()
        steps.step()
    return parameter.detach()


def recurrent(kind: Callable[..., Any], x: Any, y: Any) -> tuple[Any, ...]:
    """The gradients of a layer whose weights are `x` and `y` in part."""
    layer = kind(50, 16)
    with mt.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(y.flatten()[: parameter.numel()].reshape(parameter.shape) - 0.5)
    return with_gradient(lambda z: layer(z)[0], x.reshape(20, 40, 50))


F = mt.nn.functional
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "broadcast": lambda x, y: x + y[:, :1],
    "transposed": lambda x, y: x.t() + y,
    "convert": lambda x, y: x.double(),
    "contiguous": lambda x, y: x.t().contiguous(),
    "cat": lambda x, y: mt.cat([x, y]),
    "pad": lambda x, y: mt.nn.functional.pad(x, (1, 1)),
    "exp": lambda x, y: x.exp(),
    "sum": lambda x, y: x.sum(0),
    "var": lambda x, y: x.var(1),
    "softmax": lambda x, y: x.softmax(1),
    "layer_norm": lambda x, y: mt.nn.functional.layer_norm(x, (200,)),
    "matmul": lambda x, y: x @ y,
    "solve": lambda x, y: mt.linalg.solve(x + 300 * mt.eye(200), y),
    "svd": lambda x, y: mt.linalg.svd(x[:50]),
    "conv": lambda x, y: mt.nn.functional.conv2d(
        x[:100].reshape(1, 20, 20, 50), y[:180].reshape(-1, 20, 3, 3)[:20], padding=1
    ),
    "pool": lambda x, y: mt.nn.functional.max_pool2d(x.reshape(4, 100, 10, 10), 2),
    "sort": lambda x, y: x.sort(1),
    "topk": lambda x, y: x.flatten().topk(5),
    "gather": lambda x, y: x.gather(1, y.argsort(1)),
    "scatter": lambda x, y: x.scatter_add(1, y.argsort(1), y),
    "mask": lambda x, y: x[y > 0.5],
    "cumsum": lambda x, y: x.cumsum(1),
    "rand": lambda x, y: mt.rand(300, 300),
    "randperm": lambda x, y: mt.randperm(5000),
    "attention": lambda x, y: mt.nn.functional.scaled_dot_product_attention(*[x.reshape(2, 4, 100, 50)] * 3),
    "embedding": lambda x, y: mt.nn.functional.embedding(y[:10].long(), x),
    "cross_entropy": lambda x, y: mt.nn.functional.cross_entropy(x, y[:, 0].long()),
    "where": lambda x, y: mt.where(x > y, x, 0.0),
    "half": lambda x, y: (x.bfloat16() * y.half()).exp(),
    "complex": lambda x, y: mt.complex(x, y).abs(),
    "integers": lambda x, y: (x * 100).int() // 7,
    "flip": lambda x, y: x.flip(0),
    "roll": lambda x, y: x.roll(3, 1),
    "repeat": lambda x, y: x.repeat(2, 3),
    "repeat_interleave": lambda x, y: x.repeat_interleave(2, 0),
    "index_put": lambda x, y: x.index_put((y[:, 0].mul(100).long(),), y),
    "nonzero": lambda x, y: (x > 0.5).nonzero(),
    "unique": lambda x, y: (x * 50).long().unique(),
    "searchsorted": lambda x, y: mt.searchsorted(x.sort(1).values, y),
    "median": lambda x, y: x.median(1),
    "kthvalue": lambda x, y: x.kthvalue(5, 0),
    "sort_integers": lambda x, y: (x * 1e6).long().flatten().sort(),
    "cumprod": lambda x, y: with_gradient(lambda z: z.cumprod(0), x[:30]),
    "logcumsumexp": lambda x, y: x.logcumsumexp(1),
    "logsumexp": lambda x, y: with_gradient(lambda z: z.logsumexp(1), x),
    "argmax": lambda x, y: x.argmax(0),
    "einsum": lambda x, y: mt.einsum("ij,kj->ik", x, y),
    "batched_matmul": lambda x, y: with_gradient(mt.matmul, x.reshape(4, 50, 200), y.t().reshape(4, 200, 50)),
    "qr": lambda x, y: mt.linalg.qr(x),
    "cholesky": lambda x, y: mt.linalg.cholesky(x @ x.t() + 300 * mt.eye(200)),
    "eigh": lambda x, y: mt.linalg.eigh(x[:60, :60] + x[:60, :60].t()),
    "eig": lambda x, y: mt.linalg.eigvals(x[:40, :40]),
    "inverse": lambda x, y: mt.linalg.inv(x + 300 * mt.eye(200)),
    "lstsq": lambda x, y: mt.linalg.lstsq(x[:, :20], y).solution,
    "fft": lambda x, y: mt.fft.fft(x[:, :150]),
    "fft_of_a_prime": lambda x, y: mt.fft.rfft(x[:, :197]),
    "fft2": lambda x, y: with_gradient(lambda z: mt.fft.rfft2(z).abs(), x),
    "softmax_gradient": lambda x, y: with_gradient(lambda z: z.softmax(1) * y, x),
    "layer_norm_gradient": lambda x, y: with_gradient(lambda z, w, b: F.layer_norm(z, (200,), w, b) * y, x, y[0], y[1]),
    "rms_norm_gradient": lambda x, y: with_gradient(lambda z, w: F.rms_norm(z, (200,), w) * y, x, y[0]),
    "batch_norm_gradient": lambda x, y: with_gradient(
        lambda z, w, b: F.batch_norm(z, None, None, w, b, training=True) * y.reshape(10, 40, 100),
        x.reshape(10, 40, 100),
        y[0, :40],
        y[1, :40],
    ),
    "group_norm_gradient": lambda x, y: with_gradient(
        lambda z, w, b: F.group_norm(z, 4, w, b) * y.reshape(10, 40, 100), x.reshape(10, 40, 100), y[0, :40], y[1, :40]
    ),
    "conv1d_gradient": lambda x, y: with_gradient(
        lambda z, w: F.conv1d(z, w, stride=2), x.reshape(4, 10, 1000), y[:3].reshape(12, 10, 5)
    ),
    "conv2d_gradient": lambda x, y: with_gradient(
        lambda z, w: F.conv2d(z, w, padding=1), x.reshape(4, 10, 20, 50), y.flatten()[:1800].reshape(20, 10, 3, 3)
    ),
    "pointwise_gradient": lambda x, y: with_gradient(F.conv2d, x.reshape(4, 10, 20, 50), y[0].reshape(20, 10, 1, 1)),
    "depthwise_gradient": lambda x, y: with_gradient(
        lambda z, w: F.conv2d(z, w, groups=10), x.reshape(4, 10, 20, 50), y.flatten()[:90].reshape(10, 1, 3, 3)
    ),
    "conv3d_gradient": lambda x, y: with_gradient(
        F.conv3d, x.reshape(2, 4, 10, 10, 50), y.flatten()[:648].reshape(6, 4, 3, 3, 3)
    ),
    "transposed_gradient": lambda x, y: with_gradient(
        lambda z, w: F.conv_transpose2d(z, w, stride=2),
        x.reshape(4, 10, 20, 50),
        y.flatten()[:1800].reshape(10, 20, 3, 3),
    ),
    "max_pool_gradient": lambda x, y: with_gradient(lambda z: F.max_pool2d(z, 3, 2), x.reshape(4, 10, 20, 50)),
    "avg_pool_gradient": lambda x, y: with_gradient(lambda z: F.avg_pool2d(z, 3, 2), x.reshape(4, 10, 20, 50)),
    "interpolate": lambda x, y: with_gradient(
        lambda z: F.interpolate(z, scale_factor=1.5, mode="bilinear"), x.reshape(4, 10, 20, 50)
    ),
    "unfold": lambda x, y: with_gradient(lambda z: F.unfold(z, 3), x.reshape(4, 10, 20, 50)),
    "reflect": lambda x, y: with_gradient(lambda z: F.pad(z, (2, 3), mode="reflect"), x),
    "gather_gradient": lambda x, y: with_gradient(lambda z: z.gather(1, y.argsort(1)), x),
    "embedding_gradient": lambda x, y: with_gradient(lambda w: F.embedding((y * 100).long(), w), x),
    "attention_gradient": lambda x, y: with_gradient(F.scaled_dot_product_attention, *[x.reshape(2, 4, 100, 50)] * 3),
    "cross_entropy_gradient": lambda x, y: with_gradient(lambda z: F.cross_entropy(z, (y[:, 0] * 100).long()), x),
    "mse_gradient": lambda x, y: with_gradient(F.mse_loss, x, y),
    "bce_gradient": lambda x, y: with_gradient(lambda z: F.binary_cross_entropy_with_logits(z, y), x),
    "smooth_l1_gradient": lambda x, y: with_gradient(F.smooth_l1_loss, x, y),
    "kl_div": lambda x, y: F.kl_div(x, y, reduction="batchmean"),
    "conv_of_points": lambda x, y: F.conv2d(x.reshape(1, 50, 20, 40), y[:50, :50].reshape(50, 50, 1, 1)),
    "gelu_gradient": lambda x, y: with_gradient(F.gelu, x),
    "linear_gradient": lambda x, y: with_gradient(F.linear, x, y, y[0]),
    "rnn": lambda x, y: recurrent(mt.nn.RNN, x, y),
    "lstm": lambda x, y: recurrent(mt.nn.LSTM, x, y),
    "gru": lambda x, y: recurrent(mt.nn.GRU, x, y),
    "sgd": lambda x, y: stepped(lambda p: mt.optim.SGD(p, lr=0.1, momentum=0.9), x, y),
    "adam": lambda x, y: stepped(lambda p: mt.optim.Adam(p, lr=0.1), x, y),
    "adamw": lambda x, y: stepped(lambda p: mt.optim.AdamW(p, lr=0.1, amsgrad=True), x, y),
    "rmsprop": lambda x, y: stepped(lambda p: mt.optim.RMSprop(p, lr=0.1), x, y),
    "adagrad": lambda x, y: stepped(lambda p: mt.optim.Adagrad(p, lr=0.1), x, y),
    "clip_norm": lambda x, y: mt.linalg.vector_norm(x, 3.0),
    "dropout": lambda x, y: F.dropout(x),
    "randn": lambda x, y: mt.randn(100, 100),
    "multinomial": lambda x, y: x.multinomial(5),
}
RANDOM = ("rand", "randperm", "dropout", "randn", "multinomial")


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_failed_allocation_is_a_memory_error(k: Any, name: str) -> None:
    from mortice_cpu_cext import _cext

    operation = OPERATIONS[name]
    x, y = mt.rand(200, 200), mt.rand(200, 200)
    expected = operation(x, y)
    for sites in (
        *range(40),
        *(int(40 * 1.07**n) for n in range(90)),
    ):  # each of the first, and ever fewer of the later ones
        _cext._fail_after(sites)
        try:
            operation(x, y)
            break
        except MemoryError:
            pass
        finally:
            _cext._fail_after(-1)
    else:
        raise AssertionError("it never had enough memory")
    assert sites > 0, "the operation asks for no memory at all"
    again = operation(x, y)
    if name not in RANDOM:
        for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (expected, again)]):
            assert mt.equal(a, b)


def test_what_the_system_does_not_have(k: Any) -> None:
    with pytest.raises(MemoryError):
        k.full((1 << 46,), 0, dtype=by_name("float64"), device=k.device("cpu"))


def test_memory_need_not_be_kept() -> None:
    program = (
        "import mortice as mt; mt.set_backend('cpu_cext'); b = mt.zeros(1).device.backend; d = b.device('cpu')\n"
        "x = mt.zeros(10_000_000); del x; print(b.memory_stats(d)['reserved'])"
    )
    import os

    found = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"MORTICE_KEEP_MEMORY": "0"}, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 16 * MIB


_HUGE = """
import mmap, sys, time
def huge():  # kB
    return int(open("/proc/self/smaps_rollup").read().split("AnonHugePages:")[1].split()[0])
import mortice as mt
mt.set_backend("cpu_cext")
mt.zeros(10000)
backend = mt.zeros(1).device.backend
if not backend.memory_stats(backend.device("cpu"))["reserved"]:
    sys.exit("built with a sanitizer, which brings an allocator of its own")
before, began = huge(), time.thread_time()
room = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
room.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, 64 << 20, 4096):
    room[at] = 1
if huge() - before < 48 << 10 or time.thread_time() - began > 32 * 4.5e-3:
    sys.exit("the system gives no huge pages, or slowly")
before = huge()
x = mt.ones(16 << 20)
print(huge() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the pages of a process are told by Linux alone")
def test_a_large_array_lies_in_huge_pages_from_the_first() -> None:
    found = []
    for _ in range(3):  # the system may have had none at the moment when it was asked
        run = subprocess.run([sys.executable, "-c", _HUGE], capture_output=True, text=True)
        if run.returncode:
            pytest.skip(run.stderr)
        found.append(int(run.stdout))
        if found[-1] >= 32 << 10:
            return
    raise AssertionError(f"kB in huge pages, of 65536: {found}")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("adaptive_max_pool1d", lambda x: mt.nn.functional.adaptive_max_pool1d(x, (1 << 62) - 1)),
        ("repeat", lambda x: x.repeat(1, 1, 1 << 61)),
        ("matmul", lambda x: mt.ones(1 << 32, 0) @ mt.ones(0, 1 << 32)),
    ],
)
def test_results_beyond_the_addresses_are_told_as_pytorch_tells_them(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=f"^{name}: Storage size calculation overflowed"):
        call(mt.ones(2, 2, 2))


def test_sizes_that_a_kernel_counts_beyond_the_addresses_are_no_mistake_of_values(k: Any) -> None:
    with pytest.raises(mt.OutOfMemoryError):
        mt.repeat_interleave(mt.ones(2, 2), 1 << 62, dim=0)
