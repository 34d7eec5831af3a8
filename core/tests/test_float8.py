"""float8: codes that are stored, moved and converted; computed in they are not."""

import bisect
import copy
import io
import math
import pickle
import warnings

import pytest

import mortice as mt
from mortice import serialize
from mortice.backends.float8 import code_of, codes, steps, values
from mortice.serialize import safetensors

NAMES = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split()
E4M3, E5M2, E8M0 = mt.float8_e4m3fn, mt.float8_e5m2, mt.float8_e8m0fnu
every = pytest.mark.parametrize("name", NAMES)


def all_codes(d):
    return mt.arange(256).to(mt.uint8).view(d)


def bits(x):
    return x.view(mt.uint8).flatten().tolist()


@every
def test_every_code_comes_back_from_the_number_that_it_stands_for(name):
    d = getattr(mt, name)
    x = all_codes(d)
    numbers, again = x.float(), bits(x.float().to(d))
    assert repr(numbers.tolist()) == repr(x.tolist()) == repr(list(values(d)))
    for code, (number, found) in enumerate(zip(numbers.tolist(), again)):
        assert found == code or math.isnan(number)
    finite = [v for v in values(d) if math.isfinite(v)]
    assert max(finite) == mt.finfo(d).max == mt.tensor(mt.finfo(d).max, dtype=d).item() and x[1].item() == values(d)[1]
    assert x.element_size() == 1 and x.nbytes == 256 and x.is_floating_point() and x.is_signed() is (d is not E8M0)


