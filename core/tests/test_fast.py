"""The fast cases in C against the Python functions that they stand before; skipped where the module was not built.

A mode in any thread sends every call to the Python functions, so both ways are taken side by side in one process.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import os
import pickle
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fast_asked import asked

import mortice as mt
from mortice import fast, node
from mortice.modes import modes, special
from mortice.node import Const, OpNode
from mortice.op import OPS, Op
from mortice.tensor import TensorBase

pytestmark = pytest.mark.skipif(fast._engine is None, reason="mortice._engine was not built (no compiler, or MORTICE_PURE)")

AT = mt.tensor([[0, 1], [1, 0], [3, 3], [2, 0]])
X, Y = mt.arange(16.0).reshape(4, 4).clone(), mt.full((4, 4), 2.0)


@contextlib.contextmanager
def python() -> Iterator[None]:
    """Leave everything to the Python functions, as while another thread has a mode."""
    special[0] += 1
    quiet, modes.quiet = modes.quiet, False
    try:
        yield
    finally:
        special[0] -= 1
        modes.quiet = quiet


def told(value: Any, given: list[Any]) -> Any:
    """Tell all there is to a result; tensors of the call are named by their place."""
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *[told(v, given) for v in value]]
    if isinstance(value, dict):
        return [[key, told(v, given)] for key, v in value.items()]
    if isinstance(value, Const):
        return ["Const", repr(value._buffer)]
    if not isinstance(value, mt.Tensor):
        return repr(value)
    for i, t in enumerate(given):
        if value is t:
            return f"operand {i}"
    found = [type(value), repr(value.tolist()), value.dtype, value.shape, type(value.shape), value._device, value._rg, value._leaf is None]
    storage = value._storage
    if storage is not None:
        found += [storage.version, value._note, told(value._viewed, given), told(value.view_steps, given)]
        found += [type(attrs) for attrs in list_steps(value._steps)]
        found.append(sum(t is value for t in storage.live()))
    if value._node is not None:
        found.append(told_node(value._node, given))
    return found


def list_steps(steps: Any) -> Iterator[Any]:
    while steps is not None:
        steps, _, attrs = steps
        yield attrs


def told_node(node: Any, given: list[Any]) -> Any:
    if isinstance(node, mt.graph.Slot):
        return ["slot", node.number, told_node(node.parent, given)]
    edges = [told(e, given) if e is None or isinstance(e, mt.Tensor) else e.name() for e in node.edges]
    kept = None if node.out is None else [o is not None for o in node.out]
    rest = [told(v, given) for v in (node.saved, node.versions, node.shapes, node.attrs, node.meta)]
    rest.append(node.extra and {i: version for i, (_, version) in node.extra.storages.items()})
    return [type(node), node.op, edges, kept, node.shape, node.dtype, node.device, *rest]


def outcome(call: Callable[..., Any], make: Callable[[], list[Any]]) -> Any:
    """Call once more than needed, so that dtypes and kernels are known; tell the result or the error."""
    found = []
    for _ in range(2):
        given = make()
        try:
            result = call(*given)
            found = [told(result, given), *[None if g is None else g._version for g in given if isinstance(g, mt.Tensor)]]
            found.append([getattr(g._leaf, "first_use", 0) != 0 for g in given if isinstance(g, mt.Tensor)])
        except Exception as error:  # noqa: BLE001 - errors are compared as well
            found = [type(error), str(error)]
    return found


def both(call: Callable[..., Any], make: Callable[[], list[Any]]) -> None:
    with python():
        expected = outcome(call, make)
    assert outcome(call, make) == expected


def differs(call: Callable[..., Any], make: Callable[[], list[Any]]) -> bool:
    with python():
        expected = outcome(call, make)
    return outcome(call, make) != expected


def grown(*tensors: Any) -> list[Callable[[], list[Any]]]:
    """Give operands in every condition that recording looks at: leaves, used leaves, results, views, written ones."""

    def leaf(t: Any) -> Any:
        return t.detach().clone().requires_grad_()

    def used(t: Any) -> Any:
        t = leaf(t)
        assert (t * 1)._node.edges == (t, None)
        return t

    def view(t: Any) -> Any:
        return mt.stack([t, t])[1]

    def written(t: Any) -> Any:
        t = leaf(t) * 1
        with mt.no_grad():
            t.mul_(1)
        return t

    ways = [lambda t: t, leaf, used, lambda t: leaf(t) * 1, view, lambda t: view(leaf(t)), written, mt.nn.Parameter]
    made = [lambda way=way: [way(t) for t in tensors] for way in ways]
    if len(tensors) > 1:
        made += [lambda way=way: [tensors[0], way(tensors[1])] for way in ways[1:]]
        made += [lambda way=way: [way(tensors[0]), tensors[1]] for way in ways[1:]]
    return made


def written(call: Callable[..., Any]) -> Callable[..., Any]:
    """Write into a copy: one that is alone with its memory, that another tensor shares, a part of it, and a result."""

    def run(x: Any, *others: Any) -> Any:
        alone, shared, whole, result = (x.detach().clone() for _ in range(4))
        other, part = shared.detach(), whole[:3]
        seen = [call(alone, *others), call(shared, *others), other, call(part, *[o[:3] for o in others]), whole, whole.data]
        return [*seen, call(result * 1, *others), call(x * 1, *others) if x.dtype is not mt.bool else None, alone._version]

    return run


PAIRS: list[Any] = [
    (mt.add, X, Y), (mt.mul, X, Y), (mt.sub, X, Y), (mt.div, X, Y), (mt.eq, X, Y), (mt.maximum, X, Y), (mt.atan2, X, Y),
    (mt.mul, X, Y[0]), (mt.mul, X[:, :1], Y[0]), (mt.add, X, mt.ones(())), (mt.matmul, X, Y), (mt.matmul, X[:3], Y),
    (mt.mul, X.T, Y), (lambda x, y: mt.mul(x, x), X, Y), (lambda x, y: mt.mul(x, other=y), X, Y),
    (lambda x, y: mt.where(x > y, x, y), X, Y), (lambda x, y: mt.nn.functional.linear(x, y), X, Y),
    (lambda x, y: mt.nn.functional.layer_norm(x, (4,), y[0]), X, Y),
    (written(lambda x, y: x.mul_(y)), X, Y), (written(lambda x, y: x.add_(y, alpha=2)), X, Y),
    (written(lambda x, y: x.lerp_(y, 0.25)), X, Y),
    (written(lambda x, y: x.addcmul_(y, x, value=2)), X, Y), (written(lambda x, y: x.div_(y[0, 0])), X, Y),
    (written(lambda x, y: x.sub_(y[:1])), X, Y), (written(lambda x, y: x.clamp_(y, None)), X, Y), (written(lambda x, y: x.eq_(y)), X, Y),
]  # fmt: skip
SINGLES: list[Any] = [
    mt.exp, mt.neg, mt.abs, mt.sum, mt.relu, mt.isnan, lambda x: mt.exp(input=x), lambda x: x.exp(), lambda x: x.sum(1),
    lambda x: x.mean(), lambda x: x.softmax(0), lambda x: x.argmax(1), lambda x: x.max(0), lambda x: x.t(), lambda x: x.mT,
    lambda x: x.unsqueeze(0), lambda x: x.expand(2, 4, 4), lambda x: x.reshape(2, -1), lambda x: x.t().reshape(-1),
    lambda x: x[1:3], lambda x: x[:0], lambda x: x[3:0:-2], lambda x: x[1], lambda x: x[-4, 3], lambda x: x[1:, 2], lambda x: x[()],
    lambda x: x[1:][1:], lambda x: x[0][None], lambda x: x[..., 1], lambda x: x[True], lambda x: x[[0, 1]], lambda x: x.T[2:],
    lambda x: x + 2, lambda x: 2 * x, lambda x: x - 1.5, lambda x: 1 / x, lambda x: x**2, lambda x: x == 1, lambda x: x * True,
    lambda x: x * 1j, lambda x: x + float("nan"), lambda x: x + 10**400, lambda x: x.sum() * 3, lambda x: x * mt.int64,
    lambda x: x[4], lambda x: x[-5], lambda x: x[10**30], lambda x: x[0, 0, 0], lambda x: x["a"], lambda x: x.sum()[0:1],
    lambda x: x + mt.ones(3), lambda x: mt.mul(x, x, out=x.detach().clone()), lambda x: mt.mul(x, x, out=None), lambda x: mt.exp(x, x),
    lambda x: mt.exp(), lambda x: mt.exp(x, bad=1), lambda x: mt.mul(x), lambda x: mt.mul(x, None), lambda x: x @ mt.ones(3),
    lambda x: x + x.double(), lambda x: x + x.long(), lambda x: mt.mul(x, [1]), lambda x: x.permute(0, 0), lambda x: x.softmax(5),
    lambda x: x.clamp(0, 1), lambda x: x.clamp(-0.5, x), lambda x: x.clamp(min=0.25), lambda x: x.clamp(None, 10**400),
    lambda x: x.clamp(True, 2), lambda x: x.clamp(0, 1j), lambda x: x.long().clamp(0, 1), lambda x: x.clamp(x[0], 1),
    lambda x: mt.where(x > 0, x, 0), lambda x: mt.where(x > 0, 1.5, x), lambda x: mt.where(x > 0, 1, 2.5), lambda x: x.lerp(x, 2),
    lambda x: x.chunk(2), lambda x: x.split([1, 3], 1), lambda x: x.unbind(), lambda x: mt.cat([x] * 12), lambda x: mt.cat([x, X[:1]]),
    *[written(call) for call in (
        lambda x: x.mul_(2), lambda x: x.add_(1.5), lambda x: x.clamp_(0, 1), lambda x: x.abs_(), lambda x: x.exp_(), lambda x: x.mul_(),
        lambda x: x.mul_(True), lambda x: x.clamp_(), lambda x: x.pow_(10**400), lambda x: x.add_("a"), lambda x: x.neg_(),
        lambda x: x.clamp_(None, mt.ones(3)), lambda x: x.lerp_(x.double(), 0.5), lambda x: x.mul_(x.mean()),
        lambda x: x.logical_not_(), lambda x: x.scatter_(1, AT[: len(x)], x[:, :2]), lambda x: x.scatter_add_(-1, AT[: len(x)], x[:, :2]),
        lambda x: x.scatter_(0, AT, x), lambda x: x.scatter_(1, AT[: len(x)], 2), lambda x: x.scatter_(1, AT[: len(x)], value=0.5),
        lambda x: x.scatter_(5, AT, x), lambda x: x.scatter_(1, AT[: len(x)] + 9, x[:, :2]),
        lambda x: x.round_(decimals=1), lambda x: x.tril_(1), lambda x: x.cumsum_(-1), lambda x: x.nan_to_num_(posinf=2),
        lambda x: x.logit_(0.1), lambda x: x.div_(2, rounding_mode="floor"), lambda x: x.lt_(1.5), lambda x: x.ge_(x.mean()),
        lambda x: x.heaviside_(x), lambda x: x.triu_(bad=1), lambda x: x.round_(1), lambda x: x.logical_or_(x.mean()),
    )],
    lambda x: mt.stack([x] * 70, 1), lambda x: mt.cat([x, *[X.long()] * 9]), lambda x: mt.stack([x] * 9 + [X[0]]),
]  # fmt: skip


@pytest.mark.parametrize("call, x, y", PAIRS)
def test_two_operands(call: Any, x: Any, y: Any) -> None:
    for make in grown(x, y):
        both(call, make)


@pytest.mark.parametrize("call", SINGLES)
def test_one_operand(call: Any) -> None:
    for x in (X, X.double(), X.long(), X > 3, X.to(mt.complex64), mt.ones(())):
        for make in grown(x) if x.dtype.kind in "fc" else [lambda x=x: [x]]:
            both(call, make)


BYTES = mt.tensor([0, 1, 200, 255], dtype=mt.uint8)
NUMBERS = [(name, X, (2.0,)) for name in ("add", "sub", "mul", "div", "lt")]
NUMBERS += [(name, BYTES, (255,)) for name in ("add", "mul", "lt", "bitwise_and")] + [("clamp", BYTES.to(mt.int32), (-5, 1 << 20))]


@pytest.mark.parametrize(("name", "x", "numbers"), NUMBERS)
def test_a_tensor_and_a_number_are_a_fast_case(name: str, x: Any, numbers: Any) -> None:
    fn = OPS[name].fn
    fn(x, *numbers)
    assert asked(lambda: fn(x, *numbers)) == []


BESIDE: list[Any] = [lambda y, n: y + n, lambda y, n: y < n, lambda y, n: mt.clamp(y, n, 100), lambda y, n: y.mul_(n)]


@pytest.mark.parametrize("call", BESIDE)
@pytest.mark.parametrize("dtype", [mt.uint8, mt.int8, mt.int16, mt.int32, mt.uint32, mt.uint64])
def test_numbers_at_the_limits_of_an_integer_dtype(call: Any, dtype: Any) -> None:
    least, most = mt.iinfo(dtype).min, mt.iinfo(dtype).max
    for number in (least - 1, least, most, most + 1, 0, -1):
        both(call, lambda n=number: [mt.tensor([least, most, 1], dtype=dtype), n])


@pytest.mark.parametrize("call", SINGLES)
def test_where_nothing_is_recorded(call: Any) -> None:
    for make in grown(X):

        def quietly(*given: Any) -> Any:
            with mt.no_grad():
                modes.quiet = special[0] == 1  # not where `python` counts as well
                return call(*given)

        both(quietly, make)


def test_a_view_where_nothing_is_recorded_is_noted_as_such() -> None:
    x = mt.ones(4, requires_grad=True) * 1
    with mt.no_grad():
        views = [x[:2], x.reshape(2, 2), x.unsqueeze(0), x[0]]
    assert [(v._note, v._rg, v._node) for v in views] == [("no_grad", False, None)] * 4
    with mt.no_grad(), mt.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert not modes.quiet
    assert special[0] == 0 and not modes.quiet


def test_every_op_that_has_a_fast_case() -> None:
    """The samples of the conformance kit: values, graphs, views and errors are the same, and so are gradients."""
    record = pytest.importorskip("mortice_conformance.record", reason="the kit, whose samples these are, is not installed")
    standing = {name for name, op in OPS.items() if type(op.fn) is fast._engine.Fast}
    assert len(standing) > 200
    record.load_samples()
    tried, wrong = set(), []
    for sample in record.SAMPLES.values():
        if sample.op not in standing:
            continue
        for d in (mt.float32, mt.complex64, mt.int64):
            if not sample.accepts(d):
                continue
            for case in [*sample.cases[:3], *sample.edges[:2]]:
                arrays = sample.draw(case, d)

                def make(leaves: bool, arrays: Any = arrays) -> list[Any]:
                    given = [None if a is None else mt.tensor(a.tolist(), dtype=getattr(mt, str(a.dtype))) for a in arrays]
                    given = [g if g is None else g.reshape(a.shape).clone() for g, a in zip(given, arrays)]
                    return [g.requires_grad_() if leaves and g is not None and g.dtype.kind in "fc" else g for g in given]

                call = lambda *given, sample=sample, case=case: sample.apply(given, case.attrs)
                for leaves in (False, True):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        if differs(call, lambda leaves=leaves: make(leaves)):
                            wrong.append(f"{sample.id} {case} {d.name}{' recorded' * leaves}")
                tried.add(sample.op)
    assert not wrong, "\n".join(wrong)
    assert len(standing - tried) < 20, sorted(standing - tried)


@contextlib.contextmanager
def walked_in_python() -> Iterator[None]:
    """Leave to the Python functions what a backward does at nodes and leaves."""
    with pytest.MonkeyPatch.context() as patch:
        of_tensors = ("_accumulate", "grad", "requires_grad", "_version", "device")
        for owner, name in (*[(OpNode, n) for n in ("pull", "owns")], *[(TensorBase, n) for n in of_tensors]):
            patch.setattr(owner, name, fast.replaced[name])
        patch.setattr(node, "WRITE", fast.replaced["write"])
        yield


def gradients(call: Callable[..., Any], make: Callable[[], list[Any]], write: bool = False) -> Any:
    """Tell what two backwards leave at the leaves, or the error; with `write` operands change after the forward."""
    given = make()
    try:
        for _ in range(2):
            made = call(*given)
            made = [t for t in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(t, mt.Tensor) and t.requires_grad]
            if write:
                with mt.no_grad():
                    for t in given[:1]:
                        t.mul_(2)
            mt.autograd.backward(made, [mt.full_like(t, 0.5) for t in made])
    except Exception as error:  # noqa: BLE001 - errors are compared as well
        return [type(error), str(error)]
    leaves = [t for t in given if isinstance(t, mt.Tensor) and t.requires_grad]
    kept = [t.grad for t in leaves]
    found = [[told(t.grad, given), t._version, t.device, sum(t.grad is g for g in kept)] for t in leaves]
    return [*found, [t._leaf is not None and t._leaf.first_use > 0 for t in leaves]]


def leaves_like(*values: Any) -> Callable[[], list[Any]]:
    return lambda: [v.clone().requires_grad_() if v.dtype.kind in "fc" else v for v in values]


NODES: list[Any] = [
    lambda x, y: x * y, lambda x, y: x * y[0], lambda x, y: x * y.sum(), lambda x, y: x * x + x, lambda x, y: x * 2.0,
    lambda x, y: x.expand(2, 4, 4), lambda x, y: x + y, lambda x, y: x.t() + y, lambda x, y: x.clone(), lambda x, y: x.t(),
    lambda x, y: x.exp() * y, lambda x, y: x.max(0), lambda x, y: mt.cat([x, y, x]), lambda x, y: x.unbind(),
    lambda x, y: mt.nn.functional.layer_norm(x, (4,), y[0], y[1]), lambda x, y: x.to(mt.complex64) * y,
    lambda x, y: mt.linalg.svd(x * AT.reshape(8)[:4]), lambda x, y: mt.nn.functional.cross_entropy(x, AT[:, 0]),
    lambda x, y: mt.nn.functional.cross_entropy(x.sigmoid(), y), lambda x, y: mt.gather(x, 1, AT) * y[:, :2],
    lambda x, y: mt.nn.functional.batch_norm(x, None, None, y[0], y[1], True), lambda x, y: x[1:3].mul(y[0]),
    lambda x, y: mt.nn.functional.conv1d(x, y.reshape(4, 4, 1)), lambda x, y: x.double() * 2, lambda x, y: (x * y).detach_(),
    lambda x, y: mt.nn.functional.linear(x, y), lambda x, y: mt.nn.functional.linear(x[None], y, y[0]),
]  # fmt: skip


@pytest.mark.parametrize("write", (False, True))
@pytest.mark.parametrize("call", NODES)
def test_backward(call: Any, write: bool) -> None:
    for make in (leaves_like(X + 1, Y), leaves_like((X + 1).t(), Y), lambda: [X.clone().requires_grad_(), Y]):
        with walked_in_python():
            expected = gradients(call, make, write)
        assert gradients(call, make, write) == expected


def test_backward_through_hooks_twice_and_into_shared_gradients() -> None:
    def packed() -> Any:
        x = X.clone().requires_grad_()
        with mt.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), mt.tensor):
            (x * x).exp().neg().sum().backward()
        return x.grad.tolist()

    def twice() -> Any:
        x = X.clone().requires_grad_()
        z = (x * x).sum()
        z.backward()
        with pytest.raises(RuntimeError) as refused:
            z.backward()
        return str(refused.value), x.grad.tolist()

    def seen() -> Any:
        x = X.clone().requires_grad_()
        x.grad = mt.zeros(4, 4)
        part, twin = x.grad[1:3], x.grad.detach()
        (x * Y).sum().backward()
        return part.tolist(), twin.tolist(), x.grad._version, x.grad.stride()

    def misshapen() -> Any:
        x = X.clone().requires_grad_()
        x.sum().backward()
        x.data = mt.zeros(3)
        with pytest.raises(RuntimeError) as refused:
            x.sum().backward()
        return str(refused.value)

    def of_views() -> Any:
        x = X.clone().requires_grad_()
        x.t().backward(mt.ones(4, 4))
        x.t().backward(Y)
        return x.grad.tolist(), x.grad.stride(), x.grad._storage is None

    def attributes() -> Any:
        x = X.clone().requires_grad_()
        found = [x.grad, x.requires_grad, x._version, x.device, hash(x) == id(x)]
        x.grad = None
        del x.grad
        for name, wrong in (("grad", 1), ("grad", x), ("requires_grad", 1), ("device", 1)):
            try:
                setattr(x, name, wrong)
            except (TypeError, RuntimeError, AttributeError) as error:
                found.append((type(error), str(error) if not isinstance(error, AttributeError) else ""))
        with pytest.warns(UserWarning, match="not a leaf"):
            found.append((x * 2).grad)
        return found

    for case in (packed, twice, seen, misshapen, of_views, attributes):
        with walked_in_python():
            expected = case()
        assert case() == expected, case.__name__
    assert "gradient" in mt.Tensor.grad.__doc__


def test_gradients_of_every_op() -> None:
    """The samples of the conformance kit, backwards."""
    record = pytest.importorskip("mortice_conformance.record", reason="the kit, whose samples these are, is not installed")
    record.load_samples()
    tried, wrong = set(), []
    for sample in record.SAMPLES.values():
        for d in (mt.float32, mt.complex64):
            for case in sample.cases[:2] if sample.accepts(d) and sample.op in OPS else ():
                arrays = sample.draw(case, d)

                def make(arrays: Any = arrays) -> list[Any]:
                    given = [None if a is None else mt.tensor(a.tolist(), dtype=getattr(mt, str(a.dtype))) for a in arrays]
                    given = [g if g is None else g.reshape(a.shape) for g, a in zip(given, arrays)]
                    return [g.requires_grad_() if g is not None and g.dtype.kind in "fc" else g for g in given]

                call = lambda *given, sample=sample, case=case: sample.apply(given, case.attrs)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with walked_in_python():
                        expected = gradients(call, make)
                    if gradients(call, make) != expected:
                        wrong.append(f"{sample.id} {case} {d.name}")
                tried.add(sample.op)
    assert not wrong, "\n".join(wrong)
    assert len(tried) > 200


def test_modes_and_levels() -> None:
    a, b = X.clone().requires_grad_(), Y.clone().requires_grad_()
    with mt.no_grad():
        assert not (a * b).requires_grad and a[1:3]._note == "no_grad" and not mt.exp(a).requires_grad
    with mt.inference_mode():
        assert (a * b).is_inference() and a[1:2].is_inference() is False
    with mt.autocast(a.device.type, dtype=mt.bfloat16):
        assert (a @ b).dtype is mt.bfloat16
    with pytest.warns(UserWarning, match="Anomaly"), mt.autograd.detect_anomaly():
        assert (a * b).grad_fn.extra.trace
    packed = []
    with mt.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        (a * b).sum().backward()
    assert len(packed) == 2
    assert mt.func.vmap(lambda x, y: (x * y)[1:3].exp())(X, Y).shape == (4, 2)
    assert mt.func.jvp(lambda x: x[1:3] * x[:2] + 1, (X,), (Y,))[1].tolist() == (X[1:3] * 2 + X[:2] * 2).tolist()
    assert mt.func.grad(lambda x: (x * x)[0].sum())(X).tolist() == [[0, 2, 4, 6]] + [[0] * 4] * 3


def test_an_overwritten_value_is_refused() -> None:
    a, b = X.clone().requires_grad_(), Y.clone().requires_grad_()
    v = a * b
    a.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        v.sum().backward()


MUTABLE = pytest.mark.skipif(not X.device.backend.mutable, reason="there a write makes anew what shares the memory")
SHARED: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x, "row": lambda x: x[1], "rows": lambda x: x[1:], "columns": lambda x: x[:, 1:3], "turned": lambda x: x.t(),
    "detached": lambda x: x.detach()[:2], "data": lambda x: x.data, "element": lambda x: x[1, 1], "several": lambda x: x.unbind()[1],
    "none": lambda x: x[2:2], "repeated": lambda x: x[:1].expand(4, 4), "on itself": lambda x: x.as_strided((3, 2), (1, 1)),
    "unwatched": lambda x: mt.no_grad()(lambda: x[1])(),
}  # fmt: skip
INTO_SHARED: list[Callable[[Any, Any], Any]] = [
    lambda v, x: v.add_(v), lambda v, x: v.mul_(2), lambda v, x: v.add_(x[0]), lambda v, x: v.sub_(x, alpha=2), lambda v, x: v.neg_(),
    lambda v, x: v.mul_(Y[0, : v.shape[-1]] if v.dim() else Y[0, 0]), lambda v, x: v.add_(Y[:, :1]), lambda v, x: v.lerp_(v * 2, 0.5),
    lambda v, x: v.addcmul_(v, x[0], value=2), lambda v, x: v.clamp_(2, 9), lambda v, x: v.copy_(v), lambda v, x: v.add_(Y[None]),
    lambda v, x: v.lt_(7), lambda v, x: v.ne_(x[0]), lambda v, x: v.eq_(x[1, 1]), lambda v, x: v.logical_not_(), lambda v, x: v.round_(),
]  # fmt: skip


@MUTABLE
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("place", SHARED)
def test_writes_into_shared_memory(place: str, recorded: bool) -> None:
    for write in INTO_SHARED:

        def call(x: Any, write: Any = write) -> Any:
            v = SHARED[place](x)
            return write(v, x), x.tolist(), v._version

        both(call, lambda: [X.clone().requires_grad_(recorded) * 1])
        both(mt.no_grad()(call), lambda: [X.clone().requires_grad_(recorded)])
        both(mt.inference_mode()(call), lambda: [X.clone().requires_grad_(recorded)])


@MUTABLE
def test_writes_into_shared_memory_are_a_fast_case() -> None:
    x = X.clone()
    for v in (x, x[1:], x[:, 1:3], x.data):
        calls = ("mul_", Y[0, 0]), ("sub_", Y[0, 0]), ("add_", 1), ("neg_",), ("lt_", 3), ("eq_", Y[0, 0]), ("tril_", 1), ("round_",)
        for name, *given in calls:
            write = functools.partial(getattr(v, name), *given)
            write()
            assert "method" not in asked(write)


def test_a_part_that_was_written_is_put_back_where_it_is() -> None:
    x = X.clone()
    x[1] += 1
    x[-1, 2:] *= 2
    x[..., 0] -= 4
    assert x.tolist() == [[-4, 1, 2, 3], [1, 6, 7, 8], [4, 9, 10, 11], [8, 13, 28, 30]] and x._version == 6
    if x.device.backend.mutable:
        y = x[0]
        assert "copy_" not in asked(lambda: x.__setitem__(0, y)) and x._version == 7
    rows = x[1:]
    rows[0] = x[1]
    x[0] = x[1]  # another part
    assert x[0].tolist() == x[1].tolist() == [1, 6, 7, 8]
    leaf = X.clone().requires_grad_()
    with mt.no_grad():
        leaf[0] += 1
    (leaf * leaf[0]).sum().backward()
    assert leaf[0].tolist() == [1, 2, 3, 4] and leaf.grad is not None


def test_a_list_of_ints_is_at_once_the_tensor_that_it_stands_for() -> None:
    x = X.clone()
    assert "as_key" not in asked(lambda: x[[0, -1]])
    x[[1, 2]] = 5.0
    assert x[[0, -1]].tolist() == [[0, 1, 2, 3], [12, 13, 14, 15]] and x[[1, 2]].tolist() == [[5] * 4] * 2
    assert x[[True, False, False, True]].shape == (2, 4) and x[[]].shape == (0, 4)
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        x[[0, 4]]


def test_what_is_written_to_shared_memory_is_seen_by_all_that_share_it() -> None:
    p, q = mt.nn.Parameter(X.clone()), mt.nn.Parameter(Y.clone())
    view, kept = p[1:], (p * q)
    assert p.data.mul_(0.5).add_(q.data, alpha=2) is not p
    want = (X * 0.5 + Y * 2).tolist()
    assert p.tolist() == want and view.tolist() == want[1:] and p._version == 0  # as `data` is known for
    kept.sum().backward()
    p.detach().mul_(2)
    assert view.tolist() == (X + Y * 4)[1:].tolist() and p._version == 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        p.mul_(2)


def test_views_that_live_together_are_known_to_their_storage() -> None:
    x = X.clone()
    views = [x[i % 4] for i in range(50)]
    assert [t for t in x._storage.live() if t is not x] == [*views[1:], views[0]] and not x._storage.lonely()
    del views[10:]
    assert sum(1 for _ in x._storage.live()) == 11 and len(x[:2]._storage.aliases) < 60


def test_a_class_with_a_shape_of_its_own_is_asked() -> None:
    class Odd(mt.Tensor):
        @property
        def shape(self) -> Any:
            return mt.Size((2, 2))

    odd = mt.ones(2, 2).as_subclass(Odd) if hasattr(mt.Tensor, "as_subclass") else mt.ones(2, 2)
    odd.__class__ = Odd
    assert (odd * mt.ones(2, 2)).shape == (2, 2) and type(odd + 1) is Odd


def test_tensors_that_are_not_complete() -> None:
    half = object.__new__(mt.Tensor)
    for call in (mt.exp, lambda x: mt.mul(x, x), lambda x: mt.mul(X, x), lambda x: x[0:1], lambda x: x + 1, lambda x: x.softmax(0)):
        with pytest.raises((AttributeError, TypeError)):
            call(half)
    broken = X.clone()
    for name in ("_buffer", "_device", "_dtype", "_shape", "_node", "_storage", "_leaf"):
        kept = getattr(broken, name)
        delattr(broken, name)
        with contextlib.suppress(AttributeError, TypeError):
            broken * X, broken[0:1], broken.exp()
        setattr(broken, name, kept)


def test_it_looks_like_the_function_that_it_stands_before() -> None:
    mul, exp = OPS["mul"].fn, OPS["exp"].fn
    public = getattr(mt.mul, "__wrapped__", mt.mul)  # where another test has let functions ask `__torch_function__`
    assert public is mul and type(mul) is fast._engine.Fast and mul.__name__ == "mul" and mul.__doc__.startswith("Multiply")
    assert list(inspect.signature(mul).parameters) == ["input", "other", "out"]
    assert pickle.loads(pickle.dumps(mul)) is mul and copy.deepcopy(exp) is exp
    assert mul(mt.ones(2), mt.ones(2), out=mt.empty(2)).tolist() == [1, 1]
    assert inspect.isroutine(mul) and "mul" in repr(mul)
    with pytest.raises(AttributeError):
        del mul.__name__
    for fn in (mul, exp, mt.Tensor.__getitem__):
        with pytest.raises(TypeError):
            fn()
    with pytest.raises(TypeError, match="Op"):
        fast._engine.fast(fast.ONE, None, len, None)


def test_a_function_that_takes_numpys_names_is_reached_at_once_without_them() -> None:
    x, at = mt.arange(16.0).reshape(4, 4), mt.zeros(4, 4, dtype=mt.int64)
    named = functools.partial(mt.gather, input=x, dim=1, index=at)
    for call in (lambda: x.mean(1), lambda: x.mean(dim=1, keepdim=True), lambda: x.amax(1, True), named):
        call()
        assert "call" not in asked(call)
    assert "call" in asked(lambda: x.mean(axis=1)) and x.mean(axis=1, keepdims=True).tolist() == [[1.5], [5.5], [9.5], [13.5]]
    assert x.mean(**{"".join(["di", "m"]): 1}).tolist() == [1.5, 5.5, 9.5, 13.5]  # of a name that nothing else has
    for wrong, said in (
        (lambda: x.mean(1, 2), r"mean\(\): argument 'keepdim' must be bool, not int"),
        (lambda: x.sort(stable=1), r"sort\(\): argument 'stable' must be bool, not int"),
        (lambda: mt.argmax([1]), "argmax: expected a Tensor; got list."),
        (lambda: x.mean(ax=1), "unexpected keyword argument 'ax'"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=said):
            wrong()
    assert list(inspect.signature(mt.mean).parameters) == ["input", "dim", "keepdim", "dtype", "out"]
    assert pickle.loads(pickle.dumps(mt.mean)) is mt.mean is copy.deepcopy(mt.mean) and "Average" in mt.mean.__doc__


def test_what_autocast_sees_as_one_operation_is_reached_at_once_without_it() -> None:
    F, at = mt.nn.functional, mt.zeros(4, 4, dtype=mt.int64)
    for call in (lambda: F.mse_loss(X, Y), lambda: mt.einsum("ij,jk->ik", X, Y), lambda: X.scatter_add(dim=1, index=at, src=X)):
        call()
        assert "call" not in asked(call)
        with mt.no_grad():
            assert "call" not in asked(call)
        with mt.autocast(X.device.type, dtype=mt.bfloat16):
            assert "call" in asked(call)
    with mt.autocast(X.device.type, dtype=mt.bfloat16):
        assert mt.einsum("ij,jk->ik", X, Y).dtype is mt.bfloat16 and F.mse_loss(X.bfloat16(), Y).dtype is mt.float32
    with pytest.raises(TypeError, match="mse_loss: argument 'input' must be Tensor, not int"):
        F.mse_loss(1, X)
    with pytest.raises(TypeError, match="scatter_add: expected a Tensor; got list"):
        mt.scatter_add([1], 0, at, X)


def test_sizes_and_data_are_what_they_are_in_python() -> None:
    def found(read: Callable[[], Any]) -> Any:
        try:
            return told(read(), [])
        except (IndexError, TypeError, RuntimeError) as error:
            return type(error), str(error)

    shape, odd = mt.zeros(2, 3, 5).shape, mt.nn.parameter.UninitializedParameter()
    for item in (0, -1, 7, "a", None, slice(1, None), slice(None), slice(None, None, -2), slice(9, 12)):
        assert found(lambda item=item: shape[item]) == found(lambda item=item: fast.replaced["__getitem__"](shape, item))
    assert type(shape[1:]) is mt.Size and shape[1:] == (3, 5) and shape[2] == 5
    x = X.clone()  # other tests read X
    conditions = [t for make in (*grown(x), *grown(x[1:].t())) for t in make()]
    for t in (*conditions, mt.zeros(0, 3)):
        assert t.size is fast.replaced["size"].fget(t) and t.size() == t.size(None) == t.shape and t.size(-1) == t.shape[-1]
        assert told(t.data, [t]) == told(fast.replaced["data"].fget(t), [t])
        data, before = t.data, t._version
        data += 1
        assert t.detach().equal(data) and (data._version, t._version) == (1, before)
    for t in (*conditions, mt.zeros(1).expand(3), mt.zeros(0, 3).t(), mt.ones(2).exp()[:1]):
        assert mt.mutation.plain(t) is fast.replaced["plain"](t)
        with mt.no_grad():
            assert mt.mutation.plain(t) is fast.replaced["plain"](t)
    assert found(lambda: odd.size) == found(lambda: fast.replaced["size"].fget(odd))


def test_several_results_get_the_places_that_they_get_in_python() -> None:
    node, found = (X.clone().requires_grad_() * 1).grad_fn, []
    for give in (mt.graph.give_slots, fast.replaced["give_slots"]):
        results = (mt.ones(2), mt.ones(3, dtype=mt.float64))
        places = give(node, results)
        assert all(place() is t._node for place, t in zip(places, results, strict=True))
        assert [(s.parent, s.edges, s.extra, s.seq > node.seq) for s in (t._node for t in results)] == [(node, (node,), None, True)] * 2
        found.append([told(t, []) for t in results])
        del results
        assert [place() for place in places] == [None, None]
    assert found[0] == found[1]
    x = X.clone().requires_grad_()
    factored = [functools.partial(mt.linalg.qr, x)] if X.device.backend.mutable else []  # strict's own is made of more
    for call in (x.unbind, functools.partial(x.split, 2), *factored):
        call()
        assert not {"__init__", "record"} & {*asked(call)} and [t._node.number for t in call()][:2] == [0, 1]


def test_it_is_switched_off_by_the_environment() -> None:
    program = "import mortice as mt; from mortice import fast; print(fast._engine is None, (mt.ones(2) * 2 + 1)[0:1].tolist())"
    env = {**os.environ, "MORTICE_PURE": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, timeout=120)
    assert done.stdout.strip() == "True [3.0]", done.stderr


@pytest.mark.parametrize("name, value, said", [
    ("OpNode", type("OpNode", (OpNode,), {"__slots__": ("more",)}), "OpNode has other slots: more"),
    ("Device", type("Device", (), {"__slots__": ("table",)}), "'Device' has no attribute 'backend'"),
    ("VERSION", 99, f"it is version {fast.VERSION}, and this needs 99"),
    ("special", special, "it serves another copy of the package"),
])  # fmt: skip
def test_what_it_does_not_fit_switches_it_off_aloud(monkeypatch: Any, name: str, value: Any, said: str) -> None:
    monkeypatch.setattr(fast, "_engine", fast._engine)
    monkeypatch.setattr(fast, name, value)
    with pytest.warns(RuntimeWarning, match=f"does not fit this mortice and is not used: .*{said}.* Install mortice anew"):
        assert fast.install(Op, len) is len
    assert fast._engine is None and fast.stand_before(fast.ONE, mt.exp.op, len) is len


@pytest.mark.skipif(not hasattr(fast._engine, "crc32"), reason="this processor has no products without carries")
def test_checksums_are_zlibs() -> None:
    data = bytes(i * 7 % 251 for i in range(5000))
    for n in (*range(200), 1023, 4096, 5000):
        for start in (0, 3):
            assert fast._engine.crc32(memoryview(data)[start:n]) == zlib.crc32(data[start:n])


def test_a_kernel_that_fails_is_called_once(monkeypatch):
    calls = []

    def fails(*operands, **attrs):
        calls.append(operands)
        raise IndexError("of the kernel itself")

    op, operands = OPS["lerp"], [mt.ones(2)] * 3
    op.fn(*operands)  # from here on its fast case serves
    monkeypatch.setitem(operands[0]._device.table, op, fails)
    for way in (contextlib.nullcontext, python):
        calls.clear()
        with way(), pytest.raises(IndexError, match="of the kernel itself"):
            op.fn(*operands)
        assert len(calls) == 1
