"""The founding notes on spectral_norm: it wraps a layer, iterates in training alone, and keeps a discriminator 1-Lipschitz."""

from __future__ import annotations

import pytest

import mortice as mt
from mortice import nn
from mortice.nn.utils import spectral_norm


def largest(weight, dim=0):
    """Return the largest singular value of a weight as a matrix whose rows are a dim."""
    return mt.linalg.svdvals(weight.detach().transpose(0, dim).flatten(1))[0].item()


def discriminator(wrap=lambda layer: layer):
    return nn.Sequential(
        wrap(nn.Conv2d(1, 4, 4, 2, 1, bias=False)), nn.LeakyReLU(0.2),
        wrap(nn.Conv2d(4, 8, 4, 2, 1, bias=False)), nn.LeakyReLU(0.2), nn.Flatten(), wrap(nn.Linear(32, 1)),
    )  # fmt: skip


def test_SN01_SN02_it_wraps_a_layer_inside_a_sequential():
    layer = nn.Conv2d(1, 2, 3)
    net = nn.Sequential(spectral_norm(layer), nn.LeakyReLU(0.2))
    assert net[0] is layer and spectral_norm is mt.nn.utils.spectral_norm
    assert net(mt.rand(2, 1, 5, 5)).shape == (2, 2, 3, 3)


def test_SN03_training_iterates_and_evaluation_does_not():
    mt.manual_seed(0)
    layer = spectral_norm(nn.Linear(6, 5))
    u = layer.weight_u.clone()
    layer(mt.ones(1, 6))
    assert not mt.equal(layer.weight_u, u)
    sigma = mt.dot(layer.weight_u, layer.weight_orig.detach() @ layer.weight_v)
    assert mt.allclose(layer.weight, layer.weight_orig / sigma)
    u = layer.eval().weight_u.clone()
    layer(mt.ones(1, 6))
    assert mt.equal(layer.weight_u, u)
    assert {name for name, _ in layer.named_buffers()} == {"weight_u", "weight_v"}
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks on the same parameter weight"):
        spectral_norm(layer)


def test_SN03_a_transposed_convolution_counts_its_outputs():
    layer = spectral_norm(nn.ConvTranspose2d(3, 5, 2), n_power_iterations=60)
    assert layer.weight_u.shape == (5,)
    layer(mt.rand(1, 3, 2, 2))
    assert largest(layer.weight, dim=1) == pytest.approx(1, abs=1e-3)


def test_SN03_the_state_dict_comes_back():
    one, other = spectral_norm(nn.Linear(3, 2)), spectral_norm(nn.Linear(3, 2))
    x = mt.rand(4, 3)
    one(x)
    other.load_state_dict(one.state_dict())
    assert mt.equal(one.eval()(x), other.eval()(x))


@pytest.mark.seed("GN09")
def test_SN04_a_wrapped_network_trains_and_stretches_nothing():
    mt.manual_seed(0)
    net = discriminator(lambda layer: spectral_norm(layer, n_power_iterations=3))
    step = mt.optim.SGD(net.parameters(), lr=0.1)
    x = mt.randn(16, 1, 8, 8)
    y = (x.mean((1, 2, 3)) > 0).float().unsqueeze(1)
    losses = []
    for _ in range(40):
        step.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert net[0].weight_orig.grad.abs().max() > 0 and losses[-1] < losses[0]
    for _ in range(30):  # its steps follow a weight that has stopped moving
        net(x)
    assert [largest(net[i].weight) for i in (0, 2, 5)] == pytest.approx([1, 1, 1], abs=1e-2)
    # A wrapped linear layer is 1-Lipschitz; a convolution is as a matrix, and overlaps kernels (4 x 4 at stride 2: 2 x 2).
    a, b = x, mt.randn(16, 1, 8, 8)
    assert ((net(a) - net(b)).abs().flatten() <= 2 * 2 * (a - b).flatten(1).norm(dim=1)).all()


@pytest.mark.seed("GN09")
def test_a_sure_discriminator_gives_no_gradient_and_a_wrapped_one_does():
    """The notes' loss of 0: a sigmoid that is sure has the slope 0."""
    slopes = []
    for wrap in (lambda layer: layer, lambda layer: spectral_norm(layer, n_power_iterations=5)):
        mt.manual_seed(1)
        net = discriminator()
        for p in net.parameters():
            p.data.mul_(30)
        net = nn.Sequential(*[wrap(m) if list(m.parameters()) else m for m in net])
        fake = mt.randn(8, 1, 8, 8, requires_grad=True)
        net(fake).sigmoid().sum().backward()
        slopes.append(fake.grad.abs().max(dim=3).values.amax((1, 2)).median().item())
    assert slopes[0] < 1e-6 < 1e-3 < slopes[1]
