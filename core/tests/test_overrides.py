"""Classes derived from Tensor keep their class, take calls over by `__torch_function__`, and modes take over all calls."""

from __future__ import annotations

import copy
import io
import operator
import pickle
import subprocess
import sys
from collections import OrderedDict
from typing import Any

import pytest

import mortice as mt
from mortice import asking, fast, nn
from mortice._C import DisableTorchFunction, DisableTorchFunctionSubclass, _disabled_torch_function_impl
from mortice.nn import functional as F
from mortice.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    redispatch_function,
    wrap_torch_function,
)
from mortice.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.filterwarnings("ignore:The use of `x.T`")


class Kept(mt.Tensor):
    """A class without a rule of its own."""


class Logged(mt.Tensor):
    """A class that writes down what it is asked."""

    log: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Labelled(mt.Tensor):
    """A class that carries an attribute along, and gives a function another meaning."""

    label = ""
    handled: dict[Any, Any] = {}

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in cls.handled:
            return cls.handled[func](*args, **(kwargs or {}))
        out = super().__torch_function__(func, types, args, kwargs)
        if isinstance(out, Labelled):
            out.label = "+".join(sorted({a.label for a in args if isinstance(a, Labelled) and a.label}))
        return out


class Index(mt.Tensor):
    """A class with attributes of its own, whose names no slot of Tensor may have."""

    def __new__(cls, values: Any) -> Any:
        made = values.as_subclass(cls)
        made._data, made._dim_size, made._indptr, made._scale, made._spec = values, 5, None, 2.0, "spec"
        return made


class Computed(TorchDispatchMode):
    """A mode of operators that computes them."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Diagonal:
    """No Tensor: a matrix of which only the diagonal is kept."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (mt.matmul, mt.Tensor.matmul):
            x, d = args
            return x * d.values if isinstance(d, Diagonal) else NotImplemented
        return d.values.sum() if (d := args[0]) and func is mt.trace else NotImplemented


def kinds(values: Any) -> list[str]:
    return [type(v).__name__ for v in values]


@pytest.mark.parametrize("make", [
    lambda t, p: t + 1, lambda t, p: 1 + t, lambda t, p: p + t, lambda t, p: t - p, lambda t, p: p @ t, lambda t, p: -t,
    lambda t, p: t == p, lambda t, p: t[0], lambda t, p: t.T, lambda t, p: t.data, lambda t, p: t.detach(), lambda t, p: t.clone(),
    lambda t, p: t.sum(), lambda t, p: t.relu(), lambda t, p: t.double(), lambda t, p: t.view(1, 2), lambda t, p: mt.add(p, t),
    lambda t, p: mt.cat([p, t]), lambda t, p: mt.where(p > 0, p, t), lambda t, p: mt.zeros_like(t), lambda t, p: t.new_zeros(3),
    lambda t, p: F.softmax(t, 0), lambda t, p: mt.linalg.norm(t), lambda t, p: mt.fft.fft(t), lambda t, p: mt.special.erf(t),
    lambda t, p: nn.Linear(2, 2)(t), lambda t, p: mt.einsum("i,i->", t, t), lambda t, p: t.add_(1), lambda t, p: copy.deepcopy(t),
    lambda t, p: mt.ones(2).as_subclass(Kept), lambda t, p: t.requires_grad_() * 2,
])  # fmt: skip
def test_results_keep_the_class(make: Any) -> None:
    plain = mt.ones(2)
    assert type(make(Kept([1.0, 2.0]), plain)) is Kept
    assert type(plain) is mt.Tensor and type(plain + plain) is mt.Tensor


def test_structures_keep_the_class_too() -> None:
    t = Kept([1.0, 2.0])
    assert kinds(t.split(1)) == kinds(t.max(0)) == kinds(t) == kinds(mt.std_mean(t)) == ["Kept", "Kept"]
    assert type(t.max(0)).__name__ == "max" and t.max(0).values.item() == 2
    assert isinstance(t.shape, mt.Size) and t.tolist() == [1.0, 2.0] and len(t) == 2 and isinstance(t.sum().item(), float)
    assert repr(t).startswith("Kept([1., 2.]") and hash(t) == hash(t)


def test_gradients_pass_and_weights_stay_weights() -> None:
    t = Kept([1.0, 2.0]).requires_grad_()
    weight = nn.Parameter(mt.ones(2))
    loss = (t * weight).sum()
    loss.backward()
    assert type(loss) is Kept and type(t.grad) is mt.Tensor and t.grad.tolist() == [1.0, 1.0]
    assert type(weight.grad) is mt.Tensor and weight.grad.tolist() == [1.0, 2.0]
    assert type(weight * 2) is mt.Tensor and type(weight.detach()) is mt.Tensor
    seen = t.as_subclass(mt.Tensor)
    assert not asking.asks("as_subclass", mt.Tensor.as_subclass)  # as a function too, where a library makes it one
    assert type(seen) is mt.Tensor and seen.requires_grad and seen.untyped_storage() == t.untyped_storage()


