"""nn.utils: normalised and parametrized weights, pruning, fusion, and the rest. Beside PyTorch: test_nn_utils_oracle.py."""

from __future__ import annotations

import copy
import pickle

import pytest

import mortice as mt
from mortice import nn
from mortice.nn.utils import parametrizations, parametrize, prune


def largest(weight):
    return float(mt.linalg.svdvals(weight.detach())[0])


# ---- spectral_norm, weight_norm ----


@pytest.mark.parametrize("wrap", [nn.utils.spectral_norm, parametrizations.spectral_norm])
@pytest.mark.seed("SN03")
def test_spectral_norm_brings_the_largest_singular_value_to_one(wrap):
    mt.manual_seed(0)  # how fast it gets there depends on the ratio of the two largest
    layer = wrap(nn.Linear(5, 4))
    for _ in range(50):
        layer(mt.ones(1, 5))
    assert largest(layer.weight) == pytest.approx(1, abs=1e-4)
    state = {name: value.tolist() for name, value in layer.eval().state_dict().items()}
    layer(mt.ones(1, 5))
    assert {name: value.tolist() for name, value in layer.state_dict().items()} == state


def test_old_spectral_norm_has_torch_keys_and_can_be_removed():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2), n_power_iterations=5)
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert [n for n, _ in layer.named_parameters()] == ["bias", "weight_orig"]
    layer(mt.ones(1, 3))
    layer.eval()(mt.ones(1, 3))
    seen = layer.weight.tolist()
    assert nn.utils.remove_spectral_norm(layer) is layer
    assert list(layer.state_dict()) == ["bias", "weight"] and layer.weight.tolist() == seen
    assert isinstance(layer.weight, nn.Parameter)
    assert not layer._forward_pre_hooks and not layer._state_dict_hooks and not layer._load_state_dict_pre_hooks


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")
def test_old_weight_norm_splits_length_and_direction():
    layer = nn.Linear(3, 2)
    start = layer.weight.tolist()
    nn.utils.weight_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert [round(x, 5) for x in layer.weight.flatten().tolist()] == [round(x, 5) for row in start for x in row]
    layer.weight_g.data.fill_(3)
    layer(mt.ones(1, 3))
    assert layer.weight.norm(dim=1).tolist() == pytest.approx([3, 3])
    nn.utils.remove_weight_norm(layer)
    assert isinstance(layer.weight, nn.Parameter) and list(layer.state_dict()) == ["bias", "weight"]


def test_the_functions_behind_weight_norm_take_any_dim_and_order():
    v = mt.tensor([[3.0, 0.0], [4.0, 1.0]])
    assert mt.norm_except_dim(v, 2, 1).tolist() == [[5.0, 1.0]] and mt.norm_except_dim(v, 1, 0).tolist() == [[3.0], [5.0]]
    assert mt.norm_except_dim(v, 1, -1).item() == 8
    assert mt._weight_norm(v, mt.tensor([[10.0, 2.0]]), 1).tolist() == [[6.0, 0.0], [8.0, 2.0]]


def test_weight_norm_announces_its_successor():
    with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
        nn.utils.weight_norm(nn.Linear(1, 1))


# ---- parametrize ----


class Double(nn.Module):
    calls = 0

    def forward(self, x):
        Double.calls += 1
        return x * 2

    def right_inverse(self, x):
        return x / 2


def test_a_parametrized_weight_is_computed_from_its_original():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    start = weight.tolist()
    parametrize.register_parametrization(layer, "weight", Double())
    assert layer.parametrizations.weight.original is weight and layer.weight.tolist() == start
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer(mt.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[2, 2], [2, 2]]
    layer.weight = mt.ones(2, 2)
    assert weight.tolist() == [[0.5, 0.5], [0.5, 0.5]] and layer.weight.tolist() == [[1, 1], [1, 1]]
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert type(layer) is nn.Linear and layer.weight is weight and weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_inside_cached_a_tensor_is_computed_once():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Double())
    Double.calls = 0
    with parametrize.cached():
        with parametrize.cached():
            assert layer.weight is layer.weight
        assert layer.weight is layer.weight
        assert Double.calls == 1
    assert layer.weight is not layer.weight and Double.calls == 3


def test_several_parametrizations_apply_in_order():
    layer = nn.Linear(2, 2, bias=False)
    nn.init.ones_(layer.weight)
    parametrize.register_parametrization(layer, "weight", Double())
    parametrize.register_parametrization(layer, "weight", nn.Softplus())
    assert layer.weight.flatten().tolist() == pytest.approx([1.3132616] * 4)
    with pytest.raises(RuntimeError, match="parametrization Softplus does not implement right_inverse"):
        layer.weight = mt.ones(2, 2)


def test_a_buffer_can_be_parametrized():
    norm = parametrize.register_parametrization(nn.BatchNorm1d(2), "running_mean", Double())
    assert list(dict(norm.parametrizations.named_buffers())) == ["running_mean.original"]
    parametrize.remove_parametrizations(norm, "running_mean")
    assert "running_mean" in norm._buffers


