"""L6: misuse is refused with an error, never with a crash; memory does not grow; threads do not disturb each other."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import mortice as mt
from mortice_conformance.catalog import representative
from mortice_conformance.checks.behaviour import on_subject
from mortice_conformance.record import load_samples
from mortice_conformance.subject import Failure, Subject
from mortice_conformance.suites import suite

# ---- misuse: each must raise one of these errors; the texts are core's and are tested with each op ----

REFUSED: dict[str, tuple[Callable[[], Any], tuple[type[BaseException], ...]]] = {
    "index-past-end": (lambda: mt.ones(3)[mt.tensor([0, 3])], (IndexError,)),
    "index-before-start": (lambda: mt.ones(3)[mt.tensor([-4])], (IndexError,)),
    "index-float": (lambda: mt.ones(3)[1.5], (IndexError, TypeError)),
    "write-past-end": (lambda: mt.ones(3).__setitem__(mt.tensor([7]), 1.0), (IndexError,)),
    "gather-past-end": (lambda: mt.gather(mt.ones(2, 3), 1, mt.tensor([[9]])), (RuntimeError, IndexError)),
    "scatter-past-end": (
        lambda: mt.zeros(3).scatter_add(0, mt.tensor([5]), mt.ones(1)),
        (RuntimeError, IndexError),
    ),
    "index-select-past-end": (lambda: mt.index_select(mt.ones(3), 0, mt.tensor([3])), (IndexError, RuntimeError)),
    "embedding-past-end": (
        lambda: mt.nn.functional.embedding(mt.tensor([4]), mt.ones(3, 2)),
        (IndexError, RuntimeError),
    ),
    "label-past-end": (
        lambda: mt.nn.functional.cross_entropy(mt.ones(1, 3), mt.tensor([3])),
        (IndexError, RuntimeError),
    ),
    "shape-negative": (lambda: mt.zeros(-1), (RuntimeError,)),
    "reshape-wrong": (lambda: mt.ones(6).reshape(4), (RuntimeError,)),
    "matmul-wrong": (lambda: mt.ones(2, 3) @ mt.ones(4, 5), (RuntimeError,)),
    "dim-wrong": (lambda: mt.ones(2, 3).sum(5), (IndexError,)),
    "add-wrong": (lambda: mt.ones(2, 3) + mt.ones(4), (RuntimeError,)),
    "add-object": (lambda: mt.ones(2) + object(), (TypeError,)),
    "convolution-wrong": (lambda: mt.nn.functional.conv2d(mt.ones(1, 2, 3, 3), mt.ones(1, 3, 3, 3)), (RuntimeError,)),
    "kernel-too-big": (lambda: mt.nn.functional.conv1d(mt.ones(1, 1, 2), mt.ones(1, 1, 5)), (RuntimeError,)),
    "overflow": (lambda: mt.tensor([300], dtype=mt.uint8), (RuntimeError,)),
    "integer-division-by-zero": (lambda: mt.tensor([1]) // mt.tensor([0]), (RuntimeError, ZeroDivisionError)),
    "largest-of-none": (lambda: mt.zeros(0).max(), (RuntimeError, IndexError)),
    "second-backward": (lambda: _backward_twice(), (RuntimeError,)),
    "write-saved": (lambda: _write_saved(), (RuntimeError,)),
    "grad-of-integers": (lambda: mt.tensor([1]).requires_grad_(), (RuntimeError,)),
    "item-of-many": (lambda: mt.ones(2).item(), (RuntimeError,)),
}


def _backward_twice() -> None:
    x = mt.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def _write_saved() -> None:
    x = mt.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    y[0] = 5.0
    z.sum().backward()


@suite("robust", 6, each=list(REFUSED))
def check_refused(subject: Subject, name: str) -> None:
    """Refuse misuse with an exception of PyTorch's class, and go on working."""
    wrong, classes = REFUSED[name]
    with on_subject(subject):
        try:
            result = wrong()
            subject.backend.synchronize(subject.device)  # a device that runs behind may refuse values only now
        except classes as error:
            if type(error).__name__ == "StrictError":
                raise Failure(f"{name}: core let it through to the backend: {error}") from error
        else:
            raise Failure(f"{name}: expected {' or '.join(c.__name__ for c in classes)}; got {type(result).__name__}.")
        if (mt.ones(2) + mt.ones(2)).tolist() != [2.0, 2.0]:
            raise Failure(f"{name}: afterwards the backend computes wrongly.")


