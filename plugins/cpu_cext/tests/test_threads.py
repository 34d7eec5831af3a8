"""Threads: one pool for all, alive after a fork, in peace with Python's own threads, and Ctrl-C is heard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import mortice as mt


@pytest.fixture
def cext() -> Any:
    from mortice_cpu_cext import _cext

    before = _cext._get_num_threads()
    yield _cext
    _cext._set_num_threads(before)


def big() -> tuple[Any, Any]:
    x = mt.arange(600_000.0).reshape(600, 1000)
    return x, (x.t() * 2.0 + x.t()).t()


def test_results_do_not_depend_on_the_number_of_threads(cext: Any) -> None:
    found = []
    for threads in (1, 2, 3, 8, 2, 1):
        cext._set_num_threads(threads)
        x, y = big()
        w = mt.rand(1000, 300, generator=mt.Generator().manual_seed(1))
        found.append([x, y, y.sum(), y.sum(0), y.var(1), (y * 1e-6).softmax(1), y.cumsum(1), y.sin(), y.sort(1).values, y[y > 500],
                      (y * 1e-5).exp().mean(), mt.rand(100_000, generator=mt.Generator().manual_seed(3)),
                      y.t() @ x * 1e-9 + w.sum()])  # fmt: skip
    for others in found[1:]:
        for a, b in zip(found[0], others):
            assert mt.allclose(a, b, rtol=1e-6, atol=0), "the sum of a product may be blocked otherwise"
        for a, b in zip(found[0][:-1], others[:-1]):
            assert mt.equal(a, b)


def test_python_threads_compute_side_by_side(cext: Any) -> None:
    cext._set_num_threads(3)
    expected = big()[1].sum().item()
    found: list[float] = []

    def work() -> None:
        with mt.use_backend("cpu_cext"):
            for _ in range(20):
                found.append(big()[1].sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [expected] * 80


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_computes(cext: Any) -> None:
    cext._set_num_threads(2)
    expected = big()[1].sum().item()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(
                write,
                b"same"
                if big()[1].sum().item() == expected and mt.rand(500, 500).mm(mt.rand(500, 500)).shape
                else b"other",
            )
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 10) == b"same"
    os.waitpid(child, 0)
    assert big()[1].sum().item() == expected


def test_ctrl_c_is_heard_during_a_long_kernel() -> None:
    program = (
        "import sys, time, mortice as mt\n"
        "mt.set_backend('cpu_cext')\n"
        "mt.ones(3).sum().item()\n"  # imports what a sum needs
        "x = mt.zeros(20_000).expand(200_000, 20_000)\n"  # a sum of 4e9 elements, none of them in memory twice
        "print('ready', flush=True)\n"
        "begun = time.thread_time()\n"  # what it computed, which other work on the machine does not lengthen
        "try:\n    print(x.sum())\n"
        "except KeyboardInterrupt:\n"
        "    assert time.thread_time() - begun < 5\n"
        "    print('heard', flush=True); assert mt.ones(3).sum().item() == 3; sys.exit(7)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("heard\n", 7)


def test_the_public_number_of_threads_reaches_the_pool(cext: Any) -> None:
    before = mt.get_num_threads()
    mt.set_num_threads(3)
    assert cext._get_num_threads() == mt.get_num_threads() == 3
    mt.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not say where threads may run")
def test_threads_may_run_where_they_might_before(cext: Any) -> None:
    """A sleeping worker is kept off the caller's processor for its awakening only."""
    cext._set_num_threads(2)
    x = mt.ones(1000, 1000)
    allowed = os.sched_getaffinity(0)
    for _ in range(400):
        time.sleep(0.002)  # longer than a worker waits awake
        for _ in range(3):
            x.relu()
    for _ in range(50):
        x.relu()  # one that had done its part and slept again before it was sent away takes back what it is allowed now
        time.sleep(0.2)  # each once it runs, and an earlier test may have begun hundreds
        if all(os.sched_getaffinity(int(t)) == allowed for t in os.listdir("/proc/self/task")):
            return
    pytest.fail("a worker has lost a processor")


@pytest.mark.parametrize("threads", [2, 3, 7, 64])
def test_every_part_is_done_once(cext: Any, threads: int) -> None:
    """Threads have parts of their own and take over others': with more of them than parts, and than processors."""
    cext._set_num_threads(threads)
    for n in (40_000, 100_003, 1_000_001):
        x = mt.arange(n)
        for _ in range(20):
            x += 1
        assert mt.equal(x, mt.arange(20, n + 20))
