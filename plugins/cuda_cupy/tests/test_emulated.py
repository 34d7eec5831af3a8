"""The whole plugin on the stand-in for CuPy, in processes of their own: nothing here is a GPU.

The rest of the conformance kit runs the same way: `python plugins/cuda_cupy/tests/emulator/emulated.py run cuda_cupy`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _run(*arguments: str, devices: int = 2, order: str = "forwards") -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "emulator"), *sys.path]),
                   "MORTICE_EMULATED_DEVICES": str(devices), "MORTICE_EMULATED_ORDER": order}  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "emulated", "-p", "no:cacheprovider", *arguments],
        capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    return run.stdout


def test_scans_and_sorting_in_any_order_of_threads() -> None:
    assert " passed" in _run(str(HERE / "test_scan.py"), str(HERE / "test_sort.py"), devices=1, order="7")


def test_memory_of_the_host_and_of_other_streams() -> None:
    assert " passed" in _run(str(HERE / "test_pinned.py"), devices=1)


def test_what_a_training_step_launches() -> None:
    assert " passed" in _run(str(HERE / "test_launches.py"), devices=1)


@pytest.mark.parametrize("devices", [1, 2])
def test_device_semantics(devices: int) -> None:
    assert " passed" in _run(
        str(HERE / "test_device.py"), str(HERE / "test_capture.py"), str(HERE / "test_direct.py"), devices=devices
    )


@pytest.mark.parametrize("devices", [1, 2])
def test_convolution_and_attention_by_cudnn(devices: int) -> None:
    assert " passed" in _run(str(HERE / "test_cudnn.py"), devices=devices)


@pytest.mark.slow
def test_the_kits_kernels_storage_and_layouts() -> None:
    pytest.importorskip("mortice_conformance", reason="the conformance kit is not installed")
    chosen = "test_storage or test_kernel or test_robust or test_memory"
    assert " passed" in _run("--pyargs", "mortice_conformance", "--mortice-backend", "cuda_cupy", "-k", chosen)
