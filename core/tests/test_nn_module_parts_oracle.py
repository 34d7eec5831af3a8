"""Containers, lazy modules and init beside PyTorch's: one script run in both, then the same outcome."""

from __future__ import annotations

import copy
import importlib
from collections import OrderedDict

import numpy as np
import pytest

import mortice

torch = pytest.importorskip("torch")
from both_libraries import check, filled, raising  # noqa: E402 (it needs torch)

pytestmark = pytest.mark.oracle


def parameter_of(lib):
    return importlib.import_module(f"{lib.__name__}.nn.parameter")


def of_a_class(lib):
    """Return a layer whose weight is a tensor of a class of its own, after a step."""

    class Tagged(lib.Tensor):
        pass

    m = lib.nn.Linear(2, 1)
    m.weight = lib.nn.Parameter(lib.ones(1, 2).as_subclass(Tagged))
    optimizer = lib.optim.SGD(m.parameters(), lr=0.1)
    m(lib.ones(1, 2)).sum().backward()
    optimizer.step()
    again = copy.copy(m.state_dict())
    m.load_state_dict(again, assign=True)
    return m, Tagged


@pytest.mark.parametrize(
    "ask",
    [
        lambda lib, m, kind: [type(p).__name__ for p in m.parameters()] + [repr(m.weight), m.weight.is_leaf],
        lambda lib, m, kind: [isinstance(t, lib.nn.Parameter) for t in (m.weight, m.weight.data, m.weight.detach(), m.weight + 1)],
        lambda lib, m, kind: [type(m.double().weight).__name__, isinstance(m.weight, lib.nn.Parameter), m.weight.dtype],
        lambda lib, m, kind: [isinstance(lib.ones(1).as_subclass(kind), lib.nn.Parameter), issubclass(kind, lib.nn.Parameter)],
        lambda lib, m, kind: [type(t).__name__ for t in m.state_dict().values()] + [type(m.weight.grad).__name__],
    ],
)  # fmt: skip
def test_a_parameter_keeps_the_class_of_its_tensor(ask):
    check(lambda lib: ask(lib, *of_a_class(lib)), may_raise=False)


# ---- containers ----

KINDS = {
    "Sequential": lambda lib: lib.nn.Sequential(*layers(lib)),
    "named": lambda lib: lib.nn.Sequential(OrderedDict(a=lib.nn.ReLU(), b=lib.nn.Tanh())),
    "ModuleList": lambda lib: lib.nn.ModuleList(layers(lib)),
    "ParameterList": lambda lib: lib.nn.ParameterList([lib.ones(1), lib.nn.Parameter(lib.zeros(2)), "word", 3]),
    "ModuleDict": lambda lib: lib.nn.ModuleDict({"a": lib.nn.ReLU(), "b": lib.nn.Linear(1, 2)}),
    "ParameterDict": lambda lib: lib.nn.ParameterDict({"b": lib.ones(1), "a": lib.nn.Parameter(lib.zeros(2)), "c": 3}),
}


def layers(lib):
    return [lib.nn.ReLU(), lib.nn.Linear(1, 2), lib.nn.Linear(1, 2), lib.nn.Tanh()]


