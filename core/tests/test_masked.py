"""torch.masked: reductions of what a mask leaves, and MaskedTensor, beside PyTorch's and alone."""

from __future__ import annotations

import re
import warnings
from importlib import import_module

import pytest

import mortice
from mortice import masked
from mortice.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning")
DATA, MASK = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[True, False, True], [False, False, False]]


def test_masked_tensors_are_printed_computed_and_reduced():
    data, mask = mortice.tensor(DATA), mortice.tensor(MASK)
    mt = masked_tensor(data, mask)
    assert str(mt) == "MaskedTensor(\n  [\n    [  1.0000,       --,   3.0000],\n    [      --,       --,       --]\n  ]\n)"
    assert str(mt.mean(1)) == "MaskedTensor(\n  [  2.0000,       --]\n)" and str(mt.sum()) == "MaskedTensor(  4.0000, True)"
    assert (mt * mt + 1).to_tensor(0).tolist() == [[2.0, 0.0, 10.0], [0.0, 0.0, 0.0]]
    assert mt[0].get_mask().tolist() == MASK[0] and mt.exp().get_data().equal(data.exp()) and mt.get_data().equal(data)
    assert is_masked_tensor(mt) and isinstance(mt, mortice.Tensor) and not is_masked_tensor(data) and mt.shape == (2, 3)
    assert mt.add_(1) is mt and mt.to_tensor(0).tolist() == [[2.0, 0.0, 4.0], [0.0, 0.0, 0.0]] and data[0, 0] == 1
    with pytest.raises(ValueError, match="Input masks must match"):
        mt + masked_tensor(data, ~mask)
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.cumsum' .* Use get_data\(\) or to_tensor"):
        mt.cumsum(0)
    with pytest.raises(TypeError, match="mask must have dtype bool"):
        masked_tensor(data, data)
    with pytest.warns(UserWarning, match="prototype stage"):
        warnings.simplefilter("always")
        masked_tensor(data, mask)


def test_gradients_do_not_see_what_is_masked_out():
    x = mortice.tensor([-10.0, 0.0, 100.0])
    mx = masked_tensor(x, x < 0, requires_grad=True)
    my = masked_tensor(mortice.ones(3), x >= 0, requires_grad=True)
    mortice.where(x < 0, mortice.exp(mx), my).sum().backward()
    assert str(mx.grad) == "MaskedTensor(\n  [  0.0000,       --,       --]\n)" and type(mx.grad) is MaskedTensor
    w = mortice.tensor(DATA, requires_grad=True)
    as_masked_tensor(w * 2, mortice.tensor(MASK)).sum().backward()
    assert w.grad.tolist() == [[2.0, 0.0, 2.0], [0.0, 0.0, 0.0]]


def test_autograd_grad_takes_masked_outputs_and_inputs():
    x = masked_tensor(mortice.tensor([1.0, 2.0]), mortice.tensor([True, False]), requires_grad=True)
    b = mortice.tensor(3.0, requires_grad=True)
    (gx, gb) = mortice.autograd.grad((x * x * b).sum(), (x, b))
    assert type(gx) is MaskedTensor and gx.get_data()[0] == 6 and gx.get_mask().tolist() == [True, False] and gb == 1


def test_plain_tensors_get_no_gradient_from_what_is_masked_out():
    data = mortice.tensor([1.0, 2.0, float("nan")])
    b, x = mortice.tensor(1.0, requires_grad=True), mortice.tensor([4.0, 1.0, 0.0], requires_grad=True)
    (masked_tensor(data, ~data.isnan()) * b).sum().backward()
    assert b.grad.item() == 3
    as_masked_tensor(x, x > 0).log().sum().backward()
    assert x.grad.tolist() == [0.25, 1, 0]


def test_reductions_without_a_mask_stay_on_the_device():
    x = mortice.ones(2, 3, device="meta")
    assert masked.mean(x, 1).device == masked.std(x, 0).device == x.device


