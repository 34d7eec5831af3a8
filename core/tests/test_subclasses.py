"""Classes with `__torch_dispatch__`: wrappers of tensors, told of operators below autograd, as in PyTorch where it is installed."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
from typing import Any

import pytest

import mortice as mt


def _of(lib: Any, name: str) -> Any:
    return importlib.import_module(f"{lib.__name__}.{name}")


def logging(lib: Any, log: list[str]) -> Any:
    """Return a class that computes with the tensor inside and writes down the operators."""
    tree_map = _of(lib, "utils._pytree").tree_map

    class Logging(lib.Tensor):
        __slots__ = ["inside"]

        @staticmethod
        def __new__(cls: Any, inside: Any, requires_grad: bool = False) -> Any:
            made = lib.Tensor._make_wrapper_subclass(
                cls, inside.size(), strides=inside.stride(), storage_offset=inside.storage_offset(), dtype=inside.dtype,
                layout=inside.layout, device=inside.device, requires_grad=requires_grad,
            )  # fmt: skip
            made.inside = inside
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is not lib.ops.aten.detach.default:  # of what is saved for backward PyTorch tells too
                log.append(str(func))
            args, kwargs = tree_map(lambda a: a.inside if isinstance(a, cls) else a, (args, kwargs or {}))
            return tree_map(lambda a: cls(a) if isinstance(a, lib.Tensor) else a, func(*args, **kwargs))

    return Logging


def values(t: Any) -> Any:
    return [type(t).__name__, getattr(t, "inside", t).tolist()] if hasattr(t, "grad_fn") else t


CALLS = [
    lambda lib, x: x + 1, lambda lib, x: lib.ones(2, 2) + x, lambda lib, x: lib.nn.Parameter(lib.ones(2, 2)) * x,
    lambda lib, x: (x * x).exp().sum(),
    lambda lib, x: lib.nn.functional.linear(x, lib.ones(3, 2), lib.zeros(3)), lambda lib, x: lib.nn.functional.softmax(x, 1),
    lambda lib, x: x.view(4).reshape(2, 2).t(), lambda lib, x: x[0, 1:], lambda lib, x: x.sum().item(), lambda lib, x: x.data,
    lambda lib, x: lib.zeros_like(x), lambda lib, x: x.clone(), lambda lib, x: x.double(), lambda lib, x: lib.cat([x, lib.ones(1, 2)]),
    lambda lib, x: x.max(1).values, lambda lib, x: lib.where(x > 2, x, 0.0), lambda lib, x: lib.equal(x, x),
    lambda lib, x: bool((x > 0).all()),
    lambda lib, x: x.relu().mean(0), lambda lib, x: lib.nn.LayerNorm(2)(x).sum(), lambda lib, x: x.detach().add_(1),

       lambda lib, x: [x.requires_grad, x.is_leaf, (x * 2).is_leaf, list(x.shape), list(x.stride()),
    x.device == lib.ones(1).device, str(x.dtype)[-7:]],
    lambda lib, x: lib.autograd.grad((x**3).sum(), x)[0], lambda lib, x: lib.autograd.grad((x.exp() * x).sum(), x)[0],
    lambda lib, x: lib.autograd.grad(lib.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum(), x)[0],
    lambda lib, x: lib.autograd.grad(lib.nn.functional.softmax(x, 1)[:, 0].sum(), x)[0],
    # Names that come from the public functions' parameters, and overloads.
    lambda lib, x: x.flip(0), lambda lib, x: x.roll(1, 0), lambda lib, x: x.logsumexp(1), lambda lib, x: x.var(1), lambda lib, x: x.std(),
    lambda lib, x: lib.nn.functional.gelu(x), lambda lib, x: lib.nn.functional.elu(x), lambda lib, x: x.detach().round(decimals=1),
    lambda lib, x: lib.nn.functional.mse_loss(x, lib.ones(2, 2)), lambda lib, x: x.repeat(2, 1), lambda lib, x: x.kthvalue(1)[0],
    lambda lib, x: x.unfold(0, 2, 1), lambda lib, x: lib.addcmul(x, x, x, value=2), lambda lib, x: lib.nn.functional.hardtanh(x, 0.0, 2.0),
    lambda lib, x: x.nan_to_num(), lambda lib, x: x.index_add(0, lib.tensor([0]), lib.ones(1, 2)), lambda lib, x: x.detach().nonzero(),
    # What is read.
    lambda lib, x: x[...], lambda lib, x: x[::2], lambda lib, x: x[:, 1::2], lambda lib, x: x[lib.tensor([1, 0, 0])],
    lambda lib, x: x[:, lib.tensor([1])], lambda lib, x: x[0, lib.tensor([1])], lambda lib, x: x[[1, 0]], lambda lib, x: x[x.detach() > 2],
    lambda lib, x: list(x)[1], lambda lib, x: x.split(1)[0], lambda lib, x: x.chunk(2, 1)[1], lambda lib, x: x.split([1, 1])[0],
    # What is written.
    lambda lib, x: lib.add(x.detach(), 1, out=lib.zeros(2, 2)), lambda lib, x: lib.sum(x.detach(), 0, out=lib.zeros(2)),
    lambda lib, x: lib.cat([x.detach(), lib.ones(1, 2)], out=lib.zeros(3, 2)), lambda lib, x: lib.mul(x.detach(), 2, out=x.detach()),
    lambda lib, x: written(x, lambda y: y.mul_(3)), lambda lib, x: written(x, lambda y: y.exp_()),
    lambda lib, x: written(x, lambda y: y.zero_()),
    lambda lib, x: written(x, lambda y: y.__setitem__(0, 5.0)), lambda lib, x: written(x, lambda y: y[0].mul_(3)),
    lambda lib, x: written(x, lambda y: y.__setitem__((0, lib.tensor([1])), 5.0)), lambda lib, x: written(x, lambda y: y.pow_(2).sin_()),
    lambda lib, x: written(x, lambda y: y.copy_(x * 2)), lambda lib, x: written(x, lambda y: y.t().add_(x)),
    lambda lib, x: written(x, lambda y: y.__setitem__((slice(None), 1), x[0])), lambda lib, x: written(x, lambda y: y[:, 0].fill_(x[0, 0])),
    lambda lib, x: written(x, lambda y: y.index_put_((lib.tensor([0]),), x[:1], accumulate=True)),
    lambda lib, x: lib.randint_like(x, 1), lambda lib, x: lib.poisson(x.detach() * 0),
    lambda lib, x: x.new_empty_strided((2,), (1,)).zero_(),
]  # fmt: skip


def written(x: Any, write: Any) -> Any:
    y = x * 1
    write(y)
    return y


@pytest.mark.oracle
@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_wrapper_is_told_of_the_operators_that_pytorch_tells_of(number: int) -> None:
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    found = []
    for lib in (mt, torch):
        log: list[str] = []
        x = logging(lib, log)(lib.tensor([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
        made = CALLS[number](lib, x)
        found.append(([values(made)], log[:]))
        if hasattr(made, "inside") and made.requires_grad and x.grad is None:
            (made * made.detach()).sum().backward()
            found[-1][0].append(values(x.grad))
    (mine, told), (want, wanted) = found
    assert plain(mine) == plain(want)
    if not told or "backward" not in "".join(wanted):  # of formulas PyTorch tells by operators of its own
        assert told == wanted or 22 <= number < 26


def plain(value: Any) -> Any:
    return [plain(v) for v in value] if isinstance(value, list) else pytest.approx(value, rel=1e-5) if isinstance(value, float) else value


def test_other_classes_are_no_classes_of_tensors() -> None:
    x, plain = mt.ones(2), type("Plain", (mt.Tensor,), {})
    for make in (lambda: x.as_subclass(object), lambda: mt.Tensor._make_subclass(object, x), lambda: mt.Tensor._make_subclass("Tensor", x)):
        with pytest.raises(TypeError, match="Creating a Tensor subclass from a class that does not inherit from Tensor is not possible"):
            make()
    for kind in (plain, object):
        with pytest.raises(TypeError, match="must define __torch_dispatch__"):
            mt.Tensor._make_wrapper_subclass(kind, (2,))


def test_gradients_reach_the_leaf_as_tensors_of_the_class() -> None:
    log: list[str] = []
    kind = logging(mt, log)
    x = kind(mt.tensor([1.0, 2.0]), requires_grad=True)
    for _ in range(2):
        x.exp().sum().backward()
    assert type(x.grad) is kind and x.grad.inside.tolist() == pytest.approx([5.436564, 14.778112])
    y = x.detach()
    assert y.add_(1) is y and y.inside.tolist() == [2.0, 3.0] and log[-1] == "aten.add_.Tensor"
    before = len(log)
    (mt.ones(2, requires_grad=True) * 2).sum().backward()
    assert len(log) == before


class Eighths(mt.Tensor):
    """Weights kept as whole numbers of eighths; a linear layer computes with what they stand for."""

    @staticmethod
    def __new__(cls: Any, whole: Any, like: Any = mt.float32) -> Any:
        return mt.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=like, device=whole.device)

    def __init__(self, whole: Any, like: Any = mt.float32) -> None:
        self.whole = whole

    @classmethod
    def of(cls, t: Any) -> Any:
        return cls((t * 8).round().to(mt.int8), t.dtype)

    def __repr__(self) -> str:
        return f"Eighths({self.whole.tolist()})"

    def __tensor_flatten__(self) -> Any:
        return ["whole"], self.dtype

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, like: Any, size: Any, stride: Any) -> Any:
        return cls(inner["whole"], like)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is mt.nn.functional.linear:
            return Linear.apply(*args[:2]) + args[2]
        with mt._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        x, aten, kwargs = args[0], mt.ops.aten, kwargs or {}
        if func in (aten.detach.default, aten.clone.default):
            return return_and_correct_aliasing(func, args, kwargs, cls(func(x.whole), x.dtype))
        if func is aten._to_copy.default:
            return cls(x.whole.clone(), kwargs.get("dtype") or x.dtype)
        if func is aten.copy_.default:
            x.whole.copy_(args[1].whole if isinstance(args[1], cls) else cls.of(args[1]).whole)
            return return_and_correct_aliasing(func, args, kwargs, x)
        if func.overloadpacket in (aten.mul, aten.sub, aten.add, aten.mm):
            return func(*[a.value() if isinstance(a, cls) else a for a in args], **kwargs)
        return NotImplemented

    def value(self) -> Any:
        return self.whole.to(self.dtype) / 8


class Linear(mt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x @ w.value().T

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g @ w.value(), g.T @ x


from mortice.utils._python_dispatch import (  # noqa: E402
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)


def quantized() -> Any:
    layer = mt.nn.Linear(2, 1)
    layer.weight = mt.nn.Parameter(Eighths.of(mt.tensor([[0.5, -1.0]])))
    mt.nn.init.ones_(layer.bias)
    return layer


def test_a_layer_trains_a_weight_that_keeps_whole_numbers() -> None:
    layer, x = quantized(), mt.tensor([[1.0, 3.0]], requires_grad=True)
    assert isinstance(layer.weight, mt.nn.Parameter) and type(layer.weight) is Eighths and layer.weight.requires_grad
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    out = layer(x)
    assert out.tolist() == [[-1.5]]
    out.backward()
    assert x.grad.tolist() == [[0.5, -1.0]] and layer.weight.grad.tolist() == [[1, 3]] and type(layer.weight.grad) is mt.Tensor
    mt.optim.SGD(layer.parameters(), lr=0.25).step()
    assert layer.weight.whole.tolist() == [[2, -14]] and layer.bias.tolist() == [0.75]
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.sin.default'; all __torch_dispatch__ handlers"):
        layer.weight.sin()


def test_its_state_is_copied_loaded_moved_and_written() -> None:
    layer = quantized()
    other = copy.deepcopy(layer)
    assert type(other.weight) is Eighths and other.weight.whole is not layer.weight.whole
    state = layer.state_dict()
    assert type(state["weight"]) is Eighths
    state["weight"] = Eighths.of(mt.tensor([[2.0, 2.0]]))
    other.load_state_dict(state)
    assert other.weight.whole.tolist() == [[16, 16]] and layer.weight.whole.tolist() == [[4, -8]]
    assert other.double().weight.dtype is mt.float64 and other(mt.ones(1, 2, dtype=mt.float64)).tolist() == [[5.0]]
    again = pickle.loads(pickle.dumps(layer.weight.detach()))
    assert type(again) is Eighths and again.value().tolist() == [[0.5, -1.0]]
    file = io.BytesIO()
    mt.save(layer.state_dict(), file)
    for allowed in (False, True):
        file.seek(0)
        if allowed:
            with mt.serialization.safe_globals([Eighths]):
                assert mt.load(file)["weight"].value().tolist() == [[0.5, -1.0]]
        else:
            with pytest.raises(mt.serialization.UnpicklingError, match="Eighths"):
                mt.load(file)
    assert is_traceable_wrapper_subclass(again) and not is_traceable_wrapper_subclass(mt.ones(2))
    doubled = transform_subclass(again, lambda name, t: t * 2)
    assert type(doubled) is Eighths and doubled.value().tolist() == [[1.0, -2.0]]


@pytest.mark.oracle
def test_files_with_wrappers_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    if mt.ones(1).device.type != "cpu":
        pytest.skip("a file names the device of what it holds, and PyTorch knows no such one")
    for writer, reader in ((mt, torch), (torch, mt)):
        globals()["Shown"] = logging(writer, [])
        Shown.__qualname__, Shown.__module__ = "Shown", __name__  # type: ignore[name-defined] # noqa: F821
        file = io.BytesIO()
        writer.save(Shown(writer.tensor([1.0, 2.0])), file)  # type: ignore[name-defined] # noqa: F821
        file.seek(0)
        globals()["Shown"] = kind = logging(reader, [])
        kind.__qualname__, kind.__module__ = "Shown", __name__
        with reader.serialization.safe_globals([kind]):
            found = reader.load(file, weights_only=True)
        assert type(found) is kind and found.inside.tolist() == [1.0, 2.0]


class Diagonal(mt.Tensor):
    """A matrix of which the diagonal is kept, where that is enough."""

    @staticmethod
    def __new__(cls: Any, values: Any, requires_grad: bool = False) -> Any:
        size = (len(values), len(values))
        return mt.Tensor._make_wrapper_subclass(cls, size, dtype=values.dtype, device=values.device, requires_grad=requires_grad)

    def __init__(self, values: Any, requires_grad: bool = False) -> None:
        self.values = values

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is mt.ops.aten.mul.Tensor and types == (cls,) and len(args) == 2 and type(args[0]) is type(args[1]):
            return cls(args[0].values * args[1].values)
        return func(*[mt.diag(a.values) if isinstance(a, cls) else a for a in args], **(kwargs or {}))


def test_a_class_answers_by_its_own_tensors_or_plain_ones() -> None:
    d = Diagonal(mt.tensor([1.0, 2.0]), requires_grad=True)
    assert type(d * d) is Diagonal and (d * d).values.tolist() == [1, 4]
    for made in (d + mt.ones(2, 2), d @ mt.ones(2, 2), mt.ones(2, 2) @ d, d.sum(), mt.nn.functional.linear(mt.ones(1, 2), d)):
        assert type(made) is mt.Tensor and made.requires_grad
    (mt.tensor([[3.0, 5.0]]) @ d).sum().backward()
    assert type(d.grad) is mt.Tensor and d.grad.tolist() == [[3, 3], [5, 5]]


def test_a_weight_of_low_rank_updates() -> None:
    class LowRank(mt.Tensor):
        @staticmethod
        def __new__(cls: Any, base: Any, a: Any, b: Any) -> Any:
            return mt.Tensor._make_wrapper_subclass(cls, base.shape, dtype=base.dtype, device=base.device)

        def __init__(self, base: Any, a: Any, b: Any) -> None:
            self.parts = base, a, b

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is mt.nn.functional.linear:
                base, a, b = args[1].parts
                return func(args[0], base, *args[2:]) + (args[0] @ a.t()) @ b.t()
            with mt._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is mt.ops.aten.detach.default:
                return cls(*args[0].parts)
            return func(*[a.parts[0] + a.parts[2] @ a.parts[1] if isinstance(a, cls) else a for a in args], **(kwargs or {}))

    a, b = mt.full((1, 2), 0.5, requires_grad=True), mt.full((3, 1), 2.0, requires_grad=True)
    layer = mt.nn.Linear(2, 3, bias=False)
    layer.weight = mt.nn.Parameter(LowRank(mt.ones(3, 2), a, b), requires_grad=False)
    layer(mt.ones(1, 2)).sum().backward()
    assert a.grad.tolist() == [[6, 6]] and b.grad.tolist() == [[1], [1], [1]] and layer.weight.sum() == 12


def test_tensors_with_elements_of_their_own_and_modes_beside_classes() -> None:
    log: list[str] = []

    class Own(mt.Tensor):
        @staticmethod
        def __new__(cls: Any, t: Any) -> Any:
            return mt.Tensor._make_subclass(cls, t)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(f"class {func} {[t.__name__ for t in types]}")
            with importlib.import_module("mortice.utils._mode_utils").no_dispatch():
                return func(*args, **(kwargs or {}))

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(f"mode {func}")
            return func(*args, **(kwargs or {}))

    x = Own(mt.ones(2))
    assert (x * 3).tolist() == [3, 3] and log == ["class aten.mul.Tensor ['Own']"]
    with Mode():
        assert (x * 3).tolist() == [3, 3]
    assert log[1:] == ["mode aten.mul.Tensor", "class aten.mul.Tensor ['Own']"]
    with mt._C._DisableTorchDispatch():
        assert (x * 3).tolist() == [3, 3] and len(log) == 3


def test_leaves_that_get_one_gradient_have_a_copy_each() -> None:
    kind = logging(mt, [])
    a, b = (kind(mt.ones(3), requires_grad=True) for _ in "ab")
    ((a + b) * kind(mt.ones(3))).sum().backward()
    a.grad.inside.mul_(5)
    assert b.grad.inside.tolist() == [1, 1, 1]


class Bare(mt.Tensor):
    """A wrapper that gives what is inside to operators, and gives back what they give."""

    @staticmethod
    def __new__(cls: Any, inside: Any) -> Any:
        made = mt.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype, device=inside.device)
        made.inside = inside
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*[a.inside if isinstance(a, cls) else a for a in args], **(kwargs or {}))


def test_a_class_may_say_itself_that_functions_do_not_ask_it() -> None:
    class Index(Bare):
        __torch_function__ = mt._C._disabled_torch_function_impl

    made = Index(mt.tensor([1, 2])) + 1
    assert type(made) is mt.Tensor and made.tolist() == [2, 3]


@pytest.mark.parametrize("create_graph", [False, True])
def test_derivatives_of_functions_of_a_wrapper_are_wrappers(create_graph: bool) -> None:
    kind, data = logging(mt, []), mt.tensor([[0.0, 1.0], [2.0, 3.0]])
    functional = mt.autograd.functional
    found = []
    for x in (data.clone().requires_grad_(), kind(data, requires_grad=True)):
        pulled = functional.vjp(lambda t: t.exp().sum(1), x, mt.ones(2), create_graph=create_graph)[1]
        rows = functional.jacobian(lambda t: t.exp().sum(1), x, create_graph=create_graph)
        at_once = functional.jacobian(lambda t: t.exp().sum(1), x, create_graph=create_graph, vectorize=True)
        found.append((pulled, rows, at_once, functional.hessian(lambda t: t.pow(3).sum(), x, create_graph=create_graph)))
    for plain, wrapper in zip(*found, strict=True):
        assert type(wrapper) is kind and mt.allclose(plain, wrapper.inside)


def test_gradients_that_repeat_and_derivatives_of_derivatives_are_wrappers() -> None:
    kind, data, func = logging(mt, []), mt.tensor([[0.0, 1.0], [2.0, 3.0]]), mt.func
    found = []
    for make in (lambda t: t, kind):
        x = make(data.clone()).requires_grad_()
        ones = make(mt.ones(2))
        rows = mt.autograd.grad(x.sum(1), x, ones)[0], mt.autograd.grad(x.t().mean(), x, create_graph=True)[0], x.long()
        twice = func.grad(lambda t: func.grad(lambda u: u.pow(3).sum())(t).sum())(make(data))
        out, pushed, aux = func.jvp(lambda t: (t.exp(), t + 1), (make(data),), (make(mt.ones(2, 2)),), has_aux=True)
        found.append([*rows, twice, out, pushed, aux])
    for plain, wrapper in zip(*found, strict=True):
        assert type(wrapper) is kind and plain.dtype is wrapper.dtype and mt.allclose(plain, wrapper.inside)
        assert not wrapper.requires_grad


def test_operands_of_several_dtypes_have_gradients_of_their_own() -> None:
    kind, n = logging(mt, []), mt.tensor([1, 2, 3])
    found = []
    for make in (lambda t: t, kind):
        x, y = make(mt.tensor([0.5, 2.0, 4.0])).requires_grad_(), make(mt.tensor([2.0, 3.0, 1.0], dtype=mt.float64)).requires_grad_()
        whole = make(n)
        made = [x * (x > 1), x / whole, whole * x, whole / x, x**whole, mt.atan2(x, y), x * y, mt.where(whole > 1, x, y)]
        sum([t.sum() for t in made]).backward()
        slope = mt.autograd.grad((x * y).pow(2).sum(), x, create_graph=True)[0]
        found.append([x.grad, y.grad, *mt.autograd.grad(slope.sum(), [x, y])])
    for plain, wrapper in zip(*found, strict=True):
        assert type(wrapper) is kind and plain.dtype is wrapper.inside.dtype and mt.allclose(plain, wrapper.inside)


def test_what_functions_make_for_themselves_has_values_beside_a_wrapper() -> None:
    kind, data = logging(mt, []), mt.tensor([[2.0, 0.5], [0.0, 1.0]], dtype=mt.float64)
    solved = lambda t: mt.linalg.lstsq(t, t).solution  # noqa: E731
    for of in (lambda t: t.quantile(0.5), lambda t: mt.combinations(t[0]), solved, mt.matrix_exp, mt.argwhere):
        made = of(kind(data))
        assert type(made) is kind and mt.allclose(of(data), made.inside)


def _samples() -> Any:
    record = pytest.importorskip("mortice_conformance.record", reason="the kit, whose samples these are, is not installed")
    from mortice_conformance.catalog import representative
    from mortice_conformance.subject import Subject

    subject = Subject(mt.default_backend())
    for sample in record.load_samples().values():
        dtype = representative(sample, subject.available)
        for case in sample.cases[:2] if dtype else ():
            yield subject, sample, case, dtype


def test_every_op_computes_and_differentiates_for_a_wrapper_what_it_does_for_a_plain_tensor() -> None:
    from mortice.subclasses import telling

    kind, tried = logging(mt, []), 0
    inside = lambda t: getattr(t, "inside", t)  # noqa: E731

    def run(subject: Any, sample: Any, case: Any, dtype: Any, wrap: Any) -> Any:
        tensors = [wrap(t) if isinstance(t, mt.Tensor) else t for t in subject.operands(sample, case, dtype)[1]]
        leaves = [tensors[i].requires_grad_() for i in (sample.grad_operands(case) if sample.differentiable and dtype.kind in "fc" else ())]
        with telling(tensors):
            out = sample.apply(tensors, case.attrs)
        out = [out] if isinstance(out, mt.Tensor) else [t for t in out if isinstance(t, mt.Tensor)]
        if leaves:
            sum((t * t.detach()).abs().sum() if t.is_complex() else (t * t.detach()).sum() for t in out if t.requires_grad).backward()
        return [inside(t) for t in (*out, *[t.grad for t in leaves])]

    for subject, sample, case, dtype in _samples():
        if sample.op in ("getitem", "setitem", "view_scatter"):  # strides below zero, which wrappers cannot have
            continue
        mt.manual_seed(0)
        want = run(subject, sample, case, dtype, lambda t: t)
        mt.manual_seed(0)
        for a, b in zip(want, run(subject, sample, case, dtype, kind), strict=True):
            if a is not None:
                mt.testing.assert_close(b, a, rtol=1e-3, atol=1e-4, equal_nan=True, msg=f"{sample.id} {case}: {a} {b}")
        tried += 1
    assert tried > 500


@pytest.mark.oracle
def test_writes_that_autograd_cannot_follow_are_refused_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    writes = [
        lambda lib, x: x.add_(1), lambda lib, x: x.__setitem__(0, 1.0), lambda lib, x: (x * 1).unbind()[0].mul_(2),
        lambda lib, x: x.exp().mul_(2).sum().backward(), lambda lib, x: changed(x * 1).sum().backward(),
    ]  # fmt: skip

    def changed(y: Any) -> Any:
        z = y * y
        y.add_(1)
        return z

    for number, write in enumerate(writes):
        found = []
        for lib in (mt, torch):
            with pytest.raises(RuntimeError) as error:
                write(lib, logging(lib, [])(lib.ones(2, 2), requires_grad=True))
            found.append(str(error.value)[:60].replace("Output 0 of", "Output"))
        assert found[0] == found[1] or number == 2 and "Unbind is a view and is being modified inplace" in found[0]


def test_plain_tensors_are_read_and_written_with_tensors_of_a_class() -> None:
    log: list[str] = []

    class Bare(logging(mt, log)):  # type: ignore[misc]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(str(func))
            bare = lambda a: a.inside if isinstance(a, cls) else [bare(x) for x in a] if isinstance(a, (list, tuple)) else a  # noqa: E731
            return func(*bare(args), **{name: bare(a) for name, a in (kwargs or {}).items()})

    x, at, row = mt.arange(6.0).reshape(2, 3), Bare(mt.tensor([1, 0])), Bare(mt.ones(3))
    assert x[at].tolist() == [[3, 4, 5], [0, 1, 2]] and x[at, at].tolist() == [4, 0] and log == ["aten.index.Tensor"] * 2
    x[at[:1]] = 7.0
    x.copy_(x.clone()).add_(row)
    assert x.tolist() == [[1, 2, 3], [8, 8, 8]]
    x.copy_(row)
    assert x.tolist() == [[1, 1, 1]] * 2 and mt.bincount(at).tolist() == [1, 1]
    with pytest.raises(mt.errors.DTypeError, match="same dtype"):
        Bare(mt.tensor([[1, 2], [3, 4]])) @ mt.ones(2, 1)  # once the class was asked
    assert log[-1] == "aten.mm.default"
    assert {*mt.nn.functional.dropout(row, 0.5).tolist()} <= {0, 2}


def test_derivatives_of_a_wrapper_are_checked_and_recomputed() -> None:
    kind, data = logging(mt, []), mt.tensor([[0.5, 1.0], [2.0, 3.0]], dtype=mt.float64)
    x, v = kind(data, requires_grad=True), kind(data * 0 + 1)
    functional, autograd = mt.autograd.functional, mt.autograd
    found = [functional.jvp(lambda t: t.exp().sum(1), x, v)[1], functional.hvp(lambda t: t.pow(3).sum(), x, v)[1]]
    found += [mt.func.grad(lambda t: (t * t).sum())(kind(data))]
    for made, want in zip(found, (data.exp().sum(1), 6 * data, 2 * data), strict=True):
        assert type(made) is kind and mt.allclose(made.inside, want)
    assert autograd.gradcheck(lambda t: (t * t @ t).sum(1), x) and autograd.gradcheck(lambda t: t * t, x, fast_mode=True)
    assert autograd.gradgradcheck(lambda t: (t * t * t).sum(1), x)
    assert not autograd.gradcheck(lambda t: kind((t * 1).inside, requires_grad=True) + t, x, raise_exception=False)
    mt.utils.checkpoint.checkpoint(lambda t: t.exp(), x, use_reentrant=False).sum().backward()
    assert mt.allclose(x.grad.inside, data.exp()) and x.detach().tolist() == data.tolist()
    with pytest.raises(RuntimeError, match="numpy.. is not supported for tensor subclasses"):
        x.detach().numpy()


def test_what_a_wrapper_says_of_itself_is_printed_and_a_parameter_keeps_its_class() -> None:
    kind = logging(mt, [])
    x = kind(mt.ones(0, 2), requires_grad=True)
    where = "" if x.device.type == "cpu" else f"device='{x.device}', "
    assert mt.Tensor.__repr__(x, tensor_contents="shown") == f"Logging(shown, {where}size=(0, 2), requires_grad=True)"

    with pytest.raises(RuntimeError, match=r"of type Bare requires that detach\(\) returns an instance of the same type"):
        mt.nn.Parameter(Bare(mt.ones(2)))
    with mt.serialization.safe_globals([Named]):
        file = io.BytesIO()
        mt.save(Named(mt.ones(2)), file)
        file.seek(0)
        assert mt.load(file).t.tolist() == [1, 1]


class Named(mt.Tensor):
    """A wrapper whose attribute has a method's name."""

    @staticmethod
    def __new__(cls: Any, t: Any) -> Any:
        made = mt.Tensor._make_wrapper_subclass(cls, t.shape, dtype=t.dtype, device=t.device)
        made.t = t
        return made

    __torch_dispatch__ = classmethod(lambda cls, func, types, args=(), kwargs=None: NotImplemented)


