"""CuPy itself, as it is installed, on a driver that does nothing: the plugin's Python meets CuPy's there, and no GPU takes part.

What calls with the wrong arguments, or takes CuPy for something that it is not, fails here; no value means anything. CuPy has the CUDA
runtime inside, so that its functions are overwritten in memory, by jumps to those of `driver.c`: on x86-64, where the wheel
names them. Nothing is compiled for a GPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# One and the same, by the names under which CuPy looks for each.
_NAMES = ("libcuda.so.1", "libcudart.so.13", "libnvrtc.so.13", "libcublas.so.13", "libcublasLt.so.13")


def missing() -> str:
    """Return why it cannot be done here, or nothing."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "CuPy's runtime is overwritten by machine code of x86-64, on Linux"
    if not (shutil.which("cc") and shutil.which("nm")):
        return "a C compiler and nm are not here"
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed here"
    return "" if _runtime() else "this CuPy names no functions of the runtime"


def _module(name: str) -> Path:
    package, _, module = name.rpartition(".")
    (folder,) = importlib.util.find_spec(package).submodule_search_locations  # type: ignore[union-attr, misc]
    return next(Path(folder).glob(f"{module}.*.so"))


def _nm(file: Path, *options: str) -> str:
    return subprocess.run(["nm", *options, str(file)], capture_output=True, text=True).stdout


def _runtime() -> list[tuple[str, str]]:
    return re.findall(r"^([0-9a-f]+) [tT] (cuda[A-Z]\w+)$", _nm(_module("cupy_backends.cuda.api.runtime")), re.M)


def install(folder: Path) -> dict[str, Any]:
    """Put the driver where CuPy finds it, in this process; return the counts of launches and of products."""
    source = (HERE / "driver.c").read_text()
    asked = set(re.findall(r" (cublas\w+)@", _nm(_module("cupy_backends.cuda.libs.cublas"), "-D", "--undefined-only")))
    rest = [f"int {name}(void) {{ return 0; }}\n" for name in sorted(asked) if f"int {name}(" not in source]
    (folder / "driver.c").write_text(source + "".join(rest))
    (folder / "versions").write_text("libcublas.so.13 { global: *; };\n")
    loaded = {}
    for name in _NAMES:
        command = ["cc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", name, "driver.c"]
        subprocess.run(command + ["-Wl,--version-script=versions"] * ("cublas." in name), check=True, cwd=folder)
        loaded[name] = ctypes.CDLL(str(folder / name))
    _overwrite(_module("cupy_backends.cuda.api.runtime"), loaded["libcudart.so.13"])
    _loaded.update(loaded)
    import cuda.pathfinder
    from cupy.cuda import Module, compiler

    own = inspect.signature(compiler._compile_with_cache_cuda)

    def compiled(*args: Any, **options: Any) -> Any:
        module = Module()
        module.load(b"nothing")
        module._set_mapping({name: name for name in own.bind(*args, **options).arguments.get("name_expressions") or ()})
        return module

    # What compiles for a GPU has tests of its own, and takes long.
    cuda.pathfinder.find_nvidia_header_directory = lambda name: str(folder)
    compiler._compile_with_cache_cuda = compiled
    compiler.compile_using_nvrtc = lambda *args, name_expressions=(), **options: (b"nothing", {n: n for n in name_expressions})
    return {"launches": ctypes.c_uint64.in_dll(loaded["libcuda.so.1"], "launches"),
            "products": ctypes.c_uint64.in_dll(loaded["libcublas.so.13"], "products")}  # fmt: skip


_loaded: dict[str, Any] = {}


def idle() -> None:
    """Have copies and fills reach nothing from now on: they take the host's time for what the device would do."""
    for library in _loaded.values():
        ctypes.c_int.in_dll(library, "idle").value = 1


def parameters(launch: Any, count: int) -> list[int]:
    """Return the words of a launch's first parameters."""
    driver = _loaded["libcuda.so.1"]
    watched = ctypes.c_int.in_dll(driver, "watched")
    watched.value = count
    launch()
    watched.value = 0
    return list((ctypes.c_uint64 * count).in_dll(driver, "seen"))


def strays(expected: int) -> int:
    """Return how much work went to another stream than was expected; from now on expect this one, or with 0 any."""
    found = 0
    for library in _loaded.values():
        count = ctypes.c_uint64.in_dll(library, "strayed")
        found, count.value = found + count.value, 0
        ctypes.c_void_p.in_dll(library, "expected").value = expected
    return found


def _overwrite(file: Path, driver: Any) -> None:
    """Let each function of the runtime that a library has inside jump to the driver's."""
    ctypes.CDLL(str(file))
    maps = Path("/proc/self/maps").read_text().splitlines()
    base = int(next(line for line in maps if line.endswith(str(file.resolve()))).split("-")[0], 16)
    opened: set[int] = set()
    for offset, name in _runtime():
        at = base + int(offset, 16)
        for page in {at & ~4095, (at + 11) & ~4095} - opened:
            if ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), 4096, 7):
                raise OSError("the runtime's memory cannot be written to")
            opened.add(page)
        to = ctypes.cast(getattr(driver, name, driver.nothing), ctypes.c_void_p).value
        ctypes.memmove(at, b"\x48\xb8" + to.to_bytes(8, "little") + b"\xff\xe0", 12)  # type: ignore[union-attr]  # mov rax, to; jmp rax


def plugin() -> None:
    """Offer the plugin, whether it is installed or not."""
    sys.path.insert(0, str(HERE.parents[1]))
    import mortice_cuda_cupy
    from mortice.backends import plugins

    if "cuda_cupy" not in plugins.entries():
        for info in mortice_cuda_cupy.mortice_backends():
            plugins.register(info, "mortice-cuda-cupy")
