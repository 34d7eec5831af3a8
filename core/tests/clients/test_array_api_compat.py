"""array-api-compat on tensors: what it says of them, which every other client starts from."""

from __future__ import annotations

import pytest

import mortice as mt

from .check import check_gradients, check_values
from .record import Client, normal

compat = pytest.importorskip(
    "array_api_compat", reason="array-api-compat is not installed: it is not tried with tensors"
)

CLIENTS = [
    Client("array_api_compat.size", [normal(3, 4)]),
    Client("array_api_compat.to_device", [normal(3, 4)], lambda f, x: f(x * 2, compat.device(x)), gradient=True),
    Client("array_api_compat.is_array_api_obj", [normal(3, 4)]),
    Client("array_api_compat.is_writeable_array", [normal(3, 4)]),
    Client("array_api_compat.is_lazy_array", [normal(3, 4)]),
]


def test_the_result_is_numpys(client, device):
    check_values(client, device)


def test_gradients_flow(client, device):
    check_gradients(client, device)


def test_the_namespace_is_ours(device):
    from mortice import array_api

    x = mt.ones(2, 3, device=device)
    assert compat.array_namespace(x, 2.0, None) is array_api and array_api.__name__ == "mortice.array_api"
    assert compat.device(x) == device and compat.size(x) == 6
    names = [n for n in dir(compat) if n.startswith("is_") and n.endswith(("_array", "_namespace"))]
    taken_for = {n for n in names if getattr(compat, n)(x if n.endswith("_array") else array_api)}
    assert taken_for == {"is_writeable_array"}


def test_arrays_of_two_libraries_do_not_mix(device):
    np = pytest.importorskip("numpy", reason="NumPy is not installed: nothing is mixed with it")
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(mt.ones(2, device=device), np.ones(2))
