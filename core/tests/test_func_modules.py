"""Modules as functions of their parameters: functional_call, stacked models, and functorch's ways to take a state apart."""

from __future__ import annotations

import pytest

import mortice as mt
from mortice import nn
from mortice.func import functional_call, stack_module_state


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(1, 1)
        self.tied_bias = self.l1.bias
        self.register_buffer("buffer", mt.ones(1))
        self.register_buffer("tied_buffer", self.buffer)

    def forward(self, x):
        return self.l1(x) + self.tied_bias + self.buffer + self.tied_buffer


def test_functional_call_gives_one_value_to_all_names_of_a_tensor():
    module, x = Tied(), mt.tensor([[3.0]])
    values = {"l1.weight": mt.tensor([[2.0]]), "l1.bias": mt.tensor([5.0]), "buffer": mt.tensor([7.0])}
    before = {name: t for name, t in module.state_dict(keep_vars=True).items()}
    assert functional_call(module, values, x, strict=True).item() == 6 + 5 + 5 + 7 + 7
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'tied_bias', 'tied_buffer'"):
        functional_call(module, values, x, tie_weights=False, strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'more'"):
        functional_call(module, {**values, "more": mt.ones(1)}, x, strict=True)
    with pytest.raises(ValueError, match=r"multiple values for keys \['l1.bias', 'tied_bias'\]"):
        functional_call(module, {**values, "tied_bias": mt.zeros(1)}, x)
    assert functional_call(module, {**values, "tied_bias": mt.zeros(1)}, x, tie_weights=False).item() == 6 + 5 + 0 + 7 + 1
    with pytest.raises(ValueError, match=r"\['l1.bias'\] appeared in multiple dictionaries"):
        functional_call(module, (values, {"l1.bias": mt.zeros(1)}), x)
    assert all(module.get_parameter(n) is before[n] for n in ("l1.weight", "tied_bias")) and module.buffer is before["buffer"]


def test_functional_call_takes_other_attributes_and_gives_back_what_is_set_anew():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.name = mt.ones(1), "plain"
            self.register_buffer("count", mt.zeros(1))

        def forward(self, x):
            self.count = self.count + 1
            return x * self.scale + getattr(self, "extra", 0), tuple(self.parameters())

    module = Counter()
    given = {"scale": mt.tensor([3.0]), "count": mt.tensor([5.0]), "extra": nn.Parameter(mt.tensor([1.0]))}
    out, parameters = functional_call(module, given, mt.tensor([2.0]))
    assert out.item() == 7 and parameters == (given["extra"],) and given["count"].item() == 6
    assert module.scale.item() == 1 and module.count.item() == 0 and not hasattr(module, "extra") and not module._parameters
    for wrong in ({"name": mt.ones(1)}, {"scale": 3.0}):
        with pytest.raises(TypeError, match="is not an instance of mortice.Tensor"):
            functional_call(module, wrong, mt.ones(1))
    with pytest.raises(AttributeError):
        functional_call(module, {"none.weight": mt.ones(1)}, mt.ones(1))
    assert module.name == "plain" and module.scale.item() == 1


def test_functional_call_of_a_module_in_a_circle():
    module = Tied()
    module.l1.whole = module
    assert functional_call(module, {"l1.whole.l1.weight": mt.zeros(1, 1)}, mt.ones(1, 1), tie_weights=False).shape == (1, 1)


def test_models_to_be_stacked_agree_in_mode_and_in_what_is_trained() -> None:
    models = [nn.Linear(2, 2) for _ in range(2)]
    models[1].eval()
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        stack_module_state(models)
    models[0].eval()
    models[0].bias.requires_grad_(False)
    with pytest.raises(RuntimeError, match="bias from each model to have the same .requires_grad"):
        stack_module_state(models)
    with pytest.raises(RuntimeError, match=r"stack: .*\[3, 2\]"):
        stack_module_state([nn.Linear(2, 2), nn.Linear(2, 3)])


def test_functorch_takes_a_module_s_state_apart():
    from mortice import functorch

    model = mt.nn.Sequential(mt.nn.Linear(2, 2), mt.nn.BatchNorm1d(2))
    for p in model.parameters():
        mt.nn.init.ones_(p)
    x = mt.tensor([[1.0, 2.0], [3.0, 5.0]])
    f, params = functorch.make_functional(model[0])
    assert f(params, x).tolist() == [[4.0, 4.0], [9.0, 9.0]]
    assert f((params[0] * 2, params[1]), x).tolist() == [[7.0, 7.0], [17.0, 17.0]]
    assert params[0] is not model[0].weight and params[0].requires_grad
    assert not functorch.make_functional(model[0], disable_autograd_tracking=True)[1][0].requires_grad
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        functorch.make_functional(model)
    with pytest.raises(ValueError, match="zip"):
        f(params[:1], x)
    f, params, buffers = functorch.make_functional_with_buffers(model)
    f(params, buffers, x)
    assert buffers[2].item() == 1 and model[1].num_batches_tracked.item() == 0
    f, params, buffers = functorch.combine_state_for_ensemble([model, model, model])
    f.eval()
    assert params[0].shape == (3, 2, 2) and not params[0].requires_grad and buffers[2].shape == (3,)
    assert functorch.vmap(f, (0, 0, None))(params, buffers, x).shape == (3, 2, 2)
