"""The neural network kernels together; each family has a file of its own beside this one."""

from __future__ import annotations

from mortice.backends.nn_activation import ActivationKernels
from mortice.backends.nn_attention import AttentionKernels
from mortice.backends.nn_conv import ConvKernels
from mortice.backends.nn_ctc import CTCKernels
from mortice.backends.nn_grid import GridKernels
from mortice.backends.nn_linear import LinearKernels
from mortice.backends.nn_loss import LookupKernels
from mortice.backends.nn_norm import NormKernels
from mortice.backends.nn_pool import PoolKernels
from mortice.backends.nn_resize import ResizeKernels
from mortice.backends.nn_rnn import RecurrentKernels


class NNKernels(
    ActivationKernels, NormKernels, ConvKernels, PoolKernels, LookupKernels, AttentionKernels, ResizeKernels,
    GridKernels, RecurrentKernels, CTCKernels, LinearKernels,
):
    """FREE kernels for neural networks, with their gradient kernels."""
