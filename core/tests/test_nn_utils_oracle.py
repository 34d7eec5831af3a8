"""nn.utils beside PyTorch's: the same start in both, then the same training, names, repr and refusals."""

from __future__ import annotations

import copy
import importlib
import inspect
import warnings

import numpy as np
import pytest

import mortice
from mortice import nn

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")]


def give(ours, theirs):
    """Give our module the values of theirs, by name; names, their order and shapes must agree already."""
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({name: mortice.tensor(value.numpy().copy()) for name, value in state.items()})


def agree(ours, theirs, tolerance=1e-9):
    mine, want = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(want)
    for name in want:
        np.testing.assert_allclose(mine[name].numpy(), want[name].numpy(), rtol=tolerance, atol=tolerance, err_msg=name)


def train(ours, theirs, shape, steps=10, tolerance=1e-9):
    """Train both for ten steps on the same batches; the outputs and all state must stay the same."""
    rng = np.random.default_rng(0)
    mine = mortice.optim.SGD(ours.parameters(), lr=0.05, momentum=0.9)
    want = torch.optim.SGD(theirs.parameters(), lr=0.05, momentum=0.9)
    for _ in range(steps):
        batch = rng.normal(size=shape)
        a, b = ours(mortice.tensor(batch)), theirs(torch.from_numpy(batch))
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)
        mine.zero_grad()
        want.zero_grad()
        a.square().mean().backward()
        b.square().mean().backward()
        mine.step()
        want.step()
    agree(ours, theirs, tolerance)
    for module in (ours, theirs):
        module.eval()
    batch = rng.normal(size=shape)
    a, b = ours(mortice.tensor(batch)), theirs(torch.from_numpy(batch))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


LAYERS = [
    ("Linear", (5, 4), (3, 5)),
    ("Conv2d", (2, 4, 3), (2, 2, 6, 6)),
    ("ConvTranspose1d", (3, 4, 3), (2, 3, 6)),
]
SETTINGS = [
    ("spectral_norm", {}),
    ("spectral_norm", {"n_power_iterations": 3, "dim": 1, "eps": 1e-6}),
    ("weight_norm", {}),
    ("weight_norm", {"dim": 1}),
    ("weight_norm", {"dim": None}),
    ("parametrizations.spectral_norm", {"n_power_iterations": 2}),
    ("parametrizations.weight_norm", {"dim": 1}),
    ("parametrizations.weight_norm", {"dim": None}),
]


def find(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


@pytest.mark.parametrize("layer", LAYERS, ids=lambda c: c[0])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_normalised_layer_trains_as_torch_does(layer, setting):
    name, args, shape = layer
    path, options = setting
    ours = find(nn.utils, path)(getattr(nn, name)(*args).double(), **options)
    theirs = find(torch.nn.utils, path)(getattr(torch.nn, name)(*args).double(), **options)
    assert repr(ours) == repr(theirs)
    give(ours, theirs)
    train(ours, theirs, shape)


MAPS = [(m, t) for m in ("matrix_exp", "cayley", "householder") for t in (True, False)]


@pytest.mark.parametrize("sizes", [(4, 4), (6, 3), (3, 6)], ids=str)
@pytest.mark.parametrize("setting", MAPS, ids=str)
def test_an_orthogonal_layer_trains_as_torch_does(sizes, setting):
    orthogonal_map, trivial = setting
    options = {"orthogonal_map": orthogonal_map, "use_trivialization": trivial}
    ours = nn.utils.parametrizations.orthogonal(nn.Linear(*sizes).double(), **options)
    theirs = torch.nn.Linear(*sizes).double()
    torch.nn.init.orthogonal_(theirs.weight)
    theirs = torch.nn.utils.parametrizations.orthogonal(theirs, **options)
    assert repr(ours) == repr(theirs)
    give(ours, theirs)
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), atol=1e-9)
    train(ours, theirs, (3, sizes[0]), tolerance=1e-7)
    small = ours.weight if sizes[1] <= sizes[0] else ours.weight.mT
    assert mortice.allclose(small @ small.mT, mortice.eye(min(sizes), dtype=mortice.float64), atol=1e-9)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3)], ids=str)
