"""Module and its hooks beside PyTorch's: one script run in both, then the same outcome."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import warnings
from collections import OrderedDict

import pytest

from mortice import nn

torch = pytest.importorskip("torch")
from both_libraries import check, filled, raising  # noqa: E402 (it needs torch)

pytestmark = pytest.mark.oracle

# Names of torch.nn.Module that mean nothing here: the compiler's and the replicas of DataParallel.
WITHOUT = {
    "_call_impl", "_compiled_call_impl", "_get_backward_hooks", "_get_backward_pre_hooks",
    "_maybe_warn_non_full_backward_hook", "_replicate_for_data_parallel", "_slow_forward", "_wrapped_call_impl",
}  # fmt: skip


def hooks_of(lib):
    return importlib.import_module("torch.nn.modules.module" if lib is torch else "mortice.nn.modules.module")


def net(lib):
    return filled(
        lib,
        lib.nn.Sequential(
            OrderedDict(first=lib.nn.Linear(2, 3), norm=lib.nn.BatchNorm1d(3), last=lib.nn.Linear(3, 1, bias=False))
        ),
    )


SCRIPTS = {}


def script(fn):
    SCRIPTS[fn.__name__] = fn
    return fn


# ---- attributes ----


@script
def assignments_and_deletions(lib):
    m = lib.nn.Module()
    log = []

    def put(name, value):
        log.append(raising(lib, lambda: setattr(m, name, value)))
        log.append([[*m._parameters], [*m._buffers], [*m._modules], sorted(m._non_persistent_buffers_set)])

    p, b, c = lib.nn.Parameter(lib.zeros(1)), lib.nn.Buffer(lib.zeros(1), persistent=False), lib.nn.ReLU()
    for value in (p, b, c, 3, lib.zeros(1), None):
        put("x", value)
    for first in (p, b, c, 3, lib.ones(2)):
        for second in (p, b, c, 3, lib.zeros(1), None, "t"):
            m = lib.nn.Module()
            put("x", first)
            put("x", second)
            log.append(raising(lib, lambda m=m: delattr(m, "x")))
            log.append(hasattr(m, "x"))
    return log


@script
def registrations(lib):
    m = lib.nn.Linear(2, 2)
    m.here = 1
    found = []
    for register, good in (
        (m.register_parameter, lib.nn.Parameter(lib.zeros(1))),
        (m.register_buffer, lib.zeros(1)),
        (m.add_module, lib.nn.ReLU()),
        (m.register_module, lib.nn.ReLU()),
    ):
        for name in ("a.b", "", 3, "here", "weight", "forward"):
            found.append(raising(lib, lambda register=register, name=name, good=good: register(name, good)))
        for value in (3, "x", lib.zeros(1, requires_grad=True) * 2, None):
            found.append(
                raising(lib, lambda register=register, value=value: register("fresh" + register.__name__, value))
            )
    return found


@script
def listing(lib):
    m = net(lib)
    m.tied = m.first
    names = [n for n in dir(m) if n in ("first", "norm", "last", "weight", "0", "tied", "training")]
    return [
        names,
        [n for n, _ in m.named_parameters()],
        [n for n, _ in m.named_parameters(remove_duplicate=False)],
        [n for n, _ in m.named_parameters(prefix="p", recurse=False)],
        [n for n, _ in m.named_buffers(prefix="p")],
        [n for n, _ in m.named_modules()],
        [n for n, _ in m.named_modules(remove_duplicate=False, prefix="q")],
        [n for n, _ in m.named_children()],
        len(list(m.modules())),
        [n for n, _ in m._named_members(lambda x: x._modules.items())],
    ]


@script
def reaching_by_name(lib):
    m = lib.nn.Sequential(net(lib), lib.nn.ReLU())
    return raising(
        lib,
        lambda: str(m.get_submodule("0.norm")),
        lambda: m.get_submodule("0.nothing"),
        lambda: m.get_submodule("0.first.weight"),
        lambda: str(m.get_submodule("") is m),
        lambda: m.get_parameter("0.first.weight"),
        lambda: m.get_parameter("0.norm.running_mean"),
        lambda: m.get_parameter("0.first.no"),
        lambda: m.get_buffer("0.norm.running_mean"),
        lambda: m.get_buffer("0.first.weight"),
        lambda: m.get_buffer("0.first.no"),
        lambda: m.set_submodule("0.first", lib.nn.Identity()),
        lambda: m.set_submodule("0.fresh", lib.nn.Identity()),
        lambda: m.set_submodule("0.other", lib.nn.Identity(), strict=True),
        lambda: m.set_submodule("0.norm.weight", lib.nn.Identity()),
        lambda: m.set_submodule("", lib.nn.Identity()),
        lambda: m.set_submodule("0.norm", 3),
        lambda: str(m),
    )


@script
def conversions(lib):
    m = net(lib)
    m.first.weight.grad = lib.ones(3, 2)
    found = []
    for change in (
        lambda: m.double(), lambda: m.half(), lambda: m.bfloat16(), lambda: m.float(), lambda: m.to(lib.float64),
        lambda: m.to("cpu", lib.float32), lambda: m.to(dtype=lib.float16), lambda: m.to(lib.zeros(1, dtype=lib.float64)),
        lambda: m.to(lib.int32), lambda: m.type(lib.float32), lambda: m.to(lib.complex64), lambda: m.cpu(),
        lambda: m.to_empty(device="cpu"), lambda: m.requires_grad_(False), lambda: m.train("yes"),
    ):  # fmt: skip
        before = m.first.weight
        found.append(raising(lib, lambda change=change: change() is m))
        grad = m.first.weight.grad
        found.append([m.first.weight is before, str(m.first.weight.dtype), str(m.norm.num_batches_tracked.dtype)])
        found.append(
            [str(m.norm.running_mean.dtype), None if grad is None else str(grad.dtype), m.first.weight.requires_grad]
        )
    return found


@script
def conversions_that_make_new_parameters_or_swap_them(lib):
    future, found = lib.__future__, []
    for name in ("overwrite", "swap"):
        turn = getattr(future, f"set_{name}_module_params_on_conversion")
        try:
            turn(True)
            found.append(getattr(future, f"get_{name}_module_params_on_conversion")())
            m = net(lib)
            m.first.weight.requires_grad_(False)
            m.last.weight.grad = lib.ones(1, 3)
            before = [m.first.weight, m.last.weight]
            found.append([str(b.dtype) for b in before])
            state = {k: v.double() + 1 for k, v in m.state_dict().items()}
            if name == "overwrite":
                m.double()
                found += [m.first.weight is before[0], str(before[0].dtype), str(m.first.weight.dtype)]
                found += [m.last.weight.grad, m.first.weight.requires_grad, before[1].grad]
                continue
            del before
            for assign in (False, True):
                numbers = [id(p) for p in m.parameters()]
                m.load_state_dict(state, assign=assign)
                found.append([id(p) for p in m.parameters()] == numbers)
                found += [m.first.weight, str(m.first.weight.dtype), m.first.weight.requires_grad, m.norm.running_mean]
        finally:
            turn(False)
    return found


@script
def a_parameter_of_another_layout_is_a_new_one(lib):
    m = net(lib)
    m.last.weight.grad = lib.ones(1, 3)
    before = [m.last.weight, m.last.weight.grad]
    m.last._apply(lambda t: t.to_sparse())
    after = [m.last.weight, m.last.weight.grad]
    return [t.layout is lib.strided for t in before + after] + [t.to_dense() for t in after] + [m.last.weight.requires_grad]


@script
def conversions_reach_what_a_parameter_wraps(lib):
    class Wrapper(lib.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return lib.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls(func(args[0].inner, *args[1:], **(kwargs or {})))

    class Flat(Wrapper):
        def __tensor_flatten__(self):
            return ["inner"], None

    class Traceable(Flat):
        @staticmethod
        def __tensor_unflatten__(inner, context, size, stride):
            return Traceable(inner["inner"])

    found = []
    for kind, swap in ((Wrapper, True), (Flat, False), (Traceable, False), (Traceable, True)):
        lib.__future__.set_swap_module_params_on_conversion(swap)
        try:
            m = lib.nn.Linear(2, 3)
            m.weight = lib.nn.Parameter(kind(m.weight.detach()))
            m.bias.grad = lib.ones(3)
            weight, bias, grad = m.weight, m.bias, m.bias.grad
            m.double()
        finally:
            lib.__future__.set_swap_module_params_on_conversion(False)
        found.append(
            [m.weight is weight, m.bias is bias, m.bias.grad is grad, type(m.weight).__name__, m.weight.requires_grad]
        )
        found.append([str(t.dtype) for t in (m.weight, m.weight.inner, m.bias, m.bias.grad)])
    return found


@script
def tensors_that_are_swapped(lib):
    p, t = lib.nn.Parameter(lib.ones(2)), lib.zeros(3, dtype=lib.float64)
    t.mark = 3
    numbers = id(p), id(t)
    lib.utils.swap_tensors(p, t)
    found = [numbers == (id(p), id(t)), type(p).__name__, type(t).__name__, p.mark, hasattr(t, "mark"), p, t]
    loaded = p.module_load(lib.ones(3))
    kept = p.module_load(lib.ones(2), assign=True)
    return [*found, t.requires_grad, p.requires_grad, str(p.dtype), loaded, p, kept, str(kept.dtype)]


@script
def clearing_gradients(lib):
    m = lib.nn.Linear(2, 1)
    m(lib.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    first = m.weight.grad
    m.zero_grad()
    return [first, m.weight.grad]


@script
def gradients_that_are_converted_with_their_module_stay_themselves(lib):
    m = lib.nn.Embedding(4, 2, sparse=True)
    m(lib.tensor([1, 1, 2])).sum().backward()
    first = m.weight.grad
    m.double()
    return [m.weight.grad is first, str(first.dtype).split(".")[1], first.to_dense()]


@script
def copies(lib):
    m = net(lib)
    m.tied = m.first
    m.first.weight.grad = lib.ones(3, 2)
    found = []
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        found.append(
            [str(twin), twin.tied is twin.first, twin.first.weight.grad is None, twin.first.weight.requires_grad]
        )
        found.append([n for n, _ in twin.named_parameters()])
    a, b = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)
    b.weight = a.weight
    twin = pickle.loads(pickle.dumps(lib.nn.ModuleList([a, b])))
    found.append(twin[0].weight is twin[1].weight)
    shallow = copy.copy(m)
    found.append([shallow.first is m.first, shallow._parameters is m._parameters])
    return found


# ---- state ----


@script
def own_register_buffer(lib):
    class Plain(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = lib.nn.Buffer(lib.ones(1))

        def register_buffer(self, name, value):  # as it was written before buffers had options
            super().register_buffer(name, value)

    return dict(Plain().state_dict())


@script
def states(lib):
    m = net(lib)
    m.register_buffer("kept", lib.ones(2))
    m.register_buffer("lost", lib.ones(2), persistent=False)
    state = m.state_dict(prefix="p.")
    into = OrderedDict(before=1)
    same = m.state_dict(destination=into) is into
    kept = m.state_dict(keep_vars=True)["first.weight"] is m.first.weight
    old = m.state_dict(OrderedDict(), "q.", True)
    return [dict(state), dict(state._metadata), same, kept, [*into], [*old]]


@script
def loading_reports(lib):
    m = net(lib)
    good = dict(m.state_dict())
    cases = []
    for change in (
        lambda s: s.pop("first.bias"),
        lambda s: s.update({"extra": lib.zeros(1), "first.more": lib.zeros(1), "deep.er": lib.zeros(1)}),
        lambda s: s.update({"last.bias": lib.zeros(1)}),
        lambda s: s.update({"first.weight": lib.zeros(2, 2), "last.weight": lib.zeros(1)}),
        lambda s: s.update({"first.weight": 3}),
        lambda s: (s.pop("norm.num_batches_tracked"), s.update({"norm.weight.x": lib.zeros(1)})),
        lambda s: s.update({"norm.num_batches_tracked": lib.ones(1, dtype=lib.int64)}),
    ):
        state = dict(good)
        change(state)
        for strict in (True, False):
            try:
                keys = m.load_state_dict(state, strict=strict)
                cases.append([str(keys), keys.missing_keys, keys.unexpected_keys])
            except RuntimeError as error:
                cases.append(str(error))
    cases.append(raising(lib, lambda: m.load_state_dict([1])))
    return cases


@script
def assigning_a_state(lib):
    m, given = net(lib), net(lib).double()
    state = given.state_dict()
    m.first.weight.requires_grad_(False)
    m.load_state_dict(state, assign=True)
    found = [
        str(m.first.weight.dtype),
        str(m.norm.running_mean.dtype),
        m.first.weight.requires_grad,
        m.first.bias.requires_grad,
    ]
    m.load_state_dict(given.state_dict(keep_vars=True), assign=True)
    return [*found, m.first.bias is given.first.bias, type(m.first.weight).__name__]


@script
def extra_state(lib):
    class Counter(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 3

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    m, other = lib.nn.Sequential(Counter()), lib.nn.Sequential(Counter())
    other[0].count = 7
    m.load_state_dict(other.state_dict())
    reports = []
    for module, state in ((m, {}), (lib.nn.Sequential(lib.nn.ReLU()), other.state_dict())):
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            reports.append(str(error))
    return [m[0].count, dict(other.state_dict()), reports]


@script
def versions_and_older_formats(lib):
    class Versioned(lib.nn.Module):
        _version = 3

        def __init__(self):
            super().__init__()
            self.w = lib.nn.Parameter(lib.zeros(1))

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append([prefix, local_metadata.get("version"), sorted(state_dict)])
            if (local_metadata.get("version") or 0) < 3 and prefix + "old" in state_dict:
                state_dict[prefix + "w"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    seen = []
    m = lib.nn.ModuleDict({"a": Versioned(), "b": lib.nn.ReLU()})
    state = m.state_dict()
    m.load_state_dict(state)
    m.load_state_dict({"a.old": lib.ones(1)})
    return [seen, m["a"].w, dict(state._metadata)]


@script
def hooks_around_states(lib):
    m, log = net(lib), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(["pre", prefix, keep]))
    m.first.register_state_dict_post_hook(
        lambda mod, s, prefix, meta: log.append(["post", prefix, [*s], meta["version"]])
    )
    m.last._register_state_dict_hook(lambda mod, s, prefix, meta: log.append(["private", [*meta]]))
    m._register_state_dict_hook(lambda mod, s, prefix, meta: {**s, "made": 1})
    state = m.state_dict()
    handle = m.register_load_state_dict_pre_hook(
        lambda mod, s, *rest: (s.pop("made", None), log.append(["load", type(mod).__name__]))
    )
    m.first._register_load_state_dict_pre_hook(lambda s, prefix, *rest: log.append(["first", prefix, [*s]]))
    m.register_load_state_dict_post_hook(lambda mod, keys: log.append(["after", keys.missing_keys]))
    m.norm.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    m.load_state_dict(state)
    state.pop("first.bias")
    log.append(str(m.load_state_dict(state)))
    handle.remove()
    log.append(raising(lib, lambda: m.load_state_dict(state)))
    m.last.register_state_dict_post_hook(lambda *args: 3)
    log.append(raising(lib, lambda: m.state_dict()))
    m.norm.register_load_state_dict_post_hook(lambda mod, keys: 3)
    log.append(raising(lib, lambda: m.load_state_dict({}, strict=False)))
    return log


# ---- hooks around calls ----


@script
def forward_hooks(lib):
    m, log = lib.nn.Identity(), []
    tag = lambda name, value=None: lambda mod, args, *rest: log.append([name, len(rest)]) or value
    m.register_forward_pre_hook(tag("pre"))
    m.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    m.register_forward_pre_hook(tag("first"), prepend=True)
    m.register_forward_hook(tag("after"))
    m.register_forward_hook(lambda mod, args, kwargs, out: out * 10, with_kwargs=True, prepend=True)
    handle = m.register_forward_hook(tag("gone"))
    handle.remove()
    handle.remove()
    with m.register_forward_hook(tag("inside")):
        first = m(lib.ones(2))
    return [first, m(lib.zeros(2)), log]


@script
def hooks_with_kwargs(lib):
    class Scale(lib.nn.Module):
        def forward(self, x, *, by=1):
            return x * by

    m = Scale()
    found = [m(lib.ones(1), by=3)]
    handle = m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    found.append(m(lib.ones(1), by=3))
    handle.remove()
    m.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    return [*found, raising(lib, lambda: m(lib.ones(1)))]


@script
def hooks_that_are_always_called(lib):
    class Fails(lib.nn.Module):
        def forward(self, x):
            if x is None:
                raise KeyError("no")
            return x

    def fail(*args):
        raise ValueError("hook")

    m, log = Fails(), []
    m.register_forward_hook(lambda mod, args, out: log.append(["a", out]), always_call=True)
    m.register_forward_hook(lambda mod, args, out: log.append(["b", out]))
    m.register_forward_hook(lambda mod, args, kwargs, out: log.append(["c", out]), always_call=True, with_kwargs=True)
    found = [raising(lib, lambda: m(None), lambda: m(1))]
    handle = m.register_forward_hook(fail, always_call=True)
    found.append(raising(lib, lambda: m(None), lambda: m(1)))
    handle.remove()
    m.register_forward_hook(fail, prepend=True)
    found.append(raising(lib, lambda: m(1)))
    return [found, log]


@script
def global_hooks(lib):
    g, log = hooks_of(lib), []
    shown = lambda name: lambda mod, *rest: log.append([name, type(mod).__name__, len(rest)])
    handles = [
        g.register_module_forward_pre_hook(shown("pre")),
        g.register_module_forward_hook(shown("forward")),
        g.register_module_forward_hook(shown("kwargs"), with_kwargs=True, always_call=True),
        g.register_module_full_backward_pre_hook(shown("backward pre")),
        g.register_module_full_backward_hook(shown("backward")),
    ]
    m = net(lib)
    m.first.register_forward_hook(shown("own"))
    x = lib.ones(4, 2, requires_grad=True)
    m(x).sum().backward()
    log.append(raising(lib, lambda: g.register_module_backward_hook(shown("never"))))
    for handle in handles:
        handle.remove()
    m.eval()(x)
    return log


@script
def registration_hooks(lib):
    g, log = hooks_of(lib), []
    shown = lambda mod, name, value: log.append([type(mod).__name__, name, type(value).__name__])
    handles = [
        g.register_module_parameter_registration_hook(shown),
        g.register_module_buffer_registration_hook(shown),
        g.register_module_module_registration_hook(shown),
        g.register_module_buffer_registration_hook(lambda mod, name, value: None if value is None else value + 1),
    ]
    m = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.BatchNorm1d(1))
    m.seen = lib.nn.Buffer(lib.zeros(1))
    m.other = lib.nn.ReLU()
    for handle in handles:
        handle.remove()
    lib.nn.Linear(1, 1)
    return [[e for e in log if e[2] not in ("Tensor", "Buffer")], m[1].running_mean, m.seen]


@script
def full_backward_hooks(lib):
    log = []
    see = lambda name: lambda mod, *grads: log.append([name, *grads])
    m = filled(lib, lib.nn.Linear(2, 3))
    m.register_full_backward_pre_hook(see("pre"))
    m.register_full_backward_hook(see("full"))
    m.register_full_backward_hook(lambda mod, gi, go: tuple(None if g is None else g * 10 for g in gi), prepend=True)
    m.register_full_backward_pre_hook(lambda mod, go: tuple(g * 2 for g in go), prepend=True)
    x = lib.ones(4, 2, requires_grad=True)
    m(x).sum().backward()
    return [log, x.grad, m.weight.grad]


@script
def full_backward_hooks_without_input_gradients(lib):
    log = []
    m = filled(lib, lib.nn.Linear(2, 3))
    m.register_full_backward_hook(lambda mod, gi, go: log.append([gi, go]))
    m(lib.ones(4, 2)).sum().backward()
    with lib.no_grad():
        m(lib.ones(4, 2))
    m.register_full_backward_hook(lambda mod, gi, go: (lib.zeros(4, 2),))
    log.append(raising(lib, lambda: m(lib.ones(4, 2)).sum().backward()))
    return log


@script
def full_backward_hooks_on_several_inputs_and_outputs(lib):
    class Pair(lib.nn.Module):
        def forward(self, x, y, z, flag):
            return x * 2 + y, y * 3, flag

    log, m = [], Pair()
    m.register_full_backward_hook(lambda mod, gi, go: log.append([gi, go]))
    x, y, z = (lib.ones(2, requires_grad=True) for _ in range(3))
    a, b, _ = m(x, y, z, "flag")
    a.sum().backward()
    a, b, _ = m(x, y.detach(), z, None)
    (a.sum() + b.sum()).backward()
    m.register_full_backward_pre_hook(lambda mod, go: go[:1])
    log.append(raising(lib, lambda: m(x, y, z, 1)[0].sum().backward()))
    wrong = Pair()
    wrong.register_full_backward_hook(lambda mod, gi, go: gi[:1])
    log.append(raising(lib, lambda: wrong(x, y, z, 1)[0].sum().backward()))
    return [log, x.grad, y.grad, z.grad]


@script
def full_backward_hooks_and_odd_outputs(lib):
    class Odd(lib.nn.Module):
        def forward(self, x):
            return {"x": x * 2}

    m, log = Odd(), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append(1))
    m(lib.ones(1, requires_grad=True))["x"].sum().backward()
    return log


@script
def regular_backward_hooks(lib):
    log = []
    m = lib.nn.ReLU()
    m.register_backward_hook(lambda mod, gi, go: log.append([type(mod).__name__, gi, go]))
    x = lib.ones(2, requires_grad=True)
    (m(x * 1) * 3).sum().backward()
    log.append(raising(lib, lambda: m.register_full_backward_hook(lambda *a: None)))
    deep = filled(lib, lib.nn.Linear(2, 2))
    deep.register_backward_hook(lambda mod, gi, go: log.append(go))
    deep(x.detach().reshape(1, 2)).sum().backward()
    return log


@script
def what_regular_backward_hooks_miss(lib):
    class Calls(lib.nn.Module):
        def forward(self, fn, *args):
            return fn(*args)

    told, x = [], lib.ones(3, requires_grad=True)
    for fn, *args in (
        (lambda x: {"a": x * 2}, x), (lambda x: (x * 2, x * 3), x), (lambda x: (x * 2).exp(), x), (lambda x: x * 2, x),
    ):  # fmt: skip
        m = Calls()
        m.register_backward_hook(lambda *a: None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            m(fn, *args)
        told.append([str(w.message) for w in caught])
    m = lib.nn.ReLU()
    m.register_backward_hook(lambda *a: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for y in (m(x), lib.nn.Sequential(m, lib.nn.ReLU())(x * 1)):
            y.sum().backward()
    return [*told, [str(w.message) for w in caught]]


@script
def hooks_see_second_backward(lib):
    log = []
    m = filled(lib, lib.nn.Linear(2, 1))
    m.register_full_backward_hook(lambda mod, gi, go: log.append([gi, go]))
    x = lib.ones(1, 2, requires_grad=True)
    y = m(x).pow(2).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    return [len(log), m.weight.grad, x.grad]


@script
def hooks_survive_copies(lib):
    m = lib.nn.Identity()
    m.log = []
    m.register_forward_hook(append_to_log)
    twin = copy.deepcopy(m)
    twin(1)
    other = pickle.loads(pickle.dumps(twin))
    other(2)
    return [m.log, twin.log, other.log]


def append_to_log(module, args, out):
    module.log.append(out)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_ends_as_in_torch(name):
    check(SCRIPTS[name], may_raise=False)


# ---- names and arguments ----


def test_module_has_every_name_of_torch():
    # PyTorch's compiler, once something has loaded it, leaves a mark of its own there, of three underscores.
    missing = {n for n in dir(torch.nn.Module) if not hasattr(nn.Module, n) and not n.startswith("___")}
    assert missing <= WITHOUT | {"__annotate__", "__annotations_cache__", "__static_attributes__", "__firstlineno__"}
    for owner in ("Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"):
        mine, theirs = getattr(nn, owner), getattr(torch.nn, owner)
        for name, fn in inspect.getmembers(theirs, inspect.isfunction):
            if (
                name.startswith("__")
                or name in WITHOUT
                or name in ("_get_item_by_idx", "_get_abs_string_index", "_key_to_attr")
            ):
                continue
            a, b = (inspect.signature(f).parameters.values() for f in (getattr(mine, name), fn))
            assert [(p.name, p.kind, p.default) for p in a] == [(p.name, p.kind, p.default) for p in b], (owner, name)
