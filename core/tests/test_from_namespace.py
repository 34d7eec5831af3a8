"""from_namespace: a backend from any array-API namespace, asked and tried; with the real libraries where they are installed."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("array_api_compat")

import mortice as mt  # noqa: E402
from mortice.backends import NamespaceBackend, from_namespace, plugins  # noqa: E402
from mortice.errors import PluginError  # noqa: E402

# NumPy is always there, the others where they are installed. JAX is tried in examples/backends alone: its threads stay, and
# other tests of this process fork.
LIBRARIES = ["numpy", "array_api_strict", "torch", "dask.array"]


@pytest.fixture
def registry() -> Iterator[None]:
    """Take back out what a test has registered."""
    before = dict(plugins.entries())
    yield
    plugins.entries().clear()
    plugins.entries().update(before)
    plugins._CACHE.clear()


def namespace(name: str) -> Any:
    return pytest.importorskip(name, reason=f"SKIPPED: {name} is not installed")


def without(*names: str, **more: Any) -> Any:
    """Return NumPy's namespace as a module that lacks some names and has others."""
    import array_api_compat.numpy as whole

    made = types.ModuleType("partial")
    made.__dict__.update({n: getattr(whole, n) for n in dir(whole) if n not in names and not n.startswith("__")})
    made.__dict__.update({"__array_namespace_info__": whole.__array_namespace_info__, **more})
    return made


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.filterwarnings("ignore")  # the libraries' own, of devices and of NumPy's arithmetic
def test_one_line_gives_a_backend_that_differentiates(name: str, registry: None) -> None:
    backend = from_namespace(namespace(name), "lent")
    assert "lent" in mt.backends.list() and backend.device_names()[0].startswith("cpu")
    with mt.use_backend("lent"):
        x = mt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        (x @ x.T).exp().log().cumsum(0)[::-1].sum().backward()
        assert np.allclose(x.grad.tolist(), _reference(), rtol=1e-5)
        y = mt.zeros(4)
        y[1:3] += 2.0
        y[::-2] = mt.tensor([7.0, 8.0])
        assert y.tolist() == [0.0, 8.0, 2.0, 7.0]
        assert mt.zeros(3).index_add(0, mt.tensor([0, 0, 2]), mt.ones(3)).tolist() == [2.0, 0.0, 1.0]
        assert x.grad.device.backend is backend
    moved = mt.ones(2).to(backend="lent")
    assert moved.device.backend is backend and moved.tolist() == [1.0, 1.0]


def _reference() -> Any:
    """Return the gradient of the test above by hand: rows of x x^T, summed up once from each row down."""
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    weights = np.array([[2.0, 2.0], [1.0, 1.0]])  # how often a row of the product is counted
    return (weights @ x + weights.T @ x).tolist()


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.filterwarnings("ignore")
def test_every_dtype_that_is_offered_goes_in_and_out(name: str, registry: None) -> None:
    backend = from_namespace(namespace(name), "lent")
    offered = backend.dtypes(backend.device(backend.device_names()[0]))
    assert {mt.bool, mt.uint8, mt.uint64, mt.int64, mt.float32, mt.float64, mt.complex64} <= offered
    with mt.use_backend("lent"):
        for d in offered:
            values = [True, False] if d is mt.bool else [1 + 2j, -3j] if d.is_complex else [2, 1]
            assert mt.tensor(values, dtype=d).tolist() == values


@pytest.mark.parametrize("name", ["torch"])
def test_unsigned_integers_are_computed_where_they_are_only_kept(name: str, registry: None) -> None:
    from_namespace(namespace(name), "lent")
    rng = np.random.default_rng(0)
    top = 2**64
    xs = [int(n) for n in rng.integers(0, 2**64 - 1, 30, dtype=np.uint64)] + [0, 1, 2**63, 2**64 - 1, 2**63 - 1, 7]
    ys = [int(n) for n in rng.integers(1, 2**40, 30, dtype=np.uint64)] + [
        1,
        2**63,
        2**63 + 1,
        2**64 - 1,
        2**62,
        2**64 - 2,
    ]
    with mt.use_backend("lent"):
        x, y = mt.tensor(xs, dtype=mt.uint64), mt.tensor(ys, dtype=mt.uint64)
        for got, want in (
            (x + y, [(a + b) % top for a, b in zip(xs, ys)]),
            (x - y, [(a - b) % top for a, b in zip(xs, ys)]),
            (x * y, [a * b % top for a, b in zip(xs, ys)]),
            (x // y, [a // b for a, b in zip(xs, ys)]),
            (x % y, [a % b for a, b in zip(xs, ys)]),
            (x < y, [a < b for a, b in zip(xs, ys)]),
            (mt.maximum(x, y), [max(a, b) for a, b in zip(xs, ys)]),
            (x >> (y % 64), [a >> b % 64 for a, b in zip(xs, ys)]),
            (x << (y % 64), [(a << b % 64) % top for a, b in zip(xs, ys)]),
            (mt.sort(x)[0], sorted(xs)),
        ):
            assert got.tolist() == want


def test_mutability_is_found_by_trying_and_can_be_said(registry: None) -> None:
    # NumPy writes in place, but not through broadcast_to, so it does not count as mutable unless somebody says so.
    assert from_namespace(np, "tried", register=False).mutable is False
    assert from_namespace(np, "said", mutable=True, register=False).mutable is True


def test_devices_are_asked_for_and_unusable_ones_left_out(registry: None) -> None:
    strict = namespace("array_api_strict")
    names = from_namespace(strict, register=False).device_names()
    # One of its five devices has no int64, without which there is no index.
    assert names == ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]
    backend = from_namespace(strict, register=False, devices={"mine": strict.Device("device1")})
    assert backend.device_names() == ["mine"]
    with mt.use_backend(from_namespace(strict, "strict2").name):
        x = mt.ones(3, device="cpu:1")
        assert x.device.index == 1 and (x + x).to("cpu:2").device.index == 2
        with pytest.raises(RuntimeError, match="cpu:1"):
            x + mt.ones(3, device="cpu:2")


