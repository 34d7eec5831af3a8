"""The seed inventory, rows NN, IN, FN and LO: modules, initialisation, nn.functional, losses. One test a row."""

import math
from collections import OrderedDict

import pytest

import mortice as mt

nn = mt.nn
F = nn.functional


def _is_close(found, expected, tolerance=1e-5):
    return found.shape == expected.shape and (found - expected).abs().max().item() <= tolerance


# nn modules


class Net(nn.Module):
    """Two layers, a buffer and a scale."""

    def __init__(self):
        super().__init__()
        self.low = nn.Linear(2, 3)
        self.high = nn.Linear(3, 1)
        self.scale = nn.Parameter(mt.ones(1))

    def forward(self, x):
        return self.high(self.low(x).relu()) * self.scale


def test_NN01_layers_are_attributes():
    net = Net()
    assert net(mt.ones(4, 2)).shape == (4, 1)
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "low.weight", "low.bias", "high.weight", "high.bias"]
    assert list(net.children()) == [net.low, net.high]
    assert list(net.modules()) == [net, net.low, net.high]


def test_NN02_calling_runs_hooks_and_forward_alone_does_not():
    net, seen = nn.Linear(1, 1), []
    net.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    net.forward(mt.ones(2, 1))
    assert seen == []
    net(mt.ones(2, 1))
    assert seen == [(2, 1)]


def test_NN03_parameters_are_tracked_tensors_that_modules_register():
    parameter = nn.Parameter(mt.ones(2))
    assert isinstance(parameter, mt.Tensor) and parameter.requires_grad
    net = nn.Module()
    net.weight, net.plain = parameter, mt.ones(2)
    assert [p is parameter for p in net.parameters()] == [True]


def test_NN04_two_ways_to_the_parameters_of_a_layer():
    net = Net()
    assert list(net.parameters())[1] is net.low.weight
    assert net.low.weight.data.shape == (3, 2) and net.low.bias.data.shape == (3,)
    with pytest.raises(TypeError):
        net.parameters()[1]


def test_NN05_linear():
    layer = nn.Linear(3, 2)
    x = mt.rand(4, 5, 3)
    assert _is_close(layer(x), x @ layer.weight.t() + layer.bias)
    assert nn.Linear(3, 2, bias=False).bias is None
    with pytest.raises(RuntimeError, match=r"4(x|, )5.*3(x|, )2|4(x|, )5.*2(x|, )3"):
        layer(mt.rand(4, 5))


def test_NN06_conv2d_takes_its_arguments_in_order():
    conv = nn.Conv2d(4, 6, (3, 5), 2, (1, 2), 1, 2, False)
    assert conv.kernel_size == (3, 5) and conv.stride == (2, 2) and conv.padding == (1, 2)
    assert conv.dilation == (1, 1) and conv.groups == 2 and conv.bias is None
    assert conv.weight.shape == (6, 2, 3, 5)
    assert conv(mt.rand(1, 4, 8, 8)).shape == (1, 6, 4, 4)


def test_NN07_conv2d_sizes():
    x = mt.rand(1, 1, 3, 3)
    assert nn.Conv2d(1, 1, 3)(x).shape[2:] == (1, 1)
    assert nn.Conv2d(1, 1, 3, padding=1)(x).shape[2:] == (3, 3)
    x = mt.rand(1, 1, 12, 12)
    assert nn.Conv2d(1, 1, 3, 2)(x).shape[2:] == (5, 5)
    assert nn.Conv2d(1, 1, 3, 2, 1)(x).shape[2:] == (6, 6)


@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
def test_NN08_padding_by_half_the_kernel_keeps_the_size(kernel):
    assert nn.Conv2d(1, 1, kernel, padding=kernel // 2)(mt.rand(1, 1, 9, 9)).shape == (1, 1, 9, 9)


def test_NN09_conv_transpose2d_takes_its_arguments_in_order():
    conv = nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, False, 2)
    assert (conv.stride, conv.padding, conv.output_padding, conv.dilation) == ((2, 2), (1, 1), (1, 1), (2, 2))
    assert conv.groups == 2 and conv.bias is None and conv.weight.shape == (4, 3, 3, 3)


