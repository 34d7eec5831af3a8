"""Memory under tensors: storages, set_, memory that processes share, files; other dtypes and orders over the same bytes."""

from __future__ import annotations

import copy
import gc
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import weakref

import pytest

import mortice as mt
from mortice.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")

STRICT = importlib.util.find_spec("mortice_conformance") is not None
DEVICES = ["cpu", pytest.param("strict:0", marks=pytest.mark.skipif(not STRICT, reason="the conformance kit is not installed"))]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


# ---- storages ----


def test_a_storage_is_all_the_memory_that_a_view_sees_a_part_of(device):
    base = mt.arange(12.0, device=device).reshape(3, 4)
    for view, start in ((base, 0), (base[1:, 2:], 6), (base.t()[1:], 1), (base[2].detach(), 8), (base[1].detach()[1:], 5)):
        storage = view.storage()
        assert storage.tolist() == list(range(12)) and view.storage_offset() == start
        assert (len(storage), storage.nbytes(), storage.element_size(), storage.dtype) == (12, 48, 4, mt.float32)
        assert view.untyped_storage() == base.untyped_storage() and view.untyped_storage().nbytes() == 48
    assert mt.ones(1, device=device).expand(5).untyped_storage().nbytes() == 4
    assert base.storage() != mt.ones(1, device=device).storage() and mt.is_storage(base.storage()) and not mt.is_storage(base)


def test_parts_of_complex_numbers_know_where_they_begin(device):
    z = mt.tensor([1 + 2j, 3 + 4j, 5 + 6j], device=device)[1:]
    assert (z.storage_offset(), z.real.storage_offset(), z.imag.storage_offset(), z.imag[1:].storage_offset()) == (1, 2, 3, 5)
    assert mt.view_as_real(z)[1].storage_offset() == 4 and z.imag.as_strided((2,), (1,)).tolist() == [4, 5]
    assert z.imag.storage().tolist() == [1, 2, 3, 4, 5, 6]


def test_elements_and_bytes_can_be_written(device):
    x = mt.arange(3.0, device=device)
    x.storage()[1] = 9
    assert x.tolist() == [0, 9, 2] and x.storage()[1] == 9 and x._version == 1
    x.untyped_storage().fill_(0)
    x.storage().copy_(mt.ones(3, device=device).storage())
    assert x.tolist() == [1, 1, 1] and list(x.untyped_storage()[2:4]) == [0x80, 0x3F]
    with pytest.raises(RuntimeError, match="expected a storage of 3 elements; got 2"):
        x.storage().copy_(mt.ones(2, device=device).storage())


def test_a_tensor_of_a_storage_has_its_elements(device):
    x = mt.arange(5.0, device=device)
    assert mt.tensor(x.storage()).tolist() == x.tolist() == mt.as_tensor(x.untyped_storage(), dtype=mt.float32).tolist()
    pairs = mt.tensor(x.untyped_storage())  # int64, as in PyTorch; four bytes are left over
    assert pairs.dtype is mt.int64 and pairs.tolist() == [0x3F80000000000000, 0x4040000040000000]
    with pytest.raises(RuntimeError, match="Expected a Storage of type mortice.float64 or an UntypedStorage, but got mortice.float32"):
        mt.tensor(x.storage(), dtype=mt.float64)


@pytest.mark.needs("addresses", "cpu")
def test_storages_have_addresses_copies_and_pickles():
    x = mt.arange(4.0)
    assert x[1:].untyped_storage().data_ptr() == x.data_ptr() == x[1:].data_ptr() - 4 and mt.ones(0).data_ptr() == 0
    for made in (x.storage().clone(), copy.deepcopy(x.storage()), pickle.loads(pickle.dumps(x.storage()))):
        assert made.tolist() == [0, 1, 2, 3] and made.data_ptr() != x.data_ptr()
    assert mt.UntypedStorage(2).tolist() == [0, 0] and mt.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert mt.TypedStorage(2, dtype=mt.int16).nbytes() == 4
    assert repr(mt.arange(1.0).storage()) == " 0.0\n[mortice.storage.TypedStorage(dtype=mortice.float32, device=cpu) of size 1]"
    assert mt.Tensor(x.storage()).data_ptr() == x.data_ptr()


