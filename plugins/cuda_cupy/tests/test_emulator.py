"""The emulator itself: indices, barriers, shuffles, atomics and shared memory are what CUDA says, and misuse is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import run_on_cpu

pytestmark = pytest.mark.skipif(run_on_cpu.compiler() is None, reason="there is no C++ compiler here")

CODE = r"""
template <class T> __global__ void reversed(const T *x, T *out) {
  __shared__ T held[96];
  held[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void places(int *out) {
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}
extern "C" __global__ void shuffles(const int *x, int *out) {
  int v = x[threadIdx.x];
  for (int by = 16; by; by >>= 1) v += __shfl_down_sync(0xffffffffu, v, by);
  out[threadIdx.x] = __shfl_sync(0xffffffffu, v, 0);
  if (threadIdx.x % 32 == 0) atomicAdd(out + blockDim.x, v);
}
struct alignas(16) Four { int v[4]; };
extern "C" __global__ void four(const int *x, int *out) {
  *reinterpret_cast<Four *>(out) = *reinterpret_cast<const Four *>(x);
}
extern "C" __global__ void beyond(int *out) {
  __shared__ int held[4];
  held[out[0]] = 1;
}
// Each block adds what all others have left in `slots`, round after round.
extern "C" __global__ void rounds(unsigned *slots, unsigned *arrived) {
  for (unsigned round = 1; round < 5; ++round) {
    unsigned *from = slots + round % 2 * gridDim.x, *to = slots + (round + 1) % 2 * gridDim.x, sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += 32) sum += from[i];
    for (int by = 16; by; by >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    if (threadIdx.x == 0) to[blockIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1u);
      while (*static_cast<volatile unsigned *>(arrived) < round * gridDim.x) on_cpu::yield();
    }
    __syncthreads();
  }
}
extern "C" __global__ void stuck() {
  if (threadIdx.x == 0) __syncwarp();
  else __syncthreads();
}
"""
PLAIN = CODE[CODE.index('extern "C"') :]


def test_a_barrier_holds_all_threads_of_a_block() -> None:
    module = run_on_cpu.Module(CODE, (), ["reversed<float>", "reversed<double>"])
    for dtype, name in ((np.float32, "reversed<float>"), (np.float64, "reversed<double>")):
        x = np.arange(3 * 96, dtype=dtype)
        out = np.empty_like(x)
        module.get_function(name)((3,), (96,), (x, out))
        np.testing.assert_array_equal(out, x.reshape(3, 96)[:, ::-1].reshape(-1))


@pytest.mark.parametrize(("place", "tells"), [("(threadIdx.x + 95) / 2", "forwards"), ("threadIdx.x / 2", "backwards")])
def test_a_missing_barrier_shows_in_one_order_of_threads(monkeypatch: pytest.MonkeyPatch, place: str, tells: str) -> None:
    code = CODE.replace("  __syncthreads();\n", "", 1).replace("blockDim.x - 1 - threadIdx.x", place)
    kernel = run_on_cpu.Module(code, (), ["reversed<float>"]).get_function("reversed<float>")
    x, i = np.arange(1, 97, dtype=np.float32), np.arange(96)
    out, wanted = np.empty_like(x), x[i // 2 if tells == "backwards" else (i + 95) // 2]
    for order in ("forwards", "backwards", "1"):
        monkeypatch.setenv("MORTICE_EMULATED_ORDER", order)
        kernel((1,), (96,), (-x, out))  # shared memory holds what another block left there
        kernel((1,), (96,), (x, out))
        assert (out == wanted).all() == (order not in (tells, "1"))


@pytest.mark.parametrize("order", ["forwards", "backwards", "1", "2"])
def test_blocks_that_wait_for_each_other_run_at_a_time(monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setenv("MORTICE_EMULATED_ORDER", order)

    def found(code: str) -> tuple[int, ...]:
        slots = np.ones(10, np.uint32)
        run_on_cpu.Module(code).get_function("rounds")((5,), (32,), (slots, np.zeros(1, np.uint32)), together=True)
        return tuple(slots)

    assert found(PLAIN) == (125,) * 5 + (625,) * 5
    # Without waiting they stay in step unless the order is drawn.
    without = found(PLAIN.replace("while (*static", "if (false && *static"))
    assert (without == (125,) * 5 + (625,) * 5) == (not order.isdigit())


def test_indices_have_three_axes() -> None:
    out = np.zeros((12, 30), np.int32)
    run_on_cpu.Module(PLAIN).get_function("places")((2, 3, 2), (5, 3, 2), (out,))
    np.testing.assert_array_equal(out, np.arange(12)[:, None] * 1000 + np.arange(30))


def test_shuffles_stay_in_the_warp() -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(65, np.int32)
    run_on_cpu.Module(PLAIN).get_function("shuffles")((1,), (64,), (x, out))
    np.testing.assert_array_equal(out, [496] * 32 + [1520] * 32 + [2016])


def test_arguments_are_checked() -> None:
    places = run_on_cpu.Module(PLAIN).get_function("places")
    with pytest.raises(TypeError, match="takes 1 arguments; got 2"):
        places((1,), (1,), (np.zeros(1, np.int32), 1))
    with pytest.raises(TypeError, match="argument 0 is a pointer"):
        places((1,), (1,), (np.int64(1),))


def _ended(launch: str) -> str:
    """Return what a process says of a launch that ends it."""
    here = Path(run_on_cpu.__file__).parent
    program = f"import sys; sys.path.append({str(here)!r}); import numpy as np, run_on_cpu\n"
    program += f"x = np.full(8, 4, np.int32)\nrun_on_cpu.Module({PLAIN!r}).{launch}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode < 0
    return done.stderr


@pytest.mark.parametrize("launch", ["get_function('stuck')((1,), (32,), ())", "get_function('rounds')((2,), (32,), (x, x[4:] * 0))"])
def test_a_barrier_that_is_never_reached_ends_the_program(launch: str) -> None:
    assert "waits for threads that never reach it" in _ended(launch)


@pytest.mark.parametrize("launch", ["get_function('four')((1,), (1,), (x[1:], x))", "get_function('beyond')((1,), (1,), (x,))"])
def test_what_a_gpu_faults_at_ends_the_program(launch: str) -> None:
    assert not _ended(launch)


def test_launches_that_a_gpu_refuses_are_refused() -> None:
    plain = run_on_cpu.Module(PLAIN).get_function("places")
    bounded = run_on_cpu.Module(PLAIN.replace("void places(", "void __launch_bounds__(512) places(")).get_function("places")
    out = np.zeros(512, np.int32)
    bounded((1,), (512,), (out,))
    for kernel, threads in ((plain, 512), (bounded, 1024)):
        with pytest.raises(RuntimeError, match="too many resources requested"):
            kernel((1,), (threads,), (out,))
    with pytest.raises(RuntimeError, match="more than 48 KiB"):
        plain((1,), (32,), (out,), shared_mem=50_000)
    with pytest.raises(TypeError, match="expected tuples"):
        plain([1], (32,), (out,))
