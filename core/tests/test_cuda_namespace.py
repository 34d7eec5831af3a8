"""mortice.cuda with and without a device, and the settings, switches and small namespaces that scripts expect."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Optional, Union

import pytest

import mortice as mt
from mortice import cuda, notice

no_cuda = pytest.mark.skipif(cuda.is_available(), reason="a CUDA device is here")


@pytest.fixture
def pretender() -> Iterator[Any]:
    """Two CUDA devices of a backend that counts memory and waits."""
    pytest.importorskip("numpy")
    import numpy as np

    from mortice.backends import BackendInfo, NamespaceBackend, plugins

    class Pretender(NamespaceBackend):
        waited = 0
        peak = 300

        def memory_allocated(self, device: Any) -> int:
            return 100 + device.index

        def memory_stats(self, device: Any) -> dict[str, int]:
            return {"peak_allocated": self.peak, "free": 1000, "total": 4000, "num_ooms": 2}

        told: list[Any] = []

        def tell_profiler(self, what: str, *told: Any) -> Any:
            self.told.append((what, *told))
            return len(self.told)

        def reset_peak_memory(self, device: Any) -> None:
            self.peak = 150

        def device_properties(self, device: Any) -> dict[str, Any]:
            return {"major": 9, "minor": 0, "total_memory": 4000}

        def device_label(self, device: Any) -> str:
            return "Pretender 9000"

        def device_of(self, x: Any) -> Any:
            return self.device("cuda:0")

        def synchronize(self, device: Any) -> None:
            self.waited += 1

    made = Pretender(np, {"cuda:0": None, "cuda:1": None})
    plugins.register(BackendInfo("pretender", ("cuda",), lambda: made))
    yield made
    del plugins.entries()["pretender"]
    plugins._CACHE.clear()


def test_typed_classes_of_cuda(pretender: Any) -> None:
    x = cuda.FloatTensor([1, 2])
    assert isinstance(x, cuda.FloatTensor) and not isinstance(x, (mt.FloatTensor, cuda.LongTensor))
    assert x.type() == "mortice.cuda.FloatTensor" and repr(cuda.FloatTensor) == "<class 'mortice.cuda.FloatTensor'>"
    for kind in (cuda.HalfTensor, "torch.cuda.HalfTensor"):
        there = mt.ones(2).type(kind)
        assert there.dtype is mt.float16 and there.is_cuda
    for kind in (mt.DoubleTensor, "torch.DoubleTensor"):
        assert x.type(kind).device.type == "cpu" and x.type(kind).dtype is mt.float64
    assert x.type(mt.int32).is_cuda and x.type(mt.Tensor) is x
    assert mt.ones(2, dtype=mt.float64).type_as(x).is_cuda and not x.type_as(mt.ones(1)).is_cuda


def test_cuda_moves_to_a_cuda_device_alone(pretender: Any) -> None:
    x = mt.ones(2)
    assert x.cuda(1).device == x.cuda("cuda:1").device == mt.device("cuda:1") and x.cuda().device.index == 0
    for move in (lambda: x.cuda("cpu"), lambda: x.cuda(mt.device("cpu")), lambda: mt.nn.Linear(1, 1).cuda("cpu")):
        with pytest.raises(mt.errors.DeviceError, match=r"^cuda: Invalid device, must be cuda device; got cpu\. Use \.to\(device\)\.$"):
            move()


# ---- without a device: as PyTorch's build without CUDA ----


@no_cuda
@pytest.mark.seed("CU04", "PL07", "TD07")
def test_questions_are_answered_and_requests_without_effect_pass() -> None:
    assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_initialized()
    for count in (
        cuda.memory_allocated, cuda.max_memory_allocated, cuda.memory_reserved, cuda.max_memory_reserved, cuda.memory_cached,
    ):  # fmt: skip
        assert count() == 0
    assert not cuda._initialized and not isinstance(mt.ones(1, dtype=mt.float16), cuda.HalfTensor)
    assert not cuda.is_bf16_supported() and cuda.memory_stats() == {} and cuda.get_arch_list() == []
    cuda.empty_cache(), cuda.ipc_collect(), cuda.reset_peak_memory_stats(), cuda.set_device(-1)
    cuda.manual_seed(3), cuda.manual_seed_all(4)
    assert mt.initial_seed() == 4 == cuda.initial_seed() and cuda.get_rng_state_all() == []
    assert cuda.default_generators == ()  # one for each device
    with cuda.device(-1), cuda.device(None), cuda.device_of(mt.ones(1)), cuda.stream(None):
        pass


@no_cuda
@pytest.mark.parametrize(
    "call",
    [
        cuda.current_device, cuda.synchronize, cuda.init, cuda.get_device_name, cuda.get_device_capability,
        cuda.get_device_properties, cuda.mem_get_info, cuda.current_stream, cuda.default_stream, lambda: cuda.set_device(0),
        lambda: cuda.device(0).__enter__(), cuda.Stream, cuda.Event,
    ],
)  # fmt: skip
def test_what_needs_a_device_says_so(call: Any) -> None:
    with pytest.raises(RuntimeError, match="no backend offers"):
        call()


@no_cuda
def test_the_error_is_also_the_one_that_pytorch_raises() -> None:
    with pytest.raises(AssertionError):
        cuda.current_device()


# ---- with one ----


@pytest.mark.seed("PL07")
def test_devices_and_their_properties(pretender: Any) -> None:
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.current_device() == 0
    assert cuda.get_device_name() == "Pretender 9000" and cuda.get_device_capability(1) == (9, 0)
    found = cuda.get_device_properties(0)
    assert (found.name, found.total_memory, found.multi_processor_count) == ("Pretender 9000", 4000, 0)
    assert cuda.is_tf32_supported() and not cuda.can_device_access_peer(0, 1)
    with cuda.device_of(mt.ones(1, device="cuda:1")):
        assert cuda.current_device() == 1
    assert mt.accelerator.is_available() and str(mt.accelerator.current_accelerator()) == "cuda"
    assert mt.accelerator.device_count() == 2 and mt.accelerator.memory_allocated() == 100
    with mt.accelerator.device_index(1):
        assert mt.accelerator.current_device_index() == 1 == cuda.current_device()


def test_the_accelerator_s_memory_is_that_of_any_type_of_device(pretender: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator = mt.accelerator
    assert accelerator.max_memory_allocated() == cuda.max_memory_allocated() == accelerator.max_memory_allocated("cuda:0") == 300
    assert accelerator.get_memory_info(1) == cuda.mem_get_info(1) == (1000, 4000) and accelerator.memory_reserved(1) == 101
    assert accelerator.memory_stats() == cuda.memory_stats() and accelerator.memory_stats()["num_ooms"] == 2
    accelerator.reset_peak_memory_stats()
    assert accelerator.max_memory_allocated() == 150
    with cuda.stream(cuda.Stream()) as _:
        assert accelerator.current_stream() == cuda.current_stream()


@no_cuda
def test_a_type_of_device_that_has_no_module_has_memory_too() -> None:
    np = pytest.importorskip("numpy")
    from mortice.backends import BackendInfo, NamespaceBackend, plugins

    class Stranger(NamespaceBackend):
        def memory_allocated(self, device: Any) -> int:
            return 7

    plugins.register(BackendInfo("stranger", ("npu",), lambda: Stranger(np, {"npu:0": None})))
    try:
        accelerator = mt.accelerator
        assert str(accelerator.current_accelerator()) == "npu"
        assert accelerator.memory_reserved() == accelerator.max_memory_reserved("npu:0") == accelerator.max_memory_allocated(0) == 7
        assert accelerator.memory_stats()["allocated_bytes.all.peak"] == 7
        accelerator.reset_peak_memory_stats()
        with pytest.raises(RuntimeError, match="accelerator.get_memory_info: backend 'stranger' does not say how much of npu:0 is free"):
            accelerator.get_memory_info()
        with pytest.raises(RuntimeError, match="Device 'npu' does not have a corresponding module"):
            accelerator.current_stream()
    finally:
        del plugins.entries()["stranger"]
        plugins._CACHE.clear()


@no_cuda
def test_the_accelerator_s_memory_needs_one() -> None:
    with pytest.raises(RuntimeError, match=r"accelerator\.max_memory_allocated: expected a device other than the CPU"):
        mt.accelerator.max_memory_allocated()
    assert mt.accelerator.memory_allocated() == 0


@pytest.mark.seed("CU06")
def test_memory_is_what_the_backend_counts(pretender: Any) -> None:
    assert cuda.memory_allocated() == 100 and cuda.memory_allocated(1) == 101 == cuda.memory_reserved("cuda:1")
    assert cuda.max_memory_allocated() == 300 and cuda.mem_get_info() == (1000, 4000)
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == 150
    assert cuda.memory_stats()["allocated_bytes.all.peak"] == 150 and "allocated_bytes" in cuda.memory_summary()
    with pytest.raises(RuntimeError, match="expected a CUDA device; got 'cpu'"):
        cuda.memory_allocated("cpu")


def test_a_backend_may_know_more_names(pretender: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not hasattr(cuda, "temperature")
    monkeypatch.setattr(type(cuda.current_stream().device.backend), "cuda_name", lambda self, name: {"temperature": 40}.get(name))
    assert cuda.temperature == 40 and not hasattr(cuda, "voltage") and cuda.Stream("cuda:1").device_index == 1


def test_what_goes_between_devices_imports_without_one() -> None:
    from mortice.cuda import comm, nccl
    from mortice.cuda.comm import broadcast

    assert cuda.comm is comm and cuda.nccl is nccl and not hasattr(comm, "_broadcast")
    if not cuda.is_available():
        assert nccl.is_available([mt.ones(2)]) is False
        with pytest.raises(AssertionError, match="device 'cuda': no backend offers it"):
            broadcast(mt.ones(2), [0, 1])


def test_what_goes_between_devices_is_the_backends(pretender: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(cuda.current_stream().device.backend), "cuda_name", lambda self, name: SimpleNamespace(gather=name))
    assert cuda.comm.gather == "comm" and cuda.nccl.gather == "nccl" and not hasattr(cuda.comm, "scatter")


def test_all_counts_of_memory_are_there(pretender: Any) -> None:
    stats = cuda.memory_stats(1)
    for kind in ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes"):
        assert stats[f"{kind}.all.current"] == 101
    assert stats["active_bytes.all.peak"] == 300 and stats["num_ooms"] == 2
    for name in ("num_alloc_retries", "segment.large_pool.freed", "active.small_pool.peak", "inactive_split_bytes.all.peak"):
        assert stats[name] == 0
    assert list(stats) == sorted(stats) and "num_alloc_retries" not in cuda.memory_summary()


def test_profilers_are_told(pretender: Any) -> None:
    with cuda.profiler.profile(), cuda.nvtx.range("step {}", 3):
        cuda.nvtx.mark("here")
    cuda.cudart().cudaProfilerStart(), cuda.nvtx.range_end(cuda.nvtx.range_start("a"))
    assert pretender.told == [
        ("on",), ("push", "step 3"), ("mark", "here"), ("pop",), ("off",), ("on",), ("start", "a"), ("end", 7),
    ]  # fmt: skip


def test_a_stream_brings_its_device(pretender: Any) -> None:
    stream = cuda.Stream("cuda:1")
    assert cuda.current_device() == 0
    with cuda.stream(stream):
        assert cuda.current_device() == 1 and str(mt.ones(1, device="cuda").device) == "cuda:1"
    assert cuda.current_device() == 0
    with cuda.device(0):
        cuda.set_stream(stream)
        assert cuda.current_device() == 1
    assert cuda.get_arch_list() == ["sm_90"]


def test_streams_and_events_keep_their_promises(pretender: Any) -> None:
    stream, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with cuda.stream(stream):
        assert cuda.current_stream() is stream
        start.record()
        end.record(stream)
    end.synchronize()
    assert cuda.current_stream() is not stream and start.query() and start.elapsed_time(end) >= 0 and pretender.waited >= 3
    stream.wait_stream(cuda.current_stream()), stream.wait_event(end), stream.record_event().wait()
    with pytest.raises(ValueError, match="enable_timing=True"):
        cuda.Event().elapsed_time(end)
    with pytest.raises(ValueError, match="must be recorded"):
        cuda.Event(enable_timing=True).elapsed_time(end)
    with stream:
        assert cuda.current_stream() == stream


# ---- switches of torch.backends ----


@pytest.mark.seed("CU01")
def test_switches_are_kept_and_libraries_are_not_there() -> None:
    import mortice.backends.cudnn as cudnn

    assert mt.backends.cudnn is cudnn and not cudnn.is_available() and cudnn.version() is None
    cudnn.benchmark = True
    with cudnn.flags(enabled=False, benchmark=False, deterministic=True):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, False, True)
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.benchmark_limit) == (True, True, False, None)
    cudnn.benchmark = False
    for name in ("mps", "mkl", "mkldnn", "openmp", "opt_einsum"):
        assert getattr(mt.backends, name).is_available() is False
    assert mt.backends.mps.is_built() is False and mt.backends.cpu.get_cpu_capability() == "DEFAULT"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mt.backends.nothing  # noqa: B018
    assert mt.backends.cuda.is_built() is False and mt.backends.cuda.flash_sdp_enabled()
    with pytest.warns(FutureWarning, match="sdpa_kernel"), mt.backends.cuda.sdp_kernel(enable_flash=False):
        assert not mt.backends.cuda.flash_sdp_enabled() and mt.backends.cuda.math_sdp_enabled()
    mt.backends.cuda.enable_math_sdp(False)
    assert not mt.backends.cuda.math_sdp_enabled()
    mt.backends.cuda.enable_math_sdp(True)


def test_whether_cudnn_is_called_is_the_backend_s_to_say(pretender: Any) -> None:
    from mortice.__main__ import survey, text
    from mortice.backends import cudnn

    assert cudnn.version() is None and not cudnn.is_available()
    pretender.libraries = lambda: {"cudnn": (0, "it is not installed")}
    assert cudnn.version() is None and "    without cudnn: it is not installed" in text(survey())
    pretender.libraries = lambda: {"cudnn": (91002, "")}
    assert cudnn.version() == 91002 and cudnn.is_available() and not cudnn.is_acceptable(mt.ones(1))
    assert "    with cudnn 91002\n" in text(survey()) + "\n"


def test_the_precision_of_products_has_two_names() -> None:
    assert mt.get_float32_matmul_precision() == "highest" and not mt.backends.cuda.matmul.allow_tf32
    mt.backends.cuda.matmul.allow_tf32 = True
    assert mt.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="not one of 'highest'"):
        mt.set_float32_matmul_precision("low")
    mt.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="set_float32_matmul_precision expects a str, but got int"):
        mt.set_float32_matmul_precision(1)
    assert not mt.backends.cuda.matmul.allow_tf32


# ---- settings ----


def test_settings_are_kept() -> None:
    mt.use_deterministic_algorithms(True, warn_only=True)
    assert mt.are_deterministic_algorithms_enabled() and mt.is_deterministic_algorithms_warn_only_enabled()
    mt.set_deterministic_debug_mode("error")
    assert mt.get_deterministic_debug_mode() == 2
    mt.use_deterministic_algorithms(False, warn_only=True)
    assert mt.is_deterministic_algorithms_warn_only_enabled() and mt.get_deterministic_debug_mode() == 0
    assert mt.utils.deterministic.fill_uninitialized_memory
    mt.use_deterministic_algorithms(False)
    assert not mt.are_deterministic_algorithms_enabled()
    with pytest.raises(TypeError, match="argument 'mode' must be bool"):
        mt.use_deterministic_algorithms(1)
    with pytest.raises(RuntimeError, match="expected one of 'default', 'warn', 'error'"):
        mt.set_deterministic_debug_mode("loud")


@pytest.mark.parametrize(("dtype", "left"), [(mt.float32, math.nan), (mt.bool, True), (mt.uint8, 255), (mt.int16, 32767)])
def test_new_memory_is_noticed_where_it_is_read_unwritten(monkeypatch: Any, dtype: Any, left: Any) -> None:
    like = mt.zeros(1, dtype=dtype)
    mt.use_deterministic_algorithms(True)
    try:
        for made in (mt.empty(1, dtype=dtype), mt.empty_like(like), like.new_empty(1), like.clone().resize_(2)[1:]):
            mt.testing.assert_close(made, mt.full((1,), left, dtype=dtype), equal_nan=True)
        monkeypatch.setattr(mt.utils.deterministic, "fill_uninitialized_memory", False)
        assert mt.empty(1, dtype=dtype) == 0
    finally:
        mt.use_deterministic_algorithms(False)
    before = mt.get_num_threads(), mt.get_num_interop_threads()
    mt.set_num_threads(3), mt.set_num_interop_threads(2)
    assert (mt.get_num_threads(), mt.get_num_interop_threads()) == (3, 2)
    mt.set_num_threads(before[0]), mt.set_num_interop_threads(before[1])
    with pytest.raises(RuntimeError, match="expects a positive integer"):
        mt.set_num_threads(0)
    with pytest.raises(RuntimeError, match="expects an int, but got float"):
        mt.set_num_threads(1.5)
    with pytest.raises(ValueError, match="Overflow"):
        mt.set_num_threads(2**65)
    assert mt.set_flush_denormal(True) is False and mt.is_warn_always_enabled() is False


@pytest.mark.parametrize(
    ("asked", "found"),
    (
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "3", "MORTICE_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "0"}, None),
    ),
)
def test_threads_are_what_the_environment_says(asked: dict[str, str], found: int | None) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    code = "import mortice; print(mortice.get_num_threads())"
    out = subprocess.run([sys.executable, "-c", code], env=plain | asked, capture_output=True, text=True, timeout=120, check=True)
    assert int(out.stdout) == (found or os.cpu_count())


def test_default_dtypes_by_the_old_names() -> None:
    notice.told.clear()  # told once in a program
    try:
        with pytest.warns(UserWarning, match="deprecated as of PyTorch 2.1"):
            mt.set_default_tensor_type(mt.DoubleTensor)
        assert mt.ones(1).dtype is mt.float64
        mt.set_default_tensor_type("torch.FloatTensor")  # warnings are errors: it is told once
        assert mt.ones(1).dtype is mt.float32
    finally:
        mt.set_default_dtype(mt.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        mt.set_default_tensor_type(mt.LongTensor)
    with pytest.raises(TypeError, match="invalid type object"):
        mt.set_default_tensor_type("nothing")


@pytest.mark.skipif(mt.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("name", ["torch.cuda.FloatTensor", mt.cuda.DoubleTensor])
@pytest.mark.filterwarnings("ignore:.*deprecated as of PyTorch 2.1")
def test_a_default_class_on_a_device_that_is_not_there_is_refused(name: Any) -> None:
    with pytest.raises(RuntimeError, match="device 'cuda'"):
        mt.set_default_tensor_type(name)
    assert mt.ones(1).dtype is mt.float32


def test_random_states_can_be_kept_for_a_block() -> None:
    mt.manual_seed(5)
    with mt.random.fork_rng():
        inside = mt.rand(2).tolist()
    assert mt.rand(2).tolist() == inside
    state = cuda.get_rng_state()
    drawn = mt.rand(2).tolist()
    cuda.set_rng_state(state)
    assert mt.rand(2).tolist() == drawn


# ---- compile, jit, overrides, version, what is left out ----


def test_a_compiled_module_calls_the_module_and_gives_it_its_attributes() -> None:
    net = mt.nn.Sequential(mt.nn.Linear(2, 2), mt.nn.Dropout())
    made, seen = mt.compile(net, backend="eager"), []
    assert type(made).__name__ == "OptimizedModule" and made._orig_mod is net and mt.compile(made) is made
    assert list(made.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"] == [name for name, _ in made.named_parameters()]
    made.step, net.rate = 3, 2
    assert net.step == 3 and made.rate == 2 and len(made) == 2 and "step" in dir(made) and made and not hasattr(made, "other")
    del made.rate
    made.head = mt.nn.Linear(1, 1)
    assert not hasattr(net, "rate") and list(net._modules) == ["0", "1", "head"] and list(made._modules) == ["_orig_mod"]
    del net.head
    made.eval()
    assert not net.training
    net.train()
    assert made.training and not made.eval()._orig_mod[1].training
    made.register_forward_hook(lambda module, *rest: seen.append(module))
    net.register_forward_hook(lambda module, *rest: seen.append(module))
    assert made(mt.ones(1, 2)).tolist() == net(mt.ones(1, 2)).tolist() and seen == [net, made, net]
    copied = pickle.loads(pickle.dumps(mt.compile(mt.nn.Linear(2, 1))))
    assert copied.load_state_dict(copied.state_dict()) and copy.deepcopy(copied)._orig_mod is not copied._orig_mod


def test_compiling_returns_the_function() -> None:
    @mt.compile
    def one(x: int) -> int:
        return x + 1

    @mt.compile(mode="max-autotune", fullgraph=True)
    def two(x: int) -> int:
        return x + 2

    net = mt.nn.Linear(2, 2)
    assert one(1) == 2 and two(1) == 3 and mt.compile(net, disable=True) is net
    with pytest.raises(RuntimeError, match="unrecognized mode=fast"):
        mt.compile(net, mode="fast")
    with pytest.raises(RuntimeError, match="expected a function or a module"):
        mt.compile(3)
    assert mt.compiler.disable(one) is one and not mt.compiler.is_compiling()

    @mt.compiler.disable
    def three() -> int:
        return 3

    assert three() == 3


def test_a_scripted_function_gets_floats_where_it_says_so() -> None:
    @mt.jit.script
    def scaled(x: mt.Tensor, by: float, *, plus: float = 0.0, times: int = 1) -> mt.Tensor:
        """Scale."""
        return x * by * times + plus

    made = scaled(mt.ones(1, dtype=mt.int64), 2, plus=1, times=3)
    assert made.dtype is mt.float32 and made.item() == 7 and scaled.__doc__ == "Scale." and scaled.__name__ == "scaled"
    assert scaled(mt.ones(1), by=mt.tensor(2)).item() == 2
    with pytest.raises(TypeError, match="positional argument"):
        scaled(mt.ones(1), 1, 2)
    assert mt.jit.script(len) is len


def test_scripting_and_tracing_keep_the_function() -> None:
    net = mt.nn.Linear(2, 2)
    assert issubclass(mt.jit.TracerWarning, Warning)
    assert mt.jit.script(net) is net and mt.jit.trace(net, mt.ones(1, 2)) is net and not mt.jit.is_scripting()
    assert mt.jit.trace(net, (mt.ones(1, 2),)) is net and mt.jit.trace_module(net, {"forward": mt.ones(1, 2)}) is net

    @mt.jit.ignore
    def plain() -> int:
        return 1

    @mt.jit.ignore(drop=True)
    def dropped() -> int:
        return 2

    assert plain() == 1 and dropped() == 2 and mt.jit.annotate(int, 3) == 3
    with pytest.raises(NotImplementedError, match="state_dict"):
        mt.jit.save(net, "file")
    with pytest.raises(mt.errors.ShapeError):
        mt.jit.trace(net, mt.ones(1, 3))


TENSOR = object()  # stands for a tensor of the library that is asked
TYPED: list[tuple[Any, Any]] = [
    (TENSOR, lambda T: T), (1, lambda T: T), (1, lambda T: (T, int)), ("a", lambda T: (T, list[int])),
    ([TENSOR], lambda T: list[T]), ([TENSOR, 1], lambda T: list[T]), ([[1], [2]], lambda T: list[list[int]]),
    ([[1], ["2"]], lambda T: list[list[int]]), ((1,), lambda T: list[int]), ({"a": TENSOR}, lambda T: dict[str, T]),
    (TENSOR, lambda T: dict[str, T]), ({1: TENSOR}, lambda T: dict[str, T]), ({"a": [1]}, lambda T: dict[str, list[int]]),
    ((1, "a"), lambda T: tuple[int, str]), ((1, 2), lambda T: tuple[int, str]), ((1,), lambda T: tuple[int, int]),
    (None, lambda T: Optional[T]), ([1], lambda T: Optional[list[int]]), ([1], lambda T: Union[T, str]),  # noqa: UP007, UP045
    (1, lambda T: T | int), (None, lambda T: T | int), ({1}, lambda T: set[int]),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("case", range(len(TYPED)))
def test_isinstance_of_jit_looks_into_containers_as_pytorch_does(case: int) -> None:
    torch = pytest.importorskip("torch")
    value, target = TYPED[case]

    def answer(lib: Any) -> bool:
        held = lib.ones(2)

        def swap(v: Any) -> Any:
            if type(v) in (list, tuple):
                return type(v)(map(swap, v))
            return {k: swap(u) for k, u in v.items()} if isinstance(v, dict) else held if v is TENSOR else v

        return bool(lib.jit.isinstance(swap(value), target(lib.Tensor)))

    assert answer(mt) is answer(torch)


def test_the_version_compares_by_its_numbers() -> None:
    version = mt.torch_version.TorchVersion("2.13.0+x")
    assert version >= "1.5.0" and version >= "2.9" and version > "2.13.0" and version < "v3" and version <= "2.13.1rc1"
    assert version >= (2, 9) and version < [2, 14] and not version < "2.2" and not version > "2.13.0+x"
    assert version < "parrot" and version == "2.13.0+x" and version != "2.13" and hash(version) == hash("2.13.0+x")
    assert [int(part) for part in mt.__version__.split(".")[:2]] == [2, 13]
    with pytest.raises(TypeError, match="not supported between"):
        _ = version > 2


def test_compiled_extensions_are_refused_when_built() -> None:
    from mortice.utils import cpp_extension

    assert cpp_extension.CUDA_HOME is None
    for make in (cpp_extension.load, cpp_extension.load_inline, cpp_extension.CUDAExtension):
        with pytest.raises(RuntimeError, match=f"cpp_extension.{make.__name__}: expected code in Python"):
            make("fused", sources=["fused.cu"])


def test_small_namespaces() -> None:
    assert mt.cpu.is_available() and mt.cpu.device_count() == 1 and mt.cpu.current_device() == "cpu"
    mt.cpu.synchronize()
    assert mt.version.__version__ == mt.__version__ and mt.version.cuda is None and mt.version.hip is None
    assert mt.__version__.startswith("2.13.") and mt.__version__.endswith(f"+mortice.{mt.version.release}")
    assert mt.overrides.is_tensor_like(mt.ones(1)) and not mt.overrides.has_torch_function((mt.ones(1),))
    with pytest.raises(TypeError, match="no implementation found for 'mortice.add'"):
        mt.overrides.handle_torch_function(mt.add, ())
    assert mt.typename(mt.ones(1)).endswith("FloatTensor") and mt.typename(3) == "int" and not mt.is_storage(3)
    for name, what in (("export", "exporting programs"), ("nested", "nested tensors")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': {what} is left out|are left out"):
            getattr(mt, name)
    for old, new in (("symeig", "eigh"), ("solve", "solve"), ("lstsq", "lstsq")):
        with pytest.raises(AttributeError, match=f"no attribute '{old}': PyTorch has removed it. Use linalg.{new}$"):
            getattr(mt, old)


def test_distributed_says_that_it_is_not_available() -> None:
    assert not mt.distributed.is_available() and not mt.distributed.is_initialized()
    assert not mt.distributed.is_torchelastic_launched() and not isinstance(None, mt.distributed.ProcessGroup)
    for ask in (mt.distributed.get_rank, mt.distributed.get_world_size, mt.distributed.barrier):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()
    with pytest.raises(AttributeError, match="no attribute 'pipelining': training over several processes is left out"):
        _ = mt.distributed.pipelining
    with pytest.raises(NotImplementedError, match=r"distributed.is_available\(\)"):
        mt.distributed.ProcessGroup()
    with pytest.raises(ValueError, match="^all_reduce: Default process group has not been initialized"):
        mt.distributed.all_reduce(mt.ones(1), op=mt.distributed.ReduceOp.SUM)
    with pytest.raises(NotImplementedError, match="^init_process_group: training over several processes is left out"):
        mt.distributed.init_process_group("gloo", world_size=2, rank=0)


def test_hooks_in_a_dictionary_are_removed_by_their_handle() -> None:
    hooks: dict[int, str] = {}
    options: dict[int, str] = {}
    with mt.utils.hooks.RemovableHandle(hooks, extra_dict=options) as handle:
        hooks[handle.id], options[handle.id] = "hook", "option"
        other = mt.utils.hooks.RemovableHandle(hooks)
        hooks[other.id] = "other"
        assert handle.hooks_dict_ref() is hooks
    assert hooks == {other.id: "other"} and not options
    other.remove()
    other.remove()
    assert not hooks
    assert isinstance(mt.nn.ReLU().register_forward_hook(print), mt.utils.hooks.RemovableHandle)


def test_small_parts_that_libraries_ask_for() -> None:
    assert mt._C._get_tracing_state() is None
    mt._C._log_api_usage_once("a name")
    assert {mt._C.Graph, mt._C.Value, mt._C.Node} == {type(None)}  # for annotations of what an exporter hands over
    mt._assert_async(mt.tensor([2.0]))
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
        mt._assert_async(mt.tensor(False))
    with pytest.raises(RuntimeError, match="^too small$"):
        mt._assert_async(mt.tensor(0), "too small")
    devices, states = mt.utils.checkpoint.get_device_states(mt.ones(2, device="cpu"), 3)
    assert devices == states == []
    mt.utils.checkpoint.set_device_states([0], [mt.get_rng_state()])
    paths, keys = mt.utils._pytree._dict_flatten_with_keys({"a": 1, "b": 2})
    assert [(step.key, str(step), value) for step, value in paths] == [("a", "['a']", 1), ("b", "['b']", 2)]
    assert mt.utils._pytree._dict_unflatten([3, 4], keys) == {"a": 3, "b": 4}


def test_importing_mortice_loads_none_of_this() -> None:
    code = """
        import sys, mortice
        late = ("amp", "cpu", "cuda", "compiler", "distributions", "jit", "overrides", "settings", "testing", "accelerator",
                "backends.cuda", "backends.cudnn", "backends.flags")
        print([name for name in late if f"mortice.{name}" in sys.modules])
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=True
    )
    assert out.stdout == "[]\n"