def test_a_deepcopy_shares_memory_where_its_original_does(device):
    base = mt.arange(6.0, device=device)
    grid, tail = base.view(2, 3), base[4:]
    made = copy.deepcopy({"base": base, "grid": grid, "t": grid.t(), "tail": tail, "storage": base.storage(), "again": base})
    assert made["again"] is made["base"]
    made["base"] += 10
    assert made["grid"].tolist() == [[10, 11, 12], [13, 14, 15]] and made["t"].tolist() == [[10, 13], [11, 14], [12, 15]]
    assert made["tail"].tolist() == [14, 15] and made["storage"].tolist() == [10, 11, 12, 13, 14, 15]
    made["tail"].zero_()
    assert made["base"].tolist() == [10, 11, 12, 13, 0, 0] and base.tolist() == [0, 1, 2, 3, 4, 5]
    z = mt.tensor([1 + 2j, 3 + 4j], device=device)
    whole, imag = copy.deepcopy([z, z.imag])
    imag.fill_(9)
    assert whole.tolist() == [1 + 9j, 3 + 9j] and z.tolist() == [1 + 2j, 3 + 4j]
    weight = mt.nn.Linear(2, 1, device=device).weight
    weight.sum().backward()
    twin, seen = copy.deepcopy([weight.data.requires_grad_(), weight.detach()])
    assert twin.requires_grad and not seen.requires_grad and twin.untyped_storage() == seen.untyped_storage()


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["bool", "int16", "float32", "int64", "complex64", "complex128"])
def test_bytes_are_turned_round_as_torch_turns_them(name):
    torch = pytest.importorskip("torch")
    mine, want = [lib.UntypedStorage(range(32)) for lib in (mt, torch)]
    mine.byteswap(getattr(mt, name)), want.byteswap(getattr(torch, name))
    assert mine.tolist() == want.tolist()
    for lib in (mt, torch):
        x = lib.arange(3, dtype=lib.int16)
        x.untyped_storage().byteswap(x.dtype)
        assert x.tolist() == [0, 256, 512]
        lib.UntypedStorage(0).byteswap(lib.float64)
        with pytest.raises(RuntimeError):
            lib.UntypedStorage([1, 2, 3]).byteswap(lib.int16)


def test_a_storage_has_a_size_and_can_be_referred_to_weakly():
    storage = mt.ones(100).storage()
    assert storage.__sizeof__() - mt.ones(0).storage().__sizeof__() == 400
    found = weakref.ref(storage)
    assert found() is storage


def test_set_moves_a_tensor_onto_other_memory(device):
    base = mt.arange(6.0, device=device)
    x = mt.ones(2, device=device)
    assert x.set_(base.untyped_storage(), 1, (2, 2), (2, 1)) is x and x.tolist() == [[1, 2], [3, 4]]
    x[0, 0] = 50
    assert base.tolist() == [0, 50, 2, 3, 4, 5] and x.set_(base.reshape(2, 3).t()).stride() == (1, 3)
    assert x.is_set_to(base.reshape(2, 3).t()) and x.set_().shape == (0,)
    for wrong, text in (
        ((mt.arange(2, device=device),), "Could not set tensor of type mortice.int64"),
        ((base, -1), "invalid storage offset -1"),
        ((base, 5, (2,)), "out of bounds"),
    ):
        with pytest.raises(RuntimeError, match=text):
            x.set_(*wrong)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        mt.ones(1, device=device, requires_grad=True).set_(base)


def test_as_strided_reaches_around_a_detached_view(device):
    part = mt.arange(6.0, device=device)[2:4].detach()
    assert part.as_strided((2,), (1,)).tolist() == [2, 3] and part.as_strided((2,), (3,), 0).tolist() == [0, 3]


# ---- memory that processes share, files ----


@pytest.mark.needs("sharing")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork processes")
def test_a_forked_process_writes_shared_memory():
    x = mt.zeros(4)
    part = x[1:]
    assert not x.is_shared() and part.share_memory_() is part and x.is_shared() and part.is_shared()
    if (child := os.fork()) == 0:
        part[0] = 5
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [0, 5, 0, 0]
    x.fill_(1)
    assert part.tolist() == [1, 1, 1] and x.share_memory_() is x


@pytest.mark.needs("sharing")
def test_modules_share_their_parameters():
    layer = mt.nn.Linear(2, 2).share_memory()
    assert layer.weight.is_shared() and isinstance(layer.weight, mt.nn.Parameter) and layer(mt.ones(1, 2)).shape == (1, 2)


