"""The proof that dask.array serves: what the conformance kit asks first, and two models that train as on cpu_numpy.

The whole kit is `mortice-conformance run dask`.
"""

import pytest

import mortice
from mortice_conformance.cli import main

pytest.importorskip("dask", reason="SKIPPED: dask is not installed")
pytest.importorskip("mortice_example_dask", reason="SKIPPED: pip install ./examples/backends/dask")


def test_the_plugin_is_found() -> None:
    assert "dask" in mortice.backends.list()


def test_storage_and_required_kernels_conform() -> None:
    assert main(["run", "dask", "--level", "L1", "--quiet"]) == 0


@pytest.mark.parametrize("model", ["perceptron", "convolutional"])
def test_a_model_trains_as_on_numpy(trains_alike, model) -> None:
    trains_alike("dask", model)
