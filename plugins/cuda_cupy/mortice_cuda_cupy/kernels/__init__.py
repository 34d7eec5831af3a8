"""CUDA C++ kernels and the methods that launch them, a mixin a family; what they override is in `mortice.backends`."""

from __future__ import annotations

from mortice_cuda_cupy.kernels.activation import ActivationKernels
from mortice_cuda_cupy.kernels.loss import LossKernels
from mortice_cuda_cupy.kernels.norm import NormKernels
from mortice_cuda_cupy.kernels.optim import OptimKernels
from mortice_cuda_cupy.kernels.pool import PoolKernels
from mortice_cuda_cupy.kernels.random import RandomKernels
from mortice_cuda_cupy.kernels.rnn import RecurrentKernels
from mortice_cuda_cupy.kernels.softmax import SoftmaxKernels


class CudaKernels(
    ActivationKernels, LossKernels, NormKernels, OptimKernels, PoolKernels, RandomKernels, RecurrentKernels,
    SoftmaxKernels,
):  # fmt: skip
    """All overrides of FREE kernels that are CUDA C++ kernels of this plugin."""