def test_NN10_conv_transpose2d_sizes():
    x = mt.rand(1, 1, 12, 12)
    assert nn.ConvTranspose2d(1, 1, 3, 2)(x).shape[2:] == (25, 25)
    assert nn.ConvTranspose2d(1, 1, 3, 2, 1)(x).shape[2:] == (23, 23)


def test_NN11_output_size_undoes_a_strided_conv():
    x = mt.rand(1, 1, 12, 12)
    small = nn.Conv2d(1, 1, 3, 2, 1)(x)
    up = nn.ConvTranspose2d(1, 1, 3, 2, 1)
    assert up(small).shape[2:] == (11, 11)
    assert up(small, output_size=x.size()).shape == x.shape
    with pytest.raises(ValueError):
        up(small, output_size=(14, 14))


def test_NN12_conv_transpose2d_is_the_gradient_of_conv2d():
    x, w = mt.rand(1, 2, 5, 5, requires_grad=True), mt.rand(3, 2, 3, 3)
    out = F.conv2d(x, w)
    v = mt.rand(out.shape)
    out.backward(v)
    assert _is_close(F.conv_transpose2d(v, w), x.grad)


def test_NN13_size_rules():
    x = mt.rand(1, 1, 8, 8)
    conv, up = nn.Conv2d, nn.ConvTranspose2d
    sizes = [(conv, (3, 1, 1), 8), (up, (3, 1, 1), 8), (conv, (4, 2, 1), 4), (up, (4, 2, 1), 16), (conv, (4, 2, 0), 3),
             (up, (4, 2, 0), 18), (conv, (3, 2, 1), 4)]  # fmt: skip
    assert [kind(1, 1, *settings)(x).shape[-1] for kind, settings, _ in sizes] == [n for _, _, n in sizes]


def test_NN14_groups_are_blocks():
    conv = nn.Conv2d(4, 2, 1, groups=2, bias=False)
    x = mt.zeros(1, 4, 1, 1)
    x[0, 0] = 1
    assert conv(x)[0, 0].item() == conv.weight[0, 0].item() and conv(x)[0, 1].item() == 0
    for channels in ((3, 4), (4, 3)):
        with pytest.raises(ValueError, match="divisible"):
            nn.Conv2d(*channels, 1, groups=2)


def test_NN15_relu_in_place():
    x = mt.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="leaf"):
        nn.ReLU(inplace=True)(mt.ones(1, requires_grad=True))
    y = mt.ones(2, requires_grad=True).exp()
    z = y * 1
    nn.ReLU(inplace=True)(y)
    with pytest.raises(RuntimeError, match="inplace"):
        z.sum().backward()


def test_NN16_leaky_relu():
    x = mt.tensor([-1.0, 2.0])
    assert _is_close(nn.LeakyReLU()(x), mt.tensor([-0.01, 2]))
    assert nn.LeakyReLU(0.2, inplace=True)(x) is x
    assert _is_close(x, mt.tensor([-0.2, 2]))


def test_NN17_sigmoid_and_tanh_modules():
    x = mt.randn(5)
    assert _is_close(nn.Sigmoid()(x), x.sigmoid()) and _is_close(nn.Tanh()(x), x.tanh())


def test_NN18_batch_norm():
    norm = nn.BatchNorm2d(3)
    assert norm.weight.tolist() == [1] * 3 and norm.bias.tolist() == [0] * 3
    x = mt.randn(4, 3, 5, 5) * 3 + 2
    y = norm(x)
    assert _is_close(y.mean((0, 2, 3)), mt.zeros(3)) and _is_close(y.var((0, 2, 3), unbiased=False), mt.ones(3), 1e-4)
    assert _is_close(norm.running_mean, 0.1 * x.mean((0, 2, 3)))
    assert _is_close(norm.running_var, 0.9 + 0.1 * x.var((0, 2, 3)), 1e-4)
    assert norm.num_batches_tracked.item() == 1
    mean, var = norm.running_mean[:, None, None], norm.running_var[:, None, None]
    assert _is_close(norm.eval()(x), (x - mean) / (var + 1e-5).sqrt(), 1e-4)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm.train()(mt.rand(1, 3, 1, 1))


