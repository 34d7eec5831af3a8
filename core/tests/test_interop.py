"""Memory shared with NumPy, with Python's buffers and by DLPack; numbers of NumPy as operands; what Python asks of a tensor."""

from __future__ import annotations

import copy
import gc
import importlib.util
import json
import math
import pickle
import subprocess
import sys
import weakref

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed: nothing is shared with it")

import mortice as mt  # noqa: E402
from mortice.backends import dlpack as capsules  # noqa: E402
from mortice.utils.dlpack import DLDeviceType, to_dlpack  # noqa: E402
from mortice.utils.dlpack import from_dlpack as from_capsule  # noqa: E402

NAMES = """bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128""".split()
STRICT = importlib.util.find_spec("mortice_conformance") is not None
needs_strict = pytest.mark.skipif(not STRICT, reason="the conformance kit is not installed: no strict backend")


def array(name="float32"):
    return np.arange(24).reshape(4, 6).astype(name)


LAYOUTS = {
    "plain": lambda x: x, "transposed": lambda x: x.T, "stepped": lambda x: x[::2, 1::2], "reversed": lambda x: x[::-1, ::-1],
    "row": lambda x: x[1], "number": lambda x: x[1, 2, ...], "empty": lambda x: x[:0],
}  # fmt: skip


# ---- NumPy ----


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_an_array_and_its_tensor_share_memory(name, layout):
    source = LAYOUTS[layout](array(name))
    t = mt.from_numpy(source)
    assert t.dtype is getattr(mt, name) and tuple(t.shape) == source.shape
    back = t.numpy()
    assert back.dtype == source.dtype and np.array_equal(back, source)
    if source.size:
        assert np.shares_memory(back, source) and back.strides == source.strides
        t.fill_(1)
        assert source.all()
        source[...] = 0
        assert not t.any()


@pytest.mark.needs("cpu")
def test_the_memory_outlives_whoever_made_it():
    t = mt.from_numpy(array())
    view = mt.arange(6.0).numpy()
    gc.collect()
    assert t[3, 5] == 23 and view.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.needs("strides")
def test_a_copy_of_an_array_keeps_its_order_in_memory():
    array = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    like = mt.zeros(1, dtype=mt.float64)
    for copied in (mt.tensor(array), mt.tensor(array, dtype=mt.float32), mt.Tensor(array), mt.DoubleTensor(array), like.new_tensor(array)):
        assert copied.stride() == (1, 12, 4) and copied.tolist() == array.tolist()
    copied = mt.tensor(array)
    copied[0, 0, 0] = 9
    assert array[0, 0, 0] == 0 and mt.tensor(array).untyped_storage().nbytes() == 192


@pytest.mark.needs("cpu")
def test_writes_in_place_reach_the_array_also_where_the_tensor_could_have_moved():
    t = mt.ones(3)
    seen = t.numpy()
    t += 1
    t.mul_(3)
    t[0] = 0
    assert seen.tolist() == [0, 6, 6]
    t.data.add_(1)
    assert seen.tolist() == [1, 7, 7]


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("name", NAMES)
def test_arrays_have_numpys_own_types(name):
    t = mt.ones(2, 3, dtype=getattr(mt, name))
    for made in (t.numpy(), t.t().numpy(), t[0, 0].numpy(), np.asarray(t), np.asarray(t.__buffer__(0)), t.numpy()[::2].copy()):
        assert made.dtype.type is np.dtype(name).type and made.dtype.char == np.dtype(name).char
    if name != "bool":
        t.t().numpy()[2, 1] = 7
        assert t[1, 2].item() == 7 and t.t().numpy().strides == t.numpy().T.strides


def test_numpy_refuses_what_the_graph_would_not_see():
    x = mt.ones(2, requires_grad=True)
    for ask in (x.numpy, lambda: np.asarray(x), lambda: np.sin(x), x.__array__):
        with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\) instead"):
            ask()
    assert x.numpy(force=True).tolist() == [1, 1]
    with pytest.raises(TypeError):
        x.numpy(True)  # by name only


