"""The plugin on the emulated GPU: `pytest -p emulated` for the kit, or `python emulated.py run cuda_cupy` for its scorecard.

Importing this module puts the stand-in where CuPy would be, in this process only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
for _place in (str(HERE), str(HERE.parents[1])):
    if _place not in sys.path:
        sys.path.insert(0, _place)

import fake_cudnn  # noqa: E402
import fake_cupy  # noqa: E402

if "cupy" not in sys.modules:
    fake_cupy.install(int(os.environ.get("MORTICE_EMULATED_DEVICES", "2")))
if os.environ.get("MORTICE_EMULATED_CUDNN", "1") == "1":
    fake_cudnn.install()

import mortice_cuda_cupy  # noqa: E402
from mortice.backends import plugins  # noqa: E402
from mortice_cuda_cupy import cublas  # noqa: E402
from mortice_cuda_cupy.kernels import launch  # noqa: E402

cublas.library = lambda: fake_cupy.cublas
launch.build = fake_cupy.KernelModule
launch.WHOLE_SOURCES = True  # one start of the C++ compiler instead of one a kernel

if "cuda_cupy" not in plugins.entries():
    for _info in mortice_cuda_cupy.mortice_backends():
        plugins.register(_info, "mortice-cuda-cupy")

if __name__ == "__main__":
    from mortice_conformance.cli import main

    sys.exit(main())
