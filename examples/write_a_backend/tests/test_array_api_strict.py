"""The proof: the conformance kit on this backend, as anybody's plugin would run it.

The whole kit is `pytest --pyargs mortice_conformance --mortice-backend array_api_strict`.
"""

import pytest

import mortice
from mortice_conformance.cli import main

pytest.importorskip("array_api_strict")


def test_the_plugin_is_found() -> None:
    assert "array_api_strict" in mortice.backends.list()


def test_storage_and_required_kernels_conform() -> None:
    assert main(["run", "array_api_strict", "--level", "L1", "--quiet"]) == 0


def test_a_model_trains() -> None:
    with mortice.use_backend("array_api_strict"):
        mortice.manual_seed(0)
        x = mortice.linspace(-1, 1, 32).reshape(-1, 1)
        model = mortice.nn.Sequential(mortice.nn.Linear(1, 8), mortice.nn.Tanh(), mortice.nn.Linear(8, 1))
        optimizer = mortice.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(150):
            optimizer.zero_grad()
            loss = (model(x) - x * x).square().mean()
            loss.backward()
            optimizer.step()
        assert loss.item() < 0.01
        assert loss.device.backend.name == "array_api_strict"