@pytest.mark.skipif(not STRICT, reason="the conformance kit is not installed")
def test_a_backend_of_copies_shares_nothing_with_processes_or_files(tmp_path):
    with pytest.raises(RuntimeError, match="backend 'strict' cannot use memory that processes share"):
        mt.ones(1, device="strict:0").share_memory_()
    with pytest.raises(RuntimeError, match="from_file: backend 'strict' would copy the file. Pass shared=False, or device='cpu'."):
        mt.from_file(tmp_path / "x", shared=True, size=1, device="strict:0")


def test_no_memory_is_pinned():
    assert not mt.ones(1).is_pinned()
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        mt.ones(1).pin_memory()


@pytest.mark.needs("addresses")
def test_a_part_of_a_storage_is_of_the_same_memory():
    x = mt.ones(3)
    part = x.untyped_storage()[4:8]
    assert len(part) == 4 and part.data_ptr() == x.data_ptr() + 4
    part.fill_(0)
    assert x.tolist() == [1, 0, 1]
    with pytest.raises(RuntimeError, match="Trying to slice with a step of 2, but only a step of 1 is supported"):
        part[::2]


@pytest.mark.needs("sharing")
def test_a_file_can_be_a_tensor(tmp_path):
    path = tmp_path / "numbers"
    x = mt.from_file(path, shared=True, size=3, dtype=mt.float32)
    x[1] = 2
    mt.from_file(path, size=3)[2] = 7  # its own copy
    assert mt.from_file(str(path), size=3).tolist() == [0, 2, 0] and path.stat().st_size == 12
    kept = mt.UntypedStorage.from_file(str(path), False, 12)
    assert type(kept) is mt.UntypedStorage and mt.asarray(kept[4:8], dtype=mt.uint8).view(mt.float32).tolist() == [2]
    kept.fill_(0)
    assert mt.from_file(path, size=3).tolist() == [0, 2, 0] and len(mt.UntypedStorage.from_file(path)) == 0
    with pytest.raises(RuntimeError, match="has 12 bytes; expected 40"):
        mt.from_file(path, size=10)


@pytest.mark.needs("sharing")
@pytest.mark.parametrize("shared", [True, False])
def test_a_tensor_without_elements_needs_and_makes_no_file(tmp_path, shared):
    path = tmp_path / "none"
    assert mt.from_file(path, shared=shared, size=0, dtype=mt.int16).dtype is mt.int16
    assert len(mt.UntypedStorage.from_file(path, shared)) == 0 and not path.exists()


# ---- the same bytes as another dtype ----


def test_view_shows_the_same_bytes(device):
    x = mt.ones(2, 4, device=device)
    bits = x.view(mt.int32)
    assert bits[0, 0] == 0x3F800000 and x.view(mt.int16).shape == (2, 8) and x.view(mt.complex64).shape == (2, 2)
    bits[0, 0] = 0
    assert x[0, 0] == 0 and x._version == 1 and x.t().view(mt.int32).shape == (4, 2)
    x.zero_()
    assert not bits.any() and x.view(float).shape == (2, 2)
    for wrong in (lambda: x.t().view(mt.int16), lambda: mt.tensor(1.0, device=device).view(mt.int16), lambda: x[:, :3].view(mt.float64)):
        with pytest.raises(RuntimeError, match="different element sizes"):
            wrong()


# ---- memory formats ----


KEEPING = {
    "conv2d": lambda x: F.conv2d(x, mt.ones(4, 4, 2, 2).double(), mt.ones(4).double(), groups=2),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, mt.ones(8, 4, 2, 2).double()),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1), "positions": lambda x: F.max_pool2d(x, 2, return_indices=True)[1].double(),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2), "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 3), "max_unpool2d": lambda x: F.max_unpool2d(
        *F.max_pool2d(x, 2, return_indices=True), 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "evaluated": lambda x: F.batch_norm(x, mt.arange(8.0).double(), mt.ones(8).double()), "group_norm": lambda x: F.group_norm(x, 2),
    "bilinear": lambda x: F.interpolate(x, size=(5, 9), mode="bilinear"), "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), "reflect": lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2), "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "cat": lambda x: mt.cat([x, x[:, :3]], 1), "rows": lambda x: mt.cat([x, x[:, :, 2:]], 2), "batch": lambda x: mt.cat([x, x]),
}  # fmt: skip


