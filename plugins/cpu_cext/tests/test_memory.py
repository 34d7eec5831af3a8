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
    "conv": lambda x, y: mt.nn.functional.conv2d(x[:100].reshape(1, 20, 20, 50), y[:180].reshape(-1, 20, 3, 3)[:20], padding=1),
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
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_failed_allocation_is_a_memory_error(k: Any, name: str) -> None:
    from mortice_cpu_cext import _cext

    operation = OPERATIONS[name]
    x, y = mt.rand(200, 200), mt.rand(200, 200)
    expected = operation(x, y)
    for sites in (*range(40), *(int(40 * 1.07**n) for n in range(90))):  # each of the first, and ever fewer of the later ones
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
    if name not in ("rand", "randperm"):
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

    found = subprocess.run([sys.executable, "-c", program], env=os.environ | {"MORTICE_KEEP_MEMORY": "0"}, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 16 * MIB