def test_a_base_class_that_makes_its_own_of_init_subclass_does_not_hide_what_derives_from_it() -> None:
    class Base(mt.Tensor):
        def __init_subclass__(cls, **options: Any) -> None:  # and calls no other, as PyTorch needs none
            cls.names = options.get("names")

        @staticmethod
        def __new__(cls: Any, inside: Any) -> Any:
            made = mt.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype, device=inside.device)
            made.inside = inside
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is mt.ops.aten._to_copy.default:
                return cls(args[0].inside.clone())  # in its own dtype, whatever was asked for
            return cls(func(*[a.inside if isinstance(a, cls) else a for a in args]))

    class Derived(Base, names="inside"):
        pass

    assert mt.return_types.max(t for t in (1, 2)).indices == 2  # as classes make a result of their own tensors
    x = Derived(mt.ones(2))
    assert Derived.names == "inside" and type(x.detach()) is Derived is type(x * 2) and (x * 2).inside.tolist() == [2, 2]
    assert type(x.double()) is Derived and x.double().dtype is mt.float32
    assert mt._utils._set_obj_state(x, ({"a": 1}, None)).a == 1


def test_beside_a_wrapper_tangents_and_lanes_of_a_plain_tensor_are_not_lost() -> None:
    x, w = mt.tensor([1.0, 2.0]), logging(mt, [])(mt.tensor([3.0, 4.0]))
    out, pushed = mt.func.jvp(lambda a: (a * w).sin(), (x,), (mt.ones(2),))
    assert out.tolist() == (x * w.inside).sin().tolist()
    mt.testing.assert_close(pushed, w.inside * (x * w.inside).cos())
    mt.testing.assert_close(mt.func.jacfwd(lambda a: w * a)(x), w.inside.diag())
    mt.testing.assert_close(mt.func.vmap(lambda a: a.add(w))(mt.stack([x, x])), (x + w.inside).expand(2, 2))


