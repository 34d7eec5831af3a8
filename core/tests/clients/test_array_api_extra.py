"""array-api-extra on tensors: all of its functions."""

from __future__ import annotations

import pytest

from .check import check_gradients, check_refusal, check_values
from .record import Client, integers, normal, spread, uniform, values

X = normal(3, 4)
P = uniform(1, 4, 3, 4)
WORDS = integers(0, 5, 12)


def namespace(x):
    return x.__array_namespace__()


def extra(name, *inputs, call=None, gradient=True, **facts):
    """One function of array-api-extra."""
    facts |= {} if call is None else {"call": call}
    return Client(f"array_api_extra.{name}", list(inputs), gradient=gradient, **facts)


def at(method, *given):
    """Update a part of a copy."""
    return lambda f, x: getattr(f(x)[1:, ::2], method)(*given, copy=True)


def sort(name):
    """Sort the part that a partition leaves unsorted, so that there is one right answer."""

    def call(f, x):
        xp = namespace(x)
        found = f(x, 3)
        found = xp.take(x, found) if name == "argpartition" else found
        return xp.concat([xp.sort(found[:3]), found[3:4], xp.sort(found[4:])])

    return call


CLIENTS = [
    extra("angle", X, call=lambda f, x: f(x + 1j)),
    extra("apply_where", X, X, call=lambda f, x, y: f(x > 0, (x, y), lambda a, b: a * b, lambda a, b: a / b)),
    extra("apply_where", X, call=lambda f, x: f(x > 0, x, lambda a: namespace(a).log(a), fill_value=-1.0), note="fill value"),
    extra("argpartition", spread(9), call=sort("argpartition")),
    extra("partition", spread(9), call=sort("partition")),
    *[extra("at", X, call=at(method, 2.5), note=method) for method in ("set", "add", "subtract", "multiply", "divide")],
    extra("at", P, call=at("power", 2.5), note="power"),
    *[extra("at", P, call=at(method, 2.5), gradient=False, overwrites=True, note=method) for method in ("min", "max")],
    extra("at", X, call=lambda f, x: f(x, x > 0).set(7.0, copy=True), note="mask"),
    extra("atleast_nd", X, call=lambda f, x: f(x, ndim=4)),
    extra("broadcast_shapes", X, call=lambda f, x: f(x.shape, (5, 1, 1)), gradient=False),
    extra("cov", X),
    extra("create_diagonal", normal(3), call=lambda f, x: f(x, offset=1)),
    extra("deg2rad", X),
    extra("rad2deg", X),
    extra("expand_dims", X, call=lambda f, x: f(x, axis=(0, -1))),
    extra("isclose", X, X, gradient=False),
    extra("isin", WORDS, values(1, 3), gradient=False),
    extra("kron", X, normal(2, 2)),
    extra("lazy_apply", X, call=lambda f, x: f(lambda a: a * 2 + 1, x, shape=x.shape, dtype=x.dtype)),
    extra("nan_to_num", values(1.0, float("inf"), float("nan"), -2.0), gradient=False),
    extra("nanmax", X, call=lambda f, x: f(x, axis=1)),
    extra("nanmin", X, call=lambda f, x: f(x, axis=1)),
    extra("nansum", X, call=lambda f, x: f(x, axis=1)),
    extra("nanmean", X, call=lambda f, x: f(x, axis=1)),
    extra("nunique", WORDS, call=lambda f, x: int(f(x)), gradient=False),
    extra("one_hot", WORDS, call=lambda f, x: f(x, 5, dtype=namespace(x).float64), gradient=False),
    extra("pad", X, call=lambda f, x: f(x, ((1, 2), (0, 1)), constant_values=1.5)),
    extra("searchsorted", values(0.0, 1.0, 2.0), X, gradient=False),
    extra("setdiff1d", WORDS, values(1, 3), gradient=False),
    extra("union1d", WORDS, values(7, 3), gradient=False),
    extra("sinc", X),
    extra("unravel_index", values(3, 7, 11), call=lambda f, i: f(i, (3, 4)), gradient=False),
    extra("tril_indices", X, call=lambda f, x: f(4, xp=namespace(x)), gradient=False),
    extra("triu_indices", X, call=lambda f, x: f(4, offset=1, xp=namespace(x)), gradient=False),
    extra("diag_indices", X, call=lambda f, x: f(4, xp=namespace(x)), gradient=False),
]  # fmt: skip


# Two of them are deprecated: the standard has them by now.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated and will be removed in v1:DeprecationWarning")


def test_the_result_is_numpys(client, device):
    check_values(client, device)


def test_gradients_are_refused(client, device):
    check_refusal(client, device)


def test_gradients_flow(client, device):
    check_gradients(client, device)


def test_every_function_is_tried():
    library = pytest.importorskip(
        "array_api_extra", reason="array-api-extra is not installed: it is not tried with tensors"
    )
    tried = {c.name.rpartition(".")[2] for c in CLIENTS}
    # A dtype and a package of assertions: neither takes an array.
    assert tried >= set(library.__all__) - {"__version__", "default_dtype", "testing"}