def test_householder_finds_the_start_of_an_orthogonal_matrix_as_torch_does(shape):
    q = np.linalg.qr(
        np.random.default_rng(1).normal(size=shape if shape[-2] >= shape[-1] else (*shape[:-2], *shape[:-3:-1]))
    )[0]
    q = q if shape[-2] >= shape[-1] else np.swapaxes(q, -1, -2).copy()

    def start(lib, tensor):
        module = lib.nn.Module()
        module.w = lib.nn.Parameter(tensor)
        lib.nn.utils.parametrizations.orthogonal(module, "w", "householder", use_trivialization=False)
        return module

    ours, theirs = start(mortice, mortice.tensor(q)), start(torch, torch.from_numpy(q.copy()))
    np.testing.assert_allclose(ours.w.detach().numpy(), q, atol=1e-12)
    agree(ours, theirs)


def test_an_assigned_weight_is_kept_by_each_parametrization():
    rng = np.random.default_rng(3)
    q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for lib, made in ((mortice, mortice.tensor), (torch, lambda a: torch.from_numpy(a.copy()))):
        tools = lib.nn.utils.parametrizations
        linear = tools.orthogonal(lib.nn.Linear(4, 4).double())
        linear.weight = made(q)
        np.testing.assert_allclose(linear.weight.detach().numpy(), q, atol=1e-12)
        linear = tools.weight_norm(lib.nn.Linear(4, 4).double())
        linear.weight = made(q * 3)
        np.testing.assert_allclose(linear.weight.detach().numpy(), q * 3, atol=1e-12)
        np.testing.assert_allclose(
            linear.parametrizations.weight.original0.detach().numpy(), np.full((4, 1), 3), atol=1e-12
        )


def test_spectral_norm_reads_its_first_format():
    theirs = torch.nn.utils.spectral_norm(torch.nn.Linear(5, 4).double())
    ours = nn.utils.spectral_norm(nn.Linear(5, 4).double())
    for _ in range(20):
        theirs(torch.zeros(1, 5, dtype=torch.float64))
    state = theirs.state_dict()
    del state["weight_v"]
    state["weight"] = theirs.weight.detach()
    old = {name: value.clone() for name, value in state.items()}
    mine = {name: mortice.tensor(value.numpy()) for name, value in old.items()}
    theirs.load_state_dict(old)
    ours.load_state_dict(mine)
    agree(ours, theirs, 1e-8)
    with pytest.raises(RuntimeError, match="Missing key"):
        ours.load_state_dict({k: v for k, v in mine.items() if k != "weight_u"})


def test_metadata_is_written_as_torch_writes_it():
    for name in ("spectral_norm", "weight_norm"):
        ours = nn.Sequential(getattr(nn.utils, name)(nn.Linear(2, 3)), nn.BatchNorm1d(3))
        theirs = torch.nn.Sequential(getattr(torch.nn.utils, name)(torch.nn.Linear(2, 3)), torch.nn.BatchNorm1d(3))
        assert ours.state_dict()._metadata == theirs.state_dict()._metadata