def _transformed(lib: Any) -> list[Any]:
    func, made = _of(lib, "func"), logging(lib, [])
    x = lib.arange(6.0).reshape(3, 2) / 4
    w = lambda rg=False: made(lib.arange(6.0).reshape(3, 2) / 4, rg)  # noqa: E731
    leaf = w(True)
    func.vmap(lambda r: (r * r).sum())(leaf).sum().backward()
    a, b = w(True), x.clone().requires_grad_()
    seeds = lib.stack([x, x + 1])
    duals = []
    for pair in ((w(), w()), (w(), x), (x, w())):
        with lib.autograd.forward_ad.dual_level():
            y = lib.autograd.forward_ad.make_dual(*pair).sin().sum(0)
            duals += [getattr(t, "inside", t) for t in lib.autograd.forward_ad.unpack_dual(y)]
    return [
        lib.vmap(lambda r: r * 2)(w()), lib.vmap(lambda r: r.sin().sum(), in_dims=1)(w()), lib.vmap(lambda r: r * 2, out_dims=1)(w()),
        lib.vmap(lib.vmap(lambda r: r.exp()))(w()), lib.vmap(func.grad(lambda r: (r * r).sum()))(w()), leaf.grad,
        lib.vmap(lambda r, s: (r + s, s))(w(), x)[0], lib.vmap(lambda r, s: r * s, in_dims=(0, None))(x, made(lib.ones(2))),
        lib.vmap(lambda r: r * 2, chunk_size=2)(w()),
        *lib.autograd.grad([a * a * b], [a, b], made(seeds), retain_graph=True, is_grads_batched=True),
        *lib.autograd.grad([a * a], [a], seeds, is_grads_batched=True),
        *lib.autograd.grad([b * w()], [b], made(seeds), is_grads_batched=True), *duals,
    ]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_transforms_of_a_wrapper_give_what_they_give_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(_transformed(mt), _transformed(torch), strict=True):
        assert type(ours).__name__ == type(theirs).__name__
        mt.testing.assert_close(getattr(ours, "inside", ours), mt.tensor(getattr(theirs, "inside", theirs).tolist()))


def test_a_vmap_over_a_wrapper_draws_as_randomness_says() -> None:
    x = logging(mt, [])(mt.zeros(3, 2))
    with pytest.raises(RuntimeError, match="randomness error mode"):
        mt.vmap(lambda r: r + mt.rand(2))(x)
    same = mt.vmap(lambda r: r + mt.rand(2), randomness="same")(x).inside
    different = mt.vmap(lambda r: r + mt.rand(2), randomness="different")(x).inside
    assert same[0].tolist() == same[1].tolist() and different[0].tolist() != different[1].tolist()