def test_NN19_sequential():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert net(mt.ones(4, 2)).shape == (4, 1)
    assert len(net) == 3 and isinstance(net[1], nn.ReLU) and net[-1] is net[2]
    assert isinstance(net[:2], nn.Sequential) and list(net[:2]) == list(net)[:2]
    with pytest.raises(TypeError):
        nn.Sequential(3)


def test_NN20_sequential_of_named_modules():
    net = nn.Sequential(OrderedDict([("conv1", nn.Conv2d(1, 2, 3)), ("relu1", nn.ReLU())]))
    assert isinstance(net.conv1, nn.Conv2d)
    assert list(net.state_dict()) == ["conv1.weight", "conv1.bias"]


def test_NN21_apply_visits_children_first():
    net, seen = Net(), []
    assert net.apply(seen.append) is net
    assert seen == [net.low, net.high, net]


@pytest.mark.seed("TR02")
def test_NN22_train_and_eval_reach_every_module():
    net = nn.Sequential(nn.Sequential(nn.Dropout()))
    assert net.training and net.eval() is net
    assert not net[0][0].training
    assert net.train() is net and net[0][0].training
    with mt.no_grad():
        assert net.training and net.eval()(mt.ones(2)).tolist() == [1, 1]
    assert net(mt.ones(2, requires_grad=True)).requires_grad


def test_NN23_dropout_scales_what_it_keeps():
    layer = nn.Dropout(0.25)
    y = layer(mt.ones(4000))
    kept = y[y != 0]
    assert _is_close(kept, mt.full_like(kept, 1 / 0.75))
    assert abs(kept.numel() / 4000 - 0.75) < 0.05
    assert layer.eval()(mt.ones(3)).tolist() == [1, 1, 1]
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError):
            nn.Dropout(p)


def test_NN24_images_are_batch_channels_height_width():
    conv, image = nn.Conv2d(3, 2, 3), mt.rand(3, 8, 8)
    assert conv(image.unsqueeze(0)).shape == (1, 2, 6, 6)
    assert conv(image).shape == (2, 6, 6)
    with pytest.raises(RuntimeError, match="3 channels.*4 channels"):
        conv(mt.rand(1, 4, 8, 8))
    with pytest.raises(ValueError, match="4D"):
        nn.BatchNorm2d(3)(image)


@pytest.mark.seed("CU02")
def test_NN25_input_smaller_than_the_kernel():
    text = r"(?s)Calculated padded input size per channel: \(2 x 2\).*Kernel size: \(4 x 4\).*can't be greater than actual input"
    with pytest.raises(RuntimeError, match=text):
        nn.Conv2d(1, 1, 4)(mt.rand(1, 1, 2, 2))


@pytest.mark.seed("PR05")
def test_NN26_print_shows_names_and_settings():
    assert str(Net()) == (
        "Net(\n  (low): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (high): Linear(in_features=3, out_features=1, bias=True)\n)"
    )
    assert repr(nn.Conv2d(3, 8, 4, 2, 1, bias=False)) == (
        "Conv2d(3, 8, kernel_size=(4, 4), stride=(2, 2), padding=(1, 1), bias=False)"
    )
    assert repr(nn.BatchNorm2d(4)).startswith("BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True")
    assert repr(nn.LeakyReLU(0.2, inplace=True)) == "LeakyReLU(negative_slope=0.2, inplace=True)"


def test_NN27_upsample_goes_up_and_down():
    up = nn.Upsample(size=16, mode="bilinear")
    assert up(mt.rand(1, 3, 8, 8)).shape == up(mt.rand(1, 3, 32, 32)).shape == (1, 3, 16, 16)


