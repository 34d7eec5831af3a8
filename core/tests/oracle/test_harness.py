# ruff: noqa: E402 - torch is optional
"""The harness itself: planted faults turn it red, torch beside itself is green, the lists fit PyTorch's table."""

from __future__ import annotations

import types
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

for needed in ("torch", "numpy", "expecttest", "hypothesis"):
    if find_spec(needed) is None:
        pytest.skip(f"the comparison with PyTorch needs {needed}", allow_module_level=True)

import torch

from . import samples
from .checks import check
from .compare import Failure, close
from .differences import Difference, stale, unexpected
from .subject import Subject

pytestmark = pytest.mark.oracle


def planted(**faults: Any) -> Subject:
    """Return torch with some functions replaced."""
    return Subject(types.SimpleNamespace(**{**vars(torch), **faults}))


def kinds(subject: Subject, name: str, what: str, dtypes: list[str] | None = None) -> set[str]:
    """Return the kinds of differences that a check finds."""
    return {failure.kind for failure in check(subject, name, what, dtypes).failures}


class Scaled(torch.autograd.Function):
    """exp with a gradient that is off by a thousandth, the first time or the second."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return g * 1.001 * x.exp()


def overwriting(x: torch.Tensor) -> torch.Tensor:
    out = x.exp()
    x.zero_()
    return out


FAULTS: list[tuple[str, str, Callable[..., Any], str, str]] = [
    ("exp", "values", lambda x: torch.exp(x) * 1.0001, "float64", "value"),
    ("exp", "values", lambda x: torch.exp(x) * 1.0001, "float32", "value"),
    ("exp", "values", lambda x: torch.exp(x).double(), "float32", "dtype"),
    ("exp", "values", lambda x: torch.exp(x)[None], "float32", "shape"),
    ("exp", "values", lambda x: [torch.exp(x)], "float32", "structure"),
    ("exp", "values", overwriting, "float32", "input"),
    ("sum", "values", lambda x, *args, **kwargs: torch.sum(x[..., :-1], *args, **kwargs), "float32", "raised"),
    ("sum", "values", lambda *args, **kwargs: torch.sum(*args, **kwargs) + 1, "int64", "value"),
    ("max", "values", lambda *args: tuple(torch.max(*args)), "float32", "structure"),
    ("randn", "values", lambda *size, **kwargs: torch.randn(*size, **kwargs)[None], "float32", "shape"),
    ("exp", "gradients", Scaled.apply, "float64", "value"),
    ("exp", "gradients", lambda x: torch.exp(x.detach()), "float64", "requires_grad"),
    ("exp", "second_gradients", Scaled.apply, "float64", "value"),
    ("exp", "out", lambda x, out=None: torch.exp(x), "float32", "raised"),
]


@pytest.mark.parametrize(("name", "what", "fault", "dtype", "kind"), FAULTS)
def test_a_planted_fault_is_found(name: str, what: str, fault: Any, dtype: str, kind: str) -> None:
    assert kind in kinds(planted(**{name: fault}), name, what, [dtype])


@pytest.mark.parametrize(("wrong", "kind"), [(KeyError, "exception"), (None, "accepted")])
def test_another_exception_or_none_is_found(wrong: type[Exception] | None, kind: str) -> None:
    def amax(*args: Any, **kwargs: Any) -> Any:
        try:
            return torch.amax(*args, **kwargs)
        except Exception as error:
            if wrong is not None:
                raise wrong(str(error)) from error

    assert kinds(planted(amax=amax), "amax", "errors") == {kind}


def test_a_missing_op_is_found() -> None:
    assert kinds(planted(svd_lowrank=None), "svd_lowrank", "values") == {"missing"}


@pytest.mark.parametrize("name", ["add", "linalg.svd", "nn.functional.dropout", "__getitem__", "amax", "to", "empty"])
def test_torch_beside_itself_is_green(name: str) -> None:
    subject = Subject(torch)
    for what in samples.applicable(name):
        run = check(subject, name, what)
        assert not run.failures, "\n".join(map(str, run.failures))
        assert run.calls > 0, what


def test_ties_may_be_broken_otherwise_but_no_element_is_taken_twice() -> None:
    def last_first(x: torch.Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> torch.Tensor:
        if stable or x.ndim == 0:
            return torch.argsort(x, dim=dim, descending=descending, stable=stable)
        return x.shape[dim] - 1 - torch.argsort(x.flip(dim), dim=dim, descending=descending)

    def first_twice(*args: Any, **kwargs: Any) -> torch.Tensor:
        return torch.argsort(*args, **kwargs) * 0

    assert kinds(planted(argsort=last_first), "argsort", "values", ["uint8"]) == set()
    assert kinds(planted(argsort=first_twice), "argsort", "values", ["bool"]) == {"value"}


def test_layouts_are_kept() -> None:
    base = torch.arange(24.0).reshape(2, 3, 4)
    for source in (base, base.mT, base[:, ::2], base[0, 0].expand(3, 4), base[..., 1], base.permute(2, 0, 1)[::2]):
        made = Subject(torch).tensor(source)
        assert torch.equal(made, source)
        assert made.is_contiguous() == source.is_contiguous()
        assert [n == 0 for n in made.stride()] == [n == 0 for n in source.stride()]


def test_nan_and_infinity_must_meet() -> None:
    inf, nan = float("inf"), float("nan")
    for got, want, same in [
        (nan, nan, True),
        (inf, inf, True),
        (-inf, inf, False),
        (nan, 1.0, False),
        (1.0, inf, False),
    ]:
        assert close(torch.tensor([got, 0.0]), torch.tensor([want, 0.0]), "elementwise") is same


def test_an_entry_covers_its_failures_and_goes_stale_without_them() -> None:
    entry = Difference(reason="because", ops=["add"], checks=["values"], what=["dtype"])
    found = Failure("add", "values", "float32", "dtype", "", "")
    other = Failure("mul", "values", "float32", "dtype", "", "")
    assert stale([entry], "add", "values") == [entry]
    assert unexpected([found, other], [entry]) == [other]
    assert stale([entry], "add", "values") == []


def test_surface_agrees_with_the_table_of_pytorch() -> None:
    for name, (_, checks) in samples.surface().items():
        assert checks == samples.applicable(name), name
