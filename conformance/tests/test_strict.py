"""The strict backend refuses what the boundary does not allow, in words that name the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mortice as mt
from mortice.backends.plugins import default_backend, load
from mortice.errors import DTypeError
from mortice_conformance.strict_buffers import Buffer, StrictError, round_bfloat16

K: Any = load("strict")
HERE, THERE, NARROW = (K.device(n) for n in K.device_names())


def full(value: Any = 1.0, shape: tuple[int, ...] = (2,), dtype: Any = mt.float32, device: Any = HERE) -> Any:
    return K.full(shape, value, dtype=dtype, device=device)


def test_it_is_never_chosen_unasked() -> None:
    assert default_backend() != "strict"


def test_it_has_no_free_override() -> None:
    assert K.overridden == ()


@pytest.mark.parametrize(
    "use",
    [
        bool, len, iter, int, float, np.asarray, lambda b: b[0], lambda b: b + 1, lambda b: 1 - b, lambda b: b == b,
        lambda b: b < 1, lambda b: -b, lambda b: ~b, lambda b: 1 in b,
    ],
)  # fmt: skip
def test_a_buffer_is_opaque_to(use: Callable[[Any], Any]) -> None:
    with pytest.raises(StrictError, match="buffers are opaque"):
        use(full())


@pytest.mark.parametrize("name", ["shape", "dtype", "__array_interface__", "T", "sum"])
def test_a_buffer_has_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match="buffers are opaque"):
        getattr(full(), name)


def test_a_buffer_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        full()._strict_array[0] = 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: K.add(full(), full(device=THERE)), "strict: add: operands on strict:0 and strict:1."),
        (lambda: K.add(full(), full(dtype=mt.float64)), "strict: add: operands of float32 and float64; core promotes."),
        (lambda: K.add(full(), np.float32(1)), "strict: add: expected a buffer or a Python number; got float32."),
        (lambda: K.add(full(), np.ones(2)), "strict: add: expected a buffer or a Python number; got ndarray."),
        (lambda: K.add(full(1, dtype=mt.int32), 1.5), "strict: add: the number 1.5 does not fit int32; core promotes first."),
        (lambda: K.add(full(1, dtype=mt.uint8), 300), "strict: add: the number 300 is outside uint8."),
        (lambda: K.divide(full(1, dtype=mt.int64), 2), "strict: divide: not defined for int64."),
        (lambda: K.sum(full(), axis=2), "strict: sum: expected an axis of 1 dims as an int; got 2."),
        (lambda: K.sum(full(), axis=np.int64(0)), "strict: sum: expected an axis of 1 dims as an int; got np.int64(0)."),
        (lambda: K.sum(full(), keepdims=1), "strict: sum: expected keepdims to be a bool; got 1."),
        (lambda: K.reshape(full(), 2), "strict: reshape: expected a shape as a tuple of ints; got 2."),
        (lambda: K.getitem(full(), 0), "strict: getitem: expected the key as a tuple; got int."),
        (lambda: K.getitem(full(), (full(),)), "strict: getitem: expected ints, slices, None and Ellipsis; got "),
        (lambda: K.where(full(), full(), full()), "strict: where: expected a bool condition; got float32."),
        (lambda: K.take(full(), full(0.0), axis=0), "strict: take: expected int64 indices on strict:0; got float32 on strict:0."),
        (lambda: K.take(full(), full(5, dtype=mt.int64), axis=0),
         "strict: take: indices must be in [0, 2); core checks and wraps them."),
        (lambda: K.take(full(), full(-1, dtype=mt.int64), axis=0),
         "strict: take: indices must be in [0, 2); core checks and wraps them."),
        (lambda: full(dtype=mt.float64, device=NARROW), "strict: full: strict_f32 has no float64."),
        (lambda: full(device=mt.device("strict:0")), "strict: full: expected a Device of this backend; got device("),
        (lambda: full(np.float32(1)), "strict: full: expected a Python number; got float32."),
        (lambda: K.exp(3.0), "strict: exp: expected a buffer; got float."),
    ],
)  # fmt: skip
def test_it_refuses(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(StrictError) as error:
        call()
    assert str(error.value).startswith(text)


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtype'"):
        K.sum(full(), dtype=mt.float32)


def test_transfers_are_counted() -> None:
    before = K.transfers
    t = mt.ones(2, device=HERE)
    (t + t).sum()
    assert K.transfers == before
    t.tolist()
    assert K.transfers == before + 1
    t.sum().item()
    assert K.transfers == before + 2


def test_a_device_without_float64_says_so() -> None:
    with pytest.raises(DTypeError, match="float64"):
        mt.ones(2, dtype=mt.float64, device="strict_f32")
    assert mt.ones(2, device="strict_f32").dtype is mt.float32


def test_writes_rebind_and_views_follow() -> None:
    x = mt.zeros(2, 3, device=HERE)
    row, buffer = x[1], x._buffer
    row += 2
    assert x.tolist() == [[0, 0, 0], [2, 2, 2]]
    assert x._buffer is not buffer
    assert K.to_host(buffer).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_what_comes_to_the_host_is_strided_over_junk() -> None:
    host = K.to_host(full(2.0, (2, 3)))
    assert not host.view.c_contiguous
    assert host.tolist() == [[2.0] * 3] * 2


def test_bfloat16_rounds_after_every_kernel() -> None:
    x = mt.ones(1, dtype=mt.bfloat16, device=HERE)
    assert (x + 2.0**-9).tolist() == [1.0]
    assert round_bfloat16(np.float32([1.00390625, 1.01171875, np.nan]))[:2].tolist() == [1.0, 1.015625]


def test_buffers_are_not_copied_or_pickled() -> None:
    import copy

    assert type(full()) is Buffer
    with pytest.raises(StrictError, match="copied or pickled"):
        copy.deepcopy(full())