def test_an_operand_that_is_given_back_keeps_its_own_class() -> None:
    plain = mt.ones(2)
    out = plain.contiguous()
    assert out is plain
    t = Kept([1.0])
    assert type(mt.broadcast_tensors(plain, t)[0]) is Kept and type(plain) is mt.Tensor


@pytest.mark.parametrize("create_graph", [False, True])
def test_whole_derivatives_are_taken_by_tensors_of_the_class(create_graph: bool) -> None:
    seen = []

    def cubes(x: Any, y: Any) -> Any:
        seen.append((type(x), type(y)))
        return (x**3).sum() * y

    found = mt.autograd.functional.jacobian(
        cubes, (Kept([1.0, 2.0]), nn.Parameter(Kept([3.0]))), create_graph=create_graph
    )
    assert found[0].tolist() == [[9, 36]] and found[1].tolist() == [[9]] and seen == [(Kept, Kept)]
    mt.autograd.functional.hvp(lambda x: cubes(x, 2).sum(), Kept([1.0]), mt.ones(1), create_graph=create_graph)
    assert seen[1][0] is Kept


def test_a_class_sees_the_calls() -> None:
    t = Logged([1.0, 2.0])
    Logged.log.clear()
    for call in (
        lambda: t + 1, lambda: 2 - t, lambda: t[0], lambda: F.relu(t), lambda: nn.Linear(2, 2)(t), lambda: t.sum(0),
        lambda: mt.stack([t]), lambda: t.T, lambda: mt.linalg.norm(t), lambda: mt.ones(2) @ t, lambda: mt.is_tensor(t),
    ):  # fmt: skip
        call()
    assert Logged.log == [
        "add", "__rsub__", "__getitem__", "relu", "linear", "sum", "stack", "__get__", "linalg_norm", "matmul",
    ]  # fmt: skip