SETUP = """
data = torch.arange(24).reshape(2, 3, 4); mask = data % 2 == 0; mt = masked_tensor(data.float(), mask)
ints = masked_tensor(data, mask); d = torch.tensor(DATA); k = torch.tensor(MASK); z = masked_tensor(d, k)
e = masked_tensor(torch.tensor(3), torch.tensor(False))
"""
SHOWN = (
    "mt; mt[0]; mt[:, :, 2:4]; mt.sum(); mt.mean(0); mt.amax(); mt.prod(1); torch.argmin(mt); mt.std(); mt.var(1); "
    "mt.amin(dim=(0, 1)); torch.sum(mt, 1, True); mt + mt; mt * 2; mt.exp().log(); torch.sin(mt); -mt; mt > 3; mt == 4; mt < 5; "
    "ints; ints.sum(); ints.amax(1); mt.to_tensor(0); mt.get_mask(); mt.get_data(); mt.shape; mt.dim(); mt.dtype; e; e + 1; "
    "masked_tensor(d, k > 2); z.sum(1); z.mean(1); z.all(); z.transpose(0, 1); torch.cat([z, z]); torch.stack([z, z]); "
    "z.reshape(6); z.unsqueeze(0); z.t(); z.softmax(-1); torch.softmax(z, 0); z.clone(); z.to(torch.float64); z.abs_(); z.add_(1); "
    "mt.stride(); mt.stride(1); mt.storage_offset(); z.numel(); "
    "masked_tensor(1, k); masked_tensor(d, d); masked_tensor(d, k[0]); masked_tensor(d.to(torch.uint8), k); mt + z; "
    "tm.normalize(d, 2.0, 1, mask=k); tm.logaddexp(d, d + 1, input_mask=k, other_mask=~k); tm.median(d.long(), 1, mask=k[:1]); "
    "tm.norm(d, float('-inf'), 1, mask=k); tm.norm(d, 1.0, 1, mask=k); tm.var(d, 1, unbiased=False, mask=k); tm.mean(d.long()); "
    "tm.sum(d, 5); tm.sum(d, (0, 0)); tm.sum(d, mask=torch.ones(1, 2, 3) > 0); tm.median(d.long(), 1, mask=k); tm.sum(mt); "
    "tm.amax(mt, 1); tm.amax(k, 1); tm.amin(k, 0); tm.var(d, correction=0); tm.argmax(d, 1, mask=k, dtype=torch.int64)"
).split("; ")
for _name in "sum mean prod amax amin argmax argmin var std logsumexp median".split():
    SHOWN += [f"tm.{_name}(d, 1, mask=k)", f"tm.{_name}(d, 0)", f"tm.{_name}(d, 1, keepdim=True, mask=k[0])"]
    SHOWN += [f"tm.{_name}(d.long(), 1, mask=k[:1])"] if _name not in ("mean", "logsumexp") else []
    SHOWN += [f"tm.{_name}(d, mask=k)"] if _name != "median" else []
for _name in "softmax log_softmax softmin cumsum cumprod".split():
    SHOWN += [f"tm.{_name}(d, 1, mask=k)", f"tm.{_name}(d, 0, dtype=torch.float64)"]


@pytest.mark.oracle
@pytest.mark.parametrize("text", SHOWN)
def test_what_is_shown_is_pytorchs(text):
    outcomes = []
    for library in (mortice, pytest.importorskip("torch")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            masked = import_module(f"{library.__name__}.masked")
            names = {"torch": library, "tm": masked, "masked_tensor": masked.masked_tensor, "DATA": DATA, "MASK": MASK}
            exec(SETUP, names)
            try:
                outcomes.append(str(eval(text, names)).replace("mortice", "torch"))
            except Exception as error:
                outcomes.append(re.sub("mortice", "torch", f"{type(error).__mro__[-4:-2]} {error}"))
    assert outcomes[0] == outcomes[1] or (outcomes[1].startswith("(") and outcomes[0].startswith("("))


def test_functions_have_their_names_and_say_what_they_do():
    for name in masked.__all__:
        assert getattr(masked, name).__name__ == name and getattr(masked, name).__doc__


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.filterwarnings("ignore:.*nvariant")
@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_reductions_take_sparse_tensors_and_give_such_ones(name, layout):
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    told = []
    for lib in (torch, mortice):
        x, inside = lib.tensor([[1.0, 0.0, 3.0], [0.0, 2.0, -1.0]]), lib.tensor([[True, True, False], [True, True, False]])
        for t in (x.to_sparse(layout=getattr(lib, layout)), x.to_sparse_csc()):
            for mask in (None, inside, inside.to_sparse(), inside.to_sparse(layout=getattr(lib, layout))):
                for dim, keepdim in ((None, False), (0, True), (1, False), (1, True)):
                    try:
                        made = getattr(lib.masked, name)(t, dim, keepdim=keepdim, mask=mask)
                        assert made.layout is t.layout
                        told.append((lib, made.to_dense().nan_to_num(9).tolist()))
                    except (RuntimeError, ValueError, AssertionError) as error:
                        told.append((lib, "keepdim=False" in str(error) or "expects" in str(error)))
    assert [t[1] for t in told if t[0] is torch] == [t[1] for t in told if t[0] is mortice]
    with pytest.raises(ValueError, match="expects strided"):
        masked.softmax(mortice.ones(2, 2).to_sparse(), 1)
