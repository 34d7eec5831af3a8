"""Compile CUDA C++ with NVRTC, or with nvcc: neither asks for a GPU."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any


@functools.cache
def library() -> Any:
    """Return libnvrtc: from MORTICE_NVRTC, the wheel `nvidia-cuda-nvrtc`, CUDA's folder or the system; None if none."""
    wheels = [Path(p) / "nvidia" for p in sys.path]
    folders = [Path(os.environ.get("CUDA_PATH") or "/usr/local/cuda") / part for part in ("lib64", "lib")]
    found = [str(f) for w in wheels if w.is_dir() for f in sorted(w.glob("c*/**/lib*/libnvrtc.so*"))]
    found += [str(f) for folder in folders for f in sorted(folder.glob("libnvrtc.so*"))]
    for name in (os.environ.get("MORTICE_NVRTC"), *found, ctypes.util.find_library("nvrtc")):
        if name:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    return None


def compile_nvrtc(code: str, expressions: Sequence[str], arch: str, options: Sequence[str] = ()) -> tuple[int, str]:
    """Compile kernels to machine code of an architecture; return its size in bytes and the log, or raise with that."""
    size, log, _ = _compiled(code, expressions, arch, options)
    return size, log


def ptx(code: str, expression: str, options: Sequence[str] = ()) -> str:
    """Return a kernel in NVIDIA's assembly language, for compute capability 9.0."""
    return _compiled(code, (expression,), "compute_90", options)[2]


def _compiled(code: str, expressions: Sequence[str], arch: str, options: Sequence[str]) -> tuple[int, str, str]:
    lib = library()
    program = ctypes.c_void_p()
    _check(lib, lib.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"kernels.cu", 0, None, None))
    try:
        for e in expressions:
            _check(lib, lib.nvrtcAddNameExpression(program, e.encode()))
        flags = [o.encode() for o in (*options, f"--gpu-architecture={arch}")]
        rc = lib.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
        size = ctypes.c_size_t()
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        if rc:
            raise RuntimeError(f"NVRTC for {arch}:\n{log.value.decode()[:4000]}")
        for e in expressions:
            name = ctypes.c_char_p()
            _check(lib, lib.nvrtcGetLoweredName(program, e.encode(), ctypes.byref(name)))
        _check(lib, lib.nvrtcGetPTXSize(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        _check(lib, lib.nvrtcGetPTX(program, text))
        if arch.startswith("sm_"):
            _check(lib, lib.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        return size.value, log.value.decode(), text.value.decode()
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def spilled(log: str) -> dict[str, int]:
    """Return the bytes that kernels store for lack of registers, from what the assembler says with `-v`."""
    found = re.findall(r"Function properties for (\S+)\s.*?(\d+) bytes spill stores", log, re.DOTALL)
    return {name: int(count) for name, count in found}


def compile_nvcc(code: str, expressions: Sequence[str], arch: str) -> int:
    """Compile kernels with nvcc to PTX; return its size in bytes, or raise with what it says."""
    wanted = "".join(f"  (void *){e},\n" for e in expressions)
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = Path(folder) / "kernels.cu", Path(folder) / "kernels.ptx"
        source.write_text(f"{code}\nvoid *wanted[] = {{\n{wanted}}};\n")
        command = [str(shutil.which("nvcc")), "-std=c++17", "-ptx", f"-arch={arch}", str(source), "-o", str(ptx)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"nvcc for {arch}:\n{done.stderr[:4000]}")
        if ".entry " not in ptx.read_text():
            raise RuntimeError(f"nvcc for {arch}: made no kernel")
        return ptx.stat().st_size


def _check(lib: Any, rc: int) -> None:
    if rc:
        lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC: {lib.nvrtcGetErrorString(rc).decode()}")
