"""The part mortice.ao.quantization: numbers rounded as int8 would be, observers, and models prepared to train so."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt
from mortice import nn
from mortice.ao import quantization as q


def test_numbers_are_rounded_and_gradients_pass_where_nothing_was_cut_off() -> None:
    x = mt.tensor([-1.0, 0.26, 0.5, 9.0], requires_grad=True)
    out = mt.fake_quantize_per_tensor_affine(x, 0.25, 2, 0, 15)
    assert out.tolist() == [-0.5, 0.25, 0.5, 3.25]
    out.backward(mt.tensor([1.0, 2.0, 3.0, 4.0]))
    assert x.grad.tolist() == [0, 2, 3, 0]
    rows = mt.fake_quantize_per_channel_affine(mt.tensor([[0.3, 9], [0.3, 9]]), mt.tensor([0.5, 1]), mt.zeros(2, dtype=mt.int32), 0, 0, 7)
    assert rows.tolist() == [[0.5, 3.5], [0, 7]] and mt.per_channel_affine is q.observer.per_channel_affine


@pytest.mark.parametrize("call, error, text", [
    (lambda x: mt.fake_quantize_per_tensor_affine(x, 1.0, 9, 0, 7), RuntimeError, "`zero_point` must be between"),
    (lambda x: mt.fake_quantize_per_tensor_affine(x, 1.0, 0, 7, 0), RuntimeError, "`quant_min` should be less than or equal"),
    (lambda x: mt.fake_quantize_per_tensor_affine(x.int(), 1.0, 0, 0, 7), NotImplementedError, "expected floats"),
    (lambda x: mt.fake_quantize_per_channel_affine(x, mt.ones(3), mt.zeros(3, dtype=mt.int32), 0, 0, 7), RuntimeError, "not consistent"),
    (lambda x: mt.fake_quantize_per_channel_affine(x, mt.ones(2), mt.zeros(2).long(), 0, 0, 7), RuntimeError, "Zero-point must be Int32"),
    (lambda x: mt.fake_quantize_per_channel_affine(x, mt.ones(2), mt.zeros(2).int(), 1, 0, 7), IndexError, "Dimension out of range"),
    (lambda x: q.MinMaxObserver(quant_min=1, quant_max=3), AssertionError, "quant_min <= 0 <= quant_max"),
    (lambda x: q.MinMaxObserver(qscheme=mt.per_channel_affine), NotImplementedError, "expected a scheme"),
    (lambda x: q.FakeQuantize(quant_min=0, quant_max=300), AssertionError, "quant_max out of bound"),
    (lambda x: q.QConfig(nn.Identity(), nn.Identity), ValueError, "received observer instance"),
    (lambda x: q.prepare_qat(nn.Linear(1, 1).eval()), AssertionError, "training mode"),
    (lambda x: q.convert(nn.Linear(1, 1)), NotImplementedError, "int8 are left out"),
    (lambda x: q.quantize_dynamic(nn.Linear(1, 1)), NotImplementedError, "int8 are left out"),
    (lambda x: q.fuse_modules(nn.Sequential(nn.ReLU(), nn.ReLU()), ["0", "1"]), AssertionError, "did not find fuser method"),
    (lambda x: q.get_default_qconfig("other"), AssertionError, "not supported"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(mt.ones(2))


def test_a_model_trains_with_rounded_numbers_and_is_plain_again() -> None:
    model = nn.Sequential(q.QuantStub(), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1), q.DeQuantStub())
    model.qconfig = q.get_default_qat_qconfig("fbgemm")
    prepared = q.prepare_qat(q.fuse_modules_qat(model, [["1", "2"]]))
    assert type(prepared[1]) is mt.ao.nn.intrinsic.qat.LinearReLU and type(model[1]) is nn.Linear
    assert mt.quantization.QuantStub is q.QuantStub and mt.nn.quantized.FloatFunctional is mt.ao.nn.quantized.FloatFunctional
    optimizer, x = mt.optim.SGD(prepared.parameters(), lr=0.05), mt.randn(64, 2)
    losses = []
    for _ in range(40):
        loss = ((prepared(x) - x.abs().sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    prepared.eval().apply(q.disable_observer)
    levels = prepared[0](mt.linspace(-9, 9, 1000)).unique()
    assert len(levels) <= 128 and prepared[1].weight_fake_quant(prepared[1].weight).shape == (2, 2)
    plain = prepared[1].to_float()
    assert type(plain) is mt.ao.nn.intrinsic.LinearReLU and mt.equal(plain[0].weight, prepared[1].weight)


# ---- beside PyTorch ----


def data(lib: Any, *shape: int, scale: float = 1.0) -> Any:
    at = lib.arange(float(lib.zeros(shape).numel()))
    return ((at * 0.7).sin() * scale + (at * 0.13).cos() * 0.5).reshape(shape)


def of(lib: Any) -> Any:
    return lib.ao.quantization


def both(script: Any) -> None:
    pytest.importorskip("torch", reason="the oracle is PyTorch")
    import warnings

    import torch
    from both_libraries import plain, same

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = plain(script(torch))
    mine = plain(script(mt))
    assert same(mine, want), (mine, want)


OBSERVERS = (
    "MinMaxObserver", "MovingAverageMinMaxObserver", "HistogramObserver", "PerChannelMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
)  # fmt: skip
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"dtype": "qint8"}, {"quant_min": 0, "quant_max": 63}, {"symmetric": True}, {"symmetric": True, "dtype": "qint8"},
)  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", OBSERVERS)
@pytest.mark.parametrize("options", OPTIONS)
def test_observers_tell_what_pytorch_s_tell(name: str, options: dict[str, Any]) -> None:
    def script(lib: Any) -> Any:
        named = dict(options)
        kind = "channel" if "PerChannel" in name else "tensor"
        named["qscheme"] = getattr(lib, f"per_{kind}_{'symmetric' if named.pop('symmetric', False) else 'affine'}")
        if "dtype" in named:
            named["dtype"] = getattr(lib, named["dtype"])
        observer, told = getattr(of(lib), name)(**named), []
        for scale in (1.0, 2.0, 0.5, 30.0):
            observer(data(lib, 4, 6, 50, scale=scale))
            told.append(observer.calculate_qparams())
        again = getattr(of(lib), name)(**named)
        again.load_state_dict(observer.state_dict())
        return told, observer.state_dict(), again.calculate_qparams(), observer.quant_min, observer.quant_max, repr(again)[:40]

    both(script)


@pytest.mark.oracle
@pytest.mark.parametrize("name", (
    "default_fake_quant", "default_weight_fake_quant", "default_per_channel_weight_fake_quant", "default_histogram_fake_quant",
    "default_fused_act_fake_quant", "default_fused_wt_fake_quant", "default_fused_per_channel_wt_fake_quant",
    "default_embedding_fake_quant", "default_fixed_qparams_range_0to1_fake_quant", "default_dynamic_fake_quant",
    "fused_wt_fake_quant_range_neg_127_to_127",
))  # fmt: skip
def test_fake_quantizers_round_and_differentiate_as_pytorch_s(name: str) -> None:
    def script(lib: Any) -> Any:
        module, found = getattr(of(lib), name)(), []
        for scale in (1.0, 3.0, 0.2):
            x = data(lib, 4, 6, scale=scale).requires_grad_()
            out = module(x)
            (out * data(lib, 4, 6)).sum().backward()
            found += [out, x.grad, module.scale, module.zero_point]
        module.apply(of(lib).disable_observer)
        found.append(module(data(lib, 4, 6, scale=9.0)))
        module.apply(of(lib).disable_fake_quant)
        other = getattr(of(lib), name)()
        other.load_state_dict(module.state_dict())
        return found, module(data(lib, 4, 6)), module.state_dict(), other.state_dict()

    both(script)


def network(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers, quant = lib.nn, of(lib)
            self.quant, self.dequant, self.sum = quant.QuantStub(), quant.DeQuantStub(), lib.ao.nn.quantized.FloatFunctional()
            self.c1, self.b1, self.r1 = layers.Conv2d(2, 3, 3), layers.BatchNorm2d(3), layers.ReLU()
            self.c2, self.b2 = layers.Conv2d(3, 3, 1, bias=False), layers.BatchNorm2d(3)
            self.c3, self.r3, self.l1, self.r4 = layers.Conv2d(3, 2, 1), layers.ReLU(), layers.Linear(18, 4), layers.ReLU()
            self.gate, self.l2 = layers.Sigmoid(), layers.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            x = self.r1(self.b1(self.c1(self.quant(x))))
            x = self.r3(self.c3(self.sum.add(x, self.b2(self.c2(x)))))
            return self.dequant(self.l2(self.gate(self.r4(self.l1(x.flatten(1))))))

    made = Net()
    with lib.no_grad():
        for i, (_, p) in enumerate(sorted(made.named_parameters())):
            p.copy_(data(lib, *p.shape, scale=0.5 + 0.1 * i))
    return made


@pytest.mark.oracle
@pytest.mark.parametrize("choose", (
    lambda q: q.default_qat_qconfig, lambda q: q.get_default_qat_qconfig("fbgemm"), lambda q: q.get_default_qat_qconfig("qnnpack"),
    lambda q: q.get_default_qat_qconfig("x86", 0), lambda q: q.default_weight_only_qconfig,
))  # fmt: skip
def test_a_prepared_network_trains_as_pytorch_s(choose: Any) -> None:
    def script(lib: Any) -> Any:
        quant, net = of(lib), network(lib).train()
        net.qconfig = choose(quant)
        net = quant.prepare_qat(quant.fuse_modules_qat(net, [["c1", "b1", "r1"], ["c2", "b2"], ["c3", "r3"], ["l1", "r4"]]))
        optimizer, found = lib.optim.SGD(net.parameters(), lr=0.05), []
        for step in range(2):
            loss = (net(data(lib, 4, 2, 5, 5, scale=1.0 + step)) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            found.append([loss, {name: p.grad for name, p in net.named_parameters() if p.grad is not None and not step}])
            optimizer.step()
        found.append(net.state_dict())
        found.append(net.eval()(data(lib, 2, 2, 5, 5)))
        net.apply(lib.ao.nn.intrinsic.qat.freeze_bn_stats)
        found.append(net.train()(data(lib, 2, 2, 5, 5)))
        return found, [type(m).__name__ for m in net.modules()], net.c1.to_float()(data(lib, 2, 2, 5, 5))

    both(script)


@pytest.mark.oracle
def test_a_network_is_observed_as_pytorch_s() -> None:
    def script(lib: Any) -> Any:
        quant, net = of(lib), network(lib).eval()
        net.qconfig = quant.get_default_qconfig("fbgemm")
        net = quant.prepare(quant.fuse_modules(net, [["c1", "b1", "r1"], ["c3", "r3"]]))
        return net(data(lib, 4, 2, 5, 5)), net.state_dict(), [repr(type(m)).rpartition(".")[2] for m in net.modules()]

    both(script)


@pytest.mark.oracle
def test_tables_and_a_linear_layer_with_a_norm_are_prepared_as_pytorch_s() -> None:
    def script(lib: Any) -> Any:
        quant, found = of(lib), []
        for layers, fused, mapping in (
            ([lib.nn.Embedding(3, 2)], None, quant.get_embedding_qat_module_mappings()),
            ([lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2)], ["0", "1"], None),
        ):
            net = lib.nn.Sequential(*layers)
            for p in net.parameters():
                p.data = data(lib, *p.shape)
            layers[0].qconfig = quant.default_embedding_qat_qconfig if fused is None else quant.default_qat_qconfig
            if fused:
                net.qconfig = quant.default_qat_qconfig
                net = quant.fuse_modules_qat(net, [fused])
            net = quant.prepare_qat(net, mapping=mapping)
            found += [net(lib.tensor([0, 2]) if fused is None else data(lib, 4, 3)), net.state_dict(), net[0].to_float().state_dict()]
        return found

    both(script)
