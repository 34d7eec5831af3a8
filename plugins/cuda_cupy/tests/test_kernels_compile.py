"""Every source compiles for the architectures that are served, with all its kernels in all their dtypes."""

from __future__ import annotations

import os
import re
import shutil
from typing import Any

import kernels_on_numpy
import numpy as np
import nvrtc
import pytest
from steps import STEPS

from mortice.backends import NamespaceBackend
from mortice.dtype import bfloat16, float16, float32, float64

kernels_on_numpy.without_cupy()
from mortice_cuda_cupy import kernels  # noqa: E402
from mortice_cuda_cupy.kernels import attention, copying, elementwise, index, optim, reduce, scan, sort  # noqa: E402, F401  their sources are programs
from mortice_cuda_cupy.kernels.launch import NAMES, OPTIONS, PROGRAMS  # noqa: E402

# Kernels of optimisers are made from the core's rules; those of Adam and of the longest rule stand for them.
for name, kinds, numbers in STEPS:
    if name in ("adam_step", "nadam_step"):
        rule = getattr(NamespaceBackend, name).__wrapped__
        optim.program(optim.trace(rule, [kind != "-" for kind in "pg" + kinds], numbers)[0])
        if name == "adam_step":  # as it is captured
            held = {"step": [np.zeros((), np.float32)], "lr": [np.zeros((), np.float64)]}
            optim.program(optim.trace(rule, [kind != "-" for kind in "pg" + kinds], numbers | held)[0])

# Everything, which takes minutes; otherwise each architecture compiles two of the dtypes, and nvcc nothing.
EVERYTHING = bool(os.environ.get("MORTICE_COMPILE_ALL"))
ARCHITECTURES = {"sm_80": (float16, float64), "sm_90": (bfloat16, float32)}


def _id(program: Any) -> str:
    return str(program.source)


def _kernels(program: Any, arch: str) -> list[str]:
    dtypes = [d for d in program.types if EVERYTHING or d in ARCHITECTURES[arch]] or program.types[:1]
    return list(dict.fromkeys(e for dtype in dtypes for e in program.expressions(dtype)))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("program", PROGRAMS, ids=_id)
def test_nvrtc_compiles(program: Any, arch: str) -> None:
    if nvrtc.library() is None:
        pytest.skip("libnvrtc is not here; `make cuda` brings it; or set MORTICE_NVRTC to the library")
    options = (*OPTIONS, "--device-as-default-execution-space", "--ptxas-options=-v")  # the first is CuPy's
    size, log = nvrtc.compile_nvrtc(program.code(), kernels := _kernels(program, arch), arch, options)
    found = nvrtc.spilled(log)
    assert size > 1000 and 2 * len(found) > len(kernels)  # two names may be one kernel
    # A few registers may be kept around calls, such as that of a division.
    assert {name: count for name, count in found.items() if count > 32} == {}


def test_halves_of_both_kinds_compile_for_the_oldest_gpus_of_cuda_13() -> None:
    if nvrtc.library() is None:
        pytest.skip("libnvrtc is not here; `make cuda` brings it; or set MORTICE_NVRTC to the library")
    program = next(p for p in PROGRAMS if p.source == "elementwise.cu" and "cast<{T}, float>" in p.kernels)
    kernels = [f"cast<{NAMES[d]}, {NAMES[e]}>" for d in (float16, bfloat16, float32) for e in (float16, bfloat16, float32) if d is not e]
    size, _ = nvrtc.compile_nvrtc(program.code(), kernels, "sm_75", (*OPTIONS, "--device-as-default-execution-space"))
    assert size > 1000


# Kernels that write as much as they read: 16 bytes at a time, which a compiler may undo without a word.
WIDE = {
    "elementwise.cu": ("unary<{T}, {T}, Exp>", "binary<{T}, {T}, Add>", "cast<{T}, float>", "fill<unsigned>"),
    "activation.cu": ("one<{T}, Gelu>", "two<{T}, GeluGrad>", "dropout<{T}>"),
    "softmax.cu": ("softmax_rows<{T}, false>", "softmax_grad_rows<{T}, true>"),
    "norm.cu": ("norm_rows<{T}, {T}, false, false>", "norm_grad_rows<{T}, {T}, false, false>", "norm_grads_rows<{T}, {T}, false, 8>"),
    "channels.cu": ("joined_apply<{T}>", "channel_grad<{T}>", "columns_apply<{T}>", "columns_grad<{T}>"),
    "loss.cu": ("cross_entropy_grad<{T}>",),
    "scan.cu": ("scan_rows<{T}, RunningSum<{T}>>",),
    "attention.cu": ("attend_rows<{T}>", "attend_grad_rows<{T}>"),
    "optim.cu": ("optimiser_step<{T}>", "unscale<{T}>"),
}


@pytest.mark.parametrize("source", WIDE)
def test_kernels_read_and_write_sixteen_bytes_at_a_time(source: str) -> None:
    if nvrtc.library() is None:
        pytest.skip("libnvrtc is not here; `make cuda` brings it; or set MORTICE_NVRTC to the library")
    for kernel in WIDE[source]:
        program = next(p for p in PROGRAMS if p.source == source and kernel in p.kernels)
        dtype = float32 if float32 in program.types else program.types[0]
        text = nvrtc.ptx(program.code(), kernel.replace("{T}", NAMES[dtype]), (*OPTIONS, "--device-as-default-execution-space"))
        for access in ("st",) if kernel.startswith("fill") else ("ld", "st"):
            assert re.search(rf"\b{access}\.global\.v4\.\w32", text), f"{kernel}: {access}"


@pytest.mark.skipif(not EVERYTHING, reason="MORTICE_COMPILE_ALL is not set: NVRTC alone compiles")
@pytest.mark.parametrize("program", PROGRAMS, ids=_id)
def test_nvcc_compiles(program: Any) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on the path")
    assert nvrtc.compile_nvcc(program.code(), _kernels(program, "sm_90"), "sm_90") > 1000


def test_each_source_is_a_program() -> None:
    from importlib.resources import files

    there = {f.name for f in files(kernels).iterdir() if f.name.endswith(".cu")}
    assert there == {program.source for program in PROGRAMS}
