"""Threads, memory, and the full text of the errors that shared helpers raise."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mortice as mt
from mortice import shape as shapes
from mortice.backends import BackendInfo, plugins
from mortice.dtype import DTYPES as ALL
from mortice.dtype import by_name
from mortice.errors import BackendNotFound, DeviceError, DimError, DTypeError, ShapeError
from mortice.tensor import TensorBase

SECOND = "second_numpy"
SERVING = plugins.default_backend()


@pytest.fixture
def second() -> Iterator[str]:
    """Another instance of the NumPy backend, under a name of its own."""
    from mortice_cpu_numpy.backend import NumPyBackend

    plugins.register(BackendInfo(SECOND, ("cpu",), NumPyBackend, priority=-1))
    yield SECOND
    del plugins.entries()[SECOND]


# ---- threads ----


def train(number: int, steps: int = 40) -> tuple[list[float], list[float]]:
    """Train a small model of plain tensor code; return its losses and weights."""
    g = mt.Generator().manual_seed(number)
    x = mt.randn(32, 4, generator=g)
    y = (x * mt.tensor([1.0, -2.0, 3.0, 0.5])).sum(1, keepdim=True).sin()
    w1, w2 = (0.5 * mt.randn(*s, generator=g) for s in ((4, 8), (8, 1)))
    b1 = mt.zeros(8)
    parameters = [p.requires_grad_() for p in (w1, b1, w2)]
    optimizer = mt.optim.Adam(parameters, lr=0.02)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = ((x @ w1 + b1).tanh() @ w2 - y).square().mean()
        loss.backward()
        optimizer.step()
        with mt.no_grad():
            assert not (w1 * 2).requires_grad
            if step % 10 == number % 10:
                b1.mul_(0.5)
        losses.append(loss.item())
    return losses, [v for p in parameters for v in p.detach().flatten().tolist()]


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run work(0), work(1), ... at once, and return the results; an error in one is raised here."""
    results: list[Any] = [None] * count
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            barrier.wait()
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results


def test_eight_threads_training_get_the_results_that_they_get_alone() -> None:
    alone = [train(i) for i in range(8)]
    assert in_threads(8, train) == alone
    assert alone[0][0][-1] < alone[0][0][0] / 2


@pytest.mark.needs("cpu")
def test_modes_and_chosen_backends_belong_to_their_thread() -> None:
    def work(i: int) -> tuple[bool, str, str]:
        if i % 2:
            with mt.no_grad(), mt.use_backend("strict"):
                for _ in range(50):
                    t = mt.ones(2, requires_grad=True) * 2
                return t.requires_grad, mt.default_backend(), str(t.device)
        for _ in range(50):
            t = mt.ones(2, requires_grad=True) * 2
        return t.requires_grad, mt.default_backend(), str(t.device)

    expected = [(False, "strict", "strict:0") if i % 2 else (True, SERVING, "cpu") for i in range(8)]
    assert in_threads(8, work) == expected


def test_one_graph_gives_every_thread_its_gradient() -> None:
    x = mt.ones(3, requires_grad=True)

    def work(i: int) -> list[float]:
        return mt.autograd.grad((x * float(i)).exp().sum(), x)[0].tolist()  # type: ignore[no-any-return]

    assert in_threads(8, work) == [work(i) for i in range(8)]
    assert x.grad is None


# ---- memory ----


def live() -> int:
    """Count the tensors that are alive."""
    return sum(issubclass(type(o), TensorBase) for o in gc.get_objects())


def test_a_thousand_training_steps_do_not_grow_memory() -> None:
    w = (0.1 * mt.randn(16, 16)).requires_grad_()
    b = mt.zeros(16, requires_grad=True)
    x = mt.randn(8, 16)
    optimizer = mt.optim.Adam([w, b], lr=1e-3)

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            h = x @ w + b
            h[:, ::2] *= 0.5
            h = h.relu()
            loss = (h.t() - x.t()).square().mean() + w.abs().sum() * 1e-4
            loss.backward()
            optimizer.step()

    gc.collect()
    gc.disable()  # what only the collector could free would be a leak
    try:
        steps(2500)  # CPython's own free lists are full by then: that of tuples holds 2,000
        more = []
        for _ in range(3):  # a leak is there every time, but other threads of the process (pytest-xdist's) keep objects now and then
            before, tensors = sys.getallocatedblocks(), live()
            steps(1000)
            more.append(sys.getallocatedblocks() - before)
            assert live() == tensors
            if more[-1] < 300:
                break
        assert min(more) < 300, f"{more} more objects after 1,000 steps"
    finally:
        gc.enable()