def test_NN28_a_composite_module_initialises_its_own_conv():
    class PartialConv(nn.Module):
        def __init__(self, *settings):
            super().__init__()
            self.conv = nn.Conv2d(*settings)
            self.conv.apply(_weights_init("kaiming"))

        def forward(self, x):
            return self.conv(x)

    layer = PartialConv(3, 4, 3, 1, 1, 1, 1, True)
    assert layer(mt.rand(2, 3, 5, 5)).shape == (2, 4, 5, 5)
    assert layer.conv.bias.tolist() == [0] * 4


@pytest.mark.seed("RN08")
def test_NN29_a_custom_lstm_cell():
    class Cell(nn.Module):
        def __init__(self, inputs, hidden):
            super().__init__()
            self.w_ih, self.w_hh = (
                nn.Parameter(mt.randn(4 * hidden, inputs)),
                nn.Parameter(mt.randn(4 * hidden, hidden)),
            )
            self.b = nn.Parameter(mt.randn(4 * hidden))

        def forward(self, x, state):
            h, c = state
            i, f, g, o = (x.mm(self.w_ih.t()) + h.mm(self.w_hh.t()) + self.b).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            return o.sigmoid() * c.tanh(), c

    cell, x, state = Cell(2, 3), mt.randn(4, 2), (mt.randn(4, 3), mt.randn(4, 3))
    h, c = cell(x, state)
    assert h.shape == c.shape == (4, 3)
    h.sum().backward()
    assert all(p.grad is not None for p in cell.parameters())
    if hasattr(nn, "LSTMCell"):
        reference = nn.LSTMCell(2, 3)
        weights = {"weight_ih": cell.w_ih, "weight_hh": cell.w_hh, "bias_ih": cell.b, "bias_hh": mt.zeros(12)}
        reference.load_state_dict({name: w.detach() for name, w in weights.items()})
        assert all(_is_close(a, b) for a, b in zip(reference(x, state), (h, c), strict=True))


def test_NN30_softmax_modules():
    x = mt.randn(2, 3)
    assert _is_close(nn.Softmax(dim=1)(x).sum(1), mt.ones(2))
    assert _is_close(nn.LogSoftmax(dim=1)(x), nn.Softmax(dim=1)(x).log())


@pytest.mark.seed("TR05")
def test_NN31_a_bias_before_batch_norm_has_no_effect():
    conv, norm, x = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), mt.rand(4, 1, 6, 6)
    before = norm(conv(x))
    with mt.no_grad():
        conv.bias += 5
    after = norm(conv(x))
    assert _is_close(before, after, 1e-4)
    (after * mt.rand(after.shape)).sum().backward()
    assert conv.bias.grad.abs().max().item() < 1e-3


def test_NN32_hooks_may_replace_values_and_can_be_removed():
    net, x = nn.Linear(1, 1, bias=False), mt.ones(1, 1, requires_grad=True)
    nn.init.constant_(net.weight, 2)
    handles = [
        net.register_forward_pre_hook(lambda module, args: (args[0] * 10,)),
        net.register_forward_hook(lambda module, args, out: out + 1),
        net.register_full_backward_hook(lambda module, grad_in, grad_out: (grad_in[0] * 100,)),
    ]
    out = net(x)
    assert out.item() == 21
    out.backward()
    assert x.grad.item() == 2 * 10 * 100
    for handle in handles:
        handle.remove()
    assert net(x).item() == 2


def test_NN33_super_with_two_arguments_and_forgetting_it():
    class Generator(nn.Module):
        def __init__(self):
            super(Generator, self).__init__()  # noqa: UP008
            self.main = nn.Linear(1, 1)

    class Forgetful(nn.Module):
        def __init__(self):
            self.main = nn.Linear(1, 1)

    assert len(list(Generator().parameters())) == 2
    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Forgetful()


def test_NN34_kernel_sizes_follow_the_rules_in_words():
    for n in (7, 8, 12):
        for k, s, p in ((3, 1, 0), (4, 2, 1), (5, 3, 2)):
            assert nn.Conv2d(1, 1, k, s, p)(mt.rand(1, 1, n, n)).shape[-1] == (n + 2 * p - k) // s + 1
            assert nn.ConvTranspose2d(1, 1, k, s, p)(mt.rand(1, 1, n, n)).shape[-1] == (n - 1) * s - 2 * p + k


