"""NVIDIA's real cuDNN without a GPU: its heuristics and its compilers, for a device that is only described.

cuDNN 9.8 and newer plans for a device from its properties (the frontend calls it deviceless compilation). Its libraries
still want libcuda.so.1, the driver's, to be there: `stand_in()` compiles one that answers "no device" and takes compiled
kernels without loading them. Plans can be made, with all their checks; nothing can run.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_REFUSES = """
cuGetErrorString cuGetErrorName cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel cuCtxGetCurrent cuCtxGetDevice
cuCtxGetLimit cuCtxPopCurrent cuCtxPushCurrent cuStreamGetCtx cuLinkCreate cuLinkAddData cuLinkComplete cuLinkDestroy
cuDeviceGet cuDeviceGetCount cuDeviceGetAttribute cuLibraryLoadFromFile cuFuncSetAttribute cuFuncGetAttribute
cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveClusters cuTensorMapEncodeTiled cuTensorMapEncodeIm2col
cuModuleUnload cuModuleGetGlobal cuModuleLoadDataEx cuMemcpyHtoDAsync cuInit cuStreamWaitEvent cuGetProcAddress
"""
_GIVES = "cuLibraryLoadData cuLibraryGetKernel cuKernelGetFunction cuModuleLoadData cuModuleGetFunction"
_NO_DEVICE = 100
# As the frontend writes the properties of a device; an H200, and an A100.
_COMMON: dict[str, Any] = {
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "cudaDeviceId": 0, "driverVer": 13000,
    "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024,
    "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
    "isTccDriver": 0, "supportCoopLaunch": 1, "oversizedSharedMemoryPerBlock": 0, "smCountOrigin": 0,
}  # fmt: skip
DEVICES: dict[int, dict[str, Any]] = {
    90: {
        "deviceVer": 900, "deviceName": "NVIDIA H200", "multiProcessorCount": 132, "smClockRateKHz": 1980000,
        "memClockRateKHz": 3201000, "memoryBusWidth": 6144, "l2CacheSize": 62914560, "totalGlobalMem": 150754820096,
        "maxSharedMemoryPerBlockOptin": 232448,
    },
    80: {
        "deviceVer": 800, "deviceName": "NVIDIA A100", "multiProcessorCount": 108, "smClockRateKHz": 1410000,
        "memClockRateKHz": 1593000, "memoryBusWidth": 5120, "l2CacheSize": 41943040, "totalGlobalMem": 85899345920,
        "maxSharedMemoryPerBlockOptin": 166912,
    },
}  # fmt: skip


def _source() -> str:
    lines = [f"int {name}(void) {{ return {_NO_DEVICE}; }}" for name in _REFUSES.split()]
    lines += [f"int {name}(void **out) {{ *out = (void *)16; return 0; }}" for name in _GIVES.split()]
    lines += [f"int {name}(void) {{ return 0; }}" for name in ("cuLibraryUnload", "cuKernelSetAttribute")]
    lines += ["int cuKernelGetAttribute(int *out) { *out = 0; return 0; }"]
    lines += ["int cuDriverGetVersion(int *out) { *out = 13000; return 0; }"]
    lines += ["int cuOccupancyMaxPotentialClusterSize(int *out) { *out = 8; return 0; }"]
    return "\n".join(lines)


def missing() -> str:
    """Say what is not here to try cuDNN with, or nothing."""
    if shutil.which("cc") is None:
        return "no C compiler, for a stand-in of libcuda"
    if not _libraries("cudnn/lib/libcudnn.so.9"):
        return "nvidia-cudnn-cu13 is not installed; `make cudnn` fetches it, with cuBLAS 1 GB, which CI does not"
    if not _libraries("cu13/lib/libcublasLt.so.*"):
        return "nvidia-cublas is not installed, which cuDNN wants; `make cudnn` fetches it"
    if ctypes.util.find_library("cuda"):
        return "a driver is here, and with it perhaps a GPU: test_cudnn runs on that"
    try:
        import cudnn  # noqa: F401
    except ImportError:
        return "nvidia-cudnn-frontend is not installed"
    return ""


def _libraries(pattern: str) -> list[str]:
    """Return files of NVIDIA's wheels, wherever Python looks for modules."""
    places = dict.fromkeys([sysconfig.get_path("purelib"), *sys.path])
    return [name for place in places for name in sorted(glob.glob(str(Path(place, "nvidia", pattern))))]


def stand_in() -> None:
    """Load a libcuda.so.1 for this process, and what cuDNN would look for in the places of the system."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "cuda.c"), Path(folder, "libcuda.so.1")
        source.write_text(_source())
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source], check=True)
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    # cuDNN's own too: its frontend looks for it where Python's packages are, and then among what is loaded.
    for pattern in ("cu13/lib/libnvrtc.so.*", "cu13/lib/libcublasLt.so.*", "cu13/lib/libcublas.so.*", "cudnn/lib/libcudnn.so.9"):
        for name in _libraries(pattern):
            ctypes.CDLL(name, ctypes.RTLD_GLOBAL)


def place(version: int) -> Any:
    """Return a place on a device of that compute capability, for `plans.make`."""
    import cudnn

    properties = cudnn.create_device_properties(json.dumps({**_COMMON, **DEVICES[version]}))
    return SimpleNamespace(
        device={"device_property": properties, "sm_version": version}, handle=None, number=0, index=0, stream=0, plans={},
        memory=DEVICES[version]["totalGlobalMem"],
    )  # fmt: skip