def test_weight_norm_reads_the_older_keys():
    theirs = torch.nn.utils.weight_norm(torch.nn.Linear(5, 4).double())
    ours = nn.utils.parametrizations.weight_norm(nn.Linear(5, 4).double())
    ours.load_state_dict({name: mortice.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-12)


# ---- parametrize ----


def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    class Scale(lib.nn.Module):
        def forward(self, x):
            return x * 2

    return Symmetric(), Scale()


def test_stacked_parametrizations_train_as_torch_does():
    pair = []
    for lib in (mortice, torch):
        linear = lib.nn.Linear(4, 4).double()
        for p in symmetric(lib):
            lib.nn.utils.parametrize.register_parametrization(linear, "weight", p)
        pair.append(linear)
    ours, theirs = pair
    assert repr(ours) == repr(theirs) and type(ours).__name__ == type(theirs).__name__
    give(ours, theirs)
    train(ours, theirs, (3, 4))
    for lib, linear in zip((mortice, torch), pair):
        lib.nn.utils.parametrize.remove_parametrizations(linear, "weight")
        assert type(linear) is lib.nn.Linear
    agree(ours, theirs)
    train(ours, theirs, (3, 4))


WRONG = {
    "no such tensor": lambda lib, P: P.register_parametrization(lib.nn.Linear(2, 2), "w", lib.nn.Identity()),
    "dtype": lambda lib, P: P.register_parametrization(lib.nn.Linear(2, 2), "weight", with_forward(lib, lambda x: x.double())),
    "shape": lambda lib, P: P.register_parametrization(lib.nn.Linear(2, 2), "weight", with_forward(lib, lambda x: x[:1])),
    "no tensor": lambda lib, P: P.register_parametrization(lib.nn.Linear(2, 2), "weight", with_forward(lib, lambda x: 3)),
    "not parametrized": lambda lib, P: P.remove_parametrizations(lib.nn.Linear(2, 2), "weight"),
    "several, unparametrized": lambda lib, P: P.remove_parametrizations(
        lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(2, 2)), "weight", leave_parametrized=False
    ),
    "no right inverse": lambda lib, P: setattr(
        P.register_parametrization(lib.nn.Linear(2, 2), "weight", with_forward(lib, lambda x: x * 2)), "weight",
        lib.zeros(2, 2),
    ),
    "assigned dtype": lambda lib, P: setattr(
        lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(2, 2)), "weight", lib.zeros(2, 2, dtype=lib.float64)
    ),
    "empty list": lambda lib, P: P.ParametrizationList([], lib.zeros(2)),
    "pickle": lambda lib, P: __import__("pickle").dumps(
        lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(2, 2))
    ),
    "map": lambda lib, P: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(2, 2), orthogonal_map="qr"),
    "one dim": lambda lib, P: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(2, 2), "bias"),
    "no parameter": lambda lib, P: lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(2, 2), "w"),
    "dim": lambda lib, P: lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(2, 2), dim=2),
    "iterations": lambda lib, P: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0),
    "twice": lambda lib, P: lib.nn.utils.spectral_norm(lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2))),
    "twice weight": lambda lib, P: lib.nn.utils.weight_norm(lib.nn.utils.weight_norm(lib.nn.Linear(2, 2))),
    "none": lambda lib, P: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2, bias=False), "bias"),
    "nothing to remove": lambda lib, P: lib.nn.utils.remove_spectral_norm(lib.nn.Linear(2, 2)),
    "nothing to remove ": lambda lib, P: lib.nn.utils.remove_weight_norm(lib.nn.Linear(2, 2)),
    "amount": lambda lib, P: prune_of(lib).l1_unstructured(lib.nn.Linear(2, 2), "weight", 1.5),
    "amount type": lambda lib, P: prune_of(lib).l1_unstructured(lib.nn.Linear(2, 2), "weight", "x"),
    "amount count": lambda lib, P: prune_of(lib).l1_unstructured(lib.nn.Linear(2, 2), "weight", 7),
    "structured vector": lambda lib, P: prune_of(lib).ln_structured(lib.nn.Linear(2, 2), "bias", 1, 2, 0),
    "structured dim": lambda lib, P: prune_of(lib).random_structured(lib.nn.Linear(2, 2), "weight", 1, 2),
    "not pruned": lambda lib, P: prune_of(lib).remove(lib.nn.Linear(2, 2), "weight"),
    "mask": lambda lib, P: prune_of(lib).custom_from_mask(lib.nn.Linear(2, 2), "weight", lib.ones(3)),
    "scores": lambda lib, P: prune_of(lib).l1_unstructured(lib.nn.Linear(2, 2), "weight", 1, lib.ones(3)),
    "global kind": lambda lib, P: prune_of(lib).global_unstructured(
        [(lib.nn.Linear(2, 2), "weight")], prune_of(lib).LnStructured, amount=1, n=2
    ),
    "fuse training": lambda lib, P: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv2d(2, 3, 1), lib.nn.BatchNorm2d(3)),
    "fuse sizes": lambda lib, P: lib.nn.utils.fuse_linear_bn_eval(lib.nn.Linear(2, 3).eval(), lib.nn.BatchNorm1d(4).eval()),
    "skip": lambda lib, P: lib.nn.utils.skip_init(lib.nn.ReLU),
    "lazy": lambda lib, P: lib.nn.utils.spectral_norm(lib.nn.LazyLinear(2)),
}  # fmt: skip


