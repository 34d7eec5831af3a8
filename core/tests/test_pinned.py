"""Pinned memory where no device asks for any: the same refusals and warnings as PyTorch without CUDA."""

from __future__ import annotations

import warnings

import pytest

import mortice as mt
from mortice.utils.data import DataLoader

pytestmark = pytest.mark.skipif(mt.cuda.is_available(), reason="there is a CUDA device")

FACTORIES = """
T.tensor([1.0], pin_memory=True)
T.empty(2, pin_memory=True)
T.zeros(2, pin_memory=True)
T.ones(0, pin_memory=True)
T.full((2,), 1.0, pin_memory=True)
T.rand(2, pin_memory=True)
T.randn(2, pin_memory=True)
T.arange(3, pin_memory=True)
T.randint(3, (2,), pin_memory=True)
T.randperm(3, pin_memory=True)
T.normal(0.0, 1.0, (2,), pin_memory=True)
T.eye(2, pin_memory=True)
T.linspace(0, 1, 3, pin_memory=True)
T.logspace(0, 1, 3, pin_memory=True)
T.zeros_like(T.ones(2), pin_memory=True)
T.ones_like(T.ones(2), pin_memory=True)
T.empty_like(T.ones(2), pin_memory=True)
T.full_like(T.ones(2), 1, pin_memory=True)
T.rand_like(T.ones(2), pin_memory=True)
T.randn_like(T.ones(2), pin_memory=True)
T.randint_like(T.ones(2), 3, pin_memory=True)
T.ones(2).new_zeros(2, pin_memory=True)
T.ones(2).new_ones(2, pin_memory=True)
T.ones(2).new_empty(2, pin_memory=True)
T.ones(2).new_full((2,), 1, pin_memory=True)
T.ones(2).new_empty_strided((2,), (1,), pin_memory=True)
T.scalar_tensor(1, pin_memory=True)
T.hann_window(4, pin_memory=True)
T.kaiser_window(4, pin_memory=True)
T.tril_indices(2, 2, pin_memory=True)
T.triu_indices(2, 2, pin_memory=True)
T.empty_strided((2,), (1,), pin_memory=True)
T.empty_permuted((2,), (0,), pin_memory=True)
""".split("\n")[1:-1]
OTHERS = """
T.ones(2).pin_memory()
T.ones(0).pin_memory()
T.ones(2).is_pinned()
T.ones(2).is_pinned("cuda")
T.ones(2).untyped_storage().pin_memory()
T.ones(2).record_stream(None)
T.ones(2).new_tensor([1.0], pin_memory=True)
T.asarray([1.0], pin_memory=True)
T.zeros(2, pin_memory=False).is_pinned()
T.zeros(2, pin_memory=None).is_pinned()
""".split("\n")[1:-1]


def outcome(library, line):
    """Return the value, or the class of the error, and the classes of the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = eval(line, {"T": library})
        except Exception as error:
            found = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    return found, {w.category for w in said}


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("line", FACTORIES)
def test_a_factory_refuses_to_pin(line):
    with pytest.raises(RuntimeError, match="pin_memory=True requires a CUDA or other accelerator backend"):
        eval(line, {"T": mt})
    assert eval(line.replace("pin_memory=True", "pin_memory=False"), {"T": mt}).is_pinned() is False


@pytest.mark.oracle
@pytest.mark.parametrize("line", FACTORIES + OTHERS)
def test_outcomes_are_those_of_pytorch(line):
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    assert outcome(mt, line) == outcome(torch, line)


def test_a_loader_says_that_it_does_not_pin():
    with pytest.warns(UserWarning) as said:
        assert [x.tolist() for x in DataLoader([1, 2], pin_memory=True, pin_memory_device="cuda")] == [[1], [2]]
    texts = [str(w.message) for w in said]
    assert "pin_memory_device is deprecated" in texts[0] and "no accelerator is found" in texts[1]


def test_record_stream_is_for_streams():
    with pytest.raises(RuntimeError, match=r"record_stream: expected a mortice.cuda.Stream; got NoneType"):
        mt.ones(2).record_stream(None)