@suite("robust", 6)
def check_devices_do_not_mix(subject: Subject) -> None:
    """Refuse operands of two devices, naming both."""
    if len(subject.devices) < 2:
        other = None
    else:
        other = subject.on(subject.devices[1])
    d = next(d for d in subject.available if d.name == "float32")
    if other is None:
        return
    x, y = subject.tensor(np.ones(2), d), other.tensor(np.ones(2), d)
    for label, call in (
        ("add", lambda: x + y),
        ("matmul", lambda: x @ y),
        ("cat", lambda: mt.cat([x, y])),
        ("where", lambda: mt.where(x > 0, x, y)),
    ):
        try:
            call()
        except RuntimeError as error:
            if str(subject.device) not in str(error) or str(other.device) not in str(error):
                raise Failure(f"{label} on two devices: the error names not both: {error}") from error
            continue
        raise Failure(f"{label} on two devices: expected an error; it returned.")


@suite("robust", 6)
def check_extremes(subject: Subject) -> None:
    """Compute with 0 elements, 8 dims, long rows and big shifts as with any others."""
    with on_subject(subject):
        if mt.ones(0, 3).sum().item() != 0 or tuple((mt.ones(0, 3) @ mt.ones(3, 2)).shape) != (0, 2):
            raise Failure("no elements: wrong result.")
        eight = mt.ones(1, 2, 1, 2, 1, 2, 1, 2)
        if tuple(eight.permute(*range(8)[::-1]).shape) != (2, 1, 2, 1, 2, 1, 2, 1) or eight.sum().item() != 16:
            raise Failure("8 dims: wrong result.")
        n = 100_003
        row = mt.arange(n, dtype=mt.int64)
        if row.sum().item() != n * (n - 1) // 2 or mt.ones(n).sum().item() != n:
            raise Failure("a long row: wrong sum.")
        total = mt.cumsum(mt.ones(n), 0)
        if abs(total[-1].item() - n) > 1:
            raise Failure(f"a long cumulative sum: expected {n}; got {total[-1].item()}.")


@suite("robust", 6)
def check_deep_graph(subject: Subject) -> None:
    """Walk back through a chain of 20,000 operations without recursion."""
    with on_subject(subject):
        x = mt.ones(1, requires_grad=True)
        y = x
        for _ in range(20_000):
            y = y + 1.0
        y.sum().backward()
        if x.grad.tolist() != [1.0]:
            raise Failure(f"a deep chain: expected a gradient of 1; got {x.grad.tolist()}.")


# ---- memory ----


def _work() -> None:
    """Make intermediate results of 16 KiB each, so that one that stays stands out from what caches keep."""
    x = mt.ones(64, 64, requires_grad=True)
    y = mt.exp((x @ x) * -0.01)
    rows = y.sum(1)[::2].reshape(4, 8)
    (mt.cat([rows, rows], 1).mean() + mt.tanh(y).sum()).backward()
    with mt.no_grad():
        x[1:3] = 0.5


@suite("memory", 6)
def check_no_growth(subject: Subject) -> None:
    """Use no more memory the longer the same work goes on."""
    sizes = []
    with on_subject(subject):
        for _ in range(10):
            _work()
        tracemalloc.start()
        try:
            for _ in range(5):
                for _ in range(15):
                    _work()
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    # A cache may fill for a while, by small things; a tensor that stays every time is a leak.
    if all(later - earlier > 15 * 4096 for earlier, later in zip(sizes, sizes[1:])):
        raise Failure(f"each 15 rounds of work leave memory behind: {', '.join(map(str, sizes))} bytes in use.")


