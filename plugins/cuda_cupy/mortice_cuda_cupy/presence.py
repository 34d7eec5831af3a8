"""What must be there before anything can run on a GPU, each missing part with how to get it."""

from __future__ import annotations

INSTALL = (
    "`pip install mortice-cuda-cupy[cuda13]` for a driver that supports CUDA 13 (580 or newer), "
    "[cuda12] for an older one; nvidia-smi shows the version"
)
OLDEST = 14


class NoGPU(RuntimeError):
    """CUDA cannot be used here."""


def require_gpu() -> None:
    """Raise with the reason and the remedy unless CuPy, a driver and a GPU are there."""
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise NoGPU(
                f"CuPy is installed but lacks the module {error.name}: {error}. Install it anew: {INSTALL}."
            ) from error
        raise NoGPU(f"CuPy is not installed: {INSTALL}.") from error
    except ImportError as error:
        raise NoGPU(
            f"CuPy is installed but cannot be imported: {_reason(error)}. Install it anew: {INSTALL}."
        ) from error
    if int(cupy.__version__.partition(".")[0]) < OLDEST:
        raise NoGPU(f"CuPy {OLDEST} or newer is needed; this is {cupy.__version__}: {INSTALL}.")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise NoGPU(_without_driver(cupy, error)) from error
    if not count:
        raise NoGPU(f"the driver is there but shows no GPU. {_HIDDEN}")
    if reason := without_compiler():
        raise NoGPU(
            f"CuPy finds no NVRTC, which compiles kernels for the GPU: {reason}. CuPy's own package brings none; with the "
            f"extras come NVIDIA's libraries for that version of CUDA: {INSTALL}."
        )
    if without_headers(cupy.__version__):
        raise NoGPU(
            "CuPy finds no headers of CUDA, which its own kernels are compiled with. CuPy's own package brings none; they come "
            f"with the extras, or lie where CUDA_PATH points: {INSTALL}."
        )


def without_compiler() -> str:
    """Return why CuPy cannot compile, or nothing."""
    from cupy_backends.cuda.libs import nvrtc

    try:
        nvrtc.getVersion()
    except Exception as error:  # of the class of whatever looked for the library
        return _reason(error)
    return ""


def without_headers(version: str) -> bool:
    """Tell whether a CuPy of that version will find no headers: it asks NVIDIA's package `cuda.pathfinder`, since 14.1."""
    if [int(part) for part in version.split(".")[:2]] < [14, 1]:
        return False
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return False
    return find_nvidia_header_directory("cudart") is None


_HIDDEN = (
    "nvidia-smi lists what it finds; CUDA_VISIBLE_DEVICES may hide all of it, and a container needs GPUs handed in "
    "(`--gpus all`)."
)


def _without_driver(cupy: object, error: Exception) -> str:
    """Say what the runtime's refusal to count devices means."""
    text = _reason(error)
    if "cudaErrorNoDevice" in text:
        return f"the driver is there but shows no GPU ({text}). {_HIDDEN}"
    if "cudaErrorInsufficientDriver" in text or "libcuda" in text:
        runtime, driver = _versions(cupy)
        if not driver:
            return (
                f"no NVIDIA driver is installed here ({text}). It comes with the system, not from pip: "
                "https://www.nvidia.com/drivers; in a container, hand the GPUs in (`--gpus all`)."
            )
        return (
            f"the NVIDIA driver supports CUDA {driver}, this CuPy was built for CUDA {runtime} ({text}). Update the driver, "
            "or `pip uninstall` this CuPy and `pip install mortice-cuda-cupy[cuda12]`."
        )
    return f"the CUDA runtime finds no GPU that it can use ({text}). {_HIDDEN}"


def _versions(cupy: object) -> tuple[str, str]:
    """Return the CUDA versions of the runtime and the driver, the latter empty where there is none."""
    runtime = cupy.cuda.runtime  # type: ignore[attr-defined]
    shown = []
    for ask in (runtime.runtimeGetVersion, runtime.driverGetVersion):
        try:
            number = ask()
        except Exception:  # no driver gives no version
            number = 0
        shown.append(f"{number // 1000}.{number % 1000 // 10}" if number else "")
    return shown[0], shown[1]


def _reason(error: BaseException) -> str:
    """Return what an error says; CuPy's ImportErrors are a page of advice, with the reason after "Original error:"."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =\n")]
    if "Original error:" in lines[:-1]:
        lines = lines[lines.index("Original error:") + 1 :]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