@needs_strict
@pytest.mark.seed("NP01")
def test_numpy_refuses_other_devices_and_force_copies():
    x = mt.ones(2, device="strict:0")
    with pytest.raises(TypeError, match="can't convert strict:0 device type tensor to numpy"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1, 1]


@pytest.mark.needs("cpu")
def test_bfloat16_goes_to_numpy_and_comes_back():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: NumPy has no bfloat16")
    source = np.array([1.5, 2.5], ml_dtypes.bfloat16)
    t = mt.from_numpy(source)
    t[0] = 4
    assert t.dtype is mt.bfloat16 and source.tolist() == [4, 2.5] and t.numpy().dtype == source.dtype
    assert mt.from_numpy(source[::-1]).tolist() == [2.5, 4]


@pytest.mark.needs("cpu")
def test_array_takes_numpys_dtype_and_copy():
    x = mt.ones(2)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64 and np.array(x, dtype="i4").dtype == np.int32
    assert np.shares_memory(np.asarray(x), x.numpy()) and not np.shares_memory(np.array(x), x.numpy())
    assert not np.shares_memory(x.__array__(copy=True), x.numpy())
    with pytest.raises(ValueError, match="a copy is needed to convert mortice.float32"):
        x.__array__(np.float64, copy=False)


@pytest.mark.parametrize("number", [np.float64(1.5), np.int8(3), np.bool_(True), np.complex64(1j)])
def test_a_number_of_numpys_is_copied_since_nobody_may_write_to_it(number):
    for make in (mt.tensor, mt.as_tensor, mt.asarray):
        t = make(number)
        t[...] = 0
        assert str(t.dtype) == f"mortice.{number.dtype}" and number != 0
    with pytest.raises(ValueError, match="can't alias NumPy scalars"):
        mt.asarray(number, copy=False)


def test_real_numbers_have_no_imaginary_part_to_ask_for():
    assert hasattr(mt.ones(2, dtype=mt.complex64), "imag") and not hasattr(mt.ones(2), "imag")
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        mt.ones(2).imag  # noqa: B018


@pytest.mark.needs("cpu")
def test_a_read_only_array_gives_a_tensor_that_refuses_writes():
    fixed = array()
    fixed.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable") as told:
        shared = mt.from_numpy(fixed), mt.as_tensor(fixed)
    assert len(told) == 1 and mt.tensor(fixed).shape == shared[1].shape
    for t in (shared[0], mt.from_dlpack(fixed)):
        assert t[0, 1] == 1
        with pytest.raises(ValueError, match="read-only"):
            t.fill_(5)
    assert fixed[0, 1] == 1


@pytest.mark.parametrize(
    ("bad", "kind", "text"),
    [
        ([1.0], TypeError, "expected np.ndarray; got list"),
        (np.float32(1), TypeError, "expected np.ndarray; got float32"),
        (np.array([None]), TypeError, "can't convert ndarray of type object"),
        (np.array(["a"]), TypeError, "can't convert ndarray of type <U1"),
        (np.zeros(2, "M8[s]"), TypeError, "can't convert ndarray of type datetime64"),
        (np.zeros(2, [("a", "f4")]), TypeError, "can't convert ndarray"),
        (np.zeros(2, np.dtype("f4").newbyteorder()), ValueError, "byte order different from the native"),
        (np.zeros(3, [("a", "f4"), ("b", "u1")])["a"], ValueError, "strides not a multiple of the element byte size"),
    ],
)
def test_what_no_tensor_can_show_is_refused(bad, kind, text):
    with pytest.raises(kind, match=text):
        mt.from_numpy(bad)


# ---- as_tensor, asarray, tensor ----


@pytest.mark.parametrize("make", [mt.tensor, mt.as_tensor, mt.asarray])
@pytest.mark.parametrize(
    "bad", [np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.str_("a"), np.bytes_(b"ab"), np.void(b"abc")], ids=repr
)
def test_what_numpy_lends_as_bytes_is_no_number(make, bad):
    with pytest.raises(TypeError):
        make(bad)



