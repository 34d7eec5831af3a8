"""One script run in mortice and in PyTorch, and the comparison of how they end: values, errors and warnings."""

from __future__ import annotations

import warnings

import pytest
import torch

import mortice


def plain(value):
    """Return tensors as nested lists and names of the library without it, so that outcomes compare."""
    if isinstance(value, (mortice.Tensor, torch.Tensor)):
        return value.detach().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, str):
        return value.replace("mortice", "torch")
    return value if isinstance(value, (int, float, bool, type(None))) else str(value).replace("mortice", "torch")


def same(mine, want):
    if isinstance(want, float):
        return mine == pytest.approx(want, rel=1e-4, abs=1e-5, nan_ok=True)
    if isinstance(want, list):
        return isinstance(mine, list) and len(mine) == len(want) and all(map(same, mine, want))
    if isinstance(want, dict):
        return isinstance(mine, dict) and list(mine) == list(want) and all(same(mine[k], want[k]) for k in want)
    return mine == want


def outcome(script, lib):
    """Run a script; return its result, or the class of what it raised, with the classes of its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = plain(script(lib))
        except Exception as error:
            # Our classes derive from what PyTorch raises.
            result = error
    return result, [w.category.__name__ for w in seen if "torch" not in str(w.filename) or lib is torch]


def check(script, may_raise=True):
    mine, want = outcome(script, mortice), outcome(script, torch)
    if isinstance(want[0], Exception):
        assert may_raise, want
        assert isinstance(mine[0], type(want[0])), (mine, want)
    else:
        assert not isinstance(mine[0], Exception), mine
        assert same(mine[0], want[0]), (mine[0], want[0])
    assert mine[1] == want[1]


def filled(lib, module):
    """Give a module values that are the same in both libraries."""
    with lib.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(lib.arange(float(p.numel())).reshape(p.shape) / 10 + i)
    return module


def raising(lib, *calls):
    """Return the class of what each call raises, or its result."""
    found = []
    for call in calls:
        try:
            found.append(plain(call()))
        except Exception as error:
            found.append([c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"][0])
    return found
