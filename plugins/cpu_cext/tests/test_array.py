"""The array: views, layout, buffers in and out, DLPack, and what must be refused."""

from __future__ import annotations

import array
import binascii
import gc
import struct
from typing import Any

import pytest

import mortice as mt
from mortice.backends import DTYPES, HostBuffer
from mortice.dtype import by_name

F32 = by_name("float32")


def count_up(k: Any, *shape: int, dtype: str = "float32") -> Any:
    size = 1
    for n in shape:
        size *= n
    return k.reshape(k.arange(0, size, 1, dtype=by_name(dtype), device=k.device("cpu")), shape)


def values(k: Any, x: Any) -> Any:
    return k.to_host(x).tolist()


@pytest.mark.parametrize("dtype", [d.name for d in DTYPES])
def test_every_dtype_goes_in_and_comes_out(k: Any, dtype: str) -> None:
    d = by_name(dtype)
    numbers = [0, 1, 1] if dtype == "bool" else [0, 1, 100]
    x = k.astype(k.from_host(HostBuffer(struct.pack("3q", *numbers), (3,), by_name("int64")), k.device("cpu")), d)
    assert k.dtype_of(x) is d and k.shape_of(x) == (3,)
    assert values(k, x) == [type(v)(n) for v, n in zip(values(k, x), numbers)]
    again = k.from_host(k.to_host(x), k.device("cpu"))
    assert values(k, again) == values(k, x)


@pytest.mark.parametrize(
    "view",
    [
        lambda k, x: k.getitem(x, (slice(None, None, -2), slice(1, 3))),
        lambda k, x: k.permute_dims(x, (1, 0)),
        lambda k, x: k.reshape(x, (2, 6)),
        lambda k, x: k.broadcast_to(x, (2, 3, 4)),
        lambda k, x: k.expand_dims(x, 1),
        lambda k, x: k.diagonal(x, offset=1, axis1=0, axis2=1),
    ],
)
def test_views_share_memory(k: Any, view: Any) -> None:
    x = count_up(k, 3, 4)
    seen = view(k, x)
    assert not k.owns(seen)
    k.setitem(seen, (..., 0), 50.0)
    assert 50.0 in sum(values(k, x), [])


def test_reshape_of_strided_views_copies_only_where_it_must(k: Any) -> None:
    x = count_up(k, 4, 6)
    assert not k.owns(k.reshape(k.getitem(x, (slice(0, 4, 2),)), (2, 3, 2)))
    assert not k.owns(k.reshape(k.getitem(x, (slice(None), slice(0, 3))), (2, 2, 3)))
    turned = k.reshape(k.permute_dims(x, (1, 0)), (24,))
    assert k.owns(turned) or k.address(turned) != k.address(x)
    assert values(k, turned) == [float(6 * i + j) for j in range(6) for i in range(4)]
    with pytest.raises(ValueError, match="reshape: the sizes do not hold the 24 elements"):
        k.reshape(x, (5, 5))


def test_a_view_keeps_the_memory_of_what_it_is_of(k: Any) -> None:
    x = k.full((100_000,), 3, dtype=F32, device=k.device("cpu"))
    view = k.getitem(x, (slice(99_998, None),))
    del x
    gc.collect()
    k.full((100_000,), 9, dtype=F32, device=k.device("cpu"))
    assert values(k, view) == [3.0, 3.0]


def test_writing_where_reading_overlaps(k: Any) -> None:
    x = count_up(k, 10)
    k.setitem(x, (slice(1, None),), k.getitem(x, (slice(0, 9),)))
    assert values(k, x) == [0.0, *map(float, range(9))]
    x = count_up(k, 10)
    k.setitem(x, (), k.getitem(x, (slice(None, None, -1),)))
    assert values(k, x) == list(map(float, range(9, -1, -1)))