@pytest.mark.needs("sharing")
def test_as_tensor_shares_where_dtype_and_device_allow():
    source = array("float64")
    assert mt.as_tensor(source).data_ptr() == source.ctypes.data
    assert mt.as_tensor(source, dtype=mt.float64, device="cpu").data_ptr() == source.ctypes.data
    assert mt.as_tensor(source, dtype=mt.float32).data_ptr() != source.ctypes.data
    t = mt.ones(2, requires_grad=True) * 2
    assert mt.as_tensor(t) is t and mt.as_tensor(t, dtype=mt.float64).requires_grad
    assert mt.as_tensor([1, 2.5]).tolist() == [1, 2.5]


@pytest.mark.needs("sharing")
def test_asarray_says_when_it_cannot_alias():
    source = array()
    assert mt.asarray(source, copy=False).data_ptr() == source.ctypes.data
    assert mt.asarray(source, copy=True).data_ptr() != source.ctypes.data
    told = "can't alias tensor with dtype 'mortice.float32' into dtype 'mortice.float64', from device 'cpu' to 'cpu'"
    with pytest.raises(ValueError, match=told):
        mt.asarray(source, dtype=mt.float64, copy=False)
    with pytest.raises(ValueError, match="can't alias arbitrary sequence, the memory of list"):
        mt.asarray([1], copy=False)
    x = mt.ones(1, requires_grad=True)
    assert mt.asarray(x) is x and not mt.asarray(x, requires_grad=False).requires_grad
    assert not mt.asarray(x * 2, requires_grad=True).is_leaf  # it stays in the graph
    assert mt.asarray(bytearray(b"\1\0\2\0"), dtype=mt.int16).tolist() == [1, 2]