# nn.init


def _weights_init(kind="gaussian"):
    def init(m):
        name = m.__class__.__name__
        if name.startswith(("Conv", "Linear")) and hasattr(m, "weight"):
            if kind == "gaussian":
                nn.init.normal_(m.weight, 0.0, 0.02)
            elif kind == "xavier":
                nn.init.xavier_normal_(m.weight, gain=math.sqrt(2))
            elif kind == "kaiming":
                nn.init.kaiming_normal_(m.weight, a=0, mode="fan_in")
            elif kind == "orthogonal":
                nn.init.orthogonal_(m.weight, gain=math.sqrt(2))
            else:
                assert kind == "default", f"Unsupported initialization: {kind}"
            if getattr(m, "bias", None) is not None:
                nn.init.constant_(m.bias, 0.0)

    return init


def test_IN01_normal_is_in_place_and_outside_the_graph():
    w = nn.Parameter(mt.empty(100, 100))
    assert nn.init.normal_(w, mean=1.0, std=2.0) is w
    assert w.is_leaf and w.requires_grad and w.grad_fn is None
    assert abs(w.mean().item() - 1) < 0.1 and abs(w.std().item() - 2) < 0.1


def test_IN02_xavier_normal():
    w = nn.init.xavier_normal_(mt.empty(200, 100), gain=math.sqrt(2))
    assert w.std().item() == pytest.approx(math.sqrt(2) * math.sqrt(2 / 300), rel=0.05)


def test_IN03_kaiming_normal():
    w = nn.init.kaiming_normal_(mt.empty(200, 100), a=0, mode="fan_in")
    assert w.std().item() == pytest.approx(math.sqrt(2 / 100), rel=0.05)
    w = nn.init.kaiming_normal_(mt.empty(200, 100), a=1, mode="fan_out")
    assert w.std().item() == pytest.approx(math.sqrt(1 / 200), rel=0.05)


def test_IN04_orthogonal():
    w = nn.init.orthogonal_(mt.empty(3, 5), gain=2)
    assert _is_close(w @ w.t(), 4 * mt.eye(3))
    w = nn.init.orthogonal_(mt.empty(5, 3))
    assert _is_close(w.t() @ w, mt.eye(3))
    w = nn.init.orthogonal_(mt.empty(4, 2, 3, 3)).flatten(1)
    assert _is_close(w @ w.t(), mt.eye(4))


def test_IN05_constant():
    b = mt.empty(3)
    assert nn.init.constant_(b, 0.0) is b and b.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["gaussian", "xavier", "kaiming", "orthogonal", "default"])
def test_IN06_weights_init_factory(kind):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 1))
    net.apply(_weights_init(kind))
    assert net[0].bias.tolist() == [0, 0] and net[3].bias.tolist() == [0]
    with pytest.raises(AssertionError, match="Unsupported initialization"):
        net.apply(_weights_init("unknown"))


def test_IN07_names_match_transposed_convs_and_xavier_refuses_a_bias():
    found = []
    net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ConvTranspose2d(1, 1, 1), nn.ReLU())
    net.apply(lambda m: found.append(m.__class__.__name__) if m.__class__.__name__.find("Conv") != -1 else None)
    assert found == ["Conv2d", "ConvTranspose2d"]
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_normal_(net[0].bias.data)


@pytest.mark.seed("GN03")
def test_IN08_dcgan_weights_init():
    def init(m):
        name = m.__class__.__name__
        if name.find("Conv") != -1:
            m.weight.data.normal_(0.0, 0.02)
        elif name.find("BatchNorm") != -1:
            m.weight.data.normal_(1.0, 0.02)
            m.bias.data.fill_(0)

    net = nn.Sequential(nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32))
    net.apply(init)
    assert net[0].weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert net[1].weight.mean().item() == pytest.approx(1, abs=0.05) and net[1].weight.std().item() < 0.05
    assert net[1].bias.tolist() == [0] * 32


