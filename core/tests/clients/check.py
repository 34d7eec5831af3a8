"""How a record of record.py is tried: its results beside NumPy's, its gradients beside finite differences."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

import mortice as mt

from .record import Client

TOLERANCE = {"float64": 1e-9, "float32": 5e-5, "complex128": 1e-9, "complex64": 5e-5}


def arrays(client: Client, dtype: str) -> list[Any]:
    """Return the inputs as NumPy arrays, the same ones at each call, the floating ones in a dtype."""
    import numpy as np

    rng = np.random.default_rng(zlib.crc32(client.id.encode()))
    made = [np.asarray(recipe(rng)) for recipe in client.inputs]
    return [a.astype(dtype) if a.dtype.kind == "f" else a for a in made]


def compare(got: Any, want: Any, device: Any, loose: float = 1.0) -> None:
    """Require tensors on that device where NumPy gives arrays, of the same shape and dtype, with the same values."""
    import numpy as np

    if isinstance(want, dict):
        assert got.keys() == want.keys()
        got, want = list(got.values()), list(want.values())
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            compare(one, other, device, loose)
    elif isinstance(want, (np.ndarray, np.generic)):
        assert isinstance(got, mt.Tensor), f"{type(got)} came back for a tensor"
        assert got.device == device
        assert str(got.dtype) == f"mortice.{want.dtype}" and tuple(got.shape) == want.shape
        tolerance = TOLERANCE.get(str(want.dtype), 0.0) * loose
        np.testing.assert_allclose(got.numpy(force=True), want, rtol=tolerance, atol=tolerance)
    elif isinstance(want, float):
        assert isinstance(got, float) and got == pytest.approx(want, rel=5e-5 * loose, abs=5e-5 * loose, nan_ok=True)
    else:
        assert type(got) is type(want) and got == want


def differentiable(result: Any) -> Iterator[Any]:
    """Yield the tensors of a result that can have a gradient."""
    if isinstance(result, mt.Tensor):
        if result.dtype.is_floating_point or result.dtype.is_complex:
            yield result
    elif isinstance(result, (tuple, list)):
        for one in result:
            yield from differentiable(one)


@contextmanager
def default_dtype(double: bool) -> Iterator[None]:
    """Make numbers of Python's into arrays of float64 meanwhile, if so asked."""
    before = mt.get_default_dtype()
    mt.set_default_dtype(mt.float64 if double else before)
    try:
        yield
    finally:
        mt.set_default_dtype(before)


def check_values(client: Client, device: Any) -> None:
    """Require NumPy's results, in each dtype."""
    f = client.resolve()
    for dtype in client.dtypes if any(a.dtype.kind == "f" for a in arrays(client, "float64")) else ("float64",):
        inputs = arrays(client, dtype)
        want = client.call(f, *[a.copy() for a in inputs])
        with default_dtype(client.double):
            got = client.call(f, *[mt.tensor(a, device=device) for a in inputs])
        compare(got, want, device, client.loose)


def check_gradients(client: Client, device: Any) -> None:
    """Require that what autograd says of each floating input agrees with finite differences."""
    f = client.resolve()
    inputs = [mt.tensor(a, device=device, requires_grad=a.dtype.kind == "f") for a in arrays(client, "float64")]
    saving = mt.autograd.graph.allow_mutation_on_saved_tensors() if client.overwrites else nullcontext()
    with default_dtype(client.double), saving:
        total = sum(t.abs().sum() for t in differentiable(client.call(f, *inputs)))
        mt.autograd.grad(total, [x for x in inputs if x.requires_grad])  # raises where one is not reached
        assert mt.autograd.gradcheck(lambda *args: tuple(differentiable(client.call(f, *args))), inputs, fast_mode=True)


def check_refusal(client: Client, device: Any) -> None:
    """Require that autograd tells of a value that the library has written over, where that was not allowed for."""
    f = client.resolve()
    inputs = [mt.tensor(a, device=device, requires_grad=a.dtype.kind == "f") for a in arrays(client, "float64")]
    with default_dtype(client.double), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        sum(t.sum() for t in differentiable(client.call(f, *inputs))).backward()
