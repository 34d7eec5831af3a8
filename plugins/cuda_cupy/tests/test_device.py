"""What a CUDA device promises beyond kernels: on a GPU where one is, on the stand-in through `test_emulated`."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import mortice as mt
from mortice import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no GPU here; test_emulated runs these on the stand-in")
several = pytest.mark.skipif(cuda.device_count() < 2, reason="takes two GPUs")


def backend() -> Any:
    return mt.ones(1, device="cuda").device.backend


# ---- devices ----


def test_tensors_are_made_and_moved() -> None:
    x = mt.arange(6.0, device="cuda").reshape(2, 3)
    assert str(x.device) == "cuda:0" and x.is_cuda and x.get_device() == 0
    assert x.cpu().tolist() == [[0, 1, 2], [3, 4, 5]] and x.T.cpu().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert cuda.get_device_name() and cuda.get_device_properties().total_memory > 0
    with pytest.raises(RuntimeError, match="cuda"):
        x + mt.ones(2, 3)


def test_diagonals_and_windows_are_views() -> None:
    x = mt.zeros(2, 3, device="cuda")
    x.diagonal(1).add_(5)
    x.unfold(1, 2, 2)[:, 0, 0] = 7
    mt.eye(2, device="cuda").diagonal(-2).add_(1)
    bits = mt.zeros(2, 2, dtype=mt.int32, device="cuda")
    bits[:, 1:].view(mt.uint8)[0, 0] = 7
    assert bits.tolist() == [[0, 7], [0, 0]]
    assert x.tolist() == [[7, 5, 0], [7, 0, 5]] and x.diagonal(-1).untyped_storage() == x.untyped_storage()


def test_copies_of_repeated_elements_lie_row_by_row() -> None:
    x = mt.arange(6.0, device="cuda").reshape(2, 3).expand(4, 2, 3)
    assert x.double().is_contiguous() and x.half().stride() == x.clone().stride() == (6, 3, 1)
    for d in (mt.float32, mt.bfloat16, mt.int64, mt.bool):  # nothing at all, too
        y = mt.ones(2, 3, device="cuda").to(d)
        assert y[1:].clone().tolist() == [[1] * 3] and y.T.clone().tolist() == [[1, 1]] * 3 and y[:0].clone().shape == (0, 3)
        assert mt.zeros(0, 3, dtype=d, device="cuda").shape == (0, 3) and mt.zeros(2, dtype=d, device="cuda").tolist() == [0, 0]


@several
def test_each_kernel_runs_where_its_operands_are() -> None:
    with cuda.device(1):
        assert str(mt.ones(1, device="cuda").device) == "cuda:1"
    x = mt.randn(4, 3, device="cuda:1", requires_grad=True)
    y = (x @ x.T).softmax(-1).sum() + mt.nn.functional.gelu(x).sort(0).values.sum() + mt.cat([x, x]).cumsum(0)[0, 0]
    y.backward()
    assert str(y.device) == str(x.grad.device) == "cuda:1"
    with pytest.raises(RuntimeError, match="cuda:0"):
        x + mt.ones(4, 3, device="cuda:0")


@several
def test_peers_exchange_tensors_and_gradients() -> None:
    x = mt.arange(5.0, device="cuda:0", requires_grad=True)
    y = x.to("cuda:1")
    (y * y).sum().backward()
    assert str(y.device) == "cuda:1" and x.grad.tolist() == [0, 2, 4, 6, 8]
    assert x[::2].to("cuda:1").tolist() == [0, 2, 4]
    assert isinstance(cuda.can_device_access_peer(0, 1), bool)


# ---- streams ----


def test_streams_wait_for_each_other_and_events_take_the_time() -> None:
    side, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert side.cuda_stream != 0 and side != cuda.default_stream() == cuda.current_stream()
    x = mt.ones(1000, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        assert cuda.current_stream() is side
        start.record()
        y = x * 2
        end.record()
    assert cuda.current_stream() == cuda.default_stream()
    cuda.current_stream().wait_event(end)
    end.synchronize()
    assert end.query() and side.query() is not None and start.elapsed_time(end) >= 0 and y.sum().item() == 2000
    side.synchronize(), cuda.synchronize()
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(cuda.Event(enable_timing=True))


def test_the_current_stream_is_the_librarys() -> None:
    import cupy

    side = cuda.Stream()
    with cuda.stream(side):
        assert cupy.cuda.get_current_stream().ptr == side.cuda_stream == side.__cuda_stream__()[1]
    assert cupy.cuda.get_current_stream().ptr == 0


# ---- memory ----


def test_reading_what_lies_in_another_order_leaves_the_stream_as_it_is() -> None:
    import cupy

    x, side = mt.arange(6.0, device="cuda").reshape(2, 3), cuda.Stream()
    with cuda.stream(side):
        assert x.T.tolist() == [[0, 3], [1, 4], [2, 5]] and x[:, ::2].cpu().tolist() == [[0, 2], [3, 5]]
        assert cupy.cuda.get_current_stream().ptr == side.cuda_stream != 0


def test_memory_is_counted_with_its_peak() -> None:
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    x = mt.zeros(1 << 18, device="cuda")
    assert cuda.memory_allocated() >= before + (1 << 20)
    del x
    assert cuda.memory_allocated() == before and cuda.max_memory_allocated() >= before + (1 << 20)
    assert cuda.memory_reserved() >= 1 << 20
    cuda.empty_cache()
    assert cuda.memory_reserved() < cuda.max_memory_reserved()
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == before
    free, total = cuda.mem_get_info()
    assert 0 < free <= total


@pytest.mark.seed("CU03")
def test_a_limit_is_kept_and_the_error_is_pytorchs() -> None:
    total = cuda.get_device_properties().total_memory
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction(4096 / total)
    try:
        amounts = r"[Oo]ut of memory allocating 4,194,304 bytes \(allocated so far.* bytes [\d,]+ are free"
        with pytest.raises(cuda.OutOfMemoryError, match=amounts):
            mt.zeros(1 << 20, device="cuda")
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    assert mt.zeros(1 << 20, device="cuda").sum().item() == 0


def test_pinned_memory_is_found_out_and_copied_later() -> None:
    x = mt.arange(12.0).reshape(3, 4)
    assert not x.is_pinned()
    p = x.T.pin_memory()
    assert p.is_pinned() and p.tolist() == x.T.tolist() and p.pin_memory() is p and p.device.type == "cpu"
    y = p.to("cuda", non_blocking=True)
    z = mt.empty(4, 3, device="cuda").copy_(p, non_blocking=True)
    cuda.synchronize()
    assert y.tolist() == z.tolist() == p.tolist()
    q = p.cuda()
    p.zero_()
    assert q.tolist() == x.T.tolist()  # a copy that blocks has read all of it
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        q.pin_memory()
    assert mt.ones(0).pin_memory().shape == (0,)


def test_a_loader_pins_its_batches() -> None:
    from mortice.utils.data import DataLoader, TensorDataset

    data = TensorDataset(mt.arange(6.0), mt.arange(6))
    for x, y in DataLoader(data, batch_size=2, pin_memory=True):
        assert x.is_pinned() and y.is_pinned() and x.cuda(non_blocking=True).tolist() == y.tolist()


# ---- other libraries ----


def test_cupy_and_mortice_see_the_same_memory() -> None:
    import cupy

    x = mt.zeros(2, 3, device="cuda")
    y = cupy.from_dlpack(x)
    y[0, 1] = 5.0
    assert x[0, 1].item() == 5 and x.__dlpack_device__() == (2, 0)
    z = mt.from_dlpack(y)
    z[1, 2] = 7.0
    assert x[1, 2].item() == 7 and z.data_ptr() == x.data_ptr() and str(z.device) == "cuda:0"
    side = cuda.Stream()
    with cuda.stream(side):
        assert mt.from_dlpack(y.T).data_ptr() == x.data_ptr()
    half = mt.ones(3, dtype=mt.bfloat16, device="cuda")
    assert mt.from_dlpack(cupy.from_dlpack(half)).dtype is mt.bfloat16


def test_the_interface_of_cuda_arrays_describes_the_memory() -> None:
    x = mt.arange(12.0, device="cuda").reshape(3, 4)
    shown = x.T.__cuda_array_interface__
    assert shown["shape"] == (4, 3) and shown["strides"] == (4, 16) and shown["typestr"] == "<f4"
    assert shown["data"] == (x.data_ptr(), False)
    with pytest.raises(TypeError):
        np.asarray(x)


def test_an_object_with_only_the_interface_is_shared() -> None:
    x = mt.arange(4.0, device="cuda")

    class Foreign:
        __cuda_array_interface__ = x.__cuda_array_interface__

    y = mt.as_tensor(Foreign())
    assert str(y.device) == "cuda:0" and y.data_ptr() == x.data_ptr() and y.tolist() == [0, 1, 2, 3]
    z = mt.tensor(Foreign(), dtype=mt.float64)
    assert z.dtype is mt.float64 and z.data_ptr() != x.data_ptr()


def test_streams_of_other_libraries_are_shown() -> None:
    import cupy

    theirs = cupy.cuda.Stream(non_blocking=True)
    ours = cuda.ExternalStream(theirs.ptr)
    with cuda.stream(ours):
        assert cupy.cuda.get_current_stream().ptr == theirs.ptr and mt.ones(3, device="cuda").sum().item() == 3
    assert cuda.get_stream_from_external(theirs.ptr) == ours


# ---- products ----


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64, mt.complex64, mt.int32, mt.uint8])
def test_products_of_all_layouts_are_right(dtype: Any) -> None:
    mt.manual_seed(0)
    a = mt.randint(0, 5, (3, 4, 5)).to(dtype)
    b = mt.randint(0, 5, (3, 5, 2)).to(dtype)
    cases = [
        (a, b), (a[0], b[0]), (a[0, 0], b[0]), (a, b[0, :, 0]), (a, b[:1]), (a[:1].expand(3, 4, 5), b),
        (a.transpose(1, 2).contiguous().transpose(1, 2), b), (a[:, ::2], b), (a[:, :, ::2], b[:, ::2]), (a[::2], b[::2]),
        (a.flip(0), b), (a[:, None], b[None]), (a[:, :0], b), (a[:, :, :0], b[:, :0]), (a[0, 0], b[0, :, 0]),
        (a[0], b.transpose(1, 2).contiguous().transpose(1, 2)), (a[:, :1], b), (a, b[:, :, :1]), (a[:, :, :0], b[0, :0]),
        (a, b[0]), (a[0, 0, ::2], b[0, ::2]), (a.transpose(0, 1), b[0]), (a[:, None].expand(3, 2, 4, 5), b[:, None]),
    ]  # fmt: skip
    for x, y in cases:
        got, expected = (x.cuda() @ y.cuda()).cpu(), x @ y
        assert got.dtype is expected.dtype and got.shape == expected.shape and got.tolist() == expected.tolist()


def test_the_precision_of_float32_products_follows_the_switch() -> None:
    x = mt.full((8, 8), 1 + 2.0**-12, device="cuda")
    exact = (x @ x)[0, 0].item()
    assert abs(exact - 8 * (1 + 2.0**-12) ** 2) < 1e-5
    try:
        mt.backends.cuda.matmul.allow_tf32 = True
        assert abs((x @ x)[0, 0].item() - 8) < 1e-5  # TF32 keeps 10 bits after the point
        assert (x.double() @ x.double())[0, 0].item() == 8 * (1 + 2.0**-12) ** 2
    finally:
        mt.set_float32_matmul_precision("highest")
    assert (x @ x)[0, 0].item() == exact


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64])
def test_affine_maps_are_right_in_one_launch_and_in_two(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    linear = mt.nn.functional.linear
    whole = lambda *shape: mt.randint(-3, 4, shape).to(dtype)
    mt.manual_seed(0)
    x, w, b, loose = whole(3, 4, 8), whole(6, 8), whole(6), whole(100)
    cases = [(x, w, b), (x[0], w, whole(6)), (x[0, 0], w, b), (x[:, ::2], w, b), (x[:, :, ::2], w[:, ::2], b), (x[:0], w, b),
             (x, w[:1], b[:1]), (x, whole(8, 6).t(), b), (x[0].t().contiguous().t(), w, b), (x, w, loose[1:7]),
             (x, w, loose[:12:2])]  # fmt: skip

    def check() -> None:
        for operands in cases:
            # Views stay views, and what begins at an odd place does there too.
            moved = [t._base.cuda().as_strided(t.shape, t.stride(), t.storage_offset()) if t._is_view() else t.cuda() for t in operands]
            got, expected = linear(*moved).cpu(), linear(*operands)
            assert got.dtype is expected.dtype and got.shape == expected.shape and got.tolist() == expected.tolist()

    check()
    from mortice_cuda_cupy import affine

    monkeypatch.setattr(affine._Plan, "launch", lambda *_: 15)  # an algorithm that does not run after all
    check()


# ---- what CuPy does otherwise ----


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64])
def test_whole_powers_of_two_are_exact(dtype: Any) -> None:
    x = mt.arange(-1100, 1100).to(dtype)
    wanted = [math.ldexp(1.0, i) for i in range(-1074, 1024)]
    wanted = mt.tensor([0.0] * 26 + wanted + [math.inf] * 76, dtype=mt.float64).to(dtype).tolist()
    assert mt.exp2(x.cuda()).tolist() == wanted and (2.0 ** x.cuda()).tolist() == wanted
    assert mt.exp2(x[:1].cuda() * math.inf).tolist() == [0.0] and (2.0 ** mt.full((1,), math.nan, device="cuda")).isnan().all()


def test_zeros_keep_their_sign() -> None:
    x = mt.full((2,), -0.0, device="cuda")
    x[1] = 0.0
    assert mt.signbit(x).tolist() == [True, False]
    x[1] = -0.0
    z = mt.full((1,), complex(0.0, -0.0), device="cuda")
    assert mt.signbit(x).tolist() == [True, True] and mt.signbit(mt.view_as_real(z)).tolist() == [[False, True]]


def test_remainders_and_quotients_are_exact() -> None:
    inf, nan = float("inf"), float("nan")
    x = [5.0, -5.0, 5.0, -5.0, 7.0, 1e30, 0.0, inf, 3.0, nan, -0.0, 1.0]
    y = [inf, inf, -inf, 3.0, -2.0, 7.0, -3.0, 2.0, 0.0, 1.0, 2.0, 0.1]
    for dtype in (mt.float32, mt.float64, mt.float16):
        a, b = mt.tensor(x, dtype=mt.float64).to(dtype), mt.tensor(y, dtype=mt.float64).to(dtype)
        for f in (mt.remainder, mt.floor_divide):
            got, expected = f(a.cuda(), b.cuda()).cpu(), f(a, b)
            assert repr(got.tolist()) == repr(expected.tolist())


def test_the_first_nan_is_the_largest() -> None:
    x = mt.tensor([[1.0, float("nan"), 3.0, float("nan")], [4.0, 2.0, 4.0, 1.0]], device="cuda")
    assert x.argmax(1).tolist() == [1, 0] and x.argmax().item() == 1


def test_indices_are_refused_when_the_answer_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from mortice_cuda_cupy import late

    looks, later = late._looks, []
    x, table = mt.tensor([1, 9], device="cuda"), mt.ones(3, 2, device="cuda")
    logits = mt.zeros(2, 3, device="cuda")

    class Later:
        def __getitem__(self, known: Any) -> Any:
            return lambda *given: later.append((looks[known], given))

    monkeypatch.setattr(late, "_looks", Later())
    for refused, text in (
        (lambda: mt.nn.functional.embedding(x, table), "embedding: index out of range in self; got 9 for 3 rows."),
        (lambda: mt.nn.functional.cross_entropy(logits, x), "cross_entropy: Target 9 is out of bounds for 3 classes."),
        (lambda: table.index_select(0, x), "index_select: index 9 is out of bounds for dimension 0 with size 3"),
        (lambda: table[x], "index: index 9 is out of bounds for dimension 0 with size 3"),
    ):
        refused()
        mt.nn.functional.cross_entropy(logits, mt.tensor([-100, 2], device="cuda"))  # nothing wrong
        assert table.sum().item() == 6.0
        while later:
            look, given = later.pop(0)
            look(*given)
        with pytest.raises(IndexError, match=re.escape(text)) as caught:
            table.sum().item()
        assert "came earlier" in caught.value.__notes__[0]
        mt.cuda.synchronize()


def test_many_indices_are_refused() -> None:
    for dtype in (mt.int32, mt.int64):
        x = mt.arange(70_000, device="cuda").to(dtype) % 5
        assert mt.nn.functional.embedding(x, mt.ones(5, 1, device="cuda")).sum().item() == 70_000
        with pytest.raises(IndexError, match="got 4 for 4 rows"):
            mt.nn.functional.embedding(x, mt.ones(4, 1, device="cuda"))
    labels = mt.where(x == 4, -100, x).to(mt.int64)
    assert mt.nn.functional.cross_entropy(mt.zeros(70_000, 4, device="cuda"), labels).item() > 1
    with pytest.raises(IndexError, match="Target 4"):
        mt.nn.functional.cross_entropy(mt.zeros(70_000, 4, device="cuda"), x.to(mt.int64))


@pytest.mark.parametrize("dtype", [mt.int32, mt.int64])
@pytest.mark.parametrize("count", [1, 40, 5000, 70_001])
def test_the_first_index_that_is_outside_is_named(count: int, dtype: Any) -> None:
    read = lambda where: mt.nn.functional.embedding(where, mt.ones(5, 1, device="cuda")).sum().item()
    for at in {0, count // 3, count - 1}:
        x = mt.full((count,), 2, dtype=dtype)
        assert read(x.cuda()) == count
        x[at], x[at + 1 : at + 2], x[at + 2 :] = 7, 9, -9
        with pytest.raises(IndexError, match="got 7 for 5 rows"):
            read(x.cuda())


@several
def test_a_stream_of_another_device_brings_that_device() -> None:
    side = cuda.Stream("cuda:1")
    with cuda.stream(side):
        x = mt.ones(2, device="cuda") + 1
        assert x.get_device() == 1 == cuda.current_device() and cuda.current_stream() == side
    assert cuda.current_device() == 0 and cuda.current_stream() == cuda.default_stream()
    assert cuda.current_stream(1) == cuda.default_stream(1)


# ---- several devices in one process ----


@several
def test_a_module_is_replicated_and_shares_the_batch() -> None:
    nn = mt.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh())
            self.again, self.more = self.inner[0], nn.ParameterList([nn.Parameter(mt.ones(2))])
            self.rnn, self.seen = nn.LSTM(4, 2), []

        def forward(self, x: Any, scale: Any = None) -> Any:
            self.seen.append((x.device.index, self.again.weight.device.index, mt.zeros(1, device="cuda").device.index))
            y = self.rnn(self.inner(x))[0] * self.more[0]
            return {"y": y if scale is None else y * scale[:, None]}

    model, x, scale = Model().cuda().eval(), mt.randn(7, 3), mt.arange(7.0)
    shared = nn.DataParallel(model)
    y = shared(x, scale=scale)["y"]
    y.square().sum().backward()
    assert y.device.index == 0 and y.shape == (7, 2) and model.seen == [(0, 0, 0), (1, 1, 1)]
    found = [p.grad for p in model.parameters()]
    model.zero_grad()
    wanted = mt.cat([model(a.cuda(), b.cuda())["y"] for a, b in zip(x.split([4, 3]), scale.split([4, 3]))])
    wanted.square().sum().backward()
    for f, w in zip([y, *found], [wanted, *[p.grad for p in model.parameters()]]):
        assert mt.allclose(f, w, atol=1e-5)
    assert shared(x[:1])["y"].shape == (1, 2)  # too few for two
    assert nn.DataParallel(nn.Linear(3, 1), [1])(x).device.index == 1
    first, second = nn.parallel.replicate(model, [0, 1])
    assert first.inner[1].running_mean is model.inner[1].running_mean and second.again is second.inner[0]
    assert not list(second.parameters()) and second.again.weight.grad_fn is not None
    assert nn.parallel.replicate(model, [1], detach=True)[0].again.weight.requires_grad is False


@several
def test_tensors_go_between_devices() -> None:
    a, b = mt.arange(6.0, device="cuda:0").reshape(3, 2), mt.ones(3, 2, device="cuda:1")
    comm, nccl = cuda.comm, cuda.nccl
    assert [x.device.index for x in comm.broadcast(a, [1, 0])] == [1, 0] and comm.broadcast(a, out=[b])[0] is b
    assert b.tolist() == a.tolist()
    rows = comm.broadcast_coalesced([a, a[0]], [0, 1])
    assert [[x.device.index for x in row] for row in rows] == [[0, 0], [1, 1]]
    assert comm.reduce_add([a, b], 1).tolist() == (a + a).tolist() and comm.reduce_add_coalesced(rows)[1].tolist() == [0, 2]
    parts = comm.scatter(a, [0, 1], [1, 2])
    assert [(x.device.index, x.tolist()) for x in parts] == [(0, [[0, 1]]), (1, [[2, 3], [4, 5]])]
    assert comm.gather(parts, 0, 1).tolist() == a.tolist() and comm.gather([a, b], -1, -1).device.type == "cpu"
    assert comm.scatter(a, out=[mt.empty(2, 2, device="cuda:1"), mt.empty(1, 2)])[1].tolist() == [[4, 5]]
    nccl.all_reduce([a, b])
    assert a.tolist() == b.tolist() == [[0, 2], [4, 6], [8, 10]] and not nccl.is_available([a])
    nccl.all_gather([a[0], b[1]], [both := mt.empty(2, 2, device="cuda:1")])
    nccl.reduce_scatter([a, b], [of_each := mt.empty(3), mt.empty(3)])
    assert both.tolist() == [[0, 2], [4, 6]] and of_each.tolist() == [0, 4, 8]
    with pytest.raises(ValueError, match=r"^reduce_add: expected tensors of one shape; got \[\(2,\), \(3, 2\)\]"):
        comm.reduce_add([a, a[0]])
    with pytest.raises(RuntimeError, match="^broadcast: expected either devices or out; got devices=None and out=None"):
        comm.broadcast(a)


# ---- what the allocator and the host are asked ----


def test_the_allocator_is_asked() -> None:
    x = mt.ones(1000, device="cuda")
    nested, flat = cuda.memory_stats_as_nested_dict(), cuda.memory_stats()
    assert nested["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"] >= x.nbytes
    (segment, *_), before = cuda.memory_snapshot(), cuda.memory_allocated()
    assert segment["allocated_size"] == before and cuda.get_allocator_backend() == "native" and cuda.device_memory_used() >= 0
    address = cuda.caching_allocator_alloc(5000)
    assert cuda.memory_allocated() >= before + 5000
    cuda.caching_allocator_delete(address)
    assert cuda.memory_allocated() == before
    with pytest.raises(RuntimeError, match="expected what caching_allocator_alloc has returned; got 0x7b"):
        cuda.caching_allocator_delete(123)
    assert cuda.get_per_process_memory_fraction() == 1
    cuda.set_per_process_memory_fraction(0.5)
    try:
        assert cuda.get_per_process_memory_fraction() == 0.5
    finally:
        backend().limit_memory(0, x.device)
    assert cuda.MemPool(None, use_on_oom=False).id is not None and cuda.Stream().device_index == 0
    assert not hasattr(cuda, "no_such_name")


def test_waiting_for_values_is_told_or_refused() -> None:
    x = mt.ones(2, device="cuda")
    try:
        for mode, number in (("warn", 1), (2, 2)):
            cuda.set_sync_debug_mode(mode)
            assert cuda.get_sync_debug_mode() == number
            x + 1, cuda.synchronize()
            for look in (x.sum().item, x.tolist, x.cpu):
                expected = pytest.warns if number == 1 else pytest.raises
                with expected(UserWarning if number == 1 else RuntimeError, match="synchronizing"):
                    look()
        with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`"):
            cuda.set_sync_debug_mode("loud")
    finally:
        cuda.set_sync_debug_mode("default")
    assert x.tolist() == [1, 1] and cuda.get_sync_debug_mode() == 0