def test_what_is_missing_is_listed_with_what_is_derived() -> None:
    with pytest.raises(PluginError) as error:
        from_namespace(without("tanh", "argsort", "take_along_axis"), register=False)
    assert str(error.value) == (
        "namespace partial: required kernels need functions that it lacks: argsort, tanh. Write them as "
        "kernels={'argsort': function, ...}. What is derived where it is absent: take_along_axis, scatter_add, writing into "
        "arrays, slices with negative steps, sums and products of bools."
    )


def test_a_missing_function_may_be_given_as_a_kernel(registry: None) -> None:
    from_namespace(without("tanh"), "given", kernels={"tanh": lambda x: np.tanh(x) + 100})
    with mt.use_backend("given"):
        assert mt.zeros(2).tanh().tolist() == [100.0, 100.0]


def test_a_free_kernel_may_be_given_and_is_listed_as_overridden() -> None:
    backend = from_namespace(np, kernels={"softmax": lambda x, *, axis: x}, register=False)
    assert "softmax" in backend.overridden
    with pytest.raises(PluginError, match="no kernel is called 'sofmax'; did you mean 'softmax'"):
        from_namespace(np, kernels={"sofmax": lambda x: x}, register=False)
    with pytest.raises(PluginError, match=r"kernels\['softmax'\] must be a function; got 3"):
        from_namespace(np, kernels={"softmax": 3}, register=False)


def test_a_namespace_that_narrows_to_32_bits_says_what_to_do() -> None:
    with pytest.raises(
        PluginError, match=r"expected bool, int64, float32 on device 'cpu'; int64 is not there.*64-bit types behind a switch"
    ):
        from_namespace(without("int64", int64=np.int32), register=False)


def test_a_namespace_that_makes_no_arrays_for_a_device_is_refused_with_what_it_raised() -> None:
    with pytest.raises(PluginError, match=r"zeros\(\(0,\), dtype=bool, device=None\) raised TypeError: .*'device'"):
        from_namespace(without("zeros", zeros=lambda shape, dtype=None: np.zeros(shape, dtype)), register=False)


def test_a_taken_name_is_refused_and_the_same_call_gives_the_same_backend(registry: None) -> None:
    first = from_namespace(np, "twice")
    assert from_namespace(np, "twice") is first
    with pytest.raises(PluginError, match="'twice' is already taken by this program.*Or choose another"):
        from_namespace(np, "twice", priority=3)
    assert not [e for e in plugins.broken() if e.name == "twice"]


def test_the_name_is_the_library_s() -> None:
    assert from_namespace(np, register=False).name == "numpy"
    assert from_namespace(importlib.import_module("array_api_compat.numpy"), register=False).name == "numpy"


def test_a_library_s_arrays_are_written_by_its_own_words_where_it_has_them() -> None:
    class Array(np.ndarray):
        """An array that cannot be written, but has `at`, as JAX's do."""

        def __setitem__(self, key: Any, value: Any) -> None:
            raise TypeError("immutable")

        @property
        def at(self) -> Any:
            return At(self)

    class At:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __getitem__(self, key: Any) -> Any:
            def change(ufunc: Any) -> Any:
                def changed(value: Any) -> Any:
                    out = np.array(self.array)
                    ufunc(out, key, value)
                    return out.view(Array)

                return changed

            return types.SimpleNamespace(set=change(lambda out, k, v: out.__setitem__(k, v)), add=change(np.add.at))

    made = lambda f: lambda *a, **k: np.asarray(f(*a, **k)).view(Array)
    whole = without()
    xp = without(
        **{n: made(getattr(whole, n)) for n in ("zeros", "asarray", "full", "reshape", "astype", "add", "arange")}
    )
    backend = NamespaceBackend(xp)
    assert backend._updates and not backend.mutable
    x = backend.full((3,), 1.0, dtype=mt.float32, device=backend.device("cpu"))
    assert backend.to_host(backend.setitem(x, (slice(None, None, -2),), 5.0)).tolist() == [5.0, 1.0, 5.0]
    index = backend.xp.asarray([1, 1, 0])
    assert backend.to_host(backend.scatter_add(x, index, x, axis=0)).tolist() == [2.0, 3.0, 1.0]