@pytest.mark.needs("strides")
@pytest.mark.parametrize("name", KEEPING)
def test_results_have_their_channels_last_where_the_operand_has(name):
    given = mt.randn(2, 8, 8, 6, dtype=mt.float64)
    x, y = given.clone().requires_grad_(), given.to(memory_format=mt.channels_last).requires_grad_()
    expected, got = KEEPING[name](x), KEEPING[name](y)
    assert expected.is_contiguous() and got.is_contiguous(memory_format=mt.channels_last)
    assert not got.is_contiguous()
    # Without AVX2 default bodies serve the C extension's networks, and may add up in another order.
    baseline = mt.default_backend() == "cpu_cext" and not mt.get_default_device().backend.keeps_formats
    mt.testing.assert_close(got, expected, rtol=1e-14 * baseline, atol=1e-14 * baseline)
    if expected.requires_grad:
        expected.square().sum().backward()
        got.square().sum().backward()
        mt.testing.assert_close(y.grad, x.grad)


@pytest.mark.needs("strides")
def test_filters_with_channels_last_give_results_that_have_them_last():
    x, w = mt.randn(2, 8, 8, 6), mt.randn(4, 8, 3, 3)
    found = F.conv2d(x, w.to(memory_format=mt.channels_last))
    assert found.stride() == (96, 1, 16, 4) and found.tolist() == F.conv2d(x, w).tolist()
    turned = F.conv_transpose2d(x, mt.ones(8, 4, 3, 3).to(memory_format=mt.channels_last))
    assert turned.is_contiguous(memory_format=mt.channels_last)


@pytest.mark.needs("strides")
def test_results_of_what_has_gaps_or_repeats_lie_in_the_order_of_its_dims():
    gaps = mt.arange(24.0).reshape(8, 3)[::2].t()
    deep = mt.arange(48.0).reshape(2, 6, 4)[:, ::2].permute(2, 0, 1)
    for found in (gaps.exp(), gaps + 1, gaps.clone(), gaps.double(), mt.empty_like(gaps), mt.ones(3, 1).expand(3, 4) + gaps):
        assert found.stride() == (1, 3)
    assert (gaps + 1).tolist() == (gaps.contiguous() + 1).tolist() and mt.zeros_like(deep).stride() == (1, 12, 4)
    assert (deep * 2).stride() == (1, 12, 4) and (deep * 2).tolist() == (deep.contiguous() * 2).tolist()
    assert mt.ones(4).expand(3, 4).exp().stride() == mt.ones(3, 1).expand(3, 4).clone().stride() == (4, 1)


def test_what_is_joined_with_row_major_memory_is_row_major():
    x = mt.randn(2, 3, 4, 4)
    assert mt.cat([x, x.to(memory_format=mt.channels_last)]).is_contiguous()


@pytest.mark.needs("strides")
def test_results_of_three_dims_of_space_have_their_channels_last_too():
    x = mt.randn(2, 3, 4, 4, 4).to(memory_format=mt.channels_last_3d)
    for found in (F.max_pool3d(x, 2), F.interpolate(x, scale_factor=2), F.batch_norm(x, None, None, training=True), mt.cat([x, x])):
        assert found.is_contiguous(memory_format=mt.channels_last_3d) and not found.is_contiguous()


@pytest.mark.parametrize(("shape", "name", "strides"), [((2, 3, 4, 5), "channels_last", (60, 1, 15, 3)),
                                                       ((2, 3, 4, 5, 6), "channels_last_3d", (360, 1, 90, 18, 3))])  # fmt: skip
def test_channels_last_is_an_order_of_strides(device, shape, name, strides):
    wanted = getattr(mt, name)
    x = mt.arange(mt.Size(shape).numel() * 1.0, device=device).reshape(shape).requires_grad_()
    for made in (x.contiguous(memory_format=wanted), x.to(memory_format=wanted), x.clone(memory_format=wanted),
                 x.double(memory_format=wanted)):  # fmt: skip
        assert made.stride() == strides and made.is_contiguous(memory_format=wanted) and not made.is_contiguous()
        assert made.tolist() == x.tolist() and made.contiguous(memory_format=wanted) is made
    assert made.contiguous().is_contiguous() and made.clone(memory_format=mt.contiguous_format).is_contiguous()
    made.sum().backward()
    assert bool((x.grad == 1).all()) and not x.is_contiguous(memory_format=wanted)
    for made in (mt.empty(shape, memory_format=wanted, device=device), mt.zeros_like(x, memory_format=wanted)):
        assert made.stride() == strides and made.is_leaf and not made._is_view()
    with pytest.raises(RuntimeError, match=f"required rank {len(shape)} tensor to use {name} format"):
        x[0].contiguous(memory_format=wanted)


