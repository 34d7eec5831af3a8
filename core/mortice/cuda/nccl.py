"""What a backend with CUDA devices has as PyTorch's `cuda.nccl`; without one its functions say so when they are called."""

from __future__ import annotations

from mortice.cuda.devices import known

__getattr__ = known("nccl")