ACTIONS = {
    "repr": lambda c, lib: repr(c),
    "len": lambda c, lib: len(c),
    "list": lambda c, lib: [str(x) for x in c],
    "first": lambda c, lib: str(c[0]),
    "last": lambda c, lib: str(c[-1]),
    "past": lambda c, lib: c[9],
    "slice": lambda c, lib: repr(c[1:3]),
    "step": lambda c, lib: repr(c[::-2]),
    "set": lambda c, lib: c.__setitem__(1, lib.nn.Sigmoid()),
    "set past": lambda c, lib: c.__setitem__(9, lib.nn.Sigmoid()),
    "delete": lambda c, lib: c.__delitem__(1),
    "delete slice": lambda c, lib: c.__delitem__(slice(0, 2)),
    "append": lambda c, lib: c.append(lib.nn.Sigmoid()) is c,
    "append bad": lambda c, lib: c.append(3),
    "extend": lambda c, lib: c.extend([lib.nn.Sigmoid(), lib.nn.GELU()]) is c,
    "extend bad": lambda c, lib: c.extend(3),
    "insert": lambda c, lib: c.insert(1, lib.nn.Sigmoid()),
    "insert past": lambda c, lib: c.insert(9, lib.nn.Sigmoid()),
    "pop": lambda c, lib: str(c.pop(1)),
    "add": lambda c, lib: repr(c + type(c)(lib.nn.GELU())),
    "add list": lambda c, lib: repr(c + [lib.nn.GELU()]),
    "iadd": lambda c, lib: repr(c.__iadd__([lib.nn.GELU()])),
    "times": lambda c, lib: repr(c * 2) + repr(2 * c),
    "times none": lambda c, lib: c * 0,
    "times bad": lambda c, lib: c * "x",
    "itimes": lambda c, lib: repr(c.__imul__(2)),
    "call": lambda c, lib: c(lib.ones(1)),
    "key": lambda c, lib: str(c["a"]),
    "no key": lambda c, lib: c["z"],
    "in": lambda c, lib: ["a" in c, "z" in c],
    "keys": lambda c, lib: [*c.keys()],
    "items": lambda c, lib: [[k, str(v)] for k, v in c.items()],
    "values": lambda c, lib: [str(v) for v in c.values()],
    "set key": lambda c, lib: c.__setitem__("n", lib.nn.GELU()),
    "set bad key": lambda c, lib: c.__setitem__(3, lib.nn.GELU()),
    "delete key": lambda c, lib: c.__delitem__("a"),
    "delete no key": lambda c, lib: c.__delitem__("z"),
    "pop key": lambda c, lib: str(c.pop("a")),
    "pop no key": lambda c, lib: c.pop("z"),
    "clear": lambda c, lib: c.clear(),
    "update": lambda c, lib: c.update({"z": lib.nn.GELU(), "d": lib.nn.ReLU()}),
    "update pairs": lambda c, lib: c.update([("z", lib.nn.GELU()), ["d", lib.nn.ReLU()]]),
    "update ordered": lambda c, lib: c.update(OrderedDict(z=lib.nn.GELU(), d=lib.nn.ReLU())),
    "update own": lambda c, lib: c.update(c),
    "update bad": lambda c, lib: c.update(3),
    "update bad pair": lambda c, lib: c.update([3]),
    "update bad length": lambda c, lib: c.update([("a", 1, 2)]),
    "get": lambda c, lib: [str(c.get("a")), c.get("z", 5)],
    "setdefault": lambda c, lib: [str(c.setdefault("a", 1)), c.setdefault("z", 5)],
    "popitem": lambda c, lib: str(c.popitem()),
    "copy": lambda c, lib: [repr(c.copy()), c.copy()["a"] is c["a"]],
    "fromkeys": lambda c, lib: repr(c.fromkeys(["q", "r"], 1)),
    "reversed": lambda c, lib: [str(x) for x in reversed(c)],
    "or": lambda c, lib: repr(c | type(c)({"q": 1})),
    "ror": lambda c, lib: repr(c.__ror__(type(c)({"q": 1}))),
    "ior": lambda c, lib: repr(c.__ior__({"q": 1})),
    "state": lambda c, lib: [*c.state_dict()],
    "dir": lambda c, lib: [n for n in dir(c) if n[:1].isdigit()],
}


@pytest.mark.parametrize("kind", KINDS)
def test_containers_behave_as_torch_containers(kind):
    for name, action in ACTIONS.items():
        if kind == "named" and name in ("insert", "itimes"):
            continue  # PyTorch looks for numbers among the names there, and fails

        def run(lib, action=action):
            container = KINDS[kind](lib)
            return [action(container, lib), repr(container), [*container.state_dict()]]

        try:
            check(run)
        except AssertionError as error:
            raise AssertionError(f"{kind}, {name}: {error}") from error


# ---- lazy modules ----