def test_memory_of_others_is_shared_and_read_only_memory_stays_so(k: Any) -> None:
    theirs = array.array("f", [1, 2, 3, 4])
    x = k.share_host(HostBuffer(theirs, (4,), F32), k.device("cpu"))
    theirs[2] = 30
    assert values(k, x) == [1, 2, 30, 4]
    with pytest.raises(BufferError):  # the view that x holds keeps the array from moving
        theirs.append(5)
    fixed = k.share_host(HostBuffer(struct.pack("2f", 1, 2), (2,), F32), k.device("cpu"))
    with pytest.raises(ValueError, match="read-only"):
        k.setitem(fixed, (0,), 5.0)
    assert memoryview(fixed).readonly


def test_strides_of_foreign_buffers(k: Any) -> None:
    whole = memoryview(bytearray(struct.pack("12i", *range(12)))).cast("i", [3, 4])
    x = k.share_host(HostBuffer(whole[::-1], (3, 4), by_name("int32")), k.device("cpu"))
    assert values(k, x) == [[8, 9, 10, 11], [4, 5, 6, 7], [0, 1, 2, 3]]
    odd = memoryview(bytearray(1 + 8))[1:].cast("d")  # not aligned, so it is copied
    y = k.share_host(HostBuffer(odd, (1,), by_name("float64")), k.device("cpu"))
    assert k.address(y) % 8 == 0


def test_the_buffer_protocol_shows_shape_and_strides(k: Any) -> None:
    x = k.permute_dims(count_up(k, 2, 3, dtype="int16"), (1, 0))
    view = memoryview(x)
    assert (view.format, view.shape, view.strides, view.tolist()) == ("h", (3, 2), (2, 6), [[0, 3], [1, 4], [2, 5]])
    with pytest.raises(BufferError, match="row-major"):
        binascii.crc32(x)
    with pytest.raises(BufferError, match="bfloat16 has no buffer format"):
        memoryview(k.astype(x, by_name("bfloat16")))


def test_dlpack_lends_and_takes_back(k: Any) -> None:
    x = mt.arange(6.0).reshape(2, 3)
    y = mt.from_dlpack(x)
    y[0, 0] = 9.0
    assert x[0, 0].item() == 9.0
    before = k.memory_allocated(k.device("cpu"))
    big = mt.ones(1_000_000)
    for version in (None, (1, 0)):
        capsule = k.to_dlpack(big._buffer, max_version=version)
        del capsule  # one that nobody took gives the memory back
    held = mt.from_dlpack(big)
    del big
    assert k.memory_allocated(k.device("cpu")) > before and held.sum().item() == 1_000_000
    del held
    gc.collect()
    assert k.memory_allocated(k.device("cpu")) <= before


@pytest.mark.parametrize(
    "call",
    [
        lambda k, x: k.getitem(x, (7,)),
        lambda k, x: k.getitem(x, (0, 0, 0)),
        lambda k, x: k.permute_dims(x, (0, 0)),
        lambda k, x: k.permute_dims(x, (0, 5)),
        lambda k, x: k.broadcast_to(x, (5, 5)),
        lambda k, x: k.strided(x, shape=(4, 4), strides=(4, 1), offset=0),
        lambda k, x: k.strided(x, shape=(2,), strides=(-1,), offset=0),
        lambda k, x: k.strided(x, shape=(2**62, 4), strides=(2**62, 1), offset=0),
        lambda k, x: k.reshape(x, (2**40, 2**40)),
        lambda k, x: k.full((2**62, 8), 0, dtype=F32, device=None),
        lambda k, x: k.full((-1,), 0, dtype=F32, device=None),
        lambda k, x: k.concat([x, k.reshape(x, (3, 2))], axis=0),
        lambda k, x: k.concat([], axis=0),
        lambda k, x: k.pad(x, ((-1, 0), (0, 0)), 0),
        lambda k, x: k.squeeze(x, 0),
        lambda k, x: k.expand_dims(x, 9),
        lambda k, x: k.copy("no array"),
        lambda k, x: k.copy(),
        lambda k, x: k.copy(x, x),
        lambda k, x: k.copy(x, what=1),
        lambda k, x: k.astype(x, "float32"),
        lambda k, x: k.setitem(x, (0,), "no number"),
        lambda k, x: k.setitem(x, (), k.full((3, 3), 0, dtype=F32, device=None)),
        lambda k, x: k.sliding_window(x, axis=0, size=9, step=1),
        lambda k, x: k.reinterpret(k.getitem(x, (..., slice(0, 1))), by_name("float64")),
    ],
)
def test_wrong_calls_raise(k: Any, call: Any) -> None:
    with pytest.raises((ValueError, IndexError, TypeError, RuntimeError, MemoryError)):
        call(k, count_up(k, 2, 3))


