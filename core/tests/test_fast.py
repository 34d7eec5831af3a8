"""The fast cases in C against the Python functions that they stand before; skipped where the module was not built."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import os
import pickle
import subprocess
import sys

import pytest

import mortice as mt
from mortice import fast

pytestmark = pytest.mark.skipif(fast._engine is None, reason="mortice._engine was not built (no compiler, or MORTICE_PURE)")

PROGRAM = """
import json, mortice as mt
from mortice.modes import special

def told(t):
    node = t.grad_fn
    kept = None if node is None else [None if s is None else tuple(s.shape) for s in node.saved]
    return [t.tolist(), str(t.dtype), tuple(t.shape), t.requires_grad, t.is_leaf, t._is_view(), t._version,
            None if node is None else [node.name(), node.versions, node.shapes, str(node.attrs), node.out is not None, kept,
                                       [type(e).__name__ for e in node.edges]]]

x, y = mt.arange(16.0).reshape(4, 4).clone(), mt.ones(4, 4)
a, b = x.clone().requires_grad_(), mt.full((4, 4), 2.0, requires_grad=True)
p = mt.nn.Parameter(mt.ones(4, 4))
found = []
for u, v in ((x, y), (a, y), (x, b), (a, b), (a, a), (p, a), (x, x[0]), (x, x.long()), (x, 2), (3, a), (x.T, y), (x[1:], y[1:])):
    for f in (lambda: u + v, lambda: u * v, lambda: u - v, lambda: u / v, lambda: u == v, lambda: mt.maximum(u, v)):
        found.append(told(f()))
for u in (x, a, p, x.long(), x[1:3], a[1:3], a[0], x.T[2:]):
    found += [told(mt.exp(u)), told(u.sum()), told(-u), told(u[0:1]), told(u[:0]), told(mt.relu(u))]
with mt.no_grad():
    found += [told(a * b), told(a[1:3]), a[1:2]._note]
with mt.inference_mode():
    found += [told(a * b), a[1:2].is_inference()]
v = a * 1
w = v[1:3]
v.mul_(2)
found += [told(v), told(w)]
for wrong in (lambda: x + mt.ones(3), lambda: mt.exp(None), lambda: mt.exp(), lambda: mt.exp(x, y), lambda: mt.ones(())[0:1]):
    try:
        wrong()
    except Exception as error:
        found.append([type(error).__name__, str(error)])
z = (a * b + x)[1:3].exp().sum() * b.sum()
saved = z.grad_fn
z.backward()
found += [a.grad.tolist(), b.grad.tolist()]
u = a * b
a.data.add_(1)
a.detach().add_(1)
try:
    u.sum().backward()
except RuntimeError as error:
    found.append(str(error))
print(json.dumps(found))
"""


def test_both_give_the_same_values_graphs_and_errors() -> None:
    outs = []
    for pure in ("", "1"):
        env = {**os.environ, "MORTICE_PURE": pure}
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, timeout=120)
        assert done.returncode == 0, done.stderr
        outs.append(json.loads(done.stdout))
    for fast_case, python in zip(*outs, strict=True):
        assert fast_case == python


def test_it_looks_like_the_function_that_it_stands_before() -> None:
    assert type(mt.mul).__name__ == "Fast" and mt.mul.__name__ == "mul" and mt.mul.__doc__.startswith("Multiply")
    assert list(inspect.signature(mt.mul).parameters) == ["input", "other", "out"]
    assert pickle.loads(pickle.dumps(mt.mul)) is mt.mul and copy.deepcopy(mt.exp) is mt.exp
    assert mt.mul(mt.ones(2), mt.ones(2), out=mt.empty(2)).tolist() == [1, 1]


def test_nothing_is_left_behind() -> None:
    x, y = mt.ones(4, 4, requires_grad=True), mt.ones(4, 4)

    def work() -> None:
        for _ in range(50):
            z = (x * y + x)[1:3]
            z.sum().backward()
            x.grad = None
            mt.exp(y)

    work()
    gc.collect()
    before = len(gc.get_objects())
    counts = [sys.getrefcount(o) for o in (x, y, x.shape, x._device)]
    work()
    gc.collect()
    assert len(gc.get_objects()) <= before + 5
    assert [sys.getrefcount(o) for o in (x, y, x.shape, x._device)] == counts