@pytest.mark.needs("strides")
def test_parts_of_images_with_channels_last_give_results_that_have_them_last():
    image = mt.arange(2.0 * 3 * 8 * 6).reshape(2, 3, 8, 6).to(memory_format=mt.channels_last)
    for part in (image[:, :, ::2, ::2], image[:, :, 1:-1, 1:-1]):
        for found in (part * 2, part.exp(), part.double(), F.interpolate(part, scale_factor=2)):
            assert found.is_contiguous(memory_format=mt.channels_last) and not found.is_contiguous()
        assert (part * 2).tolist() == (part.contiguous() * 2).tolist()


def test_modules_take_a_memory_format():
    layer = mt.nn.Conv2d(3, 4, 2).to(memory_format=mt.channels_last)
    x = mt.rand(1, 3, 5, 5)
    assert layer.weight.is_contiguous(memory_format=mt.channels_last) and layer.bias.is_contiguous()
    mt.testing.assert_close(layer(x.to(memory_format=mt.channels_last)), layer(x))
    net = mt.nn.Sequential(mt.nn.Conv2d(3, 4, 2))
    assert mt.nn.utils.convert_conv2d_weight_memory_format(net, mt.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=mt.channels_last) and isinstance(net[0].weight, mt.nn.Parameter)


# ---- old constructors, conversions ----


@pytest.mark.needs("addresses", "cpu")
def test_old_constructors():
    assert mt.Tensor().shape == (0,) and mt.Tensor(2, 3).shape == (2, 3) and mt.Tensor(mt.Size([2])).shape == (2,)
    assert mt.Tensor([2, 3]).dtype is mt.float32 and mt.LongTensor([1.5]).tolist() == [1] and mt.FloatTensor(2).shape == (2,)
    x = mt.ones(2, dtype=mt.float64)
    assert mt.Tensor(x).data_ptr() == x.data_ptr() and x.new(3).shape == x.new(size=(3,)).shape == (3,)
    assert x.new([1, 2]).dtype is mt.float64
    assert mt.LongTensor([1], device="cpu").dtype is mt.int64 and mt.FloatTensor(2, 3, device=mt.device("cpu")).shape == (2, 3)
    with pytest.raises(RuntimeError, match="FloatTensor: legacy constructor expects device type: cpu; got cuda"):
        mt.FloatTensor(2, device="cuda")
    for wrong in (lambda: mt.FloatTensor(x), lambda: mt.ones(1).new(x), lambda: mt.Tensor(5.0), lambda: mt.Tensor("a")):
        with pytest.raises(TypeError, match=r"new\(\)"):
            wrong()


@pytest.mark.needs("addresses", "cpu")
def test_old_constructors_take_an_array_as_it_lies():
    np = pytest.importorskip("numpy")
    a = np.arange(6, dtype=np.float32).reshape(2, 3).T
    for make in (mt.Tensor, mt.FloatTensor, mt.ones(1).new):
        made = make(a)
        assert made.stride() == (1, 3)
        made[0, 0] += 1
    assert a[0, 0] == 3
    mt.DoubleTensor(a)[0, 0] = 7
    assert a[0, 0] == 3
    assert mt.Tensor(np.array(3.0)).tolist() == 3 and mt.LongTensor(np.array(True)).tolist() == 1
    assert mt.Tensor(np.array(3)).shape == mt.Tensor(np.int64(3)).shape == (3,)