def test_a_class_is_told_of_operators_with_a_tensor_or_a_number_on_the_left_by_names_that_handlers_have() -> None:
    asked = []

    class Told(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append((func, type(args[0])))
            return 1

    x, y = Told([2.0]), mt.ones(1)
    _ = 1 - x, 2**x, 1 // x, 2 % x, 2 / x, 1 & x, y - x, y @ x, y / x, y << x, y & x
    method = mt.Tensor
    assert asked == [
        *((func, Told) for func in (
            method.__rsub__, method.__rpow__, method.__rfloordiv__, method.__rmod__, method.__rtruediv__, method.bitwise_and)),
        *((func, method) for func in (method.sub, method.matmul, method.div, method.__lshift__, method.__and__)),
    ]  # fmt: skip


def test_a_class_carries_what_it_knows_and_gives_functions_its_meaning() -> None:
    a, b = Labelled([1.0]), Labelled([2.0])
    a.label, b.label = "a", "b"
    assert (a + b).label == "a+b" and mt.exp(b).label == "b"
    Labelled.handled[mt.mean] = Labelled.handled[mt.Tensor.prod] = lambda x, **kwargs: f"of {x.label}"
    try:
        assert mt.mean(a) == "of a" and b.prod() == "of b" and mt.sum(a).item() == 1
    finally:
        Labelled.handled.clear()


def test_einsum_hands_over_the_operands_of_a_list_one_by_one() -> None:
    class Told:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return args

    x = Told()
    assert mt.einsum("i,i->i", [x, x]) == mt.einsum("i,i->i", x, x) == ("i,i->i", x, x)


def test_what_is_no_tensor_takes_calls_over() -> None:
    d = Diagonal(mt.tensor([1.0, 2.0]))
    assert mt.matmul(mt.ones(2, 2), d).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert mt.ones(2, 2).matmul(d).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    with pytest.raises(TypeError, match=r"no implementation found for 'mortice.*add' on types .*: \['Diagonal'\]"):
        mt.ones(1).add(d)
    with DisableTorchFunctionSubclass(), pytest.raises(TypeError, match="argument 'other' must be Tensor, not Diagonal"):
        mt.ones(2, 2).matmul(d)
    for write, name in ((lambda x: x.add_(d), "add_"), (lambda x: x.__imul__(d), "mul_"), (lambda x: x.clamp_(min=d), "clamp_"),
                        (lambda x: x.sub_(d, alpha=2), "sub_"), (lambda x: x.lerp_(d, 0.5), "lerp_")):  # fmt: skip
        with pytest.raises(TypeError, match=rf"no implementation found for 'mortice.{name}' on types .*: \['Diagonal'\]"):
            write(mt.ones(1))
    assert mt.trace(d).item() == 3
    with pytest.raises(TypeError, match=r"no implementation found for 'mortice.exp' on types .*: \['Diagonal'\]"):
        mt.exp(d)


@pytest.mark.parametrize("make", [
    lambda t, p: p.add(t), lambda t, p: p.add(t, alpha=2), lambda t, p: p.copy_(t), lambda t, p: p.mul_(t), lambda t, p: p.fill_(t[0]),
    lambda t, p: p.where(p > 2, t), lambda t, p: p.clamp(min=t), lambda t, p: p.masked_fill(t > 1, 2.0), lambda t, p: p.lerp_(t, 0.5),
    lambda t, p: p.__iadd__(t), lambda t, p: p[t.long().detach() - 1], lambda t, p: p.index_put_([mt.tensor([0]).to(p.device)], t[:1]),
    lambda t, p: p.dot(t), lambda t, p: p.type_as(t), lambda t, p: p.view_as(t), lambda t, p: p.to(t),
    lambda t, p: p.index_add(0, t.long() - 1, p),
])  # fmt: skip
def test_methods_of_plain_tensors_ask_the_classes_of_their_other_operands(make: Any) -> None:
    values = mt.tensor([1.0, 2.0])
    Logged.log.clear()
    made = make(values.as_subclass(Logged), values + 1)
    assert type(made) is Logged and made.as_subclass(mt.Tensor).equal(make(values, values + 1))
    assert Logged.log
    Logged.log.clear()
    assert type(make(values, values + 1)) is mt.Tensor and not Logged.log


def test_plain_tensors_ask_where_the_first_operand_s_method_is_not_loaded_and_in_a_mode() -> None:
    code = (
        "import mortice as mt\nfrom mortice.overrides import TorchFunctionMode\nclass Kept(mt.Tensor): pass\nx = mt.ones(2)\n"
        "class Mode(TorchFunctionMode):\n    def __torch_function__(self, f, types, args=(), kwargs=None):\n"
        "        return f(*args, **(kwargs or {}))\n"
        "with Mode():\n    class Other(mt.Tensor): pass\n    assert x.is_set_to(x) and type(x.mul(x.as_subclass(Other))) is Other\n"
        "assert type(x.logaddexp(x.as_subclass(Kept))) is Kept and x.is_set_to(x.as_subclass(Kept)) and type(x.mul(x)) is mt.Tensor\n"
        "assert mt.Tensor.mul == mt.Tensor.mul and x.new_tensor(x.as_subclass(Kept).tolist()).equal(x)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("assign", (False, True))
def test_swapped_parameters_keep_the_class_of_what_is_loaded(assign: bool) -> None:
    layer = nn.Linear(2, 2)
    loaded = {name: t.detach().as_subclass(Kept) for name, t in nn.Linear(2, 2).state_dict().items()}
    mt.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer.load_state_dict(loaded, assign=assign)
    finally:
        mt.__future__.set_swap_module_params_on_conversion(False)
    assert type(layer.weight) is Kept and isinstance(layer.weight, nn.Parameter)
    assert layer.weight.detach().as_subclass(mt.Tensor).equal(loaded["weight"].as_subclass(mt.Tensor))


def test_classes_are_asked_in_turn_derived_ones_first() -> None:
    class Derived(Logged):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.log.append("derived")
            return NotImplemented

    with pytest.raises(TypeError, match=r"no implementation found for 'mortice.add'.*\['Derived', 'Kept'\]"):
        mt.add(Derived([1.0]), Kept([1.0]))  # unrelated classes, and neither knows the other
    Logged.log.clear()
    with pytest.raises(TypeError, match=r"\['Derived', 'Logged'\]"):
        mt.add(Logged([1.0]), Derived([1.0]))
    assert Logged.log == ["derived", "add"]


def test_switched_off() -> None:
    class Off(mt.Tensor):
        __torch_function__ = _disabled_torch_function_impl

    t = Logged([1.0])
    Logged.log.clear()
    with DisableTorchFunctionSubclass():
        assert type(t + 1) is mt.Tensor
    with DisableTorchFunction():
        assert not has_torch_function((t,))
    assert Logged.log == [] and type(Off([1.0]) + 1) is mt.Tensor and not has_torch_function((Off([1.0]),))
    assert has_torch_function((1, t)) and is_tensor_like(Diagonal(1)) and not is_tensor_like(1)


def test_the_function_of_a_class_that_takes_nothing_over_asks_nobody() -> None:
    """As those who draw graphs call it, from a handler that would be asked again."""
    calls = []

    class Recorded(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func)
            return mt.nn.Parameter.__torch_function__(func, types, args, kwargs)

    out = F.linear(mt.ones(2, 3).as_subclass(Recorded), mt.nn.Parameter(mt.ones(4, 3)))
    assert calls == [F.linear] and type(out) is mt.Tensor and out.requires_grad
    assert not isinstance(F.linear, mt._C.ScriptMethod)


def test_what_modes_and_classes_get_has_a_name() -> None:
    seen: list[Any] = []

    class Names(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((mt.overrides.resolve_name(func), mt.overrides.is_tensor_method_or_property(func)))
            return func(*args, **(kwargs or {}))

    class Named(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((mt.overrides.resolve_name(func), mt.overrides.is_tensor_method_or_property(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = mt.ones(2, 2)
    with Names():
        _ = x + x, mt.add(x, x), mt.nn.functional.relu(x), x[0], 2 - x
    _ = x.as_subclass(Named).T
    assert seen == [
        ("mortice.Tensor.add", True), ("mortice.add", False), ("mortice.nn.functional.relu", False),
        ("mortice.Tensor.__getitem__", True), ("mortice.Tensor.__rsub__", True), ("mortice.Tensor.T.__get__", True),
    ]  # fmt: skip
    assert mt.overrides.resolve_name(print) is None


def test_modes_see_every_call() -> None:
    class Log(TorchFunctionMode):
        def __init__(self) -> None:
            self.names: list[str] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Ones(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return mt.ones(*args) if func is mt.zeros else func(*args, **(kwargs or {}))

    before = mt.Tensor.__add__
    layer = nn.Linear(2, 2)
    with Log() as log:
        y = layer(mt.ones(1, 2)).relu() + 1
        with Ones():
            assert mt.zeros(1).item() == 1
    assert [n for n in log.names if n in ("ones", "linear", "relu", "add")] == ["ones", "linear", "relu", "add", "ones"]
    assert type(y) is mt.Tensor and mt.Tensor.__add__ is before and mt.zeros(1).item() == 0
    y.sum().backward()
    assert layer.weight.grad is not None
    count = len(log.names)
    with log, DisableTorchFunction():
        assert (mt.ones(2) + 1).tolist() == [2.0, 2.0]
    with BaseTorchFunctionMode():
        assert (mt.ones(2) + 1).tolist() == [2.0, 2.0]
    assert len(log.names) == count


def test_functions_of_ones_own_ask_too() -> None:
    def double(x: Any) -> Any:
        if has_torch_function((x,)):
            return handle_torch_function(double, (x,), x)
        return x * 2

    triple = wrap_torch_function(lambda x: (x,))(lambda x: x * 3)
    Logged.log.clear()
    assert type(double(Logged([1.0]))) is Logged and Logged.log == ["double"]
    assert triple(mt.ones(1)).item() == 3 and triple(Logged([1.0])).item() == 3


def test_a_call_is_computed_without_asking_about_it_and_the_calls_in_it_ask() -> None:
    class Told(mt.Tensor):
        names: list[str] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            cls.names.append(func.__name__)
            return redispatch_function(func, types, args, kwargs)

    def scaled(a: Any, b: Any) -> Any:
        return handle_torch_function(scaled, (a, b), a, b) if has_torch_function((a, b)) else a * b + 1

    made = scaled(Told(mt.tensor([3.0])), Told(mt.tensor([4.0])))
    assert type(made) is mt.Tensor and made.item() == 13 and Told.names == ["scaled", "mul"]
    assert type(mt.add(Told(mt.ones(1)), 1)) is mt.Tensor and Told.names[2:] == ["add"]


def test_attributes_are_asked_for_and_written_by_a_class_that_takes_calls_over() -> None:
    told: list[Any] = []

    class Told(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = mt.ones(2, 3).as_subclass(Told)
    names = "shape ndim dtype device layout requires_grad is_leaf grad grad_fn is_cuda is_sparse itemsize nbytes T data".split()
    for name in names:
        told.clear()
        read = getattr(x, name)
        assert told == [getattr(mt.Tensor, name).__get__], name
        assert type(read) is Told if name in ("T", "data") else (read is None or read == getattr(mt.ones(2, 3), name))
    told.clear()
    x.requires_grad, x.grad = True, mt.zeros(2, 3)
    assert told == [mt.Tensor.requires_grad.__set__, mt.Tensor.grad.__set__]
    assert type(x.grad) is mt.Tensor and x.requires_grad  # as it is, not of the class
    told.clear()
    (x * 2).sum().backward()
    assert [f.__name__ for f in told] == ["mul", "sum", "backward"]  # what is read on the way does not count


def test_a_class_may_answer_for_its_shape() -> None:
    class Hidden(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func == mt.Tensor.shape.__get__:
                return mt.Size([7])
            return super().__torch_function__(func, types, args, kwargs)

    x = mt.ones(2, 3).as_subclass(Hidden)
    assert x.shape == (7,) and (x + 1).sum().item() == 12


def test_an_index_is_asked_and_the_values_that_are_broadcast() -> None:
    class Here:
        calls: list[Any] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            cls.calls.append((func, len(args)))
            return -1

    x = mt.tensor([5.0])
    assert x[Here()] == x[5, Here()] == -1
    x[Here()] = 1
    x[2, Here()] = 1
    assert x.item() == 5 and [f for f, _ in Here.calls[:2]] == [mt.Tensor.__getitem__] * 2
    assert [c for c in Here.calls if c[0] == mt.Tensor.__setitem__] == [(mt.Tensor.__setitem__, 3)] * 2
    Logged.log.clear()
    at, mask = mt.tensor([0]).as_subclass(Logged), mt.tensor([True]).as_subclass(Logged)
    assert type(x[at]) is Logged
    x[0], x[at], x[mask], x[at, ...] = mt.ones(()).as_subclass(Logged), 1, 2, 3
    assert Logged.log == ["__getitem__"] + ["__setitem__"] * 4 and x.item() == 3
    Here.__torch_function__ = classmethod(lambda cls, func, types, args, kwargs=None: (func.__name__,))  # type: ignore[assignment]
    assert mt.distributions.utils.broadcast_all(Here(), x) == ("broadcast_tensors",)


def test_functions_that_ask_are_functions_still() -> None:
    assert pickle.loads(pickle.dumps(mt.relu)) == mt.relu and copy.deepcopy(F.gelu) == F.gelu and mt.add.op.name == "add"
    assert mt.exp.__name__ == "exp" and mt.exp.__doc__ and repr(mt.exp) == repr(mt.exp.__wrapped__)

    class Net(nn.Module):
        act = mt.tanh

        def forward(self, x: Any) -> Any:
            return self.act(x)

    assert Net()(mt.zeros(1)).item() == 0


def test_files_keep_the_class() -> None:
    file = io.BytesIO()
    mt.save(Kept([1.0, 2.0]), file)
    file.seek(0)
    with mt.serialization.safe_globals([Kept]):
        loaded = mt.load(file)
    assert type(loaded) is Kept and loaded.tolist() == [1.0, 2.0]


class Marked(mt.Tensor):
    def __getstate__(self):
        return "mark", dict(self.__dict__)

    def __setstate__(self, state):
        mark, attributes = state
        self.__dict__.update(attributes, mark=mark)


def test_a_class_says_what_files_keep_of_its_tensors_and_takes_it_back():
    x = mt.ones(2).as_subclass(Marked)
    x.note = "mine"
    file = io.BytesIO()
    mt.save(x, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Marked"):
        mt.load(file)
    with mt.serialization.safe_globals([Marked]):
        for weights_only in (True, False):
            file.seek(0)
            read = mt.load(file, weights_only=weights_only)
            assert type(read) is Marked and read.__dict__ == {"note": "mine", "mark": "mark"}


def test_programs_without_such_classes_pay_nothing() -> None:
    code = (
        "import sys, mortice as mt; from mortice import nn; nn.Linear(2, 2)(mt.ones(1, 2)).sum().backward(); "
        "assert 'mortice.overrides' not in sys.modules; add = mt.add; "
        "kept = type('Kept', (mt.Tensor,), {}); assert mt.add is not add and mt.add == add and {add: 1}[mt.add] == 1; "
        "assert 'exp' not in vars(mt) and type(mt.exp(kept([1.0]))) is kept"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_program_adds_to_tensor_and_to_namespaces_is_called_without_asking() -> None:
    code = (
        "import mortice as mt\n"
        "mt.Tensor.beside = lambda self, other: (type(self), type(other))\n"
        "mt.nn.functional.named = lambda x, y: (type(x), type(y))\n"
        "one, two = (type(name, (mt.Tensor,), {}) for name in ('One', 'Two'))\n"
        "x, y = one([1.0]), two([1.0])\n"  # neither derives from the other: what asks them finds no answer
        "assert x.beside(y) == mt.nn.functional.named(x, y) == (one, two)\n"
        "try: mt.add(x, y)\n"
        "except TypeError: print('asked')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "asked\n"


def test_a_class_that_is_no_tensor_is_asked_from_the_first_call_on() -> None:
    calls = {
        "mt.exp(two)": "exp", "mt.mul(x, two)": "mul", "x.mul(two)": "mul", "x * two": "mul", "mt.add(x, two)": "add",
        "x[two]": "__getitem__",
    }  # fmt: skip
    if fast.serves():  # functions made of ops are told of as the ops in them, until the first such call, where Python serves alone
        calls |= {
            "x.add_(two)": "add_", "x.copy_(two)": "copy_", "mt.std(two)": "std", "mt.stack([x, two])": "stack", "early(two)": "softmax",
            "mt.nn.functional.gelu(two)": "gelu", "mt.linalg.norm(A=two)": "linalg_norm", "x.masked_fill(x > 0, two)": "masked_fill",
        }  # fmt: skip
    code = (
        "import os, sys, mortice as mt\n"
        "class Two:\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None): return func\n"
        "two, x, early = Two(), mt.ones(2), mt.nn.functional.softmax\n"
        "assert 'mortice.overrides' not in sys.modules\n"
        f"for call, name in {calls}.items():\n"
        "    if not (child := os.fork()):\n"
        "        told = [eval(call).__name__ for _ in range(2)]\n"
        "        told == [name] * 2 or print(call, told, flush=True)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "assert mt.mul(x, two) == mt.mul and x.mul(two) == mt.Tensor.mul and x.mul(two) != mt.mul"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == ""


def test_a_class_that_is_no_tensor_may_have_a_call_computed_without_asking() -> None:
    class Row(list):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return redispatch_function(func, types, args, kwargs)

    assert mt.atleast_1d(Row([mt.ones(()), mt.ones(3)]))[0].shape == (1,)
    with pytest.raises(TypeError):
        mt.exp(Row())


@pytest.mark.parametrize("mode", (BaseTorchFunctionMode, Computed, mt.no_grad))
def test_operators_tell_the_error_of_a_dtype_whoever_is_asked(mode: Any) -> None:
    for flag in (mt.tensor([True]), mt.tensor([True]).as_subclass(Kept)):
        for call in (lambda x: x - x, lambda x: -x, lambda x: x & mt.ones(1)):
            with mode(), pytest.raises(RuntimeError, match="bool tensor|not implemented for 'Float'"):
                call(flag)
        with mode(), pytest.raises(TypeError, match="unsupported operand"):
            flag - object()


class Wrapped:
    """What forwards a tensor's attributes and is no tensor, on either side of an operator and in functions; it unwraps itself."""

    def __init__(self, inside: Any) -> None:
        self._data = inside

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "asked", func(*[a._data if isinstance(a, cls) else a for a in args], **(kwargs or {}))


OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "xor",
    "lshift", "rshift",
)  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_asks_a_class_that_is_no_tensor(name: str) -> None:
    x, y = mt.tensor([7, 2]), mt.tensor([2, 3])
    for left, right in ((x, Wrapped(y)), (Wrapped(x), y)):
        said, out = getattr(operator, name)(left, right)
        assert said == "asked" and mt.equal(out, getattr(operator, name)(x, y))


@pytest.mark.parametrize("call", (
    lambda x: mt.exp(x), lambda x: mt.sum(x), lambda x: mt.sum(x, 0), lambda x: mt.mul(mt.ones(2), x), lambda x: mt.ones(2).mul(x),
    lambda x: mt.where(mt.tensor([True, False]), mt.ones(2), x), lambda x: mt.lerp(mt.ones(2), x, 0.5), lambda x: mt.relu(x),
))  # fmt: skip
def test_what_forwards_the_attributes_of_a_tensor_is_none(call: Any) -> None:
    said, out = call(Wrapped(mt.tensor([1.0, 2.0])))
    assert said == "asked" and mt.equal(out, call(mt.tensor([1.0, 2.0])))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_asks_the_derived_class_on_either_side(name: str) -> None:
    plain = mt.tensor([1, 2])
    derived = plain.as_subclass(Kept)
    for x, y in ((derived, plain), (plain, derived), (derived, derived)):
        out = getattr(operator, name)(x, y)
        assert type(out) is Kept and mt.equal(out.as_subclass(mt.Tensor), getattr(operator, name)(plain, plain))


def test_a_class_is_told_once_of_going_over_its_rows_and_of_the_method_not_the_function() -> None:
    told: list[Any] = []

    class Rows(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    rows = mt.eye(2).as_subclass(Rows)
    assert [type(row) for row in rows] == [Rows, Rows] and told == [mt.Tensor.unbind]
    mt.unbind(rows)
    assert told[1] == mt.unbind and told[1] != told[0] and mt.unbind != told[0]


def test_what_an_operator_of_a_class_cannot_take_is_left_to_the_other_operand() -> None:
    class Other:
        __radd__ = __lt__ = __rpow__ = lambda self, tensor: "other"

    kept = mt.ones(2).as_subclass(Kept)
    assert (kept + Other(), kept > Other(), kept**Other()) == ("other", "other", "other")
    with pytest.raises(TypeError, match="unsupported operand"):
        kept + object()
    with pytest.raises(TypeError, match="len"):  # of what has no other operand the reason is told
        len(kept.sum())


class Slotted(mt.Tensor):
    """A class with slots, whose tensors have another layout than Tensor's."""

    __slots__ = ("scale",)


def test_a_class_with_slots_is_computed_with_and_stays_in_the_graph():
    x = mt.tensor([1.0, -2.0], requires_grad=True)
    y = x.as_subclass(Slotted)
    for made in (y + 1, mt.exp(y), y.sum(), y[0], *mt.split(y, 1), 2 / y, mt.cat([x, y])):
        assert type(made) is Slotted
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, -4.0]
    z = mt.ones(2).as_subclass(Slotted)
    base = z.view(2, 1)
    z.mul_(3)
    assert type(base) is Slotted and base.tolist() == [[3.0], [3.0]]
    z.scale = 2
    assert z.scale == 2 and "scale" not in z.__dict__


def _through(x: Any, weights_only: bool) -> Any:
    file = io.BytesIO()
    mt.save(x, file)
    file.seek(0)
    with mt.serialization.safe_globals([Slotted]):
        return mt.load(file, weights_only=weights_only)


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: _through(x, True), lambda x: _through(x, False)],
    ids=["copy", "deepcopy", "pickle", "save", "save all"],
)
def test_what_a_class_has_in_slots_is_copied_and_kept_in_files(again):
    x = mt.tensor([1.0, 2.0]).as_subclass(Slotted)
    x.scale, x.other = [3], "there"
    made = again(x)
    assert type(made) is Slotted and made.tolist() == [1.0, 2.0] and made.scale == [3] and made.other == "there"
    assert (made.scale is x.scale) == (again is copy.copy)


def test_a_file_may_set_no_slot_of_tensor_itself():
    x = mt.tensor([1.0]).as_subclass(Slotted)
    x.scale = 1
    file = io.BytesIO()
    mt.save(x, file, _use_new_zipfile_serialization=False)  # without checksums
    data = file.getvalue().replace(b"scale", b"_leaf")
    with mt.serialization.safe_globals([Slotted]), pytest.raises(pickle.UnpicklingError, match="sets the attribute ._leaf."):
        mt.load(io.BytesIO(data))


def test_a_class_is_not_asked_while_its_tensor_is_made():
    class Weight(mt.Tensor):
        def __new__(cls, data: Any) -> Any:
            made = mt.Tensor._make_subclass(cls, data, True)
            made.calls = []
            return made

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            for a in args:
                if isinstance(a, Weight):
                    a.calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    made = Weight(mt.ones(2))
    with DisableTorchFunctionSubclass():
        assert made.calls == [] and made.requires_grad


def test_attributes_of_a_class_do_not_meet_slots() -> None:
    x = Index(mt.tensor([1.0, 2.0]))
    assert (x + 1).tolist() == [2.0, 3.0] and type(x + 1) is Index and x._data.tolist() == [1.0, 2.0]
    x._data = None
    assert x.tolist() == [1.0, 2.0] and (x._dim_size, x._indptr, x._scale, x._spec) == (5, None, 2.0, "spec")


def test_a_method_that_a_class_leaves_as_it_is_is_tensors_own_and_handlers_are_told_of_that_object() -> None:
    told: list[Any] = []

    class Sub(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    of_tensor, x = mt.Tensor, Sub([1.0, 2.0])
    other = [n for n in dir(of_tensor) if n[0] != "_" and getattr(Sub, n) is not getattr(of_tensor, n)]
    assert not other
    calls = [
        (lambda: x + 1, of_tensor.add), (lambda: 1 + x, of_tensor.add), (lambda: of_tensor.add(x, 1), of_tensor.add),
        (lambda: x.stride(), of_tensor.stride), (lambda: x[0], of_tensor.__getitem__), (lambda: mt.add(x, 1), mt.add),
        (lambda: repr(x), of_tensor.__repr__), (lambda: Sub.sum(x), of_tensor.sum),
    ]  # fmt: skip
    for call, function in calls:
        told.clear()
        call()
        assert told[0] is function and pickle.loads(pickle.dumps(of_tensor.add)) is of_tensor.add
    before = of_tensor.cuda
    try:
        of_tensor.cuda = lambda self: "replaced"  # type: ignore[method-assign, assignment]
        assert of_tensor.cuda(mt.ones(1)) == mt.ones(1).cuda() == "replaced"
    finally:
        of_tensor.cuda = before  # type: ignore[method-assign]


def test_the_functions_that_walk_the_graph_ask_too_and_hand_over_tuples_and_names() -> None:
    seen: list[Any] = []

    class Walked(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (mt.autograd.grad, mt.autograd.backward):
                seen.append((func.__name__, [len(a) for a in args], sorted(kwargs)))
            return super().__torch_function__(func, types, args, kwargs)

    class Other:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func is mt.autograd.grad and args

    x, plain = mt.ones(2).as_subclass(Walked).requires_grad_(), mt.ones(2, requires_grad=True)
    y = (x * x * plain).sum()
    options = ["allow_unused", "create_graph", "grad_outputs", "is_grads_batched", "materialize_grads", "only_inputs", "retain_graph"]
    found = mt.autograd.grad(y, {"x": x, "plain": plain}, None, True)
    assert {n: (type(g), g.tolist()) for n, g in found.items()} == {"x": (Walked, [2.0, 2.0]), "plain": (Walked, [1.0, 1.0])}
    mt.autograd.backward([y], inputs=iter([x]))
    assert x.grad.tolist() == [2.0, 2.0] and plain.grad is None
    assert seen == [
        ("grad", [1, 2], options), ("backward", [1], ["create_graph", "grad_tensors", "inputs", "retain_graph"])
    ]  # fmt: skip
    other = Other()
    assert mt.autograd.grad(other, plain) == ((other,), (plain,)) and mt.autograd.grad(plain, [other])[1] == (other,)
    assert type(mt.autograd.grad(plain.sum(), iter([plain]))[0]) is mt.Tensor and len(seen) == 2
    with pytest.raises(TypeError, match="must be a dict, not OrderedDict"):
        mt.autograd.grad(plain.sum(), OrderedDict(plain=plain))
    (plain * 3).sum().backward(inputs=iter([plain]))
    mt.autograd.backward(plain.sum(), grad_variables=mt.ones(()))
    assert plain.grad.tolist() == [4.0, 4.0]
    plain.grad = None

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    loss = (plain * 2).sum()
    with Mode():
        mt.autograd.grad(loss, plain, retain_graph=True)
        mt.autograd.backward(loss, None, True, False, None, None)
    assert seen[2:] == [mt.autograd.grad, mt.autograd.backward] and plain.grad.tolist() == [2.0, 2.0]


def test_a_class_may_say_late_what_it_takes_over() -> None:
    class Silent(mt.Tensor):
        __torch_function__ = _disabled_torch_function_impl

    class Told(mt.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise NotImplementedError(func)

    for kind in (Silent, Told):
        derived = type("Derived", (kind,), {})
        for made in (mt.ones(2).as_subclass(kind), mt.ones(2).as_subclass(derived)):
            assert not has_torch_function((made,))
        kind.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: (cls, func.__name__))
        for made in (mt.ones(2).as_subclass(kind), mt.ones(2).as_subclass(derived)):
            assert mt.add(made, 1) == (type(made), "add")


def test_a_program_may_wrap_all_methods_before_it_derives_a_class() -> None:
    code = (
        "import functools, mortice as mt\n"
        "def counted(f):\n"
        "    @functools.wraps(f)\n"
        "    def call(*args, **named): calls.append(f.__name__); return f(*args, **named)\n"
        "    return call\n"
        "calls = []\n"
        "for place in (mt.Tensor, mt.nn.functional, mt):\n"
        "    for name in dir(place):\n"
        "        f = getattr(place, name)\n"
        "        if not name.startswith('_') and callable(f) and not isinstance(f, type): setattr(place, name, counted(f))\n"
        "kept = type('Kept', (mt.Tensor,), {})\n"
        "x = mt.ones(2).as_subclass(kept)\n"
        "assert type(x + 1) is type(1 + x) is type(mt.nn.functional.relu(x)) is kept and 'relu' in calls"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_functions_that_ask_are_listed() -> None:
    listed, stand_ins = mt.overrides.get_overridable_functions(), mt.overrides.get_testing_overrides()
    assert mt.add in listed[mt] and F.linear in listed[F] and mt.linalg.det in listed[mt.linalg] and mt.Tensor.add in listed[mt.Tensor]
    assert stand_ins[F.linear](1, 2) == -1 and mt.tensor not in stand_ins
    assert F.handle_torch_function is handle_torch_function and not hasattr(F, "no_torch_function")