def test_numbers_are_rounded_to_the_nearest_and_ties_to_even():
    x = mt.tensor([1.0625, 1.1875, 1.3, -1.3, 447.0, 464.0, 1e9, -math.inf, math.nan, 2.0**-10, 2.0**-10 * 1.001, -0.0, 1e-40])
    got = x.to(E4M3).tolist()
    assert got[:8] == [1.0, 1.25, 1.25, -1.25, 448.0, 448.0, 448.0, -448.0] and math.isnan(got[8])  # it saturates
    assert got[9:] == [0.0, 2.0**-9, 0.0, 0.0] and math.copysign(1, got[11]) == -1
    assert mt.tensor([61439.9, 61440.0, -1e30]).to(E5M2).tolist() == [57344.0, math.inf, -math.inf]
    assert bits(mt.tensor([-0.0, 248.0, math.nan, 247.0]).to(mt.float8_e4m3fnuz)) == [0, 128, 128, 127]
    assert mt.tensor([3.0, -2.0, 0.0, 1.4]).to(E8M0).tolist() == [4.0, 2.0, 2.0**-127, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert mt.tensor([1 + 2j]).to(E4M3).tolist() == [1.0]
    assert mt.tensor([1, 300, -2]).to(E4M3).tolist() == [1.0, 288.0, -2.0] and mt.tensor([True, False]).to(E5M2).tolist() == [1.0, 0.0]
    assert mt.tensor([0.3, 7.0]).to(E4M3).to(E5M2).dtype is E5M2 and mt.tensor([2.5]).to(E4M3).long().tolist() == [2]


def test_they_are_made_moved_and_written():
    x = mt.tensor([1.0, 2.5, 3.3, 4.0], dtype=E4M3)
    assert x.tolist() == [1.0, 2.5, 3.25, 4.0] and repr(x).startswith("tensor([1.0000, 2.5000, 3.2500, 4.0000]")
    assert mt.full((2,), 3.3, dtype=E4M3).tolist() == [3.25, 3.25] and mt.eye(2, dtype=E5M2).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert mt.ones_like(x).tolist() == [1.0] * 4 and mt.zeros(2, dtype=E5M2).tolist() == [0.0, 0.0]
    assert mt.cat([x, x[:1]]).tolist() == [1.0, 2.5, 3.25, 4.0, 1.0] and mt.stack([x, x]).shape == (2, 4)
    assert x[[0, 2]].tolist() == [1.0, 3.25] and x[mt.tensor([True, False, False, True])].tolist() == [1.0, 4.0]
    assert x.reshape(2, 2).t().contiguous().tolist() == [[1.0, 3.25], [2.5, 4.0]] and x.roll(1).tolist() == [4.0, 1.0, 2.5, 3.25]
    assert mt.where(mt.tensor([True, False, True, False]), x, 2.0).tolist() == [1.0, 2.0, 3.25, 2.0]
    assert mt.nn.functional.pad(x, (1, 0), value=2.0).tolist() == [2.0, 1.0, 2.5, 3.25, 4.0]
    assert mt.nn.functional.embedding(mt.tensor([1]), x.reshape(2, 2)).tolist() == [[3.25, 4.0]]
    y = x.clone()
    y[0], y[1:3], y[3] = 9.0, mt.tensor([5.0, 6.0]), x[1]
    assert y.tolist() == [9.0, 5.0, 6.0, 2.5] and x.tolist()[0] == 1.0
    y.view(2, 2)[0] = 7
    y[mt.tensor([2])] = 1.5
    assert y.tolist() == [7.0, 7.0, 1.5, 2.5] and y.copy_(mt.ones(4)).tolist() == [1.0] * 4 and y.fill_(2.6).tolist() == [2.5] * 4
    assert y.zero_().tolist() == [0.0] * 4 and bits(y.view(E5M2)) == [0] * 4 and y.view(mt.float16).shape == (2,)
    assert (x == 2.5).tolist() == [False, True, False, False] and mt.equal(x, x.clone()) and bool(x[0]) and x.any() and x.all()
    zeros = mt.tensor([0.0, -0.0, math.nan], dtype=E4M3)
    assert zeros.isnan().tolist() == [False, False, True] and (zeros == 0).tolist() == [True, True, False]
    assert zeros.nonzero().tolist() == [[2]]
    assert mt.equal(zeros[:1], zeros[1:2]) and not mt.equal(zeros, zeros)
    assert mt.vmap(lambda v: v.to(E4M3).float())(mt.tensor([[1.3], [2.7]])).tolist() == [[1.25], [2.75]]
    assert mt.frombuffer(bytearray(b"abc"), dtype=E4M3).tolist() == [36.0, 40.0, 44.0]
    assert x.to("meta").dtype is E4M3 and mt.zeros(2, device="meta").to(E5M2).dtype is E5M2


def test_they_are_not_computed_in():
    x = mt.ones(4).to(E4M3)
    for fn in (
        lambda: x + x, lambda: x + 1, lambda: x.add_(x), lambda: -x, lambda: x * 2, lambda: x < x, lambda: x.exp(), lambda: x.sum(),
        lambda: x.max(), lambda: x.sort(), lambda: x.cumsum(0), lambda: x.clamp(0, 1), lambda: x.unique(), lambda: mt.poisson(x),
        lambda: x.index_add_(0, mt.tensor([0]), x[:1].clone()), lambda: x.to_sparse(), lambda: x.normal_(), lambda: x.uniform_(),
        lambda: mt.arange(3, dtype=E4M3), lambda: mt.rand(2, dtype=E4M3), lambda: mt.linspace(0, 1, 3, dtype=E5M2),
        lambda: mt.bernoulli(x), lambda: mt.bernoulli(mt.ones(4), x), lambda: mt.randint(3, (2,), dtype=E4M3),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="not implemented for (mortice.f|'F)loat8_"):
            fn()
    for fn in (lambda: x * mt.ones(4), lambda: mt.cat([x, mt.ones(2)]), lambda: mt.promote_types(mt.bool, E4M3)):
        with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote (Float8_|Bool and)"):
            fn()
    assert mt.promote_types(E4M3, E4M3) is E4M3 is mt.result_type(x, 1.0) and x.sum(dtype=mt.float32).item() == 4
    with pytest.raises(BufferError, match="got mortice.float8_e4m3fn"):
        x.__dlpack__()
    with pytest.raises(RuntimeError, match="without overflow"):
        mt.full((2,), 1000.0, dtype=E4M3)
    if x.is_cpu:
        with pytest.raises(TypeError, match="Got unsupported ScalarType Float8_e4m3fn"):
            x.numpy()


def test_gradients_pass_through_them_in_float32():
    x = mt.tensor([1.3, -2.7, 1000.0], requires_grad=True)
    y = x.to(E4M3)
    y.retain_grad()
    (y.reshape(3, 1)[1:].float().sum() * 0.3 + y.bfloat16().float()[0]).backward()
    assert x.grad.tolist() == mt.tensor([1.0, 0.3, 0.3]).tolist() and y.grad.dtype is mt.float32 and y.grad.tolist() == x.grad.tolist()
    (g,) = mt.autograd.grad((x.to(E5M2).float() ** 2).sum(), x, create_graph=True)
    assert g.tolist() == [2.5, -5.0, 2048.0] and g.requires_grad
    layer = mt.nn.Linear(2, 2).to(E4M3)
    for _ in range(2):
        (layer.weight.float() * 0.3).sum().backward()
    assert layer.weight.grad.tolist() == (mt.full((2, 2), 0.3) * 2).tolist() and layer.bias.grad is None
    other = mt.nn.Linear(2, 2)
    other.load_state_dict(layer.state_dict())
    assert other.weight.dtype is mt.float32 and mt.equal(other.weight, layer.weight.float())


@every
def test_files_keep_them(name):
    d = getattr(mt, name)
    x = all_codes(d).reshape(16, 16)
    buffer = io.BytesIO()
    mt.save({"x": x, "part": x[1, 3:7]}, buffer)
    buffer.seek(0)
    found = mt.load(buffer)
    assert found["x"].dtype is d and bits(found["x"]) == bits(x) and bits(found["part"]) == [19, 20, 21, 22]
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), safetensors.load(safetensors.save({"x": x}))["x"]):
        assert again.dtype is d and again.shape == (16, 16) and bits(again) == bits(x)
    assert x.untyped_storage().nbytes() == 256


