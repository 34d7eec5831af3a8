"""Compile CUDA sources and keep the result on disk, in CuPy's folder for such.

Not by `cupy.RawModule`: all that CuPy compiles for its kernels flushes subnormal numbers of float32 to zero (`-ftz=true`), which
neither the CPU nor PyTorch does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_LENGTH = 8  # bytes that say how long the names are


class Everywhere:
    """A kernel on each of several devices."""

    def __init__(self, load: Callable[[int], Any]) -> None:
        import cupy

        self._load, self._device = load, cupy.cuda.runtime.getDevice
        self._found: dict[int, Any] = {}

    def here(self) -> Any:
        """Return it as it is on the current device."""
        index = self._device()
        if index not in self._found:
            self._found[index] = self._load(index)
        return self._found[index]

    def __call__(self, grid: Any, block: Any, args: Any) -> None:
        self.here()(grid, block, args)


class Module:
    """Kernels of one text, for each device that they are launched on."""

    def __init__(self, code: str, options: Sequence[str], names: Sequence[str]) -> None:
        self._code, self._options, self._names = code, tuple(options), tuple(names)
        self._devices: dict[int, tuple[Any, list[str]]] = {}

    def get_function(self, name: str) -> Callable[..., None]:
        """Return a kernel; compile or load it, on the current device."""
        import cupy

        at = self._names.index(name)

        def load(index: int) -> Any:
            if index not in self._devices:
                self._devices[index] = self._loaded()
            module, mangled = self._devices[index]
            return module.get_function(mangled[at])

        kernel = Everywhere(load)
        here = kernel.here()
        return here if cupy.cuda.runtime.getDeviceCount() == 1 else kernel  # type: ignore[no-any-return]

    def _loaded(self) -> tuple[Any, list[str]]:
        import cupy

        module = cupy.cuda.Module()
        with contextlib.suppress(OSError, ValueError, cupy.cuda.driver.CUDADriverError):  # missing, or no longer whole
            mangled, cubin = _opened(self._file().read_bytes())
            module.load(cubin)
            return module, mangled
        cubin, mapping = cupy.cuda.compiler.compile_using_nvrtc(
            self._code, self._options, name_expressions=self._names, cache_in_memory=True
        )
        mangled = [mapping[name] for name in self._names]
        module.load(cubin)
        with contextlib.suppress(OSError):  # kept where that can be
            _keep(self._file(), mangled, cubin)
        return module, mangled

    def _file(self) -> Path:
        import cupy
        from cupy_backends.cuda.libs import nvrtc

        arch = cupy.cuda.Device().compute_capability
        parts = (cupy.__version__, str(nvrtc.getVersion()), arch, *self._options, *self._names, self._code)
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
        folder = os.environ.get("CUPY_CACHE_DIR") or os.path.expanduser("~/.cupy/kernel_cache")  # stays so where there is no home
        return Path(folder) / f"{key}.mortice"


def _keep(file: Path, mangled: Sequence[str], cubin: bytes) -> None:
    names = "\n".join(mangled).encode()
    text = len(names).to_bytes(_LENGTH, "little") + names + cubin
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as made:
        made.write(text + hashlib.sha256(text).digest())
    os.replace(made.name, file)  # at once: other processes read there


def _opened(text: bytes) -> tuple[list[str], bytes]:
    """Return the names that the compiler gave, and the machine code."""
    text, digest = text[:-32], text[-32:]
    if hashlib.sha256(text).digest() != digest:
        raise ValueError
    end = _LENGTH + int.from_bytes(text[:_LENGTH], "little")
    return text[_LENGTH:end].decode().split("\n"), text[end:]