LAZY = [
    ("LazyLinear", (3,), {}, (2, 4)),
    ("LazyLinear", (3,), {"bias": False}, (4,)),
    ("LazyConv1d", (4, 3), {"groups": 2}, (2, 6, 8)),
    ("LazyConv2d", (4, 3), {"padding": 1, "padding_mode": "reflect"}, (2, 5, 6, 6)),
    ("LazyConv2d", (4, 3), {"bias": False}, (5, 6, 6)),
    ("LazyConv3d", (2, 2), {}, (1, 3, 4, 4, 4)),
    ("LazyConvTranspose1d", (4, 3), {"stride": 2}, (2, 6, 8)),
    ("LazyConvTranspose2d", (4, 3), {"groups": 2}, (2, 6, 4, 4)),
    ("LazyConvTranspose3d", (2, 2), {"output_padding": 1, "stride": 2}, (1, 3, 3, 3, 3)),
    ("LazyBatchNorm1d", (), {}, (5, 4)),
    ("LazyBatchNorm2d", (), {"affine": False}, (5, 4, 2, 2)),
    ("LazyBatchNorm2d", (), {"track_running_stats": False, "bias": False}, (5, 4, 2, 2)),
    ("LazyBatchNorm3d", (), {"momentum": None}, (5, 4, 2, 2, 2)),
    ("LazyInstanceNorm1d", (), {}, (5, 4, 3)),
    ("LazyInstanceNorm2d", (), {"affine": False}, (5, 4, 2, 2)),
    ("LazyInstanceNorm3d", (), {}, (5, 4, 2, 2, 2)),
]


@pytest.mark.parametrize("case", LAZY, ids=lambda c: f"{c[0]}-{c[2]}")
def test_a_lazy_layer_becomes_what_torch_makes_of_it(case):
    name, args, settings, shape = case

    def run(lib):
        layer = getattr(lib.nn, name)(*args, **settings)
        lazy = parameter_of(lib).is_lazy
        before = [repr(layer), [[n, lazy(t)] for n, t in layer.state_dict().items()], layer.has_uninitialized_params()]
        parameters = list(layer.parameters())
        out = layer(lib.ones(shape))
        assert all(p is q for p, q in zip(parameters, layer.parameters()))
        after = [repr(layer), [[n, list(t.shape)] for n, t in layer.state_dict().items()], type(layer).__name__]
        return [before, after, list(out.shape), len(layer._forward_pre_hooks), hasattr(layer, "_initialize_hook")]

    check(run)


@pytest.mark.parametrize("case", LAZY, ids=lambda c: f"{c[0]}-{c[2]}")
def test_a_lazy_layer_takes_the_state_of_an_initialised_one(case):
    name, args, settings, shape = case

    def run(lib):
        make = lambda: getattr(lib.nn, name)(*args, **settings)
        done, fresh, other = make(), make(), make()
        done(lib.ones(shape))
        filled(lib, done)
        fresh.load_state_dict(done.state_dict())
        shapes = [[n, list(t.shape)] for n, t in fresh.state_dict().items()]
        found = [shapes, fresh(lib.ones(shape)) if "Norm" not in name else None, type(fresh).__name__]
        other.load_state_dict(make().state_dict())  # shapeless into shapeless
        if not list(done.parameters()):
            return found
        return [
            found,
            other.has_uninitialized_params(),
            raising(lib, lambda: done.load_state_dict(make().state_dict())),
        ]

    check(run, may_raise=False)


def test_uninitialized_tensors_refuse_what_torch_refuses():
    def run(lib):
        t = parameter_of(lib).UninitializedParameter()
        b = parameter_of(lib).UninitializedBuffer(persistent=False)
        fails = []
        for call in (
            lambda: t.shape, lambda: t.numel(), lambda: t.detach(), lambda: t.clone(), lambda: t + 1, lambda: lib.nn.init.ones_(t),
            lambda: t.sum(), lambda: t @ t, lambda: t.tolist(), lambda: lib.stack([t]), lambda: b * 2,
        ):  # fmt: skip
            try:
                call()
                fails.append("passes")
            except (ValueError, RuntimeError):
                fails.append("refused")
        double = lib.nn.LazyLinear(2).double()
        twin = copy.deepcopy(double)
        return [
            fails, repr(t), repr(b), t.requires_grad, str(t.dtype), str(t.to(lib.float64).dtype), str(double.weight.dtype),
            repr(twin.weight), str(twin.weight.dtype), b.persistent, isinstance(t, lib.nn.Parameter), isinstance(b, lib.nn.Buffer),
        ]  # fmt: skip

    check(run)


