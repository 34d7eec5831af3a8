"""The founding notes' GANs: DCGAN's two networks and its steps, fixed noise, WGAN's critic, D trained more often than G."""

from __future__ import annotations

import pytest

import mortice as mt
from mortice import nn

NZ, WIDTH = 10, 4


class Generator(nn.Module):
    """DCGAN's generator, 64 by 64, as the notes write it."""

    def __init__(self, ngpu=1, nz=NZ, ngf=WIDTH, nc=3):
        super(Generator, self).__init__()  # noqa: UP008
        self.ngpu = ngpu
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 8), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 8, ngf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    """DCGAN's discriminator, as the notes write it."""

    def __init__(self, ngpu=1, nc=3, ndf=WIDTH):
        super(Discriminator, self).__init__()  # noqa: UP008
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 4), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 4, ndf * 8, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 8), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        m.weight.data.normal_(0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        m.weight.data.normal_(1.0, 0.02)
        m.bias.data.fill_(0)


def pair():
    """Return a generator and a discriminator with DCGAN's first weights."""
    mt.manual_seed(0)
    return Generator().apply(weights_init), Discriminator().apply(weights_init)


def noise(n):
    return mt.randn(n, NZ, 1, 1)


def values(net):
    return [p.detach().clone() for p in net.parameters()]


def changed(net, before):
    return any(not mt.equal(p, q) for p, q in zip(net.parameters(), before))


def test_GN01_the_generator_doubles_its_pictures():
    net, sizes = Generator(), []
    for layer in net.main:
        if isinstance(layer, nn.ConvTranspose2d):
            layer.register_forward_hook(lambda m, args, out: sizes.append(tuple(out.shape[1:])))
    picture = net(noise(2))
    assert sizes == [(32, 4, 4), (16, 8, 8), (8, 16, 16), (4, 32, 32), (3, 64, 64)]
    assert picture.min() > -1 and picture.max() < 1


def test_GN02_the_discriminator_gives_a_probability_each():
    found = Discriminator()(mt.randn(5, 3, 64, 64))
    assert found.shape == (5,) and ((0 < found) & (found < 1)).all()


def test_GN03_apply_reaches_every_layer():
    net_g, net_d = pair()
    for net in (net_g, net_d):
        for m in net.modules():
            if "Conv" in type(m).__name__:
                assert 0.01 < m.weight.std().item() < 0.03
            elif isinstance(m, nn.BatchNorm2d):
                assert 0.8 < m.weight.min().item() and m.bias.tolist() == [0] * m.num_features


def test_GN04_GN05_the_two_steps_move_one_network_each():
    net_g, net_d = pair()
    criterion = nn.BCELoss()
    step_g = mt.optim.Adam(net_g.parameters(), lr=0.0002, betas=(0.5, 0.999))
    step_d = mt.optim.Adam(net_d.parameters(), lr=0.0002, betas=(0.5, 0.999))
    real, first = mt.rand(4, 3, 64, 64) * 2 - 1, values(net_g)

    net_d.zero_grad()
    label = mt.full((4,), 1.0)
    loss_real = criterion(net_d(real), label)
    loss_real.backward()
    fake = net_g(noise(4))
    label.fill_(0)
    loss_fake = criterion(net_d(fake.detach()), label)
    loss_fake.backward()
    assert all(p.grad is None for p in net_g.parameters())  # detached: nothing came this far
    before = values(net_d)
    step_d.step()
    assert changed(net_d, before) and not changed(net_g, first)

    net_g.zero_grad()
    label.fill_(1)
    loss_g = criterion(net_d(fake), label)  # a new forward pass, after the step
    loss_g.backward()
    before = values(net_d)
    step_g.step()
    assert changed(net_g, first) and not changed(net_d, before)
    assert all(p.grad is not None for p in net_d.parameters())  # which is why D's are cleared first


def test_GN05_without_detach_the_loss_of_D_reaches_G():
    net_g, net_d = pair()
    nn.BCELoss()(net_d(net_g(noise(2))), mt.zeros(2)).backward()
    assert all(p.grad is not None for p in net_g.parameters())


def test_GN06_fixed_noise_shows_the_same_pictures_grow(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pictures are written by Pillow")
    vutils = pytest.importorskip("mortice.vision.utils")
    net_g, _ = pair()
    fixed_noise = noise(9)
    paths = [tmp_path / f"fake_samples_epoch_{epoch:03}.png" for epoch in range(2)]
    for path in paths:
        net_g.eval()
        vutils.save_image(net_g(fixed_noise).detach(), path, normalize=True)
    assert paths[0].read_bytes() == paths[1].read_bytes()  # nothing was trained between
    with image.open(paths[0]) as grid:
        assert grid.size == (8 * 66 + 2, 2 * 66 + 2)


def test_GN07_G_trains_on_the_forward_pass_of_D_where_the_steps_come_last():
    net_g, net_d = pair()
    step_g, step_d = (mt.optim.SGD(net.parameters(), lr=0.1) for net in (net_g, net_d))
    score = net_d(net_g(noise(3)))
    loss_d, loss_g = nn.BCELoss()(score, mt.zeros(3)), nn.BCELoss()(score, mt.ones(3))
    before = values(net_g)
    step_d.zero_grad()
    loss_d.backward(retain_graph=True)
    kept = [p.grad.clone() for p in net_d.parameters()]
    step_g.zero_grad()
    loss_g.backward()
    for p, g in zip(net_d.parameters(), kept):
        p.grad = g  # without G's part
    step_d.step()
    step_g.step()
    assert changed(net_g, before)


def test_GN08_a_name_that_is_bound_again_overwrites_nothing():
    _, net_d = pair()
    real, criterion, label = mt.rand(2, 3, 64, 64), nn.BCELoss(), mt.full((2,), 1.0)
    output = net_d(real)
    loss_real = criterion(output, label)
    label = mt.full((2,), 0.0)
    output = net_d(real.flip(3))
    loss_fake = criterion(output, label)
    loss_real.backward()
    loss_fake.backward()
    assert all(p.grad is not None for p in net_d.parameters())


def test_GN09_a_sigmoid_that_is_sure_has_no_slope():
    logits = mt.tensor([-200.0, -30.0, 0.0], requires_grad=True)
    logits.sigmoid().sum().backward()
    assert logits.grad[0].item() == 0 and logits.grad[1].item() < 1e-12 and logits.grad[2].item() == 0.25


def test_GN10_a_critic_with_clipped_weights_learns_which_is_which():
    mt.manual_seed(0)
    critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
    step = mt.optim.RMSprop(critic.parameters(), lr=5e-3)
    apart = []
    for _ in range(50):
        real, fake = mt.randn(32, 2) + 2, mt.randn(32, 2) - 2
        step.zero_grad()
        loss = critic(fake).mean() - critic(real).mean()
        loss.backward()
        step.step()
        for p in critic.parameters():
            p.data.clamp_(-0.1, 0.1)
        apart.append(-loss.item())
    assert all(p.abs().max().item() <= 0.1 + 1e-7 for p in critic.parameters())
    assert apart[-1] > 0.3 and apart[-1] > apart[0] + 0.2
    assert critic(mt.full((1, 2), 2.0)).item() > critic(mt.full((1, 2), -2.0)).item()


def test_GN11_the_inner_loop_sees_fresh_batches_and_leaves_the_outer_one_alone():
    loader = mt.utils.data.DataLoader(mt.utils.data.TensorDataset(mt.arange(6.0)), batch_size=2)
    of_d, of_g = [], []
    for (img,) in loader:
        for i, (fresh,) in enumerate(loader):
            of_d.append(fresh.tolist())
            if i == 1:
                break
        of_g.append(img.tolist())
    assert of_g == [[0, 1], [2, 3], [4, 5]] and of_d == [[0, 1], [2, 3]] * 3