def test_arrays_are_made_by_kernels_only(k: Any) -> None:
    with pytest.raises(TypeError):
        type(count_up(k, 2))()
    assert repr(count_up(k, 2, 3)) == "<mortice_cpu_cext.Array of float32, shape (2, 3)>"


def test_large_transposed_copies(k: Any) -> None:
    for dtype in ("int16", "float32", "float64", "complex128"):
        for shape in ((130, 67), (64, 256), (3, 129, 35)):
            x = count_up(k, *shape, dtype=dtype)
            order = tuple(range(len(shape) - 2)) + (len(shape) - 1, len(shape) - 2)
            y = k.contiguous(k.permute_dims(x, order))
            assert k.is_contiguous(y) and k.address(y) != k.address(x)
            for place in [(0, 0), (-1, 0), (0, -1), (-1, -1), (17, 5), (32, 33)]:
                lead = (-1,) * (len(shape) - 2)
                assert k.item(k.getitem(y, lead + place)) == k.item(k.getitem(x, lead + place[::-1]))


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
@pytest.mark.parametrize("gap", [2, 4])
def test_transposed_copies_between_elements_with_gaps(k: Any, dtype: str, gap: int) -> None:
    x = k.permute_dims(k.getitem(count_up(k, 40, 20, gap, dtype=dtype), (..., 0)), (1, 0))
    y = k.full((20, 40, gap), -1, dtype=by_name(dtype), device=k.device("cpu"))
    k.setitem(y, (..., 0), x)
    assert values(k, y) == [[[(20 * j + i) * gap, *[-1] * (gap - 1)] for j in range(40)] for i in range(20)]


@pytest.mark.parametrize("colours", [2, 3, 4])
def test_the_colours_of_pixels_are_copied_one_plane_after_the_other(k: Any, colours: int) -> None:
    for n in (1, 7, 15, 16, 17, 32, 33, 50, 129):
        raw = bytes((7 * i + 3) % 251 for i in range(colours * n))
        pixels = k.from_host(HostBuffer(raw, (n, colours), by_name("uint8")), k.device("cpu"))
        planes = k.contiguous(k.permute_dims(pixels, (1, 0)))
        assert values(k, planes) == [list(raw[c::colours]) for c in range(colours)]


ALIKE: dict[str, Any] = {
    "bool": (0, 1), "uint8": (0, 1, 7, 255), "int32": (0, 1, -1, 0x01010101), "int64": (0, 1, -1), "float16": (0, -1.5),
    "complex128": (0, 1j),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ALIKE)
@pytest.mark.parametrize("size", [0, 1, 7, 300_000])
def test_numbers_whose_bytes_are_alike_and_others_fill_memory(k: Any, size: int, dtype: str) -> None:
    for number in ALIKE[dtype]:
        x = k.full((size, 1), number, dtype=by_name(dtype), device=k.device("cpu"))
        assert k.to_host(k.reshape(x, (size,))).tolist() == [number] * size
        k.setitem(x, (slice(1, None, 2),), 0)  # with gaps
        assert k.to_host(k.reshape(x, (size,))).tolist() == [0 if i % 2 else number for i in range(size)]
        k.setitem(x, (...,), number)
        assert k.to_host(k.reshape(x, (size,))).tolist() == [number] * size