# ---- testing ----


def test_assert_close_says_where_and_by_how_much() -> None:
    close = mt.testing.assert_close
    t = mt.tensor
    close({"a": [t([1.0]), 2], "b": None}, {"a": (t([1.0 + 1e-7]), 2), "b": None})
    close(t([float("nan")]), t([float("nan")]), equal_nan=True)
    for call, text in (
        (lambda: close(t([1.0, 2.0, 3.0]), t([1.0, 2.0, 4.0])), (
            "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\nGreatest absolute difference: 1.0 at index "
            "(2,) (up to 1e-05 allowed)\nGreatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)")),
        (lambda: close([1, {"x": 2}], [1, {"x": 3}]), (
            "Scalars are not equal!\n\nExpected 3 but got 2.\nAbsolute difference: 1\nRelative difference: "
            "0.3333333333333333\n\nThe failure occurred for item [1]['x']")),
        (lambda: close(t([1.0]), t([1.0], dtype=mt.float64)),
            "The values for attribute 'dtype' do not match: mortice.float32 != mortice.float64."),
        (lambda: close(t([1.0]), t([1.0, 2.0])),
            "The values for attribute 'shape' do not match: mortice.Size([1]) != mortice.Size([2])."),
        (lambda: close(1, 1.0), "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (lambda: close({"a": 1}, {"b": 1}), (
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\nAdditional keys in the actual "
            "mapping: ['a']")),
        (lambda: close([1], [1, 2]), "The length of the sequences mismatch: 1 != 2"),
        (lambda: close(True, False), "Booleans mismatch: True is not False"),
        (lambda: close(mt.ones(2, 3).to_sparse(), mt.ones(2, 3).to_sparse(1)),
            "The number of sparse dimensions in sparse COO tensors does not match: 2 != 1"),
        (lambda: close(t([2.0]), t([1.0]), msg="mine"), "mine"),
        (lambda: close(True, False, msg=lambda found: "so: " + found), "so: Booleans mismatch: True is not False"),
    ):  # fmt: skip
        with pytest.raises(AssertionError) as error:
            call()
        assert str(error.value) == text
    close(t([1.0]), t([1.0], dtype=mt.float64), check_dtype=False)
    close(t([1, 2], dtype=mt.uint64), t([1, 2]), check_dtype=False)  # which no integer dtype holds both
    for far, other in ((3, 2), (2**64 - 1, -1)):
        with pytest.raises(AssertionError, match="not equal"):
            close(t([far], dtype=mt.uint64), t([other]), check_dtype=False)
    mt.testing.assert_allclose(t([1.0]), [1.0])
    with pytest.raises(TypeError, match="No comparison pair"):
        close(t([1.0]), [1.0])
    with pytest.raises(ValueError, match="got no atol"):
        close(1.0, 1.0, rtol=0.1)