def prune_of(lib):
    return importlib.import_module(f"{lib.__name__}.nn.utils.prune")


def with_forward(lib, forward):
    module = lib.nn.Module()
    module.forward = forward
    return module


@pytest.mark.parametrize("case", WRONG)
def test_misuse_raises_what_torch_raises(case):
    with pytest.raises(Exception) as theirs:  # noqa: B017
        WRONG[case](torch, torch.nn.utils.parametrize)
    with pytest.raises(theirs.type):
        WRONG[case](mortice, nn.utils.parametrize)


# ---- prune ----

PRUNING = [
    ("identity", ()),
    ("l1_unstructured", (0.4,)),
    ("l1_unstructured", (3,)),
    ("ln_structured", (1, 2, 0)),
    ("ln_structured", (0.5, 1, -1)),
    ("ln_structured", (1, float("inf"), 1)),
]


@pytest.mark.parametrize("layer", LAYERS[:2], ids=lambda c: c[0])
@pytest.mark.parametrize("first", PRUNING, ids=str)
@pytest.mark.parametrize("second", [None, PRUNING[1], PRUNING[3]], ids=str)
def test_a_pruned_layer_trains_as_torch_does(layer, first, second):
    name, args, shape = layer
    ours, theirs = getattr(nn, name)(*args).double(), getattr(torch.nn, name)(*args).double()
    give(ours, theirs)
    pairs = ((nn.utils.prune, ours), (prune_of(torch), theirs))
    for method in filter(None, (first, second)):
        for prune, module in pairs:
            getattr(prune, method[0])(module, "weight", *method[1])
    agree(ours, theirs)
    train(ours, theirs, shape)
    for prune, module in pairs:
        assert prune.is_pruned(module)
        prune.remove(module, "weight")
        assert not prune.is_pruned(module)
    agree(ours, theirs)


def test_global_pruning_chooses_over_all_parameters_as_torch_does():
    pair = [lib.nn.Sequential(lib.nn.Linear(5, 4), lib.nn.Linear(4, 3)).double() for lib in (mortice, torch)]
    give(*pair)
    for lib, net in zip((mortice, torch), pair):
        prune = prune_of(lib)
        for amount in (0.3, 4):
            prune.global_unstructured(
                [(net[0], "weight"), (net[1], "weight"), (net[1], "bias")], prune.L1Unstructured, amount=amount
            )
    agree(*pair)
    train(*pair, (3, 5))


def test_importance_scores_choose_in_place_of_the_values():
    scores = np.arange(20.0).reshape(4, 5)
    for lib, made in ((mortice, mortice.tensor), (torch, torch.from_numpy)):
        linear = prune_of(lib).l1_unstructured(lib.nn.Linear(5, 4), "weight", 6, made(scores))
        assert (linear.weight_mask.flatten() == 0).tolist() == [True] * 6 + [False] * 14
        pruned = prune_of(lib).LnStructured(2, 2, 0).prune(lib.ones(4, 5), importance_scores=made(scores))
        assert pruned.sum(1).tolist() == [0, 0, 5, 5]


# ---- fusion, clipping ----