# ---- beside PyTorch ----


@pytest.mark.oracle
@every
def test_conversions_are_pytorchs_bit_for_bit(name):
    torch = pytest.importorskip("torch")
    mine, theirs = getattr(mt, name), getattr(torch, name)
    for kind in ("float16", "bfloat16"):  # all of them; PyTorch loses the sign of nan in vectors
        numbers = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16).view(getattr(torch, kind))
        got = mt.arange(-(1 << 15), 1 << 15, dtype=mt.int16).view(getattr(mt, kind)).to(mine)
        there = ~numbers.isnan()
        assert torch.equal(torch.tensor(bits(got), dtype=torch.uint8)[there], numbers.to(theirs).view(torch.uint8)[there])
    starts, _ = steps(mine)  # float32: before, at and behind each step, and many others
    asked = torch.tensor(sorted({b + i for b in starts for i in (-1, 0, 1)}), dtype=torch.int64).clamp(-(1 << 31), (1 << 31) - 1)
    asked = torch.cat([asked, torch.randint(-(1 << 31), 1 << 31, (1 << 15,), generator=torch.Generator().manual_seed(0))]).to(torch.int32)
    want = asked.view(torch.float32).to(theirs).view(torch.uint8).tolist()
    assert bits(mt.tensor(asked.tolist(), dtype=mt.int32).view(mt.float32).to(mine)) == want
    assert all(code_of(v, mine) == w for v, w in zip(asked.view(torch.float32).tolist(), want) if v == v)
    codes = torch.arange(256).to(torch.uint8).view(theirs)
    for kind in ("float16", "bfloat16", "float32", "float64", "bool"):
        assert repr(all_codes(mine).to(getattr(mt, kind)).tolist()) == repr(codes.to(getattr(torch, kind)).tolist())


@pytest.mark.oracle
@every
def test_files_go_both_ways(name):
    torch = pytest.importorskip("torch")
    theirs = torch.arange(256).to(torch.uint8).view(getattr(torch, name)).reshape(16, 16)
    for new in (True, False):
        buffer = io.BytesIO()
        torch.save({"x": theirs, "part": theirs[1, 3:7]}, buffer, _use_new_zipfile_serialization=new)
        buffer.seek(0)
        found = mt.load(buffer)
        assert found["x"].dtype is getattr(mt, name) and bits(found["x"]) == list(range(256)) and bits(found["part"]) == [19, 20, 21, 22]
        buffer = io.BytesIO()
        serialize.save(found, buffer, _use_new_zipfile_serialization=new)
        buffer.seek(0)
        again = torch.load(buffer, map_location="cpu")
        assert again["x"].dtype is theirs.dtype and torch.equal(again["x"].view(torch.uint8), theirs.view(torch.uint8))
    other = pytest.importorskip("safetensors.torch")
    if name != "float8_e8m0fnu":  # which not each version has
        assert bits(safetensors.load(other.save({"x": theirs}))["x"]) == list(range(256))
        assert torch.equal(other.load(safetensors.save({"x": found["x"]}))["x"].view(torch.uint8), theirs.view(torch.uint8))


@every
def test_the_table_of_upper_halves_says_what_the_search_among_the_steps_does(name):
    d = getattr(mt, name)
    near = sorted({min(max(start + by, -(2**31)), 2**31 - 1) for start in steps(d)[0] for by in (-65537, -65536, -1, 0, 1, 65535, 65536)})
    table, x = codes(d), mt.tensor(near, dtype=mt.int32)
    assert len(table) == 1 << 16
    found = [table[((b >> 16) | (b & 0xFFFF != 0)) & 0xFFFF] for b in near]
    assert found == [steps(d)[1][bisect.bisect_right(steps(d)[0], b)] for b in near] == bits(x.view(mt.float32).to(d))


@pytest.mark.skipif(mt.ones(1).device.backend.float8_codes is None, reason="the backend has no kernel for it")
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"])
def test_the_backends_own_codes_are_those_of_the_steps(name, monkeypatch):
    d, numbers = getattr(mt, name), mt.randn(600) * 10.0 ** mt.linspace(-12, 6, 600)
    numbers = mt.cat([numbers, mt.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 448.0, 464.0, 61440.0, 2.0**-10])])
    kinds = [numbers, numbers.double(), numbers.half(), numbers.reshape(3, -1).t(), numbers[::2], numbers[0], numbers[:0]]
    found = [x.to(d).view(mt.uint8).tolist() for x in kinds]
    monkeypatch.setattr(numbers.device.backend, "float8_codes", None, raising=False)
    assert found == [x.to(d).view(mt.uint8).tolist() for x in kinds]
