"""What programs do on a GPU, with CuPy itself on a driver that does nothing: prints what failed, and what was launched.

Left out is what reads a result to go on (`unique`, `nonzero`), and what CuPy does by other libraries (the longest sorts, FFT).
"""

from __future__ import annotations

import copy
import io
import json
import sys
import threading
import traceback
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import stub

COUNTS = stub.install(Path(sys.argv[1]))
stub.plugin()

import cupy  # noqa: E402
import numpy as np  # noqa: E402

import mortice as mt  # noqa: E402
from mortice import cuda, nn  # noqa: E402
from mortice.nn import functional as F  # noqa: E402
from mortice_cuda_cupy import cublas  # noqa: E402
from mortice_cuda_cupy.kernels import build, launch, optim  # noqa: E402

FLOATS = (mt.float32, mt.float64, mt.float16, mt.bfloat16)
DTYPES = (*FLOATS, mt.int64, mt.int32, mt.int8, mt.uint8, mt.bool, mt.complex64)
_ONE = ("abs neg exp log sqrt sin tanh floor relu square sigmoid erf reciprocal isnan logical_not log1p expm1 rsqrt ceil trunc "
        "cos asin atan exp2 log2 sign round isfinite").split()  # fmt: skip
_TWO = "add sub mul div pow maximum minimum remainder floor_divide eq lt logical_and atan2 fmod".split()
_OF_REALS = set("floor relu ceil trunc sign round maximum minimum remainder floor_divide lt atan2 fmod erf logical_not isfinite "
                "log1p expm1 exp2 log2 rsqrt".split())  # fmt: skip
_NOT_OF_BOOLS = set("neg sub abs floor relu ceil trunc sign round square remainder floor_divide pow fmod".split())


def ones(*shape: int, dtype: Any = None, grad: bool = False) -> Any:
    return mt.ones(*shape, dtype=dtype or mt.float32, device="cuda", requires_grad=grad)


def elementwise(d: Any) -> None:
    x, row = ones(3, 4, dtype=d), ones(4, dtype=d)
    refused = (_OF_REALS if d.is_complex else set()) | (_NOT_OF_BOOLS if d is mt.bool else set())
    for name in sorted({*_ONE} - refused):
        for lying in (x, x.t(), x[:, ::2]):
            getattr(mt, name)(lying)
    for name in sorted({*_TWO} - refused):
        for y in (x, row, x.t().contiguous().t()):
            getattr(mt, name)(x, y)
    mt.where(x.bool(), x, 0), x * 2, x.masked_fill(x.bool(), 1), (2.5 * x if d.is_floating_point else x)
    for other in DTYPES if not d.is_complex else (d,):
        x.to(other)


def reductions(d: Any) -> None:
    for x in (ones(3, 4, dtype=d), ones(40_000, dtype=d), ones(2, 3, 4, dtype=d).transpose(0, 2)):
        x.sum(), x.sum(0), x.prod(), x.cumsum(0), x.cumprod(-1), mt.count_nonzero(x)
        if not d.is_complex:
            x.any(), x.all(-1), x.max(), x.amax(0), x.sum(-1, keepdim=True)
        if d is not mt.bool and not d.is_complex:
            x.argmax(), x.argmin(-1), x.min(0), x.cummax(0)
        if d.is_floating_point:
            x.mean(), x.var(-1), x.norm(), x.std(), mt.logsumexp(x, 0), mt.softmax(x, 0), mt.log_softmax(x, -1)


