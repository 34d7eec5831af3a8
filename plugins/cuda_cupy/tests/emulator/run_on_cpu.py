"""Compile CUDA C++ sources for the CPU and call their kernels: tests run the plugin's kernels where there is no GPU.

`Module` stands for `kernels.build.Module`, over NumPy arrays. It is a tool of the tests and never
ships; `cuda_on_cpu.hpp` says what it emulates. Objects are kept by the hash of what they are made from.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).with_name("cuda_on_cpu.hpp")
# As inexact as a GPU may be: functions off by what CUDA allows, products and sums rounded once.
INEXACT = ("-DMORTICE_INEXACT", "-ffp-contract=fast", "-mfma")
# Vectors that lie askew, at which a GPU faults, and places outside of arrays in shared memory end the process.
FAULTS = ("-fsanitize=alignment,bounds", "-fsanitize-undefined-trap-on-error")
FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-fno-strict-aliasing", "-Wall", "-Wno-unused", "-Wno-attributes",
         "-Wno-unknown-pragmas", *FAULTS,
         *(INEXACT if os.environ.get("MORTICE_EMULATED_INEXACT") == "1" else ("-ffp-contract=off",)))  # fmt: skip
CACHE = Path(
    os.environ.get("MORTICE_EMULATOR_CACHE") or Path(tempfile.gettempdir()) / f"mortice-emulator-{os.getuid()}"
)

_BOUNDS = re.compile(r"__launch_bounds__\((\d+)[^)]*\)\s+(\w+)\s*\(")
# Threads of a block for which a kernel that declares no bound has registers enough, whatever it takes.
UNDECLARED = 256
_KERNEL = re.compile(r"extern\s+\"C\"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(")


def compiler() -> str | None:
    """Return the C++ compiler, or None where there is none."""
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")


class Module:
    """Kernels of one source; templates are called by the name expressions they were asked for with."""

    def __init__(self, code: str, options: Sequence[str] = (), name_expressions: Sequence[str] | None = None) -> None:
        self.names = list(name_expressions) if name_expressions is not None else _KERNEL.findall(code)
        self._bounds = {name: int(count) for count, name in _BOUNDS.findall(code)}
        self._library = ctypes.PyDLL(str(_built(code, _defines(options), tuple(self.names))))

    @functools.cache  # noqa: B019  a module lives as long as the process
    def get_function(self, name: str) -> Callable[..., None]:
        """Return the kernel as a function of (grid, block, args, shared_mem, together)."""
        number = self.names.index(name)
        launch = getattr(self._library, f"launch_{number}")
        sizes = (ctypes.c_int * 256)()
        count = getattr(self._library, f"describe_{number}")(sizes)
        most = self._bounds.get(name.partition("<")[0], UNDECLARED)
        return functools.partial(_launch, launch, name, tuple(sizes[:count]), most)


def _launch(
    launch: Any, name: str, sizes: tuple[int, ...], most: int, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
    shared_mem: int = 0, together: bool = False,
) -> None:  # fmt: skip
    if type(grid) is not tuple or type(block) is not tuple:
        raise TypeError(f"{name}: expected tuples for grid and block, as CuPy does; got {grid} and {block}")
    if (threads := math.prod(block)) > most:
        raise RuntimeError(
            f"{name}: {threads} threads where {most} are declared: too many resources requested for launch"
        )
    if shared_mem > 48 << 10:
        raise RuntimeError(f"{name}: more than 48 KiB of shared memory must be asked for before: invalid argument")
    if len(args) != len(sizes):
        raise TypeError(f"{name}: takes {len(sizes)} arguments; got {len(args)}")
    values = [_value(name, i, x, size) for i, (x, size) in enumerate(zip(args, sizes))]
    pointers = (ctypes.c_void_p * max(len(values), 1))(*[v.ctypes.data for v in values])
    three = lambda n: (ctypes.c_uint * 3)(*n, *[1] * (3 - len(n)))
    launch(three(grid), three(block), ctypes.c_size_t(shared_mem), ctypes.c_bool(together), pointers)


def _value(name: str, i: int, x: Any, size: int) -> Any:
    """Return a 0-d array of an argument's bytes; pointers go to pointers and scalars to scalars of their size."""
    null = x is None or (size < 0 and isinstance(x, np.uint64) and x == 0)
    if isinstance(x, np.ndarray) and x.dtype.kind == "V" and x.dtype.names:  # a struct, by value
        if size != x.nbytes or x.size != 1:
            raise TypeError(f"{name}: argument {i} is {size} bytes; got {x.size} structs of {x.itemsize}")
        return x
    is_pointer = null or isinstance(x, np.ndarray)
    if type(x) is int and size < 0:  # an address
        return np.array(x, np.uint64)
    if is_pointer:
        value = np.array(0 if null else x.ctypes.data, np.uint64)
    else:
        # As CuPy has it: plain numbers are 64 bits wide.
        value = np.array(x, np.int64) if type(x) is int else np.array(x)
    if is_pointer != (size < 0) or value.nbytes != abs(size):
        raise TypeError(f"{name}: argument {i} is {'a pointer' if size < 0 else f'{size} bytes'}; got {type(x)}")
    return value


def _defines(options: Sequence[str]) -> tuple[str, ...]:
    return tuple(o for o in options if o.startswith("-D"))


def _built(code: str, defines: tuple[str, ...], names: tuple[str, ...]) -> Path:
    """Return the shared object of a source, made when it is not there yet."""
    cxx = compiler()
    if cxx is None:
        raise RuntimeError("CUDA on the CPU: needs a C++ compiler; got none. Install g++ or set CXX")
    launchers = "".join(
        f'extern "C" void launch_{i}(const unsigned *g, const unsigned *b, size_t shared, bool together, void **args) {{\n'
        f"  on_cpu::run({{g[0], g[1], g[2]}}, {{b[0], b[1], b[2]}}, shared, together,\n"
        f"              [](void **a) {{ on_cpu::call({name}, a); }}, args);\n}}\n"
        f'extern "C" int describe_{i}(int *sizes) {{ return on_cpu::describe({name}, sizes); }}\n'
        for i, name in enumerate(names)
    )
    text = f'#line 1 "kernels.cu"\n{code}\n{launchers}'
    parts = (text, HEADER.read_text(), *FLAGS, *defines, cxx)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    target = CACHE / f"{key}.so"
    if target.exists():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        source, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        source.write_text(text)
        command = [cxx, *FLAGS, *defines, "-include", str(HEADER), str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"CUDA on the CPU: the source does not compile:\n{done.stderr[:4000]}")
        made.replace(target)
    return target
