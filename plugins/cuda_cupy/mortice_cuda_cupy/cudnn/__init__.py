"""Convolution and attention by NVIDIA's cuDNN, through `nvidia-cudnn-frontend`; the core's bodies where it is missing.

`library` finds it, `plans` keeps what it has prepared, `convolution` and `attention` say what is asked of it.
"""

from __future__ import annotations

from mortice_cuda_cupy.cudnn.attention import AttentionKernels
from mortice_cuda_cupy.cudnn.convolution import ConvolutionKernels
from mortice_cuda_cupy.cudnn.library import state


class CudnnKernels(AttentionKernels, ConvolutionKernels):
    """The kernels that go through cuDNN."""

    def libraries(self) -> dict[str, tuple[int, str]]:
        return {"cudnn": state()}
