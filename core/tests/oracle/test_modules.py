# ruff: noqa: E402 - torch is optional
"""Every module of PyTorch's table beside PyTorch's own: one id a module, with all the table's ways to make and call it.

Compared are the text, the keys, shapes and dtypes of the state dict, what a call returns, the gradients of all inputs
and parameters, and the state afterwards; the parameters come from PyTorch through `load_state_dict`.
"""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

for needed in ("torch", "numpy", "expecttest", "hypothesis"):
    if find_spec(needed) is None:
        pytest.skip(f"the comparison with PyTorch needs {needed}", allow_module_level=True)

import torch

import mortice

from .compare import Compare, attempt
from .samples import NothingLeftOver, scattered, seed, tensors
from .subject import Subject, dtype_name, lookup

pytestmark = pytest.mark.oracle
MINE, THEIRS = Subject(mortice), Subject(torch)
SHOWN = 5
GROUP = "linalg"  # the tolerances of sums of products
# Whose gradients PyTorch itself has so many times less exactly: 1.3e-4 off in float32, where mortice is 0.9e-4 off.
ROUGHER = {"nn.CTCLoss": 8}
# The fewest ways to call a module in the table, over all modules: a table that came out empty compares nothing.
FEWEST = 4
MOST = 60  # of a dtype and mode
MOST_FILES = 12
# A file of before 1.6 holds the source of each class, which PyTorch looks for anew each time that it writes or reads one.
SOURCES = functools.cache(torch.serialization.get_source_lines_and_file)


def infos() -> dict[str, Any]:
    """Return PyTorch's table of modules by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    torch.set_num_threads(1)
    return {info.name: info for info in module_db}


MODULES = infos()


def made(info: Any, given: Any, dtype: torch.dtype, training: bool) -> tuple[Any, Any]:
    """Return the module of both sides, as the table makes it; mortice's has PyTorch's parameters and buffers."""
    name = f"{info.module_cls.__module__}.{info.module_cls.__name__}".removeprefix("torch.")
    cls = lookup(mortice, name) or lookup(mortice, f"nn.{info.module_cls.__name__}")
    memo: dict[int, Any] = {}
    args, kwargs = MINE.convert(list(given.args), memo), MINE.convert(dict(given.kwargs), memo)
    theirs = info.module_cls(*given.args, **given.kwargs).to(dtype).train(training)
    return cls(*args, **kwargs).to(MINE.convert(dtype, memo)).train(training), theirs


def kinds(state: Any) -> dict[str, Any]:
    """Return what can be said of a state dict without its values."""
    lazy = torch.nn.parameter.is_lazy, mortice.nn.parameter.is_lazy
    return {
        key: "lazy" if any(is_lazy(value) for is_lazy in lazy) else (dtype_name(value.dtype), tuple(value.shape))
        for key, value in state.items()
    }


def random_in(module: Any, args: Any, kwargs: Any) -> bool:
    """Whether PyTorch's module gives something else when seeded otherwise."""
    results = []
    state = {key: value.clone() for key, value in module.state_dict().items() if not torch.nn.parameter.is_lazy(value)}
    for number in (1, 2):
        seed(number)
        results.append([t.detach().clone() for t in tensors(attempt(module, *args, **kwargs).value)])
    module.load_state_dict(state, strict=False)
    return any(not torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in zip(*results))


def from_file(module: Any, zipped: bool) -> list[Any]:
    """Return what both sides read of a whole module that PyTorch has saved."""
    file = io.BytesIO()
    torch.save(module, file, _use_new_zipfile_serialization=zipped)
    read = []
    for side in (mortice, torch):
        file.seek(0)
        read.append(side.load(file, weights_only=False))
    return read


