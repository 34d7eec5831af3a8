"""The founding notes where the modern answer differs from them or from PyTorch: promotion, old calls, other devices, speed."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import mortice as mt
from mortice import nn
from mortice.backends import plugins
from mortice.lazy import behind

strict = pytest.mark.skipif(
    "strict" not in plugins.list_backends(),
    reason="mortice-conformance is not installed: there is no other device here",
)


def test_MA02_a_tensor_without_dims_promotes_like_any_other():
    assert (mt.ones(2) + mt.tensor(1.0, dtype=mt.float64)).dtype is mt.float64
    assert (mt.ones(2, dtype=mt.int8) + mt.tensor(1)).dtype is mt.int64
    assert (mt.ones(2) + 1.0).dtype is mt.float32  # as opposed to Python's numbers
    mt.set_type_promotion("pytorch")
    try:
        assert (mt.ones(2) + mt.tensor(1.0, dtype=mt.float64)).dtype is mt.float32
        assert (mt.ones(2, dtype=mt.int8) + mt.tensor(1)).dtype is mt.int8
        assert (mt.ones(2, dtype=mt.int8) + mt.tensor(1.0)).dtype is mt.float32
    finally:
        mt.set_type_promotion("standard")


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda a, b: mt.add(a, 10, b), [31, 42]), (lambda a, b: mt.addcmul(a, 2, a, b), [7, 18]),
        (lambda a, b: mt.addcdiv(a, 2, b, a), [7, 6]),
    ],
    ids=["add", "addcmul", "addcdiv"],
)  # fmt: skip
def test_MA04_MA05_MA06_a_number_in_the_middle_warns_and_computes(call, found):
    with pytest.warns(UserWarning, match="(?s)This overload of .* is deprecated.*(alpha|value)"):
        assert call(mt.tensor([1.0, 2.0]), mt.tensor([3.0, 4.0])).tolist() == found


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda m, v: mt.addmm(2, m, 3, m, m), 8), (lambda m, v: mt.addmm(2, m, m, m), 4),
        (lambda m, v: m.addmm(2, 3, m, m), 8), (lambda m, v: m.addmm(2, m, m), 4), (lambda m, v: m.addmm_(2, m, m), 4),
        (lambda m, v: mt.addmm(2, m, 3, m, m, out=mt.empty(2, 2)), 8), (lambda m, v: m.clone().addmm_(2, 3, m, m), 8),
        (lambda m, v: mt.addmv(2, v, 3, m, v), 8), (lambda m, v: v.addmv(2, 3, m, v), 8), (lambda m, v: v.addmv(2, m, v), 4),
        (lambda m, v: mt.addr(2, m, 3, v, v), 5), (lambda m, v: m.addr(2, 3, v, v), 5), (lambda m, v: m.addr_(2, v, v), 3),
        (lambda m, v: mt.addbmm(2, m, 3, m[None], m[None]), 8), (lambda m, v: m[None].baddbmm(2, 3, m[None], m[None]), 8),
    ],
)  # fmt: skip
def test_MM12_MM13_MM14_numbers_by_position_warn_and_compute(call, found):
    with pytest.warns(UserWarning, match=r"(?s)This overload of \w+ is deprecated.*Number beta = 1"):
        made = call(mt.ones(2, 2), mt.ones(2))
    assert (made == found).all()


def test_MM12_the_warning_is_of_the_line_that_calls():
    with pytest.warns(UserWarning, match="addmm") as caught:
        behind(mt.addmm)(2, mt.ones(2, 2), mt.ones(2, 2), mt.ones(2, 2))
    assert caught[0].filename == __file__


def test_MM12_MM13_MM14_what_no_form_takes_names_the_form_of_today():
    m = mt.ones(2, 2)
    form = r"\(Tensor input, Tensor mat1, Tensor mat2, \*, Number beta = 1, Number alpha = 1, Tensor out = None\)"
    for args in (
        (m, m, m, 2, 3),
        (m, m, m, 2),
        (2, 3, m, m),
        (m, m, m, m),
        (2, m, m, 3, m),
        (2, m, "3", m, m),
        (2, 3, 4, m, m, m),
    ):
        with pytest.raises(TypeError, match=rf"^addmm: expected {form}; got \(.*\)\. Give beta and alpha by name\.$"):
            mt.addmm(*args)


def test_VW04_nelement_is_a_method_alone():
    assert mt.ones(2, 3).nelement() == 6 and not hasattr(mt, "nelement")


def test_VW17_negative_steps_are_views():
    x = mt.arange(5)
    x[::-2][0] = 9
    assert x.tolist() == [0, 1, 2, 3, 9] and x[3:0:-1].tolist() == [3, 2, 1]


@pytest.mark.needs("cpu")
@strict
def test_TD12_TD15_weights_of_a_loss_lie_with_its_logits():
    logits, target = mt.ones(2, 3), mt.tensor([0, 1])
    with pytest.raises(RuntimeError, match=r"(?s)same device.*cpu.*strict:1"):
        nn.CrossEntropyLoss(weight=mt.ones(3, device="strict:1"))(logits, target)
    there = nn.CrossEntropyLoss(weight=mt.ones(3)).to("strict:1")
    assert str(there(logits.to("strict:1"), target.to("strict:1")).device) == "strict:1"


@pytest.mark.needs("cpu")
@strict
@pytest.mark.seed("TD05", "TD08", "TD10", "NN22")
def test_TD09_TD16_one_device_for_a_program():
    mt.set_default_device("strict:1")
    try:
        net, features = nn.BatchNorm1d(2), mt.rand(4, 2)
        assert {str(t.device) for t in (*net.state_dict().values(), features, net(features))} == {"strict:1"}
    finally:
        mt.set_default_device(None)
    weight, buffer = net.weight, features
    assert net.to("cpu") is net and net.weight is weight and weight.device.type == "cpu"
    assert features.cpu() is not features and str(buffer.device) == "strict:1"
    assert repr(mt.ones(1, device="strict:1")) == "tensor([1.], device='strict:1')"
    there = mt.ones(2, requires_grad=True)
    (there.to("strict:1", mt.float64) * 3).sum().backward()
    assert there.grad.tolist() == [3, 3] and there.grad.device.type == "cpu" and there.grad.dtype is mt.float32


@strict
def test_CR03_CR19_new_tensors_lie_with_theirs():
    x = mt.zeros(2, dtype=mt.int8, device="strict:1")
    assert str(x.new_ones(3).device) == "strict:1" and x.new_ones(3, device="cpu").device.type == "cpu"
    assert str(mt.ones_like(mt.zeros(2), device="strict:1").device) == "strict:1"


@strict
@pytest.mark.seed("VW12")
def test_NP01_another_device_is_copied_from_by_hand():
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\) to copy the tensor to host memory first"):
        mt.ones(2, device="strict:1").numpy()
    assert mt.ones(2, device="strict:1").cpu().numpy().tolist() == [1, 1] == mt.ones(2, device="strict:1").tolist()


@pytest.mark.needs("cpu")
@strict
def test_SL05_a_state_of_another_device_is_loaded(tmp_path):
    saved = nn.Linear(2, 1).to("strict:1", mt.float64)
    net = nn.Linear(2, 1)
    net.load_state_dict(saved.state_dict())
    assert net.weight.device.type == "cpu" and net.weight.dtype is mt.float32
    assert mt.allclose(net.weight, saved.weight.float().cpu())
    mt.save(saved.state_dict(), tmp_path / "net.pt")
    assert mt.load(tmp_path / "net.pt", map_location="cpu")["weight"].device.type == "cpu"
    net.to("strict:1").load_state_dict(mt.load(tmp_path / "net.pt", map_location="cpu"))
    assert str(net.weight.device) == "strict:1"


def test_NP12_no_python_is_called_for_an_element():
    def calls(n):
        x, y = mt.rand(n, n), mt.rand(n, n)
        count = 0

        def count_calls(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        for _ in range(2):  # the first fills caches
            count = 0
            sys.setprofile(count_calls)
            ((x @ y).exp() + x.sort(1).values).sum().item()
            sys.setprofile(None)
        return count

    assert calls(200) < calls(2) + 20  # for 40,000 elements in place of 4


def test_NP12_a_compiled_backend_and_one_for_cuda_are_parts_of_the_system():
    found = plugins.list_backends()
    assert "cpu_numpy" in found or "cpu_cext" in found
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.float64(2) * mt.ones(3, dtype=mt.float64)
    assert isinstance(x, mt.Tensor) and x.tolist() == [2, 2, 2]


def test_AG32_the_misspelt_flag_is_an_attribute_like_any_other():
    x = mt.ones(1)
    x.require_grad = True
    assert not x.requires_grad and not (x * 2).requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        (x * 2).sum().backward()
