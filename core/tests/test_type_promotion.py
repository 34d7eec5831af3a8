"""How dtypes meet: by the standard's rule, where all shapes count alike, and by PyTorch's, where no dims count less."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mortice as mt

NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


@pytest.fixture
def pytorchs() -> Iterator[None]:
    mt.set_type_promotion("pytorch")
    yield
    mt.set_type_promotion("standard")


def test_the_standard_rule_is_the_one_at_the_start() -> None:
    assert mt.get_type_promotion() == "standard"
    assert (mt.ones(2) * mt.tensor(2.0, dtype=mt.float64)).dtype is mt.float64


@pytest.mark.parametrize(
    ("with_dims", "without", "expected"),
    [
        ("float32", "float64", "float32"), ("float64", "float32", "float64"), ("float16", "float32", "float16"),
        ("bfloat16", "float16", "bfloat16"), ("int8", "int64", "int8"), ("uint8", "int8", "uint8"),
        ("float32", "int64", "float32"), ("bool", "uint8", "uint8"), ("int64", "bool", "int64"),
        ("int64", "float16", "float16"), ("int32", "float64", "float64"), ("float32", "complex128", "complex64"),
        ("float64", "complex64", "complex128"), ("complex64", "complex128", "complex64"), ("int16", "complex64", "complex64"),
    ],
)  # fmt: skip
def test_what_has_no_dims_only_raises_the_kind(pytorchs: None, with_dims: str, without: str, expected: str) -> None:
    x, y = mt.ones(2, dtype=getattr(mt, with_dims)), mt.ones((), dtype=getattr(mt, without))
    d = getattr(mt, expected)
    assert mt.result_type(x, y) is mt.result_type(y, x) is (x + y).dtype is (y + x).dtype is mt.where(x == 1, x, y).dtype is d


def test_numbers_meet_what_has_no_dims_first(pytorchs: None) -> None:
    x, y = mt.ones(2, dtype=mt.int8), mt.tensor(1, dtype=mt.int64)
    assert (x + y + 1).dtype is mt.int8 and mt.clamp(x, y, y).dtype is mt.int8
    assert mt.clamp(mt.tensor(1.0, dtype=mt.float64), mt.tensor(0.0), 2).dtype is mt.float64


def test_gradients_have_the_dtypes_of_their_leaves(pytorchs: None) -> None:
    x = mt.ones(3, requires_grad=True)
    scale = mt.tensor(2.0, dtype=mt.float64, requires_grad=True)
    y = (x * scale).sum()
    y.backward()
    assert y.dtype is x.grad.dtype is mt.float32 and scale.grad.dtype is mt.float64
    assert x.grad.tolist() == [2.0, 2.0, 2.0] and scale.grad.item() == 3.0


def test_in_place_and_mapped(pytorchs: None) -> None:
    x = mt.ones(2, dtype=mt.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        x += mt.tensor(0.5)
    rows, scales = mt.ones(3, 2), mt.ones(3, dtype=mt.float64)
    # Each call of the function sees one number of `scales`, which has no dims there.
    assert mt.vmap(mt.mul)(rows, scales).dtype is mt.float32
    assert mt.vmap(mt.mul, in_dims=(0, None))(rows, scales[0]).dtype is mt.float32


def test_joined_dtypes(pytorchs: None) -> None:
    a, b = mt.tensor(1.0), mt.tensor(2.0, dtype=mt.float64)
    assert mt.stack([a, b]).dtype is mt.float64  # where none has dims all count alike
    assert mt.block_diag(mt.ones(2, 2), b).dtype is mt.float32
    assert mt.addcmul(mt.ones(2), b, b).dtype is mt.float32


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="set_type_promotion: expected 'standard' or 'pytorch'; got 'numpy'."):
        mt.set_type_promotion("numpy")


def test_the_environment_chooses() -> None:
    code = "import mortice as mt; print((mt.ones(1) * mt.ones((), dtype=mt.float64)).dtype)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "MORTICE_TYPE_PROMOTION": "pytorch"}, capture_output=True,
        text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "mortice.float32"


SHAPES = [((), (2,)), ((2,), ()), ((), ()), ((2,), (2,)), ((0,), ()), ((1,), ()), ((2, 1), (2,))]
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "result_type": lambda t, x, y: t.result_type(x, y),
    **{
        name: lambda t, x, y, name=name: getattr(t, name)(x, y).dtype
        for name in "add sub mul div floor_divide remainder fmod pow eq lt maximum fmin atan2 copysign hypot logaddexp "
        "bitwise_and logical_or gcd heaviside xlogy float_power".split()
    },
    "with a number": lambda t, x, y: (x + y * 2 - 1.5).dtype,
    "where": lambda t, x, y: t.where(t.tensor(True), x, y).dtype,
    "where, three": lambda t, x, y: t.where(t.ones(1, dtype=t.bool), x, y).dtype,
    "clamp": lambda t, x, y: t.clamp(x, min=y).dtype,
    "clamp, both": lambda t, x, y: t.clamp(x, min=y, max=y).dtype,
    "addcmul": lambda t, x, y: t.addcmul(x, x, y).dtype,
    "addcdiv": lambda t, x, y: t.addcdiv(y, x, y).dtype,
    "lerp": lambda t, x, y: t.lerp(x, x, y).dtype,
    "stack": lambda t, x, y: t.stack([x, y]).dtype,
    "cat": lambda t, x, y: t.cat([x.reshape(-1), y.reshape(-1)]).dtype,
    "block_diag": lambda t, x, y: t.block_diag(x, y).dtype,
    "in place": lambda t, x, y: x.add_(y).dtype,
    "out": lambda t, x, y: t.mul(x, y, out=t.empty(2, dtype=t.float32)).dtype,
}


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_dtypes_are_pytorchs(pytorchs: None, call: str) -> None:
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")

    def answer(t: Any, a: str, b: str, shapes: Any) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                d = CALLS[call](t, t.ones(shapes[0], dtype=getattr(t, a)), t.ones(shapes[1], dtype=getattr(t, b)))
        except Exception as error:
            assert not isinstance(error, (AttributeError, KeyError)), error
            return "refused"
        return str(d).split(".")[-1]

    differ = []
    for a in NAMES:
        for b in NAMES:
            halves = "float16" in (a, b) and "complex" in a + b  # PyTorch has a complex dtype of halves
            for shapes in SHAPES if not halves else ():
                theirs, ours = answer(torch, a, b, shapes), answer(mt, a, b, shapes)
                if ours != theirs != "refused":  # it refuses some dtypes that mortice computes in
                    differ.append((a, shapes[0], b, shapes[1], theirs, ours))
    assert not differ


def test_integers_have_no_complex_dtype() -> None:
    assert (mt.float32.to_complex(), mt.float64.to_complex()) == (mt.complex64, mt.complex128)
    for kind in (mt.int32, mt.bool):
        with pytest.raises(RuntimeError, match="Unknown Complex ScalarType"):
            kind.to_complex()