def test_IN09_isinstance_based_init():
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ConvTranspose2d(2, 1, 1))
    net.apply(lambda m: nn.init.constant_(m.weight, 3) if isinstance(m, nn.Conv2d) else None)
    assert net[0].weight.flatten().tolist() == [3, 3]
    assert net[1].weight.flatten().tolist() != [3, 3]


def test_IN10_data_has_random_and_fill_methods():
    layer = nn.Linear(50, 50)
    layer.weight.data.normal_(0, 0.02)
    layer.bias.data.fill_(7)
    assert layer.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert layer.bias.tolist() == [7] * 50 and layer.bias.grad_fn is None
    layer(mt.ones(1, 50)).sum().backward()


@pytest.mark.seed("TR14")
def test_IN11_zero_weights_do_not_learn_and_others_exist():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    for p in net.parameters():
        nn.init.zeros_(p)
    net(mt.ones(4, 2)).sum().backward()
    assert all(p.grad.abs().max().item() == 0 for p in net[0].parameters())
    w = nn.init.trunc_normal_(mt.empty(1000), std=1.0, a=-1.0, b=1.0)
    assert w.abs().max().item() <= 1 and w.std().item() > 0.3
    w = nn.init.xavier_uniform_(mt.empty(20, 30))
    assert 0 < w.abs().max().item() <= math.sqrt(6 / 50)


def test_IN12_the_old_name_of_xavier_warns_or_is_absent():
    if hasattr(nn.init, "xavier_normal"):
        with pytest.warns(FutureWarning):
            nn.init.xavier_normal(mt.empty(2, 2))
    assert not hasattr(nn.init, "xavier")


# nn.functional


def test_FN01_interpolate():
    x = mt.arange(4.0).reshape(1, 1, 2, 2)
    assert F.interpolate(x, scale_factor=2)[0, 0].tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    corners = F.interpolate(x, size=3, mode="bilinear", align_corners=True)
    assert corners[0, 0].tolist() == [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]]
    assert F.interpolate(x, size=(1, 2), mode="bilinear", align_corners=False)[0, 0].tolist() == [[1, 2]]
    for bad in ({}, {"size": 3, "scale_factor": 2}, {"size": 3, "align_corners": True}, {"size": (2, 2, 2)}):
        with pytest.raises(ValueError):
            F.interpolate(x, **bad)


def test_FN02_upsample_is_a_deprecated_name():
    x = mt.rand(1, 1, 2, 2)
    with pytest.warns(UserWarning, match="interpolate"):
        found = F.upsample(x, scale_factor=2)
    assert mt.equal(found, F.interpolate(x, scale_factor=2))


def test_FN03_resizing_stays_in_the_graph():
    x = mt.rand(1, 1, 2, 2, requires_grad=True)
    nn.Upsample(scale_factor=2)(F.interpolate(x, size=4, mode="bilinear")).sum().backward()
    assert x.grad.sum().item() == pytest.approx(64)


@pytest.mark.seed("TR10")
def test_FN04_softmax_sums_to_1_along_its_dim():
    x = mt.randn(3, 4)
    assert _is_close(F.softmax(x, dim=1).sum(1), mt.ones(3))
    assert _is_close(F.softmax(x, dim=0).sum(0), mt.ones(4))


@pytest.mark.seed("TR11")
def test_FN05_relu_before_softmax_caps_confidence():
    x = mt.tensor([[3.0, -5.0, -5.0]])
    assert F.softmax(F.relu(x), dim=1)[0, 0].item() < F.softmax(x, dim=1)[0, 0].item()


def test_FN06_log_softmax_is_stable():
    assert F.log_softmax(mt.tensor([1000.0, 0.0]), dim=0).tolist() == [0, -1000]


def test_FN07_softmax_without_dim_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        F.softmax(mt.rand(2, 3))


# Losses