def test_parametrized_modules_copy_but_do_not_pickle():
    layer = parametrizations.weight_norm(parametrizations.spectral_norm(nn.Linear(2, 2)), "bias")
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(twin, "bias")
    assert not parametrize.is_parametrized(twin, "bias") and parametrize.is_parametrized(layer, "bias")
    assert parametrize.is_parametrized(twin, "weight") and tuple(layer.bias.shape) == (2,)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)


def test_parametrizations_move_to_another_module():
    given = parametrizations.weight_norm(parametrize.register_parametrization(nn.Linear(2, 2), "bias", Double()))
    taken = parametrize.transfer_parametrizations_and_params(given, nn.Linear(2, 2))
    assert taken.weight.tolist() == given.weight.tolist() and taken.bias.tolist() == given.bias.tolist()
    assert taken.parametrizations.bias.original is given.parametrizations.bias.original


@pytest.mark.parametrize("map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (2, 4, 3)])
def test_orthogonal_stays_orthogonal_while_training(map, shape):
    mt.manual_seed(0)
    module = nn.Module()
    module.w = nn.Parameter(mt.randn(*shape, dtype=mt.float64))
    parametrizations.orthogonal(module, "w", map)
    goal = mt.randn(*shape, dtype=mt.float64)
    optimiser = mt.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        loss = (module.w - goal).square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    w = module.w.detach()
    square = w.mT @ w if shape[-2] >= shape[-1] else w @ w.mT
    assert mt.allclose(square, mt.eye(min(shape[-2:]), dtype=mt.float64).expand(square.shape), atol=1e-9)


def test_orthogonal_takes_complex_matrices():
    module = nn.Module()
    module.w = nn.Parameter(mt.randn(3, 3, dtype=mt.complex128))
    parametrizations.orthogonal(module, "w")
    assert mt.allclose(module.w @ module.w.mH, mt.eye(3, dtype=mt.complex128), atol=1e-10)
    with pytest.raises(ValueError, match="householder parametrization does not support complex"):
        parametrizations.orthogonal(nn.Linear(2, 2, dtype=mt.complex64), orthogonal_map="householder")


# ---- prune ----


def test_l1_pruning_masks_the_smallest_and_training_keeps_them_out():
    layer = nn.Linear(4, 1, bias=False)
    layer.weight.data = mt.tensor([[3.0, -1.0, 0.5, -4.0]])
    assert prune.l1_unstructured(layer, "weight", 2) is layer
    assert list(layer.state_dict()) == ["weight_orig", "weight_mask"]
    assert layer.weight.tolist() == [[3, 0, 0, -4]] and layer.weight_mask.tolist() == [[1, 0, 0, 1]]
    optimiser = mt.optim.SGD(layer.parameters(), lr=0.1)
    layer(mt.ones(1, 4)).sum().backward()
    optimiser.step()
    assert layer.weight_orig.flatten().tolist() == pytest.approx([2.9, -1, 0.5, -4.1])
    layer(mt.ones(1, 4))
    original = layer.weight_orig
    prune.remove(layer, "weight")
    assert layer.weight is original and layer.weight.flatten().tolist() == pytest.approx([2.9, 0, 0, -4.1])
    assert not prune.is_pruned(layer)


def test_pruning_twice_prunes_what_was_left():
    layer = nn.Linear(4, 4, bias=False)
    prune.random_unstructured(layer, "weight", 0.5)
    first = layer.weight_mask.clone()
    prune.l1_unstructured(layer, "weight", 0.5)
    assert float(first.sum()) == 8 and float(layer.weight_mask.sum()) == 4
    assert bool((layer.weight_mask <= first).all())
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and [type(m).__name__ for m in hook] == [
        "RandomUnstructured",
        "L1Unstructured",
    ]
    with pytest.raises(ValueError, match="amount=9 should be smaller than the number of parameters to prune=4"):
        prune.l1_unstructured(layer, "weight", 9)
    assert len(hook) == 2 and float(layer.weight_mask.sum()) == 4  # a refused call changes nothing


def test_structured_pruning_removes_whole_channels():
    layer = nn.Conv2d(2, 4, 3)
    layer.weight.data = mt.arange(72.0).reshape(4, 2, 3, 3)
    prune.ln_structured(layer, "weight", 1, n=2, dim=0)
    assert layer.weight_mask.sum((1, 2, 3)).tolist() == [0, 18, 18, 18]
    prune.random_structured(layer, "weight", 1, dim=-1)
    assert sorted(layer.weight_mask.sum((0, 1, 2)).tolist()) == [0, 18, 18]
    assert float(layer.weight_mask[0].sum()) == 0


def test_a_container_refuses_methods_of_other_tensors():
    a, b = prune.L1Unstructured(1), prune.L1Unstructured(1)
    a._tensor_name, b._tensor_name = "weight", "bias"
    with pytest.raises(ValueError, match="Can only add pruning methods acting on the parameter named 'weight'"):
        prune.PruningContainer(a, b)
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        prune.PruningContainer(a).add_pruning_method(3)


# ---- the rest ----


def test_skip_init_draws_nothing():
    mt.manual_seed(3)
    expected = mt.rand(2).tolist()
    mt.manual_seed(3)
    layer = nn.utils.skip_init(nn.Linear, 2, 3, dtype=mt.float64)
    assert tuple(layer.weight.shape) == (3, 2) and layer.weight.dtype is mt.float64
    assert mt.rand(2).tolist() == expected
    assert nn.Linear(2, 3).weight.abs().sum().item() > 0  # only inside


def test_a_module_has_other_parameters_within_a_block():
    layer = nn.Linear(2, 1)
    own, given = layer.weight, {"weight": mt.ones(1, 2, requires_grad=True)}
    with nn.utils.stateless._reparametrize_module(layer, given):
        assert layer.weight is given["weight"]
        layer(mt.ones(1, 2)).backward()
    assert layer.weight is own and own.grad is None and given["weight"].grad.tolist() == [[1.0, 1.0]]
    with pytest.raises(RuntimeError, match="bias"), nn.utils.stateless._reparametrize_module(layer, given, strict=True):
        pass


def test_stateless_functional_call_announces_its_successor():
    layer = nn.Linear(2, 1)
    with pytest.warns(FutureWarning, match="func.functional_call"):
        out = nn.utils.stateless.functional_call(layer, {"weight": mt.ones(1, 2), "bias": mt.ones(1)}, mt.ones(1, 2))
    assert out.tolist() == [[3.0]]
    assert nn.utils.stateless._functional_call(layer, {"bias": mt.ones(1)}, mt.zeros(1, 2)).tolist() == [[1.0]]


def test_memory_formats_change_nothing():
    layer = nn.Conv2d(1, 1, 1)
    assert nn.utils.convert_conv2d_weight_memory_format(layer, mt.channels_last) is layer


def test_clipping_by_a_given_norm():
    p = nn.Parameter(mt.zeros(2))
    p.grad = mt.tensor([3.0, 4.0])
    nn.utils.clip_grads_with_norm_(p, 1.0, mt.tensor(10.0))
    assert p.grad.tolist() == pytest.approx([0.3, 0.4], rel=1e-5)


@pytest.mark.seed("PL01", "PL03")
def test_data_parallel_runs_its_module_and_names_it():
    layer = nn.Linear(2, 1)
    net = nn.DataParallel(layer)
    assert list(net.state_dict()) == ["module.weight", "module.bias"] and net.module is layer
    x = mt.ones(3, 2)
    assert net(x).tolist() == layer(x).tolist() == nn.parallel.data_parallel(layer, x, range(2)).tolist()
    assert net(input=x).tolist() == layer(x).tolist()
    one, two = nn.parallel.replicate(layer, [x.device] * 2)
    sum(nn.parallel.parallel_apply([one, two], [x, (x,)])).sum().backward()
    assert layer.weight.grad.tolist() == [[6, 6]] and one.bias is layer.bias and not list(two.parameters())
    with pytest.raises(ValueError, match="DistributedDataParallel: Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(layer)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("first", [True, False], ids=["batch first", "batch second"])
def test_the_gradient_of_each_sample_is_kept_beside_the_parameters(reduction, first):
    from mortice.nn.utils._per_sample_grad import call_for_per_sample_grads

    net = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 2))
    net[1].bias.requires_grad_(False)
    x, dim = mt.randn(3, 3, 4)[:, :2] if first else mt.randn(2, 3, 4), 0 if first else 1
    x.requires_grad_()
    out = call_for_per_sample_grads(net, loss_reduction=reduction, batch_first=first)(x)
    assert mt.allclose(out, net(x), atol=1e-6)
    loss = out.pow(2).sum() / (3 if reduction == "mean" else 1)
    loss.backward()
    (whole,) = mt.autograd.grad(net(x).pow(2).sum(), x)
    assert mt.allclose(x.grad * (3 if reduction == "mean" else 1), whole, atol=1e-5)
    for name, p in net.named_parameters():
        assert p.grad is None and hasattr(p, "grad_sample") == (name != "1.bias")
        if p.requires_grad:
            each = [mt.autograd.grad(net(s).pow(2).sum(), p)[0] for s in x.detach().unbind(dim)]
            assert mt.allclose(p.grad_sample, mt.stack(each), atol=1e-5)
    for given, text in [({}, "has a grad_sample"), ({"loss_reduction": "max"}, "sum or mean"), ({"batch_size": 0}, "None or positive")]:
        with pytest.raises(RuntimeError, match=text):
            call_for_per_sample_grads(net, **given)
    with pytest.raises(RuntimeError, match=r"tensors of one batch size; got \[2, 3\]"):
        call_for_per_sample_grads(nn.Bilinear(1, 1, 1))(mt.ones(2, 1), mt.ones(3, 1))
