"""xarray around tensors: arithmetic by names of dimensions, alignment, reductions with and without NaN, groups."""

from __future__ import annotations

import warnings

import pytest

import mortice as mt

from .check import check_gradients, check_values
from .record import Client, normal

X = [normal(3, 4)]
PAIR = [normal(3, 4), normal(3, 4)]


def wrap(x):
    """Return a DataArray around an array."""
    import xarray

    return xarray.DataArray(x, dims=("x", "y"), coords={"x": [10, 20, 30]})


def array(name, call, inputs=X, gradient=True, note="", **facts):
    """A method or operator of DataArray."""
    return Client(
        f"xarray.DataArray{name}", inputs, lambda f, *a: call(*map(wrap, a)).data, gradient, note=note, **facts
    )


def function(name, call, inputs=X, note=""):
    """A function of DataArrays."""
    return Client(f"xarray.{name}", inputs, lambda f, *a: call(f, *map(wrap, a)).data, gradient=True, note=note)


def by_parity(a):
    import xarray

    return a.groupby(xarray.DataArray([0, 1, 0], dims="x", name="group"))


def with_nan(x):
    """Put NaN into a copy."""
    xp = x.__array_namespace__()
    return xp.where(x > 0.5, xp.asarray(float("nan"), dtype=x.dtype), x)


def skipping(name, **options):
    """A reduction over what is not NaN."""
    call = lambda f, x: getattr(wrap(with_nan(x)), name)("x", **options).data
    return Client(f"xarray.DataArray.{name}", X, call, note="with NaN")


CLIENTS = [
    array("", lambda a, b: a + b * 2 - a / b, PAIR, note="arithmetic"),
    array("", lambda a, b: a[:, 0] * b[1], PAIR, note="outer product by names"),
    array("", lambda a, b: a[:2] + b[1:], PAIR, note="alignment"),
    array("", lambda a: (a > 0) & (a < 1), gradient=False, note="comparison"),
    *[array(f".{name}", lambda a, name=name: getattr(a, name)("x")) for name in "sum mean prod max min median cumsum".split()],
    *[
        array(f".{name}", lambda a, name=name: getattr(a, name)("x", skipna=False), note="skipna=False")
        for name in "sum mean prod max min cumsum".split()
    ],
    *[array(f".{name}", lambda a, name=name: getattr(a, name)("x", ddof=1), note="ddof") for name in ("std", "var")],
    *[
        array(f".{name}", lambda a, name=name: getattr(a, name)("x", ddof=1, skipna=False), note="ddof, skipna=False")
        for name in ("std", "var")
    ],
    *[skipping(name) for name in "sum mean max min prod std var median cumsum cumprod count".split()],
    array(".argmax", lambda a: a.argmax("x"), gradient=False),
    array(".argmin", lambda a: a.argmin("y"), gradient=False),
    array(".isel", lambda a: a.isel(x=[0, 2], y=slice(1, 3))),
    array(".sel", lambda a: a.sel(x=[30, 10])),
    array(".where", lambda a: a.where(a > 0, 0.0)),
    array(".fillna", lambda a: a.fillna(0.0)),
    array(".isnull", lambda a: a.isnull(), gradient=False),
    array(".clip", lambda a: a.clip(-0.5, 0.5)),
    array(".astype", lambda a: a.astype(a.dtype) * 1),
    array(".transpose", lambda a: a.transpose("y", "x")),
    array(".expand_dims", lambda a: a.expand_dims("z")),
    array(".stack", lambda a: a.stack(z=("x", "y"))),
    array(".sortby", lambda a: a.sortby("x", ascending=False), gradient=False),  # a deep copy, which leaves the graph
    array(".diff", lambda a: a.diff("x")),
    array(".shift", lambda a: a.shift(x=1, fill_value=0.0)),
    array(".roll", lambda a: a.roll(x=1)),
    array(".pad", lambda a: a.pad(y=1, constant_values=2.0)),
    array(".coarsen", lambda a: a.coarsen(y=2).mean()),
    array(".groupby", lambda a: by_parity(a).sum(), note="sum"),
    array(".groupby", lambda a: by_parity(a).mean(), note="mean"),
    array(".groupby", lambda a: by_parity(a) - by_parity(a).mean(), note="anomaly"),
    array(".reindex", lambda a: a.reindex(x=[10, 30, 40], fill_value=0.0)),
    function("dot", lambda f, a, b: f(a, b, dim="y"), PAIR),
    function("concat", lambda f, a, b: f([a, b], "x"), PAIR),
    function("where", lambda f, a, b: f(a > 0, a, b), PAIR),
    function("apply_ufunc", lambda f, a: f(lambda x: x.__array_namespace__().exp(x), a)),
    function("apply_ufunc", lambda f, a: f(lambda x: x.__array_namespace__().mean(x, axis=-1), a, input_core_dims=[["y"]]),
             note="over a dimension"),
    function("ufuncs.sin", lambda f, a: f(a)),
    function("ufuncs.maximum", lambda f, a, b: f(a, b), PAIR),
    function("Dataset", lambda f, a, b: (lambda d: d.a + d.b)(f({"a": a, "b": b}).isel(x=1)), PAIR),
]  # fmt: skip


def test_the_result_is_numpys(client, device):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)  # NumPy's, about slices of NaN alone
        check_values(client, device)


def test_gradients_flow(client, device):
    check_gradients(client, device)


def test_what_holds_a_tensor_prints(device):
    pytest.importorskip("xarray", reason="xarray is not installed: it is not tried with tensors")
    assert "tensor([[1., 1., 1., 1.]" in repr(wrap(mt.ones(3, 4, device=device)))