@pytest.mark.needs("addresses", "cpu")
def test_old_constructors_take_their_argument_by_its_name():
    assert mt.Tensor(size=(2,)).shape == mt.ByteTensor(size=[2]).shape == mt.LongTensor(size=mt.Size([2])).shape == (2,)
    assert mt.FloatTensor(size=()).shape == mt.ones(1).new(size=()).shape == ()
    assert (
        mt.FloatTensor(data=[1, 2]).tolist()
        == mt.Tensor(data=[1, 2]).tolist()
        == mt.ones(1).new(data=[1, 2]).tolist()
        == [1, 2]
    )
    x = mt.ones(2)
    assert mt.Tensor(other=x).data_ptr() == mt.FloatTensor(other=x).data_ptr() == x.data_ptr()
    assert mt.FloatTensor(storage=x.storage()).tolist() == [1, 1]
    for wrong, got in (
        (lambda: mt.FloatTensor(shape=(2,)), "shape=tuple"),
        (lambda: mt.Tensor((2,), size=(2,)), "tuple, size=tuple"),
        (lambda: mt.Tensor(x, data=[1]), "Tensor, data=list"),
        (lambda: mt.ByteTensor(size=3), "size=int"),
        (lambda: x.new(size=(2,), data=[1]), "size=tuple, data=list"),
    ):
        message = f"new() received an invalid combination of arguments - got ({got}). Give one of size, data, other and storage."
        with pytest.raises(TypeError, match=re.escape(message)):
            wrong()


@pytest.mark.needs("cpu")
def test_to_takes_its_arguments_in_every_form():
    x = mt.ones(1)
    same = (x.to("cpu"), x.to(mt.float32), x.to(x), x.to(), x.to("cpu", mt.float32), x.to(None, None), x.cpu(), x.float(),
            x.type(mt.float32))  # fmt: skip
    assert all(t is x for t in same) and x.to(mt.float32, copy=True) is not x and x.to("cpu", mt.float32, False, True) is not x
    for made in (x.to(mt.int8), x.to("cpu", mt.int8), x.to(mt.ones(1, dtype=mt.int8)), x.to(None, mt.int8), x.to(dtype=mt.int8),
                 x.type(mt.CharTensor), x.type("mortice.CharTensor")):  # fmt: skip
        assert made.dtype is mt.int8
    assert mt.ones(1, dtype=mt.int64).type(mt.Tensor).dtype is mt.float32
    for wrong in (lambda: x.to(mt.int8, "cpu"), lambda: x.to(1.5), lambda: x.to(foo=1), lambda: x.to("cpu", mt.int8, True, True, True)):
        with pytest.raises(TypeError, match="to:"):
            wrong()


def test_constants():
    assert (mt.inf, mt.pi, mt.e, mt.newaxis) == (float("inf"), 3.141592653589793, 2.718281828459045, None) and mt.nan != mt.nan


# ---- other sizes over the same memory ----


def test_resizing_shows_the_memory_in_its_own_order():
    x = mt.arange(6.0).reshape(2, 3)
    turned = x.t()
    turned.resize_(2, 3)
    assert turned.tolist() == [[0, 1, 2], [3, 4, 5]] and turned.stride() == (3, 1)
    part = mt.arange(8.0)
    head, tail = part[:6], part[5:]
    head.resize_(2, 2).fill_(-1)
    tail.resize_(2).fill_(-2)
    assert part.tolist() == [-1, -1, -1, -1, 4, -2, -2, 7] and tail.storage_offset() == 5


def test_resizing_to_the_same_size_changes_nothing():
    x = mt.ones(2, 3).t()
    assert x.resize_(3, 2).stride() == (1, 3) and x.resize_as_(x).stride() == (1, 3)


def test_resizing_grows_by_zeros_and_takes_a_memory_format(device):
    x = mt.arange(4.0, device=device)[1:]
    assert x.resize_(2, 3).tolist() == [[1, 2, 3], [0, 0, 0]]
    y = mt.arange(24.0).resize_(1, 3, 2, 4, memory_format=mt.channels_last)
    assert y.stride() == (24, 1, 12, 3) and y[0, :, 0, 0].tolist() == [0, 1, 2]
    assert mt.zeros(24).resize_as_(y, memory_format=mt.preserve_format).stride() == y.stride()
    assert mt.zeros(24).resize_as_(y).stride() == (24, 8, 4, 1)
    for wrong in (mt.preserve_format, mt.channels_last):
        with pytest.raises(RuntimeError, match="resize_"):
            mt.zeros(4).resize_(2, 2, memory_format=wrong)


def test_a_number_lies_in_memory_that_its_views_share(device):
    x = mt.tensor(1.0, device=device)
    row = x.reshape(1)
    assert x.untyped_storage() == row.untyped_storage()
    row.storage()[0] = 4
    assert x.item() == 4


