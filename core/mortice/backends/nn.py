"""The neural network kernels together; each family has a file of its own beside this one."""

from __future__ import annotations

from mortice.backends.nn_activation import ActivationKernels
from mortice.backends.nn_attention import AttentionKernels
from mortice.backends.nn_conv import ConvKernels
from mortice.backends.nn_loss import LookupKernels
from mortice.backends.nn_norm import NormKernels
from mortice.backends.nn_pool import PoolKernels
from mortice.backends.nn_resize import ResizeKernels


class NNKernels(
    ActivationKernels, NormKernels, ConvKernels, PoolKernels, LookupKernels, AttentionKernels, ResizeKernels
):
    """FREE kernels for neural networks, with their gradient kernels."""
