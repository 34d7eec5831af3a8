"""What the namespace has beyond the standard, because libraries ask for it as they would of NumPy: known values, gradients."""

from __future__ import annotations

import math

import pytest

import mortice as mt
from mortice import array_api as xp
from mortice.autograd import gradcheck

DEVICES = ["cpu", "strict:0"]
NAN = math.nan


@pytest.fixture(params=DEVICES)
def x(request):
    """Return two rows: one with NaN in it, one of NaN alone."""
    return mt.tensor([[1.0, NAN, 4.0, 2.0], [NAN] * 4], dtype=mt.float64, device=request.param)


def same(found, wanted):
    return mt.equal(found.isnan().cpu(), mt.tensor(wanted, device="cpu").isnan()) and mt.allclose(
        found.nan_to_num().cpu(), mt.tensor(wanted, dtype=found.dtype, device="cpu").nan_to_num()
    )


@pytest.mark.parametrize(
    "name, wanted",
    {
        "nanmax": [4, NAN], "nanmin": [1, NAN], "nansum": [7, 0], "nanprod": [8, 1], "nanmean": [7 / 3, NAN],
        "nanmedian": [2, NAN], "nanvar": [14 / 9, NAN], "nanstd": [math.sqrt(14) / 3, NAN],
    }.items(),
)  # fmt: skip
def test_reductions_leave_out_nan(x, name, wanted):
    reduce = getattr(xp, name)
    assert same(reduce(x, axis=1), wanted) and same(reduce(x, axis=1, keepdims=True), [[v] for v in wanted])
    assert same(reduce(x), wanted[0]) and reduce(x, axis=1).device == x.device


def test_reductions_that_leave_out_nan_take_whole_numbers(x):
    whole = mt.tensor([3, 1, 2], device=x.device)
    assert xp.nanmax(whole).item() == 3 and xp.nansum(whole).dtype is mt.int64 and xp.nanmedian(whole).item() == 2


def test_positions_and_running_totals_leave_out_nan(x):
    assert xp.nanargmax(x[0]).item() == 2 and xp.nanargmin(x[0]).item() == 0
    assert xp.nancumsum(x[0]).tolist() == [1, 1, 5, 7] and xp.nancumprod(x[0], axis=0).tolist() == [1, 1, 4, 8]
    assert xp.cumsum(x[0, :1]).tolist() == [1] and xp.cumprod(x[0, 2:]).tolist() == [4, 8]


def test_variance_counts_less_of_the_elements(x):
    assert same(xp.nanvar(x, axis=1, ddof=1), [7 / 3, NAN]) and same(xp.nanvar(x, axis=1, ddof=3), [NAN, NAN])
    y = mt.tensor([1.0, 2.0, 4.0], device=x.device)
    assert xp.var(y, ddof=1).item() == xp.var(y, correction=1).item() == pytest.approx(7 / 3)
    assert xp.std(y, ddof=1).item() == pytest.approx(math.sqrt(7 / 3))


def test_the_functions_that_clients_ask_for(x):
    y = mt.arange(6.0, device=x.device).reshape(2, 3)
    assert xp.pad(y, 1).sum(axis=0).tolist() == [0, 3, 5, 7, 0] and xp.pad(y, (1, 0)).shape == (3, 4)
    assert xp.pad(y[0], [(1, 2)], constant_values=9).tolist() == [9, 0, 1, 2, 9, 9]
    assert xp.transpose(y).shape == (3, 2) and xp.transpose(y[None], (1, 2, 0)).shape == (2, 3, 1)
    assert xp.diag(xp.diag(y[:, :2])).tolist() == [[0, 0], [0, 4]] and xp.cross(y[0], y[1]).tolist() == [-3, 6, -3]
    assert xp.einsum("ij,ij->i", y, y).tolist() == [5, 50] and xp.median(y).item() == 2.5
    assert xp.median(mt.tensor([[1, 2], [4, 8]], device=x.device), axis=1).tolist() == [1.5, 6]
    assert xp.bincount(mt.tensor([1, 3, 1], device=x.device), minlength=5).tolist() == [0, 2, 0, 1, 0]
    assert xp.diff(mt.tensor([1.0, 4.0, 9.0], device=x.device), 2).tolist() == [2]
    assert xp.isin(y[0], [1, 5]).tolist() == [False, True, False]
    assert xp.result_type("float32", mt.float64) is mt.float64 and xp.result_type("int8", 2) is mt.int8


def test_padding_says_what_it_does_not_do(x):
    with pytest.raises(NotImplementedError, match='^pad: expected mode="constant" and one number; got mode=\'wrap\''):
        xp.pad(x, 1, "wrap")


def test_special_functions_have_scipys_arguments_and_gradients(x):
    y = mt.tensor([0.5, 1.5], dtype=mt.float64, device=x.device, requires_grad=True)
    assert mt.allclose(xp.special.gammainc(1.0, y), 1 - mt.exp(-y)) and mt.allclose(xp.special.zeta(2.0, y[:0]), y[:0])
    assert xp.special.xlogy(y, 1.0).tolist() == [0, 0] and xp.special.xlog1py(2.0, y).shape == (2,)
    orders = mt.tensor([0, 2], device=x.device)
    found = xp.special.polygamma(orders, y)
    assert mt.allclose(found, mt.stack([mt.special.digamma(y[0]), mt.special.polygamma(2, y[1])]))
    for call in (
        lambda t: xp.special.gammainc(2.0, t),
        lambda t: xp.special.polygamma(orders, t),
        lambda t: xp.special.zeta(2.0, t),
        lambda t: xp.nanstd(t),
    ):
        assert gradcheck(call, (y,))
