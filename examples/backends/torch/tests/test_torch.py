"""The proof that PyTorch serves: what the conformance kit asks first, and two models that train as on cpu_numpy.

The whole kit is `mortice-conformance run torch`.
"""

import pytest

import mortice
from mortice_conformance.cli import main

pytest.importorskip("torch", reason="SKIPPED: torch is not installed")
pytest.importorskip("mortice_example_torch", reason="SKIPPED: pip install ./examples/backends/torch")


def test_the_plugin_is_found() -> None:
    assert "torch" in mortice.backends.list()


def test_storage_and_required_kernels_conform() -> None:
    assert main(["run", "torch", "--level", "L1", "--quiet"]) == 0


@pytest.mark.parametrize("model", ["perceptron", "convolutional"])
def test_a_model_trains_as_on_numpy(trains_alike, model) -> None:
    trains_alike("torch", model)
