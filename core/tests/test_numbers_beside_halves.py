"""A number beside a tensor of 16-bit floats: rounded to their dtype first, but not in products and quotients."""

import math
import operator

import pytest

import mortice as mt
from mortice.nn import functional as F

VALUES = [-20000.0, -3.0, -0.40625, 0.0, 1e-4, 0.5, 3.0, 123.4375, 60000.0]
NUMBERS = [0.1, 1e5, 1e-8, 70000, 2147483647, -1e6, 2, 0.25]
HALVES = [mt.float16, mt.bfloat16]
IN_FULL = {("mul", False), ("mul", True), ("truediv", False), ("truediv", True), ("floordiv", False)}


def same(found, expected):
    return found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod"])
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_the_number_is_rounded_first_but_in_products_and_quotients(name, dtype, layout):
    function = getattr(operator, name)
    x = mt.tensor(VALUES).to(dtype)
    if layout == "strided":
        x = mt.stack([x, x], 1)[:, 0]
    for number in NUMBERS:
        for swapped in (False, True):
            wide = x.float()
            as_counted = number if (name, swapped) in IN_FULL else mt.tensor(float(number)).to(dtype).item()
            if (name, swapped) == ("truediv", True):  # a product with the reciprocal, which is rounded
                expected = ((1 / wide).to(dtype).float() * number).to(dtype)
            else:
                expected = (function(as_counted, wide) if swapped else function(wide, as_counted)).to(dtype)
            found = [function(number, x) if swapped else function(x, number)]
            if not swapped:
                found.append(getattr(operator, f"i{name}")(x.clone(), number))
            for result in found:
                assert result.dtype is dtype
                assert all(map(same, result.tolist(), expected.tolist())), (name, number, swapped, result, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [*HALVES, mt.float32, mt.float64], ids=str)
def test_numbers_meet_tensors_as_in_pytorch(dtype):
    torch = pytest.importorskip("torch")
    values = [-2.7, -0.4, 0.1, 0.3, 2.0, 3.1]
    calls = [
        lambda t, x, c: t.div(x, c, rounding_mode="trunc"), lambda t, x, c: t.div(x, c, rounding_mode="floor"),
        lambda t, x, c: t.fmod(x, c), lambda t, x, c: x % c, lambda t, x, c: x + c, lambda t, x, c: c - x,
        lambda t, x, c: t.addcdiv(x, x, x.flip(0), value=c), lambda t, x, c: x * c, lambda t, x, c: x > c,
        lambda t, x, c: t.clamp(x, max=c), lambda t, x, c: x.pow(c), lambda t, x, c: x.clone().pow_(c),
        *[lambda t, x, c, name=name: getattr(t.nn.functional, name)(x, c) for name in ("hardshrink", "softshrink")],
        lambda t, x, c: t.nn.functional.threshold(x, c, 0), lambda t, x, c: t.nn.functional.hardtanh(x, 0, c),
    ]  # fmt: skip
    for call in calls:
        for number in (0.1, 3, 1e-8, 70000.0, 1e39):
            found = []
            for t in (mt, torch):
                try:
                    x = t.tensor(values, dtype=t.float64).to(getattr(t, dtype.name))
                    found.append(call(t, x, number).double().tolist())
                except RuntimeError:
                    found.append("refused")
            assert str(found[0]) == str(found[1]) or found[0] == pytest.approx(found[1], rel=1e-6, nan_ok=True)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_alpha_is_rounded_and_second_operands_without_dims_count_in_full_as_in_pytorch(dtype):
    torch = pytest.importorskip("torch")
    calls = [
        *[lambda t, x, f=f: getattr(t, f)(x, x.flip(0), alpha=0.3) for f in ("add", "sub", "rsub")],
        *[lambda t, x, f=f: getattr(t, f)(x, 0.7, alpha=0.3) for f in ("add", "sub", "rsub")],
        *[lambda t, x, f=f: getattr(t, f)(x, t.tensor(0.7, dtype=x.dtype), alpha=0.3) for f in ("add", "sub", "rsub")],
        *[lambda t, x, f=f: f(x, t.tensor(0.1, dtype=t.float32)) for f in (operator.add, operator.mul, operator.truediv)],
        lambda t, x: x.clone().mul_(t.tensor(0.1)), lambda t, x: t.mul(x, t.tensor(0.1), out=t.empty_like(x)),
        lambda t, x: x / t.tensor(70001), lambda t, x: t.div(x, t.tensor(0.1), rounding_mode="floor"),
    ]  # fmt: skip
    before = mt.get_type_promotion()
    mt.set_type_promotion("pytorch")
    try:
        for number, call in enumerate(calls):
            # As many as fill PyTorch's vectors: what is left over it rounds differently.
            found = [call(t, t.tensor([0.37, -2.71, 3.0, 0.5, 60.25, -0.1, 1e-4, 7.7] * 8).to(getattr(t, dtype.name))) for t in (mt, torch)]
            assert [str(y.dtype).split(".")[1] for y in found] == [dtype.name] * 2
            assert found[0].tolist() == found[1].tolist(), number
    finally:
        mt.set_type_promotion(before)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_in_place_and_with_gradients(dtype):
    x = mt.tensor([0.5, -0.25]).to(dtype)
    assert (x.clone().mul_(1e5).tolist(), x.clone().div_(1e-5).tolist()) == ((x * 1e5).tolist(), (x / 1e-5).tolist())
    x.requires_grad_()
    (x * 1e5).backward(mt.tensor([1e-3, 1e-3]).to(dtype))
    scale = (mt.tensor([1e-3]).to(dtype).float() * 1e5).to(dtype)
    assert x.grad.tolist() == scale.expand(2).tolist()


