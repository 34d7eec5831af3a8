"""mortice: PyTorch's API over pluggable backends. This module holds the public names and nothing else."""

from mortice import autograd
from mortice.backends.plugins import default_backend, set_backend, set_default_device, use_backend
from mortice.device import Device as device
from mortice.dtype import (
    DType as dtype,
    bfloat16,
    bool_ as bool,
    can_cast,
    complex64,
    complex128,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from mortice.graph import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from mortice.methods import Tensor
from mortice.ops.creation import *  # noqa: F403
from mortice.ops.elementwise import *  # noqa: F403
from mortice.ops.movement import *  # noqa: F403
from mortice.printing import get_printoptions, set_printoptions
from mortice.shape import Size

float = float32
double = float64
half = float16
long = int64
int = int32
short = int16
cfloat = complex64
cdouble = complex128
__version__ = "0.1.0"