def test_another_dtype_over_a_column_is_the_same_memory():
    x = mt.zeros(3, 2, dtype=mt.int32)
    x[:, 1:].view(mt.uint8)[0, 0] = 7
    x.t()[:1, ::3].view(mt.int16)[0, 1] = 1
    assert x.tolist() == [[1 << 16, 7], [0, 0], [0, 0]]


def test_another_dtype_over_what_requires_grad_is_outside_the_graph():
    leaf = mt.ones(2, requires_grad=True)
    for x in (leaf, leaf * 2):
        for dtype in (mt.int32, mt.float64):
            assert not x.view(dtype).requires_grad
        assert x.view(mt.float32).requires_grad  # nothing is reinterpreted: that is more than PyTorch gives
    leaf.view(mt.int32)[0] = 0
    assert leaf.tolist() == [0, 1]


def test_bytes_viewed_as_bools_are_true_where_they_are_not_zero():
    mask = mt.tensor([0, 255, 2, 1], dtype=mt.uint8).view(mt.bool)
    assert mask.equal(mt.tensor([False, True, True, True])) and mask.sum() == 3
    assert (mask ^ True).tolist() == [True, False, False, False] and mask.view(mt.uint8).tolist() == [0, 1, 1, 1]
    assert mt.tensor([0, -1], dtype=mt.int16).view(mt.bool).sum() == 2
    plain = mt.tensor([0, 1], dtype=mt.uint8)
    plain.view(mt.bool)[0] = True
    assert plain.tolist() == [1, 1]


@pytest.mark.parametrize("call", ["view(mt.int32)", "view(dtype=mt.int32)"])
def test_a_view_of_another_dtype_is_one_from_the_first_call_on(call):
    code = f"import mortice as mt; x = mt.ones(3); y = x.{call}; assert y.dtype is mt.int32 and y[0] == 1065353216, y"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_strides_where_there_are_no_elements():
    assert mt.zeros(0, 3).stride() == (3, 1) and mt.zeros(5, 0, 2).stride() == (2, 2, 1) and mt.ones(0).stride() == (1,)
    part = mt.zeros(2, 3, 4)[:, :, 1][:, 1:1]
    assert part.stride() == (12, 4) and part.is_contiguous()
    assert mt.zeros(0, 4).view(mt.uint8).stride() == (16, 1)


def test_a_typed_storage_is_made_of_numbers():
    assert mt.TypedStorage([1, 2, 3], dtype=mt.float32).tolist() == [1.0, 2.0, 3.0]
    assert mt.TypedStorage((1.5, 2), dtype=mt.int64).tolist() == [1, 2] and mt.TypedStorage(2, dtype=mt.float64).size() == 2


@pytest.mark.needs("cpu")
def test_classes_of_storages_make_typed_ones(tmp_path):
    made = mt.FloatStorage([1, 2])
    assert isinstance(made, mt.FloatStorage) and isinstance(made, mt.TypedStorage) and not isinstance(made, mt.DoubleStorage)
    assert made.tolist() == [1.0, 2.0] and len(mt.LongStorage(3)) == 3 and mt.HalfStorage.dtype is mt.float16
    seen = mt.FloatTensor(mt.FloatStorage(2))
    assert seen.fill_(3.0).storage().tolist() == [3.0, 3.0] and seen.shape == (2,)
    with pytest.raises(RuntimeError, match="Expected a Storage of type float or an UntypedStorage, but got type Double for argument"):
        mt.FloatTensor(mt.DoubleStorage(2))
    data = bytearray(b"\x01\x02\x03")
    copied = mt.ByteTensor(mt.ByteStorage.from_buffer(data, offset=1))
    data[1] = 9
    assert copied.tolist() == [2, 3] and mt.IntStorage.from_buffer(bytes(8), "native").tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="IntStorage.from_buffer: expected byte_order 'native', 'little' or 'big'; got None"):
        mt.IntStorage.from_buffer(bytes(8))
    with pytest.raises(ValueError, match="expected byte_order 'native', 'little' or 'big'; got 'x'"):
        mt.IntStorage.from_buffer(bytes(8), "x")
    whole = mt.IntStorage([-1, 0, 2])
    assert whole.type().endswith(".IntStorage") and whole.int().data_ptr() != whole.data_ptr()
    for name, want in (("float", [-1, 0, 2]), ("int", [-1, 0, 2]), ("bool", [True, False, True]), ("complex_double", [-1, 0, 2])):
        assert getattr(whole, name)().tolist() == want
    assert whole.complex_float().dtype is mt.complex64 and whole.bfloat16().type().endswith(".BFloat16Storage")
    counted = bytes(range(1, 7))
    for order in ("big", "little"):
        want = [int.from_bytes(counted[i : i + 2], order) for i in (0, 2, 4)]
        assert mt.ShortStorage.from_buffer(counted, order).tolist() == want
        assert mt.ShortStorage.from_buffer(counted, byte_order=order, count=1, offset=2).tolist() == want[1:2]
    assert mt.ComplexFloatStorage.from_buffer(b"\x40\0\0\0\x40\x80\0\0", "big").tolist() == [2 + 4j]
    (tmp_path / "numbers").write_bytes(mt.arange(3.0).numpy().tobytes())
    assert mt.FloatStorage.from_file(str(tmp_path / "numbers"), size=2).tolist() == [0.0, 1.0]