def test_LO01_log_softmax_with_nll_is_cross_entropy():
    logits, target = mt.randn(4, 3), mt.tensor([0, 2, 1, 1])
    assert _is_close(nn.NLLLoss()(nn.LogSoftmax(dim=1)(logits), target), nn.CrossEntropyLoss()(logits, target))


@pytest.mark.seed("TR04")
def test_LO02_softmax_before_cross_entropy_cannot_get_low():
    probabilities = nn.Softmax(dim=1)(mt.tensor([[100.0, 0.0, 0.0]]))
    loss = nn.CrossEntropyLoss()(probabilities, mt.tensor([0]))
    assert loss.item() == pytest.approx(math.log(1 + 2 * math.exp(-1)), abs=1e-5)


def test_LO03_sigmoid_with_bce():
    logits, target = mt.randn(5), mt.tensor([0.0, 1.0, 1.0, 0.0, 1.0])
    assert _is_close(nn.BCELoss()(logits.sigmoid(), target), nn.BCEWithLogitsLoss()(logits, target))
    assert nn.BCELoss()(mt.zeros(1), mt.ones(1)).item() == 100
    with pytest.raises(RuntimeError):
        nn.BCELoss()(mt.full((1,), 1.5), mt.ones(1))


@pytest.mark.seed("TR16")
def test_LO04_nll_of_probabilities_is_negative():
    loss = nn.NLLLoss()(F.softmax(mt.randn(4, 3), dim=1), mt.tensor([0, 1, 2, 0]))
    assert loss.item() < 0


def test_LO05_multi_label_losses():
    logits, target = mt.randn(2, 3), mt.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    assert _is_close(nn.BCEWithLogitsLoss()(logits, target), nn.MultiLabelSoftMarginLoss()(logits, target))
    x = mt.tensor([[0.1, 0.2, 0.4, 0.8]])
    assert nn.MultiLabelMarginLoss()(x, mt.tensor([[3, 0, -1, 1]])).item() == pytest.approx(0.85)


def test_LO06_bce_targets_are_floats_of_the_same_shape():
    with pytest.raises(ValueError):
        nn.BCELoss()(mt.rand(4), mt.ones(4, 1))
    with pytest.raises(RuntimeError):
        nn.BCELoss()(mt.rand(4), mt.ones(4, dtype=mt.int64))


def test_LO07_labels_of_a_gan_are_floats():
    assert mt.full((2,), 1).dtype is mt.int64
    label = mt.full((2,), 1.0)
    assert nn.BCELoss()(mt.full((2,), 0.5), label).item() == pytest.approx(math.log(2))


def test_LO08_cross_entropy_takes_logits_and_class_numbers():
    logits = mt.randn(2, 3, 4, requires_grad=True)
    target = mt.tensor([[0, 1, 2, 1], [2, 2, -100, 0]])
    loss = nn.CrossEntropyLoss()(logits, target)
    picked = [F.log_softmax(logits, 1)[n, c, i] for n in range(2) for i, c in enumerate(target[n].tolist()) if c >= 0]
    assert loss.item() == pytest.approx(-sum(p.item() for p in picked) / 7, abs=1e-5)
    loss.backward()
    assert logits.grad[1, :, 2].tolist() == [0, 0, 0]
    with pytest.raises(IndexError):
        nn.CrossEntropyLoss()(mt.randn(2, 3), mt.tensor([0, 3]))


def test_LO09_reductions():
    x, y = mt.tensor([1.0, 4.0]), mt.tensor([0.0, 2.0])
    assert nn.MSELoss(reduction="none")(x, y).tolist() == [1, 4]
    assert nn.MSELoss(reduction="sum")(x, y).item() == 5 and nn.MSELoss()(x, y).item() == 2.5


def test_LO10_weight_makes_a_weighted_mean():
    logits, target, weight = mt.randn(3, 2), mt.tensor([0, 1, 1]), mt.tensor([1.0, 3.0])
    each = nn.CrossEntropyLoss(reduction="none")(logits, target)
    expected = (each * weight[target]).sum() / 7
    assert _is_close(nn.CrossEntropyLoss(weight=weight)(logits, target), expected)