@suite("memory", 6)
def check_every_op(subject: Subject) -> None:
    """Keep no result of any op once its tensors are gone, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        for sample in load_samples().values():
            dtype = representative(sample, subject.available)
            if dtype is None or (sample.call is None and sample.record is None):
                continue
            case = sample.cases[0]
            tensors = subject.operands(sample, case, dtype)[1]
            try:
                out = sample.apply(tensors, case.attrs)
            except Exception:  # another check's business
                continue
            seen = _references([t._buffer for t in out if all(t is not x for x in tensors)])
            del out, tensors
            if any(r() is not None for r in seen):
                raise Failure(f"{sample.id}: a result stays in memory after its tensor is gone.")
    finally:
        gc.enable()


def _references(buffers: list[Any]) -> list[Any]:
    try:
        return [weakref.ref(b) for b in buffers]
    except TypeError:  # a kind of buffer that takes no weak references
        return []


@suite("memory", 6)
def check_freed_at_once(subject: Subject) -> None:
    """Free a dropped graph by reference counting, without the garbage collector."""
    with on_subject(subject):
        gc.collect()
        gc.disable()
        try:
            x = mt.ones(8, requires_grad=True)
            y = x
            seen = []
            for _ in range(5):
                y = mt.exp(y * 0.5)[::1].reshape(8)
                seen.append(weakref.ref(y))
                seen.append(weakref.ref(y.grad_fn))
            z = y.sum()
            z.backward(retain_graph=True)
            del y, z
            alive = sum(r() is not None for r in seen)
        finally:
            gc.enable()
    if alive:
        raise Failure(f"{alive} of {len(seen)} tensors and nodes of a dropped graph are still alive: there is a cycle.")


# ---- threads ----


def _chain(seed: int) -> list[float]:
    x = mt.tensor(np.sin(np.arange(40) + seed).astype(np.float32).tolist(), requires_grad=True)
    total: list[float] = []
    for step in range(12):
        y = (mt.exp(x) * mt.sin(x + step)).reshape(5, 8)
        loss = (y @ y.t()).sum() + mt.cumsum(y, 0).mean() + y[1:, ::2].max()
        loss.backward()
        total.append(loss.item())
    return [*total, *x.grad.tolist()]


@suite("threads", 6)
def check_same_results(subject: Subject) -> None:
    """Give in eight threads at once the bits that one gives."""
    with on_subject(subject):
        alone = [_chain(i) for i in range(8)]
    found: dict[int, Any] = {}

    def work(i: int) -> None:
        try:
            with on_subject(subject):
                found[i] = _chain(i)
        except Exception as error:
            found[i] = error

    _in_threads(work, 8)
    for i, want in enumerate(alone):
        if isinstance(found[i], Exception):
            raise Failure(f"thread {i}: {type(found[i]).__name__}: {found[i]}") from found[i]
        if found[i] != want:
            raise Failure(f"thread {i}: its results differ from those of the same work alone.")


@suite("threads", 6)
def check_modes_are_local(subject: Subject) -> None:
    """Keep no_grad and the chosen backend to the thread that entered them."""
    ready, done = threading.Event(), threading.Event()
    seen: list[bool] = []

    def work(i: int) -> None:
        if i == 0:
            with mt.no_grad():
                ready.set()
                done.wait(10)
        else:
            ready.wait(10)
            with on_subject(subject):
                seen.append((mt.ones(2, requires_grad=True) * 2).requires_grad)
            done.set()

    _in_threads(work, 2)
    if seen != [True]:
        raise Failure("no_grad in one thread switched recording off in another.")


def _in_threads(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