def movement(d: Any) -> None:
    x, at = ones(3, 4, dtype=d), mt.zeros(3, 4, dtype=mt.int64, device="cuda")
    x.t().contiguous(), x.reshape(2, 6), x.t().reshape(12), x.t().clone(), mt.cat([x, x], 1), mt.stack([x] * 9), x[1], x[:, 1:]
    x.flip(0), x.repeat(2, 2), x.expand(2, 3, 4).contiguous(), x.tril(), x.diagonal(), x.unfold(1, 2, 1), x[at[0]]
    x.gather(1, at), x.index_select(0, at[0])
    x.scatter(0, at, x), x.index_copy(0, at[0, :1], x[:1]), x.take_along_dim(at, 1), x.view(mt.uint8), x.clone().index_fill_(0, at[0], 1)
    if d is not mt.bool:
        x.scatter_add(0, at, x), x.index_add(0, at[:, 0], x), x.index_put((at[0],), x[:1].expand(4, 4), accumulate=True)
    y = x.clone()
    y[0], y[:, 1] = 1, y[:, 2]
    y.fill_(0), y.zero_(), mt.full((2,), 1, dtype=d, device="cuda"), x.cpu(), mt.ones(2, dtype=d).cuda(), x.tolist(), str(x)
    if d in FLOATS or d is mt.complex64:
        x @ x.t(), x.t() @ x, ones(2, 4, 3, dtype=d) @ ones(3, dtype=d), mt.bmm(ones(2, 4, 3, dtype=d), ones(2, 3, 4, dtype=d))
        mt.einsum("ij,kj->ik", x, x), mt.zeros(0, 4, dtype=d, device="cuda") @ x.t()
    if d in FLOATS or d in (mt.int64, mt.uint8):
        x.sort(0), x.argsort(), x.topk(2)


def layers(d: Any) -> None:
    x = ones(2, 4, 8, 8, dtype=d, grad=True)
    model = nn.Sequential(
        nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.ConvTranspose2d(6, 4, 2, 2), nn.GroupNorm(2, 4),
        nn.GELU(), nn.AvgPool2d(2), nn.SiLU(), nn.LeakyReLU(), nn.ELU(), nn.Softplus(), nn.Hardswish(), nn.Hardtanh(), nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5), nn.LayerNorm(5), nn.RMSNorm(5), nn.Softmax(1),
    ).to("cuda", d)  # fmt: skip
    model(x).sum().backward()
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        kind(3, 4, 2, bidirectional=True).to("cuda", d)(ones(5, 2, 3, dtype=d))[0].sum().backward()
    for length in (4, 32):
        q = ones(2, 2, length, 8, dtype=d, grad=True)
        for how in ({}, {"is_causal": True}, {"attn_mask": ones(length, length, dtype=mt.bool)}, {"dropout_p": 0.3}):
            F.scaled_dot_product_attention(q, q, q, **how).sum().backward()
    x, y = ones(4, 5, dtype=d, grad=True), mt.zeros(4, dtype=mt.int64, device="cuda")
    for reduction in ("none", "mean", "sum"):
        F.cross_entropy(x, y, reduction=reduction, label_smoothing=0.1).sum().backward()
    F.mse_loss(x, x.detach()).backward(), F.embedding(y, ones(7, 5, dtype=d, grad=True)).sum().backward()


def optimisers(d: Any) -> None:
    for name in "SGD Adam AdamW Adamax NAdam RAdam RMSprop Adagrad Adadelta Rprop ASGD".split():
        for options in ({}, {"capturable": True}):
            if name in ("Adagrad", "SGD") and options:
                continue
            parameters = [nn.Parameter(ones(3, 4, dtype=d)), nn.Parameter(ones(5, dtype=d))]
            optimiser = getattr(mt.optim, name)(parameters, lr=0.01, **options)
            for _ in range(2):
                for p in parameters:
                    p.grad = mt.ones_like(p)
                nn.utils.clip_grad_norm_(parameters, 1.0)
                optimiser.step(), optimiser.zero_grad(set_to_none=False)


def drawn(d: Any) -> None:
    mt.rand(5, dtype=d, device="cuda"), mt.randn(5, dtype=d, device="cuda"), F.dropout(ones(5, dtype=d)), ones(5, dtype=d).exponential_()
    ones(5, dtype=d).uniform_(-1, 1), mt.randint(0, 5, (3,), device="cuda")


def mixed() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
    optimiser, scaler = mt.optim.Adam(model.parameters()), mt.amp.GradScaler("cuda")
    for dtype in (mt.float16, mt.bfloat16):
        with mt.autocast("cuda", dtype):
            loss = model(ones(3, 4)).sum()
        scaler.scale(loss).backward(), scaler.unscale_(optimiser), scaler.step(optimiser), scaler.update(), optimiser.zero_grad()


def streams() -> None:
    side, first = cuda.Stream(), cuda.Stream(priority=-1)
    with cuda.stream(side):
        x = ones(5) + 1
        x.record_stream(first)
    del x
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    start.record(), end.record(side), end.synchronize(), end.query(), start.elapsed_time(end), side.wait_event(start)
    side.wait_stream(first), side.synchronize(), side.query(), cuda.synchronize(), cuda.ExternalStream(side.cuda_stream)
    cuda.current_stream().wait_stream(side)