def test_nested_data_mixes_numbers_arrays_and_tensors():
    assert mt.tensor([np.ones(2, "f4"), [2, 3]]).tolist() == [[1, 1], [2, 3]]
    assert mt.tensor([[1, 2], np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert mt.tensor([mt.tensor(1, dtype=mt.float64), 2]).dtype is mt.float64
    assert mt.tensor([np.float16(1), 2]).dtype is mt.float16
    assert mt.tensor([np.array(1, "i4"), np.array(2, "i8")]).dtype is mt.int64
    assert mt.tensor(range(3)).tolist() == [0, 1, 2] and mt.tensor(bytearray(b"ab")).tolist() == [97, 98]
    with pytest.raises((ValueError, TypeError, RuntimeError), match="expected sequence of length 2"):
        mt.tensor([[1, 2], [3]])


def test_pythons_own_types_stand_for_dtypes():
    assert mt.zeros(1, dtype=float).dtype is mt.float64 and mt.tensor([1.5], dtype=int).tolist() == [1]
    assert mt.ones(1).to(complex).dtype is mt.complex128 and mt.ones(2).sum(dtype=int).dtype is mt.int64
    assert mt.arange(3, dtype=float).dtype is mt.float64 and mt.rand(1, dtype=float).dtype is mt.float64
    with pytest.raises(TypeError, match="expected dtype to be a mortice dtype; got 'float32'"):
        mt.zeros(1, dtype="float32")


# ---- buffers ----


@pytest.mark.needs("cpu")
def test_a_tensor_is_a_buffer_by_way_of_numpy():
    t = mt.arange(6.0).reshape(2, 3)
    view = memoryview(np.asarray(t))
    assert view.format == "f" and view.shape == (2, 3)
    view[1, 2] = 50
    assert t[1, 2] == 50


@pytest.mark.needs("cpu")
def test_the_buffer_method_shows_memory_and_refuses_what_it_cannot():
    t = mt.arange(3, dtype=mt.int16)
    view = t.__buffer__(0)
    view[0] = 7
    assert t.tolist() == [7, 1, 2]
    for bad in (mt.ones(1, requires_grad=True), mt.ones(1, dtype=mt.bfloat16)):
        with pytest.raises(BufferError):
            bad.__buffer__(0)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 is the first that asks for __buffer__")
def test_memoryview_asks_the_tensor_itself():
    t = mt.arange(4, dtype=mt.uint8)
    memoryview(t)[0] = 9
    assert t[0] == 9 and bytes(t) == b"\x09\1\2\3"


@pytest.mark.needs("sharing")
def test_frombuffer_reads_any_part_and_shares_it():
    memory = bytearray(range(8))
    t = mt.frombuffer(memory, dtype=mt.uint8, count=3, offset=2)
    t[0] = 99
    assert t.tolist() == [99, 3, 4] and memory[2] == 99
    assert mt.frombuffer(memory, dtype=mt.int16, offset=4).tolist() == [0x0504, 0x0706]
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        assert mt.frombuffer(b"\0\1", dtype=mt.bool).tolist() == [False, True]
    for arguments in ({"offset": 9}, {"offset": -1}, {"count": 0}, {"count": 3, "offset": 6}, {"offset": 7, "dtype": mt.int16}):
        with pytest.raises(ValueError, match="frombuffer"):
            mt.frombuffer(memory, **{"dtype": mt.uint8, **arguments})
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        mt.frombuffer([1], dtype=mt.uint8)


# ---- DLPack ----


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_dlpack_shares_memory_both_ways(name, layout):
    source = LAYOUTS[layout](array(name))
    t = mt.from_dlpack(source)
    assert t.dtype is getattr(mt, name) and t.tolist() == source.tolist()
    back = np.from_dlpack(t)
    assert np.array_equal(back, source) and back.dtype == source.dtype
    if source.size:
        assert np.shares_memory(back, source) and back.strides == source.strides
        source[...] = 1
        assert bool(t.to(mt.complex64).eq(1).all())


def test_what_is_lent_lives_until_the_borrower_is_done():
    source = array()
    gone = weakref.ref(source)
    t = mt.from_dlpack(source)
    part = t[1:].detach()
    del source, t
    gc.collect()
    assert gone() is not None and part[0, 0] == 6
    del part
    gc.collect()
    assert gone() is None


def test_a_capsule_can_be_taken_once():
    capsule = to_dlpack(mt.arange(3.0))
    t = from_capsule(capsule)
    for take in (mt.from_dlpack, lambda c: np.from_dlpack(capsules.Held(c))):
        with pytest.raises(RuntimeError, match="can be consumed only once"):
            take(capsule)
    del capsule
    gc.collect()
    assert t.tolist() == [0, 1, 2]


@pytest.mark.needs("sharing")
def test_an_unused_capsule_gives_back_what_it_lent():
    source = array()
    gone, capsule = weakref.ref(source), mt.from_numpy(source).__dlpack__(max_version=(1, 0))
    del source
    gc.collect()
    assert gone() is not None
    del capsule
    gc.collect()
    assert gone() is None


@pytest.mark.needs("addresses")
def test_the_protocols_arguments():
    t = mt.arange(3.0)
    kind, index = t.__dlpack_device__()
    assert (kind, index) == (1, 0) and kind is DLDeviceType.kDLCPU
    assert "versioned" not in repr(t.__dlpack__()) and "versioned" in repr(t.__dlpack__(max_version=(1, 0)))
    assert mt.from_dlpack(t).data_ptr() == t.data_ptr() != mt.from_dlpack(t, copy=True).data_ptr()
    assert not np.shares_memory(np.from_dlpack(t, copy=True), t.numpy())
    t.__dlpack__(stream=-1, dl_device=(1, 0), copy=False)
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        t.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="stream"):
        t.__dlpack__(stream="a")
    with pytest.raises(BufferError, match="without a copy"):
        t.__dlpack__(dl_device=(2, 0), copy=False)


def test_dlpack_refuses_what_the_graph_would_not_see():
    for bad in (mt.ones(1, requires_grad=True), mt.ones(1, requires_grad=True) * 2):
        for lend in (bad.__dlpack__, lambda bad=bad: np.from_dlpack(bad), lambda bad=bad: mt.from_dlpack(bad)):
            with pytest.raises(BufferError, match=r"use tensor.detach\(\)"):
                lend()
    with pytest.raises(RuntimeError, match="expected an array that has __dlpack__"):
        mt.from_dlpack(5)


@needs_strict
def test_a_backend_that_shares_no_memory_copies_and_says_so():
    t = mt.from_dlpack(array(), device="strict_f32")
    assert str(t.device) == "strict_f32" and t[3, 5] == 23
    with pytest.raises(ValueError, match="backend 'strict' copies what it is given"):
        mt.from_dlpack(array(), device="strict:0", copy=False)
    for lend in (t.__dlpack__, t.__dlpack_device__):
        with pytest.raises(BufferError, match="DLPack has no number for"):
            lend()
    assert mt.from_dlpack(capsules.Held(t.__dlpack__(dl_device=(1, 0)))).tolist() == t.tolist()
    assert capsules.device_code(mt.device("hpu:2")) == (DLDeviceType.kDLExtDev, 2)


def test_devices_have_their_names_in_dlpack():
    for name in ("cpu", "cuda:1", "vulkan:0"):
        assert capsules.device_name(capsules.device_code(mt.device(name))) == name
    assert capsules.device_name((3, 0)) == "cpu" and capsules.device_name((13, 2)) == "cuda:2"
    with pytest.raises(BufferError, match="no device here is of DLPack's kind 12"):
        capsules.device_name((12, 0))


def test_a_tensor_inside_a_transform_lends_nothing():
    for ask, kind in ((lambda x: x.numpy(), RuntimeError), (lambda x: x.__dlpack__(), BufferError)):
        with pytest.raises(kind, match="inside a function transform"):
            mt.vmap(ask)(mt.ones(2, 3))


class Lender:
    """An array that says it is on a CUDA device."""

    def __init__(self, array):
        self.array, self.asked = array, {}

    def __dlpack__(self, **options):
        self.asked = options
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return 2, 0


@pytest.fixture
def cuda():
    """A backend whose arrays say that they are on a CUDA device."""
    from mortice.backends import BackendInfo, NamespaceBackend, plugins

    class Library:
        def __getattr__(self, name):
            return getattr(np, name)

        def from_dlpack(self, source):
            source.__dlpack__(stream=1)
            return source.array

    class Backend(NamespaceBackend):
        streams: list = []

        def __init__(self):
            super().__init__(Library(), {"cuda:0": "cpu"}, mutable=True)

        def dlpack_device(self, x):
            return 2, 0

        def to_dlpack(self, x, *, stream=None, max_version=None):
            self.streams.append(stream)
            return x.__dlpack__()

        def address(self, x):
            return x.ctypes.data

        def strides_of(self, x):
            return tuple(s // x.itemsize for s in x.strides)

    plugins.register(BackendInfo("elsewhere", ("cuda",), Backend, priority=-1))
    yield Backend
    del plugins.entries()["elsewhere"]


def test_arrays_of_another_device_stay_there_and_streams_are_passed_on(cuda):
    lender = Lender(np.ones(3))
    borrowed = mt.from_dlpack(lender)
    assert str(borrowed.device) == "cuda:0" and borrowed._buffer is lender.array and lender.asked == {"stream": 1}
    assert mt.from_dlpack(np.ones(2), device="cuda").device.type == "cuda" and mt.from_dlpack(lender, device="cpu").is_cpu
    with pytest.raises(ValueError, match="cannot move from cuda:0 to cpu without a copy"):
        mt.from_dlpack(lender, device="cpu", copy=False)
    borrowed.__dlpack__(stream=7), borrowed.__dlpack__()
    assert cuda.streams == [7, -1] and borrowed.__dlpack_device__() == (2, 0)
    x = mt.ones(2, 3, device="cuda")
    shown = x.__cuda_array_interface__
    assert shown == {"typestr": "<f4", "shape": (2, 3), "strides": None, "data": (x.data_ptr(), False), "version": 2}
    assert x.t().__cuda_array_interface__["strides"] == (4, 12) and x.is_shared()
    with pytest.raises(RuntimeError, match="requires grad"):
        x.requires_grad_().__cuda_array_interface__  # noqa: B018


def test_a_cpu_tensor_has_no_cuda_interface():
    assert not hasattr(mt.ones(1), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="non-CUDA tensor type: mortice.FloatTensor"):
        mt.ones(1).__cuda_array_interface__  # noqa: B018


# ---- numbers and arrays of NumPy as operands ----


def test_an_array_beside_a_tensor_gives_a_tensor_in_the_graph():
    a, x = np.full((2, 2), 3, "f4"), mt.full((2, 2), 2.0, requires_grad=True)
    for found, value in ((a * x, 6), (x * a, 6), (a - x, 1), (x - a, -1), (a / x, 1.5), (a**x, 9), (a + x, 5), (a @ x, 12)):
        assert isinstance(found, mt.Tensor) and found.requires_grad and found.tolist() == [[value] * 2] * 2
    assert (a > x).dtype is mt.bool and bool((x < a).all()) and not bool((a == x).any())
    (a * x).sum().backward()
    assert x.grad.tolist() == a.tolist()


def test_an_array_in_place_makes_a_tensor_anew():
    t = mt.ones(2)
    kept = t
    t *= np.float32(2)
    assert t is kept
    t += np.array([1, 2], "f4")  # Python goes from __iadd__ to __add__
    assert t is not kept and t.tolist() == [3, 4] and kept.tolist() == [2, 2]


@pytest.mark.oracle
@pytest.mark.needs("cpu")
@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")  # of PyTorch's
@pytest.mark.parametrize("operator", "+ - * / // % ** @".split())
def test_an_array_beside_a_tensor_gives_the_dtype_that_numpy_gives(operator):
    torch = pytest.importorskip("torch")

    def found(m, code, dtype):
        try:
            t = eval(code, {"np": np, "t": m.arange(1, 4, dtype=getattr(m, dtype))})
        except ValueError:
            return None
        return str(t.dtype).rpartition(".")[2], t.tolist()

    for given in ("np.arange(1, 4)", "np.float32([1, 2, 3])", "np.array(2.0)", "np.int8([1, 2, 3])"):
        for code in (f"t {operator} {given}", f"{given} / t"):
            for dtype in ("float32", "int64", "int8"):
                assert found(mt, code, dtype) == found(torch, code, dtype), (code, dtype)


def test_a_bool_of_numpy_counts_as_a_float():
    t, yes = mt.arange(3), np.bool_(True)
    for found in (t + yes, yes + t, mt.add(t, yes), yes - t + 2 * t):
        assert found.dtype is mt.float32 and found.tolist() == [1, 2, 3]


def test_numbers_of_numpy_are_numbers():
    t = mt.ones(2)
    for number in (np.float32(2), np.float64(2), np.int64(2)):
        for found in (number * t, t * number, mt.mul(t, number), t.clone().mul_(number), mt.full((2,), number).float()):
            assert found.dtype is mt.float32 and found.tolist() == [2, 2]
    assert mt.full((2,), np.float32(1.5)).tolist() == [1.5, 1.5] and mt.arange(np.float32(2)).dtype is mt.float32
    assert mt.zeros(np.int64(2), np.int32(3)).shape == (2, 3) and mt.eye(np.int64(2)).shape == (2, 2)
    assert t.reshape((np.int64(1), np.int64(-1))).squeeze(np.int64(0)).sum(np.int64(0)) == 2
    assert mt.linspace(0, 1, np.int64(3)).tolist() == [0, 0.5, 1] and mt.arange(4.0).topk(np.int64(1))[0] == 3
    before = mt.randperm(np.int64(3))
    assert mt.rand(2).shape == (2,) and sorted(before.tolist()) == [0, 1, 2]


def test_numpy_indices_and_masks():
    t = mt.arange(12).reshape(3, 4)
    assert t[np.int64(1), np.array([0, 2])].tolist() == [4, 6] and t[np.array([True, False, True])].shape == (2, 4)
    assert t[np.int64(1) : np.int64(3), None].shape == (2, 1, 4)
    assert np.arange(5)[mt.tensor([1, 3]).cpu()].tolist() == [1, 3] and [1, 2, 3][mt.tensor(1)] == 2


@pytest.mark.needs("cpu")
@pytest.mark.seed("NP04")
def test_numpys_functions_take_tensors():
    x = mt.tensor([[4.0, 9.0], [16.0, 25.0]])
    assert isinstance(np.sqrt(x), mt.Tensor) and np.sqrt(x).tolist() == [[2, 3], [4, 5]]
    assert isinstance(np.add(x, x), mt.Tensor) and np.add(x, 1)[0, 0] == 5
    assert isinstance(np.concatenate([x, x]), np.ndarray) and np.stack([x, x]).shape == (2, 2, 2)
    assert np.isnan(x).dtype is np.greater(x, 1).dtype is mt.uint8  # as in PyTorch
    assert np.sum(x) == 54 and np.sum(x, axis=0).tolist() == [20, 34] and np.max(x) == 25 and np.shape(x) == (2, 2)
    assert np.linalg.norm(mt.ones(4)) == 2 and np.allclose(x, x.numpy())


# ---- what Python asks ----


def test_a_tensor_of_one_number_is_a_number():
    x = mt.tensor(2.5)
    assert (int(x), float(x), complex(x), bool(x)) == (2, 2.5, 2.5 + 0j, True)
    assert f"{x}" == "2.5" and f"{x:.3f}" == "2.500" and f"{mt.tensor(7):05d}" == "00007"
    assert "%.1f" % x == "2.5"  # noqa: UP031 - it asks in another way
    assert float(mt.tensor(2 + 0j)) == 2.0 and math.sqrt(mt.tensor(4.0)) == 2 and hex(mt.tensor(255)) == "0xff"
    assert f"{mt.tensor([1.0], device='cpu')}" == "tensor([1.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{mt.tensor([1.0]):.3f}"
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        int(mt.ones(2))
    with pytest.raises(RuntimeError, match="without overflow"):
        float(mt.tensor(1 + 2j))


def test_a_tensor_is_a_sequence_of_its_rows():
    x = mt.arange(6).reshape(3, 2)
    assert len(x) == 3 and [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert reversed(x).tolist() == [[4, 5], [2, 3], [0, 1]] and reversed(mt.tensor(1)).item() == 1
    assert 5 in x and 6 not in x and mt.tensor(5) in x and np.int64(5) in x
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x  # noqa: B015
    with pytest.raises(TypeError, match="does not support deleting items"):
        del x[0]
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(x)
    assert json.dumps(x.tolist()) == "[[0, 1], [2, 3], [4, 5]]" and {x: 1}[x] == 1


class Tagged(mt.Tensor):
    def __getstate__(self):
        return {"tag": "kept"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.restored = True


def test_pickles_and_copies_keep_attributes_and_states():
    x = mt.ones(2, requires_grad=True)
    x.note = "a"
    assert pickle.loads(pickle.dumps(x)).note == copy.deepcopy(x).note == "a" and copy.deepcopy(x).requires_grad
    again = pickle.loads(pickle.dumps(Tagged([1.0])))
    assert (again.tag, again.restored, type(again)) == ("kept", True, Tagged)
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_importing_mortice_brings_no_library_along():
    code = (
        "import sys, mortice; found = {'numpy', 'ctypes', 'einops', 'ml_dtypes'} & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.needs("cpu")
def test_under_no_grad_a_parameter_is_an_array_as_it_is() -> None:
    w = mt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        w.numpy()
    with mt.no_grad():
        assert w.numpy().tolist() == np.asarray(w).tolist() == [1, 1]
        w.numpy()[0] = 5
    assert w.tolist() == [5, 1]


@pytest.mark.parametrize("convert", [float, complex, math.sqrt])
def test_making_a_number_of_what_has_a_gradient_warns_once(convert):
    x = mt.tensor(4.0, requires_grad=True)
    convert(x.detach())
    int(x), bool(x), x.item(), x.tolist(), f"{x:.1f}"
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar may lead to unexpected"):
        convert(x)
    convert(x)