def test_a_folded_normalisation_gives_the_same_outputs():
    rng = np.random.default_rng(5)
    cases = [
        ("Conv2d", (2, 4, 3), "BatchNorm2d", (2, 2, 6, 6), False),
        ("ConvTranspose2d", (2, 4, 3), "BatchNorm2d", (2, 2, 6, 6), True),
    ]
    for name, args, norm, shape, transpose in cases:
        pair = [
            lib.nn.Sequential(getattr(lib.nn, name)(*args), getattr(lib.nn, norm)(4)).double()
            for lib in (mortice, torch)
        ]
        with torch.no_grad():
            for t in (*pair[1].parameters(), pair[1][1].running_mean, pair[1][1].running_var):
                t.copy_(torch.from_numpy(np.abs(rng.normal(size=tuple(t.shape)))))
        give(*pair)
        fused = [
            lib.nn.utils.fuse_conv_bn_eval(net.eval()[0], net[1], transpose) for lib, net in zip((mortice, torch), pair)
        ]
        agree(*fused)
        x = mortice.tensor(rng.normal(size=shape))
        assert mortice.allclose(fused[0](x), pair[0](x), atol=1e-10)
    pair = [
        (lib.nn.Linear(3, 4, bias=False).double().eval(), lib.nn.BatchNorm1d(4).double().eval())
        for lib in (mortice, torch)
    ]
    for i in (0, 1):
        give(pair[0][i], pair[1][i])
    ours, theirs = (lib.nn.utils.fuse_linear_bn_eval(*layers) for lib, layers in zip((mortice, torch), pair))
    agree(ours, theirs)
    assert [p.requires_grad for p in ours.parameters()] == [p.requires_grad for p in theirs.parameters()]


@pytest.mark.parametrize("order", [0.5, 1, 2, 3.5, float("inf"), "inf"])
@pytest.mark.parametrize("limit", [0.1, 100.0])
def test_clipping_gives_torch_gradients_and_norm(order, limit):
    grads = [np.random.default_rng(i).normal(size=s) for i, s in enumerate([(3, 4), (5,), ()])]
    found = []
    for lib, made in ((mortice, mortice.tensor), (torch, torch.tensor)):
        params = [lib.nn.Parameter(made(np.zeros_like(g))) for g in grads]
        for p, g in zip(params, grads):
            p.grad = made(g.copy())
        total = lib.nn.utils.clip_grad_norm_(params, limit, order, foreach=False)
        assert float(total) == pytest.approx(float(lib.nn.utils.get_total_norm([made(g) for g in grads], order)))
        found.append([float(total), *[p.grad.numpy() for p in params]])
        lib.nn.utils.clip_grad_value_(params, 0.05)
        found[-1] += [p.grad.numpy() for p in params]
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_clipping_refuses_and_warns_as_torch_does():
    for lib in (mortice, torch):
        p = lib.nn.Parameter(lib.zeros(2))
        p.grad = lib.tensor([1.0, float("inf")])
        with pytest.raises(RuntimeError, match="order 1.0 for gradients from `parameters` is non-finite"):
            lib.nn.utils.clip_grad_norm_([p], 1.0, 1, error_if_nonfinite=True)
        with pytest.raises(RuntimeError, match="cannot compute the -1"):
            lib.nn.utils.get_total_norm([p, lib.zeros(0)], -1)
        with pytest.warns(UserWarning, match="empty generator"):
            lib.nn.utils.clip_grad_norm_((q for q in ()), 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert float(lib.nn.utils.clip_grad_norm_([], 1.0)) == 0.0


def test_every_function_takes_torch_arguments():
    for path in ("prune", "stateless"):
        importlib.import_module(f"torch.nn.utils.{path}")
    for path in ("utils", "utils.parametrize", "utils.parametrizations", "utils.prune", "utils.stateless", "init"):
        ours, theirs = find(nn, path), find(torch.nn, path)
        for name, fn in vars(theirs).items():
            if name.startswith("_") or not (inspect.isfunction(fn) or inspect.isclass(fn)):
                continue
            home = getattr(fn, "__module__", "")
            if "._" in home or not home.startswith(f"torch.nn.{path.split('.')[0]}"):
                continue
            mine, want = (inspect.signature(f).parameters.values() for f in (getattr(ours, name), fn))
            assert [(p.name, p.kind) for p in mine] == [(p.name, p.kind) for p in want], name
            for p, q in zip(mine, want):
                assert p.default == q.default or repr(p.default) == repr(q.default), (name, p.name)


def test_copies_of_parametrized_modules_are_their_own():
    linear = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))
    twin = copy.deepcopy(linear)
    nn.utils.parametrize.remove_parametrizations(twin, "weight")
    assert type(twin) is nn.Linear and "weight" in twin._parameters
    assert tuple(linear.weight.shape) == (3, 3) and nn.utils.parametrize.is_parametrized(linear, "weight")