class _Aloof:
    """What other libraries leave lying about, for the collector of garbage to list."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("nobody asks what this is")


def captured() -> None:
    here = _Aloof()
    model, x, graph = nn.Linear(4, 4, device="cuda"), ones(2, 4), cuda.CUDAGraph()
    table, many = ones(7, 4, grad=True), mt.zeros(5000, dtype=mt.int64, device="cuda")
    optimiser = mt.optim.SGD([*model.parameters(), table], lr=0.1)

    def step() -> None:
        (model(x).sum() + mt.rand(3, device="cuda").sum() + F.embedding(many, table).sum()).backward(), optimiser.step()

    with cuda.stream(cuda.Stream()):
        step(), step()
    with cuda.graph(graph):
        step()
    graph.replay(), cuda.max_memory_allocated(), graph.reset()
    del here


def memory() -> None:
    cuda.empty_cache(), cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    x = mt.empty(1 << 20, device="cuda")
    assert cuda.memory_allocated() - before == 4 << 20
    del x
    y = mt.empty(1 << 18, device="cuda")
    assert cuda.max_memory_allocated() - before == 4 << 20 and cuda.max_memory_reserved() >= 4 << 20 and y.numel()
    cuda.memory_stats(), cuda.memory_summary(), cuda.mem_get_info(), cuda.get_device_properties(), cuda.set_per_process_memory_fraction(0.9)
    assert 0.89 < cuda.get_per_process_memory_fraction() < 0.91 and cuda.memory_stats_as_nested_dict()["allocated_bytes"]
    cuda.memory_snapshot(), cuda.device_memory_used(), cuda.caching_allocator_delete(cuda.caching_allocator_alloc(1000))
    try:
        mt.empty(1 << 40, device="cuda")
    except cuda.OutOfMemoryError:
        return
    raise AssertionError("there cannot be so much memory")


def profiled() -> None:
    with cuda.profiler.profile(), cuda.nvtx.range("step {}", 3):
        cuda.nvtx.mark("here"), cuda.nvtx.range_end(cuda.nvtx.range_start("a")), cuda.nvtx.range_push("b"), cuda.nvtx.range_pop()
    cuda.cudart().cudaProfilerStart(), cuda.cudart().cudaProfilerStop()


def of_the_host() -> None:
    x = mt.ones(4).pin_memory()
    assert x.is_pinned() and not mt.ones(4).is_pinned()
    y = x.to("cuda", non_blocking=True)
    assert y.tolist() == [1] * 4
    next(iter(mt.utils.data.DataLoader([(mt.ones(2), 1)] * 4, batch_size=2, pin_memory=True)))


def shared() -> None:
    x, file = ones(4), io.BytesIO()
    for y in (cupy.from_dlpack(x), cupy.asarray(x)):
        assert y.data.ptr == x.data_ptr() and mt.from_dlpack(y).data_ptr() == mt.as_tensor(y).data_ptr() == x.data_ptr()
    mt.save(x, file), file.seek(0), mt.load(file), copy.deepcopy(x), x.untyped_storage()


def threads() -> None:
    failed: list[Exception] = []

    def run() -> None:
        try:
            nn.Linear(4, 4, device="cuda")(ones(2, 4)).sum().backward()
        except Exception as error:
            failed.append(error)

    for thread in [threading.Thread(target=run) for _ in range(2)]:
        thread.start(), thread.join()
    if failed:
        raise failed[0]


def short_cuts() -> None:
    """What is quicker than CuPy's own ways is really taken, and gives what these give."""
    make = launch.array_maker()
    assert make is not cupy.empty and cublas.quick("gemmEx") and cublas.quick("gemmStridedBatchedEx")
    for dtype in map(np.dtype, ("f4", "f2", "i8", "?", "c8", mt.ones(1, dtype=mt.bfloat16, device="cuda")._buffer.dtype)):
        for shape in ((), (0, 3), (2, 3), (5,)):
            made, law = make(shape, dtype), cupy.empty(shape, dtype)
            for name in ("shape", "strides", "dtype", "size", "nbytes", "base", "_c_contiguous", "_f_contiguous"):
                assert getattr(made, name) == getattr(law, name), name
            assert type(made) is cupy.ndarray
    assert type(optim._by_value()(array("q", [1]))).__name__ == "CPointer"
    backend = ones(1).device.backend
    views = [name for name in dir(type(backend)) if isinstance(vars(type(backend)).get(name), type(cupy.ndarray.reshape))]
    assert not views, f"methods of another class are bound to the backend: {views}"


