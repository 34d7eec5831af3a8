"""The proof that JAX serves: what the conformance kit asks first, and two models that train as on cpu_numpy.

The whole kit is `mortice-conformance run jax`.
"""

import pytest

import mortice
from mortice_conformance.cli import main

pytest.importorskip("jax", reason="SKIPPED: jax is not installed")
pytest.importorskip("mortice_example_jax", reason="SKIPPED: pip install ./examples/backends/jax")


def test_the_plugin_is_found() -> None:
    assert "jax" in mortice.backends.list()


def test_storage_and_required_kernels_conform() -> None:
    # To compile each kernel for each shape takes minutes, of one thread.
    assert main(["run", "jax", "--level", "L1", "--quiet", "--jobs", "2"]) == 0


@pytest.mark.parametrize("model", ["perceptron", "convolutional"])
def test_a_model_trains_as_on_numpy(trains_alike, model) -> None:
    trains_alike("jax", model)