# ---- init ----


@pytest.mark.parametrize(
    "call",
    [
        "eye_(lib.zeros(3, 4))", "eye_(lib.zeros(3))", "dirac_(lib.zeros(4, 2, 3))", "dirac_(lib.zeros(4, 2, 3, 2), 2)",
        "dirac_(lib.zeros(3, 4, 1, 2, 3))", "dirac_(lib.zeros(3, 4, 1), 2)", "dirac_(lib.zeros(3, 4))", "ones_(lib.zeros(2))",
        "zeros_(lib.ones(2))", "constant_(lib.ones(2), 3.5)", "orthogonal_(lib.zeros(3))", "orthogonal_(lib.zeros(0, 3))",
        "sparse_(lib.zeros(3), 0.1)", "xavier_uniform_(lib.zeros(3))", "xavier_normal_(lib.zeros(3))",
        "kaiming_uniform_(lib.zeros(3))", "kaiming_uniform_(lib.zeros(0, 3))", "kaiming_normal_(lib.zeros(3, 0))",
        "kaiming_normal_(lib.zeros(2, 2), mode='fan')", "kaiming_normal_(lib.zeros(2, 2), nonlinearity='swish')",
        "calculate_gain('leaky_relu', 'x')", "calculate_gain('leaky_relu', True)", "calculate_gain('leaky_relu', 2)",
        "calculate_gain('relu')", "calculate_gain('selu')", "calculate_gain('tanh')", "calculate_gain('conv_transpose3d')",
        "calculate_gain('gelu')", "_calculate_fan_in_and_fan_out(lib.zeros(2, 3, 4, 5))", "constant(lib.ones(2), 1)",
        "eye(lib.zeros(2, 2))", "dirac(lib.zeros(1, 1, 1))", "trunc_normal_(lib.zeros(0), a=4, b=5)",
        "eye_(lib.zeros(2, 2, dtype=lib.int64))",
    ],
)  # fmt: skip
def test_initialisers_fill_refuse_and_warn_as_torch_does(call):
    check(lambda lib: eval(f"lib.nn.init.{call}", {"lib": lib}))


DRAWS = {
    "uniform_": ({"a": -1.0, "b": 3.0}, (200, 300)),
    "normal_": ({"mean": 1.0, "std": 2.0}, (200, 300)),
    "trunc_normal_": ({}, (200, 300)),
    "trunc_normal_ (tail)": ({"a": 2.5, "b": 4.0}, (200, 300)),
    "trunc_normal_ (narrow)": ({"mean": 0.2, "std": 2.0, "a": -0.3, "b": 0.5}, (200, 300)),
    "xavier_uniform_": ({"gain": 2.0}, (100, 40, 3, 5)),
    "xavier_normal_": ({}, (100, 40, 3, 5)),
    "kaiming_uniform_": ({"a": 0.3, "mode": "fan_out"}, (100, 40, 3, 5)),
    "kaiming_normal_": ({"nonlinearity": "relu"}, (100, 40, 3, 5)),
    "orthogonal_": ({"gain": 1.5}, (200, 300)),
    "sparse_": ({"sparsity": 0.3, "std": 0.1}, (200, 300)),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_initialisers_draw_from_torch_distribution(name):
    settings, shape = DRAWS[name]
    quantiles = []
    for lib in (mortice, torch):
        lib.manual_seed(0)
        drawn = getattr(lib.nn.init, name.split()[0])(lib.empty(shape), **settings).numpy()
        quantiles.append(np.quantile(drawn, np.linspace(0, 1, 21)[1:-1]))
        if name == "sparse_":
            assert ((drawn == 0).sum(0) == 60).all()
        if name == "orthogonal_":
            np.testing.assert_allclose(drawn @ drawn.T, np.eye(200) * 2.25, atol=1e-4)
        if "trunc" in name:
            low, high = np.float32(settings.get("a", -2.0)), np.float32(settings.get("b", 2.0))
            assert low <= drawn.min() and drawn.max() <= high
    spread = quantiles[1][-1] - quantiles[1][0]
    np.testing.assert_allclose(quantiles[0], quantiles[1], atol=0.02 * spread)