def launches() -> None:
    """What a launch is told is written where the driver looks for it, in each thread and by each way."""
    x, memory = ones(3)._buffer, launch.scratch(100)
    kernel = launch.Program("elementwise.cu", "fill<u64>", types=launch.FLOATS).get(launch.float32, "fill<u64>")
    run = launch.launcher(kernel, (2, 3), (32, 4), "xo=m=fiw==", 7, None, 0.5, np.bool_(True))
    wanted = [x.data.ptr, 0, 7, memory.ptr, 0, 0xBFF8 << 48, (1 << 64) - 3, 1 << 63, 0x3FE0 << 48, 1]
    assert stub.parameters(lambda: run(x, None, memory, -1.5, -3, 1 << 63), 10) == wanted
    assert stub.parameters(lambda: run(x, x, memory, -1, -3, np.uint64(1 << 63)), 2) == [x.data.ptr] * 2
    series = launch.launcher(kernel, (2,), (32,), "sxs=i", 9)(x, None)
    assert stub.parameters(lambda: series(x, 4), 5) == [x.data.ptr, x.data.ptr, 0, 9, 4]
    # What launches in between, as a signal's handler may, does not leave its words to the launch that it came into.
    between = [lambda: run(x, None, memory, -1.5, -3, 1 << 63)]

    class Number:
        def __index__(self) -> int:
            while between:
                between.pop()()
            return 4

    assert stub.parameters(lambda: series(x, Number()), 5) == [x.data.ptr, x.data.ptr, 0, 9, 4]
    # The same as CuPy hands over itself.
    assert stub.parameters(lambda: kernel((2,), (32,), (x, 7, 0.5)), 3) == [x.data.ptr, 7, 0x3FE0 << 48]
    kernel_module = cupy.cuda.Module()
    kernel_module.load(b"nothing")
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(stub.parameters(lambda: series(x, 5), 5)))
    other.start(), other.join()
    assert found == [[x.data.ptr, x.data.ptr, 0, 9, 5]]
    # With several devices each has the kernel of its own, and is asked for at every launch.
    loaded, current = [], [0]
    everywhere = build.Everywhere(lambda index: (loaded.append(index), kernel_module.get_function("another"))[1])
    everywhere._device = lambda: current[0]
    run, many = launch.launcher(everywhere, (2,), (32,), "x=", 5), launch.launcher(everywhere, (2,), (32,), "s=i", 6)
    for current[0] in (0, 1, 0):
        assert stub.parameters(lambda: run(x), 2) == [x.data.ptr, 5]
        assert stub.parameters(lambda: many(x)(3), 3) == [x.data.ptr, 6, 3]
    assert loaded == [0, 1]


def uses() -> Iterator[tuple[str, Callable[[], None]]]:
    for use in (short_cuts, launches, memory, streams, captured, profiled, of_the_host, shared, threads, mixed):
        yield use.__name__, use
    for use, dtypes in (
        (elementwise, DTYPES), (reductions, DTYPES), (movement, DTYPES), (layers, FLOATS), (optimisers, FLOATS), (drawn, FLOATS),
    ):  # fmt: skip
        for d in dtypes:
            yield f"{use.__name__} {d}", lambda use=use, d=d: use(d)  # type: ignore[misc]


def launched() -> dict[str, int]:
    """Return what a training step launches."""
    with mt.device("cuda"):
        model, x, y = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)), ones(64, 784), mt.zeros(64, dtype=mt.int64)
    optimiser = mt.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        before = {name: count.value for name, count in COUNTS.items()}
        optimiser.zero_grad(), F.cross_entropy(model(x), y).backward(), optimiser.step()
    return {name: count.value - before[name] for name, count in COUNTS.items()}


failed = []
for name, use in uses():
    try:
        use()
    except Exception:
        failed.append(f"{name}\n{traceback.format_exc()}")
print(json.dumps({"failed": failed, "launched": launched()}))
