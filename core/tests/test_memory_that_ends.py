"""What is asked for beyond the machine's memory: an error that names the operation and the bytes, and no killed process."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mortice as mt
from mortice import nn
from mortice.backends import plugins

pytestmark = pytest.mark.any_backend
LONG = 1 << 43  # elements: far more than any machine's memory, within its addresses
BACKENDS = [name for name in ("cpu_cext", "cpu_numpy") if name in plugins.list_backends()]


@pytest.fixture(params=BACKENDS, autouse=True)
def backend(request):
    with mt.use_backend(request.param):
        yield request.param


# the operation that is named: how it is called on one number that is repeated without memory, and bytes an element
CALLS = {
    "empty": (lambda x: mt.empty(LONG), 4), "zeros": (lambda x: mt.zeros(LONG, dtype=mt.int16), 2),
    "ones": (lambda x: mt.ones(2, LONG // 2), 4), "full": (lambda x: mt.full((LONG,), 2.0), 4),
    "empty_like": (mt.empty_like, 4), "zeros_like": (mt.zeros_like, 4), "new_ones": (lambda x: x.new_ones(LONG), 4),
    "rand": (lambda x: mt.rand(LONG), 4), "randn": (lambda x: mt.randn(LONG), 4),
    "randint": (lambda x: mt.randint(3, (LONG,)), 8), "randperm": (lambda x: mt.randperm(LONG), 8),
    "arange": (lambda x: mt.arange(LONG), 8), "exp": (mt.exp, 4), "add": (lambda x: x + 1, 4), "mul": (lambda x: x * x, 4),
    "cat": (lambda x: mt.cat([x]), 4), "clone": (lambda x: x.clone(), 4), "contiguous": (lambda x: x.contiguous(), 4),
    "cast": (lambda x: x.double(), 8), "relu": (nn.functional.relu, 4),
    "matmul": (lambda x: mt.ones(1 << 22, 1) @ mt.ones(1, 1 << 21), 4),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_operation_and_the_bytes(name):
    call, itemsize = CALLS[name]
    with pytest.raises(RuntimeError) as caught:  # what PyTorch raises
        call(mt.ones(1).expand(LONG))
    asked = LONG * itemsize
    assert (
        str(caught.value) == f"{name}: DefaultCPUAllocator: can't allocate memory: you tried to allocate {asked} bytes."
    )
    assert isinstance(caught.value, mt.OutOfMemoryError) and isinstance(caught.value, MemoryError)


def test_a_gradient_names_the_walk():
    x = mt.ones(1, requires_grad=True)
    with pytest.raises(mt.OutOfMemoryError, match="^backward: DefaultCPUAllocator: can't allocate memory"):
        x.expand(LONG)[3].backward()
    (x * 2).backward()  # and work goes on
    assert x.grad.item() == 2


def test_work_goes_on():
    for _ in range(3):
        with pytest.raises(mt.OutOfMemoryError, match=r"^empty: "):
            nn.Linear(1 << 22, 1 << 22)
    assert nn.Linear(3, 2)(mt.ones(3)).shape == (2,)


def test_sizes_beyond_the_addresses():
    for make in (mt.empty, mt.zeros):
        with pytest.raises(
            RuntimeError, match=rf"^{make.__name__}: Storage size calculation overflowed with sizes=\[4611686"
        ):
            make(1 << 62, 8)
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):  # they count sizes of 0 as 1
        mt.empty(0, 4, 1 << 61)


def test_an_operation_of_several_results_that_do_not_fit():
    with pytest.raises(mt.OutOfMemoryError, match="^sort: "):
        mt.zeros(1).expand(1 << 25, 1 << 20).sort()


def test_a_process_that_asks_for_more_than_the_machine_has_is_not_killed(backend):
    """Memory that is promised but not there ends a process at the first touch, so it must not be promised."""
    with open("/proc/meminfo") if sys.platform == "linux" else pytest.skip("reads /proc/meminfo") as file:
        kib = sum(int(line.split()[1]) for line in file if line.startswith(("MemTotal:", "SwapTotal:")))
    with open("/proc/sys/vm/overcommit_memory") as file:
        if file.read().strip() == "1":
            pytest.skip("this system promises any memory (vm.overcommit_memory is 1)")
    code = (
        f"import mortice as mt\nmt.set_backend({backend!r})\n"
        f"try: mt.ones({4 * kib << 10}, dtype=mt.uint8)\nexcept RuntimeError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("ones: DefaultCPUAllocator"), (done.returncode, done.stderr)