@pytest.mark.parametrize("dtype", [*HALVES, mt.float32], ids=str)
def test_a_comparison_takes_the_number_rounded_and_warns_of_nothing(dtype, recwarn):
    x = mt.tensor([0.1, 1e4, math.inf, math.nan]).to(dtype)
    assert (x == 0.1).tolist() == (0.1 == x).tolist() == (x <= 0.1).tolist() == [True, False, False, False]
    assert (x < 1e39).tolist() == (1e39 > x).tolist() == [True, True, False, False]
    assert (x != 0.1).tolist() == [False, True, True, True]
    assert mt.nn.functional.hardshrink(x, 0.1).tolist()[0] == 0
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_activations_compare_with_limits_that_are_not_rounded(dtype):
    x = mt.tensor([0.1, 0.3, 0.7, -0.3]).to(dtype)
    wide = x.float()
    for function in (lambda x: F.threshold(x, 0.1, 2.0), lambda x: F.softshrink(x, 0.3), lambda x: F.hardtanh(x, -0.3, 0.7)):
        assert function(x).tolist() == function(wide).to(dtype).tolist()
    for function in (lambda x: F.threshold(x, 0.1, 2.0), lambda x: F.hardtanh(x, -0.3, 0.7)):
        grads = [mt.autograd.grad(function(y.requires_grad_()).sum(), y)[0].tolist() for y in (x, wide)]
        assert grads[0] == grads[1]


def test_the_third_power_of_a_float16_is_rounded_once():
    x = mt.linspace(-3, 3, 200)
    assert (x.to(mt.float16) ** 3).tolist() == (x.to(mt.float16).float() ** 3).to(mt.float16).tolist()


@pytest.mark.parametrize("dtype", [*HALVES, mt.float32, mt.int64], ids=str)
def test_numbers_that_a_dtype_holds_do_what_they_do_as_tensors(dtype):
    numbers = [0, 1, -2, 7, 128, 257] if dtype is mt.int64 else [0, 1, -2, 0.5, 128, 257, 2.0**-14, 2.0**-15, 3e-5, math.inf, math.nan]
    x = mt.tensor([-300.0, -0.40625, 0.0, 3.0, math.inf, math.nan]).to(dtype) if dtype.is_floating_point else mt.arange(-3, 300)
    calls = [
        lambda c: x + c, lambda c: x == c, lambda c: x < c, lambda c: mt.clamp(x, max=c), lambda c: mt.clamp(x, c, c),
        lambda c: mt.where(x > 0, x, c), lambda c: x.masked_fill(x > 0, c), lambda c: x.clone().masked_fill_(x > 0, c),
        lambda c: x.clone().add_(c),
    ]  # fmt: skip
    for number in numbers:
        for call in calls:
            found, expected = call(number), call(mt.tensor(number).to(dtype))
            assert found.dtype is expected.dtype and all(map(same, found.tolist(), expected.tolist())), (number, found, expected)