def test_numbers_of_numpy_are_close_to_pythons() -> None:
    np = pytest.importorskip("numpy")
    close = mt.testing.assert_close
    close(np.float32(1), 1.0)
    close([np.float32(1), np.bool_(True)], [1, True], check_dtype=False)
    with pytest.raises(AssertionError, match="Scalars are not close!"):
        close(np.float64(2), 1.0)
    with pytest.raises(TypeError, match="No comparison pair"):
        close(np.array(1.0), 1.0)


def test_make_tensor_makes_what_it_is_asked_for() -> None:
    make = mt.testing.make_tensor
    x = make((3, 4), dtype=mt.float32, low=-1, high=1, requires_grad=True)
    assert x.requires_grad and x.abs().max().item() <= 1
    assert not make(4, 4, dtype=mt.int64, noncontiguous=True).is_contiguous()
    assert bool((make(50, dtype=mt.uint8, exclude_zero=True) != 0).all()) and make(2, dtype=mt.bool).dtype is mt.bool
    for options, text in (
        ({"requires_grad": True}, "`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype="),
        ({"low": 5, "high": 5}, "`low` must be less than `high`, but got 5 >= 5"),
        ({"low": 300, "high": 400}, r"The value interval specified by `low` and `high` is \[300, 400\), but .* only supports \[0, 256\)"),
        ({"low": float("nan")}, "`low` and `high` cannot be NaN, but got low=nan and high=10"),
        ({"noncontiguous": True, "memory_format": mt.preserve_format}, "`noncontiguous` and `memory_format` are mutually exclusive"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            make(2, dtype=mt.uint8, **options)
    for dtype, value in ((mt.float32, 2.0), (mt.complex64, 2 + 2j)):
        with pytest.warns(FutureWarning, match="Passing `low==high`"):
            assert make(3, dtype=dtype, low=2, high=2).tolist() == [value] * 3
    assert make(50, dtype=mt.complex64, low=0, high=1e-40, exclude_zero=True).shape == (50,)
    wide = make(50, dtype=mt.float32, low=float("-inf"), high=float("inf"))
    assert bool(wide.isfinite().all()) and make(4, dtype=mt.float8_e5m2).dtype is mt.float8_e5m2
