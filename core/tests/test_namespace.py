"""NamespaceBackend on a namespace that offers no more than the standard's 2023.12 version, and on arrays of other kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")
compat = pytest.importorskip("array_api_compat.numpy")

import mortice as mt  # noqa: E402
from mortice.backends import BackendInfo, HostBuffer, NamespaceBackend, plugins  # noqa: E402
from mortice.backends.namespace import _lent, _within  # noqa: E402

BINARY = "add subtract multiply divide floor_divide remainder pow maximum minimum equal less where greater not_equal".split()


class Namespace:
    """NumPy by the array API's names, with what the standard does not promise taken away."""

    def __getattr__(self, name: str) -> Any:
        if name in ("take_along_axis", "bfloat16"):
            raise AttributeError(name)
        found = getattr(compat, name)
        if not callable(found) or isinstance(found, type):
            return found

        @np.errstate(all="ignore")
        def strict(*args: Any, **kwargs: Any) -> Any:
            if name in BINARY and not all(isinstance(a, (np.ndarray, np.generic)) for a in args):
                raise TypeError(f"{name}: arrays only")
            if name == "asarray" and isinstance(args[0], memoryview):
                raise TypeError("asarray: no buffers")
            return found(*args, **kwargs)

        return strict


class Immutable(NamespaceBackend):
    """Arrays that cannot be written."""

    def copy(self, x: Any) -> Any:
        frozen = np.array(x).view(Frozen)
        return frozen

    def setitem(self, x: Any, key: Any, value: Any) -> Any:
        return np.asarray(super().setitem(x, key, value))


class Frozen(np.ndarray):
    """An array that refuses to be written, as JAX's do."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("immutable")


@pytest.fixture(params=[NamespaceBackend, Immutable])
def device(request: Any) -> Iterator[Any]:
    """The device of a backend over the namespace."""
    plugins.register(BackendInfo("bare", ("bare",), lambda: request.param(Namespace(), {"bare:0": "cpu"}), priority=-1))
    with mt.use_backend("bare"):
        yield mt.get_default_device()
    del plugins.entries()["bare"]


def test_the_required_kernels_conform(device: Any) -> None:
    cli = pytest.importorskip("mortice_conformance.cli")
    assert cli.main(["run", "bare", "--level", "L1", "--quiet"]) == 0


def test_gathering_scattering_and_writing_need_no_more_than_the_standard(device: Any) -> None:
    x = mt.tensor([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]], requires_grad=True)
    index = mt.tensor([[2, 0, 2], [1, 1, 1]])
    x.gather(1, index).sum().backward()
    assert x.grad.tolist() == [[1, 0, 2], [0, 3, 0]]
    assert mt.zeros(2, 3).scatter_add(1, index, mt.ones(2, 3)).tolist() == [[1, 0, 2], [0, 3, 0]]
    y = mt.zeros(3, 4)
    y[::2, 1:] = mt.tensor([1.0, 2.0, 3.0])
    y[1] = 7
    assert y.tolist() == [[0, 1, 2, 3], [7, 7, 7, 7], [0, 1, 2, 3]]


def test_every_dtype_comes_and_goes_without_buffers(device: Any) -> None:
    for d, values in ((mt.bool, [True, False]), (mt.uint64, [2**64 - 1, 0]), (mt.complex64, [1 + 2j, 3j]), (mt.float16, [0.5, 2])):
        assert mt.tensor(values, dtype=d).tolist() == values
    assert mt.tensor([], dtype=mt.float32).reshape(0, 3).tolist() == []


def test_elements_are_read_one_by_one_where_nothing_else_works() -> None:
    class Opaque:
        """Neither a buffer, nor an array for NumPy, nor DLPack."""

        def __init__(self, array: Any) -> None:
            self.array, self.dtype, self.shape, self.ndim = array, array.dtype, array.shape, array.ndim

    class Backend(NamespaceBackend):
        def copy(self, x: Any) -> Any:
            return x

    backend = Backend(compat)
    backend.xp = type("Xp", (), {"reshape": staticmethod(lambda x, shape: x.array.reshape(shape))})
    host = backend.to_host(Opaque(np.arange(6.0).reshape(2, 3)))
    assert host.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_dlpack_is_read_and_refuses_what_is_not_row_major() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert HostBuffer(_lent(x), x.shape, mt.int32).tolist() == x.tolist()
    assert bytes(_lent(np.zeros((0, 3)))) == b""
    with pytest.raises(BufferError, match=r"expected row-major elements; got strides \(1, 3\) of \(3, 2\)"):
        _lent(x.T)


def test_a_namespace_that_narrows_in_silence_does_not_offer_the_wide_dtype() -> None:
    class Narrow(Namespace):
        float64, complex128 = np.float32, np.complex64

    backend = NamespaceBackend(Narrow())
    names = {d.name for d in backend.dtypes(backend.device("cpu"))}
    assert "float32" in names and not names & {"float64", "complex128"}


@pytest.mark.parametrize(
    ("key", "shape", "within"),
    [
        ((0,), (2, 3), (0, Ellipsis)),
        ((slice(5, None),), (2,), (slice(0, 0),)),
        ((slice(None, None, -1),), (3,), (slice(2, None, -1),)),
        ((slice(-9, 9, 2), None), (3,), (slice(0, 3, 2), None)),
        ((Ellipsis, slice(1, 7)), (2, 3), (Ellipsis, slice(1, 3, 1))),
        ((), (), ()),
    ],
)
def test_a_key_is_brought_inside_the_array(key: Any, shape: Any, within: Any) -> None:
    assert _within(key, shape) == within
    x = np.arange(int(np.prod(shape))).reshape(shape)
    assert np.array_equal(x[key], x[_within(key, shape)])