def differences(
    info: Any, sample: Any, dtype: torch.dtype, training: bool, zipped: bool | None = None
) -> Iterator[str]:
    """Make and call both sides as a sample of the table says; yield what differs.

    With `zipped`, mortice's module is read from the file of PyTorch's, in that format.
    """
    mine, theirs = made(info, sample.constructor_input, dtype, training)
    if zipped is not None:
        made_here, (mine, theirs) = mine, from_file(theirs, zipped)
        if type(mine) is not type(made_here) or mine.training is not training:
            yield f"read a {type(mine)}, training {mine.training}; made {type(made_here)}"
            return
    if repr(mine) != repr(theirs):
        yield f"text {mine!r}; torch {theirs!r}"
    if kinds(mine.state_dict()) != kinds(theirs.state_dict()):
        yield f"state {kinds(mine.state_dict())}; torch {kinds(theirs.state_dict())}"
        return
    if sample.forward_input is None:
        return
    memo: dict[int, Any] = {}
    args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
    my_args, my_kwargs = MINE.convert(list(args), memo), MINE.convert(dict(kwargs), memo)
    lazy = any(torch.nn.parameter.is_lazy(value) for value in theirs.state_dict().values())
    if lazy:
        attempt(theirs, *args, **kwargs)  # which gives the parameters their shapes
        attempt(mine, *my_args, **my_kwargs)
    if zipped is None or lazy:
        mine.load_state_dict({key: MINE.convert(value, memo) for key, value in theirs.state_dict().items()})
    compare = Compare(MINE, GROUP, times=ROUGHER.get(info.name, 1), values=not random_in(theirs, args, kwargs))
    got, want = attempt(mine, *my_args, **my_kwargs), attempt(theirs, *args, **kwargs)
    yield from (f"{kind}: {detail}" for kind, detail in compare.outcomes(got, want))
    if got.error is not None or want.error is not None or not compare.values:
        return
    yield from gradients(compare, (mine, got.value, memo), (theirs, want.value, (args, kwargs)))
    state, torch_state = list(mine.state_dict().values()), list(theirs.state_dict().values())
    yield from (f"state afterwards: {kind}: {detail}" for kind, detail in compare.results(state, torch_state))


def gradients(compare: Compare, mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> Iterator[str]:
    """Pull random cotangents back to all inputs and parameters; yield what differs."""
    module, value, memo = mine
    torch_module, torch_value, given = theirs
    outs = [t for t in tensors(value, MINE.Tensor) if t.requires_grad]
    torch_outs = [t for t in tensors(torch_value) if t.requires_grad]
    if len(outs) != len(torch_outs):
        yield f"{len(outs)} outputs require grad; torch {len(torch_outs)}"
        return
    wanted = {id(t): t for t in tensors(given) if t.requires_grad}
    leaves = [memo[key] for key in wanted] + list(module.parameters())
    torch_leaves = [*wanted.values(), *torch_module.parameters()]
    if not torch_outs or not torch_leaves:
        return
    seed(0)
    pulled = [torch.randn_like(t) for t in torch_outs]
    got = mortice.autograd.grad(outs, leaves, [MINE.convert(t, {}) for t in pulled], allow_unused=True)
    want = torch.autograd.grad(torch_outs, torch_leaves, pulled, allow_unused=True)
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        if (x is None) != (y is None):
            yield f"gradient {i}: {x}; torch {y}"
        elif x is not None:
            yield from (f"gradient {i}: {kind}: {detail}" for kind, detail in compare.results(x, y))


@pytest.mark.parametrize("zipped", [None, True, False], ids=["made", "from a file", "from a file before 1.6"])
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, zipped: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.serialization, "get_source_lines_and_file", SOURCES)
    info = MODULES[name]
    found, calls = [], 0
    for dtype in (torch.float64, torch.float32):
        for training in (True, False):
            if dtype not in info.dtypes:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with NothingLeftOver():
                    samples = info.module_inputs_func(
                        info, device="cpu", dtype=dtype, requires_grad=True, training=training
                    )
                for sample in scattered(samples, MOST if zipped is None else MOST_FILES):
                    calls += 1
                    where = f"{dtype_name(dtype)} {'training' if training else 'eval'} {sample.desc}"
                    found += [f"{where}: {what}" for what in differences(info, sample, dtype, training, zipped)]
    if found:
        pytest.fail(f"{len(found)} differences in {calls} calls\n" + "\n".join(found[:SHOWN]), pytrace=False)
    assert calls >= FEWEST
