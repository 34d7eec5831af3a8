"""Lazy modules: shapes come from the first input or from a state_dict. Beside PyTorch: test_nn_module_oracle.py."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import mortice as mt
from mortice import nn
from mortice.nn.lazy import LazyModuleMixin
from mortice.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy


def test_a_lazy_layer_becomes_an_ordinary_one_at_its_first_call():
    layer = nn.LazyLinear(3)
    assert repr(layer) == "LazyLinear(in_features=0, out_features=3, bias=True)" and layer.has_uninitialized_params()
    weight = layer.weight
    out = layer(mt.ones(2, 5))
    assert type(layer) is nn.Linear and layer.weight is weight and type(weight) is nn.Parameter
    assert layer.in_features == 5 and tuple(weight.shape) == (3, 5) and not layer._forward_pre_hooks
    assert mt.allclose(out, mt.ones(2, 5) @ weight.t() + layer.bias)
    assert 0 < weight.abs().max().item() <= 5**-0.5 and weight.std().item() > 0


def test_a_lazy_network_trains_with_an_optimiser_made_before_its_first_call():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
    optimiser = mt.optim.SGD(net.parameters(), lr=0.1)
    x, y = mt.randn(8, 2, 5, 5), mt.randn(8, 1)
    losses = []
    for _ in range(20):
        loss = (net(x) - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert [type(m).__name__ for m in net] == ["Conv2d", "BatchNorm2d", "ReLU", "Flatten", "Linear"]


def test_an_uninitialised_parameter_keeps_its_dtype_through_conversion_copy_and_pickle():
    layer = nn.LazyLinear(2).double()
    assert type(copy.copy(layer.weight)) is type(layer.weight) is mt.nn.UninitializedParameter
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert is_lazy(twin.weight) and twin.weight.dtype is mt.float64
        twin(mt.ones(1, 3, dtype=mt.float64))
        assert type(twin) is nn.Linear and twin.weight.dtype is mt.float64
    assert is_lazy(layer.weight)


@pytest.mark.parametrize("make", [nn.LazyLinear, lambda out: nn.LazyConv2d(out, 1), lambda out: nn.LazyBatchNorm2d()])
def test_a_lazy_layer_is_moved_before_its_first_call(make):
    layer = make(2).to(mt.get_default_device(), mt.float64)
    assert layer(mt.ones(2, 3, 4, 5, dtype=mt.float64)).dtype is mt.float64


USES = {
    "shape": lambda t: t.shape,
    "size": lambda t: t.size(),
    "arithmetic": lambda t: t + 1,
    "matmul": lambda t: mt.ones(2, 2) @ t,
    "detach": lambda t: t.detach(),
    "tolist": lambda t: t.tolist(),
    "fill": lambda t: nn.init.ones_(t),
    "norm": lambda t: nn.init.xavier_normal_(t),
    "share": lambda t: t.share_memory_(),
}


@pytest.mark.parametrize("use", USES)
def test_using_an_uninitialised_parameter_says_what_to_do(use):
    with pytest.raises(
        RuntimeError, match="its shape is not known yet. When using lazy modules, call `forward`"
    ) as error:
        USES[use](UninitializedParameter())
    assert isinstance(error.value, ValueError)


def test_a_shapeless_state_is_saved_and_loaded():
    lazy, done = nn.LazyLinear(2), nn.LazyLinear(2)
    done(mt.ones(1, 3))
    state = lazy.state_dict()
    assert is_lazy(state["weight"]) and list(state) == ["weight", "bias"]
    fresh = nn.LazyLinear(2)
    fresh.load_state_dict(state)
    assert fresh.has_uninitialized_params()
    fresh.load_state_dict(done.state_dict())
    assert fresh.weight.tolist() == done.weight.tolist() and type(fresh) is nn.LazyLinear
    assert fresh(mt.ones(1, 3)).tolist() == done(mt.ones(1, 3)).tolist() and type(fresh) is nn.Linear
    with pytest.raises(RuntimeError, match="shape is not known yet"):
        done.load_state_dict(nn.LazyLinear(2).state_dict())
    file = io.BytesIO()
    mt.save(state, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="UninitializedParameter"):
        mt.load(file)
    file.seek(0)
    assert all(map(is_lazy, mt.load(file, weights_only=False).values()))


def test_wrong_inputs_are_refused_before_anything_is_made():
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d"):
        nn.LazyConv2d(2, 3)(mt.ones(3, 3))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv1d(2, 3, groups=2)(mt.ones(1, 3, 8))
    norm = nn.LazyBatchNorm2d()
    with pytest.raises(ValueError, match=r"expected 4D input \(got 2D input\)"):
        norm(mt.ones(3, 3))
    assert norm.has_uninitialized_params()


def test_an_unbatched_instance_norm_counts_its_channels():
    norm = nn.LazyInstanceNorm1d()
    norm(mt.randn(4, 7))
    assert norm.num_features == 4


def test_a_module_of_ones_own_becomes_lazy_with_the_mixin():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.by = UninitializedParameter()
            self.register_buffer("seen", UninitializedBuffer())

        def forward(self, x):
            return x * self.by

    class LazyScale(LazyModuleMixin, Scale):
        cls_to_become = Scale
        forget = False

        def initialize_parameters(self, x):
            self.by.materialize(x.shape[-1:], dtype=mt.float64)
            nn.init.constant_(self.by, 2)
            if not self.forget:
                self.seen.materialize((1,))

    scale = LazyScale()
    assert scale(mt.ones(1, 2, dtype=mt.float64)).tolist() == [[2.0, 2.0]]
    assert type(scale) is Scale and type(scale.seen) is mt.Tensor and "seen" in scale._buffers
    forgetful = LazyScale()
    forgetful.forget = True
    with pytest.raises(RuntimeError, match="module LazyScale has not been fully initialized"):
        forgetful(mt.ones(1, 2, dtype=mt.float64))
    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Plain"):
        type("Plain", (LazyModuleMixin, nn.Module), {})()(1)
