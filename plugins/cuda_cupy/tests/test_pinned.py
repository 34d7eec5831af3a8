"""Memory of the host that the device reads by itself, from every factory, and memory that another stream still uses."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

import mortice as mt
from mortice import cuda
from mortice.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no GPU here; test_emulated runs these on the stand-in")

FACTORIES: dict[str, Any] = {
    "tensor": lambda **o: mt.tensor([1.0, 2.0], **o),
    "empty": lambda **o: mt.empty(2, 3, **o),
    "zeros": lambda **o: mt.zeros(2, 3, **o),
    "ones": lambda **o: mt.ones(2, dtype=mt.bfloat16, **o),
    "full": lambda **o: mt.full((2,), 7, **o),
    "zeros_like": lambda **o: mt.zeros_like(mt.ones(2), **o),
    "full_like": lambda **o: mt.full_like(mt.ones(2), 3.0, **o),
    "new_full": lambda **o: mt.ones(2).new_full((2,), 3.0, **o),
    "new_zeros": lambda **o: mt.ones(2).new_zeros(2, **o),
    "arange": lambda **o: mt.arange(5, **o),
    "linspace": lambda **o: mt.linspace(0, 1, 5, **o),
    "logspace": lambda **o: mt.logspace(0, 1, 5, **o),
    "eye": lambda **o: mt.eye(3, **o),
    "rand": lambda **o: mt.rand(2, 3, **o),
    "randn": lambda **o: mt.randn(2, 3, **o),
    "randn_like": lambda **o: mt.randn_like(mt.ones(2), **o),
    "randint": lambda **o: mt.randint(0, 9, (4,), **o),
    "randperm": lambda **o: mt.randperm(5, **o),
    "normal": lambda **o: mt.normal(0.0, 1.0, (3,), **o),
    "scalar_tensor": lambda **o: mt.scalar_tensor(2.0, **o),
    "hann_window": lambda **o: mt.hann_window(4, **o),
    "tril_indices": lambda **o: mt.tril_indices(3, 3, **o),
    "empty_strided": lambda **o: mt.empty_strided((2, 2), (1, 2), **o),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_makes_pinned_memory_with_the_same_values(name: str) -> None:
    make = FACTORIES[name]
    mt.manual_seed(3)
    plain = make()
    mt.manual_seed(3)
    pinned = make(pin_memory=True)
    assert pinned.is_pinned() and not plain.is_pinned() and pinned.device.type == "cpu"
    assert pinned.dtype is plain.dtype and pinned.shape == plain.shape and pinned.stride() == plain.stride()
    if "empty" not in name:
        assert pinned.tolist() == plain.tolist()
    sent = pinned.to("cuda", non_blocking=True)
    cuda.synchronize()
    assert sent.cpu().tolist() == pinned.tolist()


def test_pinned_leaves_require_grad_and_tensors_of_the_device_cannot_be_pinned() -> None:
    x = mt.ones(3, pin_memory=True, requires_grad=True)
    (x.cuda() * 2).sum().backward()
    assert x.is_leaf and x.is_pinned() and x.grad.tolist() == [2, 2, 2]
    assert mt.zeros(2, pin_memory=False).is_pinned() is False
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        mt.zeros(2, device="cuda", pin_memory=True)


def test_a_loader_pins_what_its_workers_send() -> None:
    data = TensorDataset(mt.arange(6.0), mt.arange(6))
    for x, y in DataLoader(data, batch_size=3, num_workers=1, pin_memory=True, multiprocessing_context="spawn"):
        assert x.is_pinned() and y.is_pinned() and x.tolist() == y.tolist()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        (batch,) = DataLoader([1, 2], batch_size=2, pin_memory=True, pin_memory_device="cuda")
    assert batch.is_pinned() and ["pin_memory_device is deprecated" in str(w.message) for w in said] == [True]


def test_memory_that_a_stream_uses_outlives_its_tensor_and_then_goes_back() -> None:
    mt.zeros(4, device="cuda").tolist()
    gc.collect()
    before = cuda.memory_allocated()
    side = cuda.Stream()
    x = mt.ones(1 << 16, device="cuda")
    view = x[1:]
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x * 2
    x.record_stream(side)
    del x
    assert view[0].item() == 1  # the array that it is a view of lives on
    del view
    gc.collect()
    assert cuda.memory_allocated() >= before + (1 << 18)
    side.synchronize()
    assert y.sum().item() == 2 << 16
    del y
    gc.collect()
    cuda.empty_cache()
    assert cuda.memory_allocated() == before


def test_record_stream_takes_streams_of_the_tensors_device() -> None:
    with pytest.raises(NotImplementedError, match="record_stream: expected a tensor on a device of the stream's type"):
        mt.ones(1).record_stream(cuda.Stream())
    with pytest.raises(RuntimeError, match="record_stream: expected a mortice.cuda.Stream; got int"):
        mt.ones(1, device="cuda").record_stream(3)
