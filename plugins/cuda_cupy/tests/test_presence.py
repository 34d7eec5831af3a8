"""Without CuPy, a driver or a GPU: what the plugin says, and that nothing breaks."""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import subprocess
import sys
from importlib.machinery import PathFinder  # which asks what is installed, not what a test has put in its place
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]

IMPORT_ERROR = """
================================================================
Failed to import CuPy.

If you installed CuPy via wheels, make sure that the package matches with the version of CUDA installed.

Original error:
  ImportError: libnvrtc.so.13: cannot open shared object file: No such file or directory
================================================================
"""
# What CuPy and the CUDA runtime say in each place, as a module `cupy` would.
PLACES = {
    "no driver": (
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version", 0,
        ["no NVIDIA driver is installed here", "https://www.nvidia.com/drivers", "--gpus all"],
    ),
    "old driver": (
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version", 12040,
        ["the NVIDIA driver supports CUDA 12.4, this CuPy was built for CUDA 13.2", "mortice-cuda-cupy[cuda12]"],
    ),
    "no device": (
        "cudaErrorNoDevice: no CUDA-capable device is detected", 13020,
        ["the driver is there but shows no GPU", "CUDA_VISIBLE_DEVICES"],
    ),
}  # fmt: skip
PROGRAM = """
import json, sys
sys.path[:0] = {path!r}
import mortice_cuda_cupy
from mortice.backends import plugins
if "cuda_cupy" not in plugins.entries():
    plugins.register(mortice_cuda_cupy.mortice_backends()[0], "mortice-cuda-cupy")
from mortice.__main__ import survey, text
found = survey()
import mortice as mt
try:
    mt.ones(1, device="cuda")
except RuntimeError as error:
    refused = str(error)
print(json.dumps([text(found), refused, mt.cuda.is_available(), mt.cuda.device_count(), mt.ones(2).tolist()]))
"""


def _ask(*path: Path, **variables: str) -> tuple[str, str]:
    """Return what the listing and a refused tensor say in a process with these folders before all others."""
    code = PROGRAM.format(path=[*map(str, path), str(HERE)])
    environment = {**os.environ, **variables}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert run.returncode == 0, run.stderr
    listing, refused, available, count, ones = json.loads(run.stdout.splitlines()[-1])
    assert not available and count == 0 and ones == [1.0, 1.0]
    assert "! cuda_cupy" in listing and "no backend offers it" in refused
    return listing, refused


def _cupy(folder: Path, text: str) -> Path:
    (folder / "cupy").mkdir()
    (folder / "cupy" / "__init__.py").write_text(text)
    return folder


@pytest.mark.skipif(PathFinder.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_the_listing_says_what_to_install() -> None:
    for said in _ask():
        assert "CuPy is not installed: `pip install mortice-cuda-cupy[cuda13]`" in said and "[cuda12]" in said


def test_a_cupy_that_cannot_be_imported_gives_its_own_reason(tmp_path: Path) -> None:
    listing, _ = _ask(_cupy(tmp_path, f"raise ImportError({IMPORT_ERROR!r})"))
    assert "cannot be imported: ImportError: libnvrtc.so.13: cannot open shared object file" in listing


def test_an_old_cupy_is_refused(tmp_path: Path) -> None:
    assert "CuPy 14 or newer is needed; this is 13.4.0" in _ask(_cupy(tmp_path, "__version__ = '13.4.0'"))[0]


@pytest.mark.parametrize("place", PLACES)
def test_each_missing_part_of_cuda_is_named_with_its_remedy(place: str, tmp_path: Path) -> None:
    error, driver, expected = PLACES[place]
    module = f"""
from types import SimpleNamespace
__version__ = "14.2.0"
def refuse():
    raise RuntimeError({error!r})
runtime = SimpleNamespace(getDeviceCount=refuse, runtimeGetVersion=lambda: 13020, driverGetVersion=lambda: {driver})
cuda = SimpleNamespace(runtime=runtime)
"""
    listing, refused = _ask(_cupy(tmp_path, module))
    for text in expected:
        assert text in listing and text in refused


def test_a_machine_without_headers_of_cuda(tmp_path: Path) -> None:
    module = """
from types import SimpleNamespace
__version__ = "14.2.0"
cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: 1))
"""
    for package, text in (
        ("cupy_backends", ""), ("cupy_backends/cuda", ""), ("cupy_backends/cuda/libs", ""),
        ("cupy_backends/cuda/libs/nvrtc", "def getVersion(): return 13, 0"), ("cuda", ""),
        ("cuda/pathfinder", "def find_nvidia_header_directory(name): return None"),
    ):  # fmt: skip
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(text)
    for said in _ask(_cupy(tmp_path, module)):
        assert "CuPy finds no headers of CUDA" in said and "mortice-cuda-cupy[cuda13]" in said


# ---- CuPy itself, where it is installed and there is no driver: a driver of three functions takes its place ----

CUPY = pytest.mark.skipif(PathFinder.find_spec("cupy") is None, reason="CuPy is not installed; `make cuda` brings it")
ALONE = pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver here")
DRIVER = """
int cuInit(unsigned flags) { return INIT; }
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuDeviceGetCount(int *count) { *count = 0; return INIT; }
"""


@CUPY
@ALONE
def test_cupy_without_a_driver() -> None:
    for said in _ask():
        assert "no NVIDIA driver is installed here (cudaErrorInsufficientDriver" in said and "https://www.nvidia.com" in said


@CUPY
@ALONE
@pytest.mark.parametrize(
    ("version", "init", "expected"),
    [
        (11080, 0, "the NVIDIA driver supports CUDA 11.8, this CuPy was built for CUDA"),
        (99000, 100, "the driver is there but shows no GPU (cudaErrorNoDevice"),
    ],
)
def test_cupy_on_a_driver_that_will_not_do(version: int, init: int, expected: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a driver with")
    (tmp_path / "driver.c").write_text(DRIVER)
    numbers = [f"-DVERSION={version}", f"-DINIT={init}"]
    library = str(tmp_path / "libcuda.so.1")
    subprocess.run([compiler, "-shared", "-fPIC", *numbers, str(tmp_path / "driver.c"), "-o", library], check=True)
    for said in _ask(LD_LIBRARY_PATH=str(tmp_path)):
        assert expected in said


@CUPY
def test_cupy_without_nvidias_compiler() -> None:
    program = "from mortice_cuda_cupy.presence import without_compiler; print(without_compiler())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment)
    assert run.returncode == 0, run.stderr
    if not run.stdout.strip():
        pytest.skip("CuPy finds NVRTC here")
    assert "libnvrtc" in run.stdout