def test_large_buffers_are_freed_while_training() -> None:
    w = mt.ones(64, 64, requires_grad=True)

    def steps(count: int) -> None:
        for _ in range(count):
            w.grad = None
            ((w @ w).tanh() * w).sum().backward()

    tracemalloc.start()
    try:
        steps(20)
        before = tracemalloc.get_traced_memory()[0]
        steps(200)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # NumPy reports its memory here: one kept buffer a step would be 200 times 16 kB.
    assert after - before < 64_000, f"{after - before} bytes more"


def test_a_dropped_graph_is_freed_at_once() -> None:
    gc.collect()
    gc.disable()
    try:
        before = live()
        x = mt.ones(4, requires_grad=True)
        y = x
        for _ in range(100):
            y = (y * 1.01).sin()
        z = y.reshape(2, 2)[0]
        z.sum().backward()
        del x, y, z
        assert live() == before
    finally:
        gc.enable()


def test_a_long_chain_neither_overflows_the_stack_nor_stays() -> None:
    gc.collect()
    before = live()
    y = x = mt.ones(1, requires_grad=True)
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    del x, y
    assert live() == before


# ---- errors: the whole text ----


def raised(call: Callable[[], Any], kind: type[BaseException]) -> str:
    """Return the text of the error that the call raises."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


SHAPES: list[tuple[Callable[[], Any], type[BaseException], str]] = [
    (
        lambda: mt.ones(2, 3) + mt.ones(4, 3), ShapeError,
        "add: The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0; got (2, 3) and "
        "(4, 3). Reshape or expand one of them.",
    ),
    (
        lambda: shapes.broadcast("f", (5, 2), (3,), (1, 1)), ShapeError,
        "f: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1; got (5, 2) and (3,) "
        "and (1, 1). Reshape or expand one of them.",
    ),
    (lambda: shapes.check_dim("f", 2, 2), DimError,
     "f: Dimension out of range (expected to be in range of [-2, 1], but got 2)."),
    (lambda: shapes.check_dim("f", -2, 0), DimError,
     "f: Dimension out of range (expected to be in range of [-1, 0], but got -2)."),
    (lambda: shapes.check_dim("f", "x", 2), TypeError, "f: expected dim to be an int; got str."),
    (lambda: shapes.check_dims("f", (0, -2), 2), ShapeError, "f: dim 0 appears multiple times in the list of dims; got (0, -2)."),
    (lambda: mt.ones(2, 3).sum(5), DimError,
     "sum: Dimension out of range (expected to be in range of [-2, 1], but got 5)."),
    (lambda: mt.ones(6).reshape(4, 2), ShapeError, "reshape: shape '[4, 2]' is invalid for input of size 6."),
    (lambda: mt.ones(6).reshape(-1, -1), ShapeError, "reshape: only one dimension can be inferred; got [-1, -1]."),
    (lambda: mt.ones(6).reshape(-2, 3), ShapeError, "reshape: invalid shape dimension -2; got [-2, 3]."),
    (lambda: mt.ones(0).reshape(-1, 0), ShapeError,
     "reshape: cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 can be "
     "any value and is ambiguous."),
    (lambda: mt.zeros(2, -3), ShapeError, "zeros: Trying to create tensor with negative dimension -3: [2, -3]."),
    (lambda: shapes.as_sizes("f", ("a", 2)), TypeError, "f: expected sizes as ints; got ('a', 2)."),
]  # fmt: skip

DTYPES: list[tuple[Callable[[], Any], type[BaseException], str]] = [
    (lambda: mt.promote_types(mt.uint64, mt.int8), DTypeError,
     "promote_types: no integer dtype holds both operands; got uint64 and int8. Convert one of them with .to(dtype) first."),
    (lambda: mt.promote_types(mt.int8, 3), TypeError, "promote_types: expected two dtypes; got mortice.int8 and 3."),
    (lambda: mt.set_default_dtype(mt.int32), TypeError,
     "set_default_dtype: expected a floating point dtype; got mortice.int32."),
    (lambda: mt.finfo(mt.int8), TypeError,
     "finfo: expected a floating point dtype; got mortice.int8. Use iinfo for integers."),
    (lambda: mt.iinfo(mt.float32), TypeError,
     "iinfo: expected an integer dtype; got mortice.float32. Use finfo for floating point."),
    (lambda: by_name("float128"), DTypeError,
     f"dtype: expected one of {', '.join(d.name for d in ALL)}; got 'float128'."),
    (lambda: mt.ones(2, dtype=mt.uint8).clamp(max=300), RuntimeError,
     "clamp: value cannot be converted to type uint8 without overflow; got 300."),
    (lambda: mt.ones(2, dtype=mt.uint8) // 2**64, OverflowError,
     "floordiv: int too big to convert; got 18446744073709551616, which takes more than 64 bits."),
    (lambda: mt.mul(mt.ones(2), "x"), TypeError, "mul: argument 'other' must be Tensor, not str. Use mortice.tensor(...) first."),
]  # fmt: skip

DEVICES: list[tuple[Callable[[], Any], type[BaseException], str]] = [
    (lambda: mt.device("9"), RuntimeError, "device: expected a string such as 'cpu' or 'cuda:0'; got '9'."),
    (lambda: mt.device("cuda:00"), RuntimeError, "device: Invalid device string: 'cuda:00'; expected an index after the colon."),
    (lambda: mt.device("cuda:"), RuntimeError, "device: Invalid device string: 'cuda:'; expected an index after the colon."),
    (lambda: mt.device("cuda", -1), RuntimeError, "device: Device index must not be negative; got -1."),
    (lambda: mt.device("cuda", 1.5), TypeError, "device: expected the index as an int; got 1.5."),
    (lambda: mt.device("cuda:x"), RuntimeError, "device: Invalid device string: 'cuda:x'; expected an index after the colon."),
    (lambda: mt.device("cuda:1", 1), RuntimeError, "device: the index must not be given twice; got 'cuda:1' and 1."),
    (lambda: mt.device(1.5), TypeError, "device: expected a string such as 'cpu' or 'cuda:0'; got 1.5."),
    (lambda: mt.ones(1, device="cpu:3"), DeviceError, "device 'cpu:3': no backend offers it; available: cpu."),
    (lambda: mt.ones(1, device="strict:0") + mt.ones(1, device="strict:1"), DeviceError,
     "add: Expected all tensors to be on the same device; got strict:0 and strict:1. Move one of them with "
     ".to('strict:0')."),
    (lambda: mt.ones(1) * mt.ones(1, device="strict:1"), DeviceError,
     f"mul: Expected all tensors to be on the same device and backend; got cpu ({SERVING}) and strict:1 (strict). Move "
     f"one of them with .to(backend='{SERVING}')."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), [pytest.param(*c, id=c[2][:40]) for c in SHAPES + DTYPES])
def test_an_error_says_all_of_it(call: Callable[[], Any], kind: type[BaseException], text: str) -> None:
    assert raised(call, kind) == text


@pytest.mark.needs("cpu")
@pytest.mark.parametrize(("call", "kind", "text"), [pytest.param(*c, id=c[2][:40]) for c in DEVICES])
def test_a_device_error_says_all_of_it(call: Callable[[], Any], kind: type[BaseException], text: str) -> None:
    # Whether a device of the kit's own is "available" depends on who has asked for it before.
    got = raised(call, kind)
    assert got.replace(", strict:0, strict:1, strict_f32", "") == text


def test_errors_are_caught_as_what_pytorch_raises() -> None:
    for kind, bases in (
        (ShapeError, (RuntimeError, ValueError)), (DTypeError, (RuntimeError, TypeError)),
        (DeviceError, (RuntimeError, ValueError)), (DimError, (IndexError,)), (BackendNotFound, (RuntimeError,)),
    ):  # fmt: skip
        for base in bases:
            assert issubclass(kind, base)


# ---- two backends on the CPU ----


@pytest.mark.needs("cpu")
def test_two_backends_of_one_device_type_do_not_mix(second: str) -> None:
    x = mt.arange(3.0)
    y = x.to(backend=second)
    assert y.device.backend.name == second and y.tolist() == [0, 1, 2]
    assert raised(lambda: x + y, DeviceError) == (
        f"add: Expected all tensors to be on the same device and backend; got cpu ({SERVING}) and cpu (second_numpy). "
        f"Move one of them with .to(backend='{SERVING}')."
    )
    assert (x + y.to(backend=SERVING)).tolist() == [0, 2, 4]
    for call in (lambda: mt.cat([x, y]), lambda: mt.where(x > 0, x, y), lambda: x @ y, lambda: x.add_(y)):
        with pytest.raises(DeviceError, match=f"backend='{SERVING}'"):
            call()


def test_gradients_flow_from_one_backend_to_another(second: str) -> None:
    x = mt.ones(3, requires_grad=True)
    y = (x * 2).to(backend=second)
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 8, 8]
    assert x.grad.device.backend.name == SERVING


def test_a_tensor_keeps_its_backend_whatever_is_chosen(second: str) -> None:
    with mt.use_backend(second):
        y = mt.ones(2)
        assert mt.default_backend() == second
    assert (y * 2 + mt.zeros_like(y)).device.backend.name == second
    assert mt.ones(2).device.backend.name == SERVING
    mt.set_backend(second)
    try:
        assert mt.ones(1).device.backend.name == second
    finally:
        mt.set_backend(SERVING)
