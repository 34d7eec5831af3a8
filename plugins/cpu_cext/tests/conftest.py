"""The tests of the plugin run on it; where the extension is not built they skip, aloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mortice as mt

sys.path.append(str(Path(__file__).parent))  # for `lists` and `products`, which the tests share


@pytest.fixture(scope="session")
def k() -> Any:
    """The backend."""
    pytest.importorskip("mortice_cpu_cext._cext", reason="the C extension is not built here: no C++ compiler")
    from mortice.backends.plugins import load

    return load("cpu_cext")


@pytest.fixture
def modern(k: Any) -> None:
    """Skip a test of what the default bodies do otherwise, such as to step in place: networks' kernels ask for AVX2."""
    if not hasattr(sys.modules["mortice_cpu_cext._cext"], "batch_norm"):
        pytest.skip("the default bodies serve networks on x86 processors without AVX2, and with MORTICE_ISA=baseline")


@pytest.fixture(autouse=True)
def on_cext(k: Any) -> Iterator[None]:
    """Let new tensors be made by the backend."""
    with mt.use_backend("cpu_cext"):
        yield