def test_bytes_are_seen_in_the_tensor_s_dtype():
    x = mt.arange(6.0)
    seen = mt.empty(0).set_(x.untyped_storage(), 1, (2, 2), (1, 2))
    assert seen.tolist() == [[1, 3], [2, 4]]
    assert mt.empty(0, dtype=mt.int32).set_(x.untyped_storage()).tolist()[:2] == [0, 0x3F800000]
    seen.fill_(9)
    assert x.tolist() == [0, 9, 9, 9, 9, 5]
    with pytest.raises(RuntimeError, match="Expected a Storage of type int or an UntypedStorage, but got type Float for argument"):
        mt.empty(0, dtype=mt.int32).set_(x.storage())


@pytest.mark.needs("sharing")
@pytest.mark.parametrize("kind", ["storage", "_typed_storage", "untyped_storage"])
def test_a_collate_function_writes_a_batch_into_shared_memory(kind):
    items = [mt.full((2, 3), float(i)) for i in range(4)]
    storage = getattr(items[0], kind)()
    made = storage._new_shared(24 * 4 // storage.element_size())
    out = items[0].new(made).resize_(4, 2, 3)
    assert made.is_shared() and mt.stack(items, 0, out=out) is out and out.is_shared()
    assert out[:, 1, 2].tolist() == [0, 1, 2, 3] and mt.empty(0).set_(made)[-1] == 3


def test_a_comparison_in_place_is_seen_through_every_name_of_the_memory(device):
    x = mt.tensor([3.0, 1.0, 2.0, 5.0], device=device)
    view, detached, flipped = x[1:3], x.detach(), mt.tensor([[1.0, -1.0], [2.0, 0.0]], device=device).t()
    assert x.gt_(1.5) is x
    assert x.tolist() == detached.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert view.tolist() == [0.0, 1.0]
    assert flipped.eq_(flipped).stride() == (1, 2)
    assert flipped.lt_(mt.tensor([[2.0, 0.0], [2.0, 0.0]], device=device)).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert x.dtype is mt.float32


def test_storages_are_told_apart_by_a_number() -> None:
    x, y = mt.arange(6.0), mt.arange(6.0)
    for kind in ("storage", "untyped_storage"):
        mine, view, other = (getattr(t, kind)() for t in (x, x[2:], y))
        assert mine._cdata == view._cdata != other._cdata and mine.get_device() == x.get_device()


def test_asking_whether_a_tensor_can_be_iterated_makes_no_rows() -> None:
    def tensors() -> int:
        return sum(type(o) is mt.Tensor for o in gc.get_objects())

    x = mt.arange(12).reshape(4, 3)
    gc.collect()  # so that none of other tests' tensors goes between the counts
    before = tensors()
    rows = iter(x)
    assert tensors() == before
    next(rows)[0] = 9
    assert [row.tolist() for row in rows] == [[3, 4, 5], [6, 7, 8], [9, 10, 11]] and x[0, 0] == 9


@pytest.mark.needs("strides")
def test_a_part_of_a_storage_is_set_from_its_own_beginning():
    memory = mt.arange(10.0)
    part = mt.tensor([]).set_(memory.untyped_storage()[8:24], 1, (2,))
    assert part.tolist() == [3.0, 4.0]
    part[0] = 99
    assert memory[3].item() == 99
