"""mortice: PyTorch's API over pluggable backends. This module holds the public names and nothing else."""

from mortice import autograd, linalg, special
from mortice.backends.plugins import default_backend, get_default_device, set_backend, set_default_device, use_backend
from mortice.device import Device as device
from mortice.dtype import (
    DType as dtype,
)
from mortice.dtype import (
    bfloat16,
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
from mortice.dtype import (
    bool_ as bool,
)
from mortice.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from mortice.methods import Tensor
from mortice.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from mortice.ops import nn as _nn
from mortice.ops.arrange import (
    block_diag,
    cartesian_prod,
    column_stack,
    combinations,
    concat,
    concatenate,
    diag,
    diag_embed,
    diagflat,
    diagonal_scatter,
    dstack,
    flip,
    fliplr,
    flipud,
    hstack,
    meshgrid,
    repeat_interleave,
    resize_as_,
    roll,
    rot90,
    row_stack,
    tile,
    tril,
    tril_indices,
    triu,
    triu_indices,
    unravel_index,
    vstack,
)
from mortice.ops.blend import *  # noqa: F403
from mortice.ops.compare import *  # noqa: F403
from mortice.ops.complex import *  # noqa: F403
from mortice.ops.creation import *  # noqa: F403
from mortice.ops.creation import range_ as range
from mortice.ops.einsum import einsum
from mortice.ops.elementwise import *  # noqa: F403
from mortice.ops.fused import _fused_step_
from mortice.ops.gather import (
    argwhere,
    fill,
    fill_,
    gather,
    index_add,
    index_copy,
    index_fill,
    index_reduce,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    nonzero,
    put,
    scatter,
    scatter_add,
    scatter_reduce,
    select_scatter,
    slice_scatter,
    take,
    take_along_dim,
    zero_,
)
from mortice.ops.index import index_put, index_put_, where
from mortice.ops.linalg import (
    cholesky_inverse,
    cholesky_solve,
    det,
    inverse,
    logdet,
    lu_unpack,
    slogdet,
    triangular_solve,
)
from mortice.ops.linalg import (
    torch_cholesky as cholesky,
)
from mortice.ops.linalg import (
    torch_lu as lu,
)
from mortice.ops.linalg import (
    torch_lu_solve as lu_solve,
)
from mortice.ops.linalg import (
    torch_qr as qr,
)
from mortice.ops.linalg import (
    torch_svd as svd,
)
from mortice.ops.linalg_derived import (
    matrix_exp,
    matrix_power,
    orgqr,
    pca_lowrank,
    pinverse,
    svd_lowrank,
)
from mortice.ops.linalg_derived import (
    torch_vander as vander,
)
from mortice.ops.matmul import (
    addbmm,
    addmm,
    addmv,
    addr,
    baddbmm,
    bmm,
    cdist,
    chain_matmul,
    corrcoef,
    cov,
    cross,
    dot,
    ger,
    inner,
    kron,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
    trace,
    vdot,
)
from mortice.ops.movement import broadcast_to, cat, clone, permute, reshape, squeeze, stack, t, transpose, unsqueeze
from mortice.ops.nn import (
    adaptive_avg_pool1d,
    adaptive_max_pool1d,
    alpha_dropout,
    alpha_dropout_,
    avg_pool1d,
    batch_norm,
    bilinear,
    celu,
    celu_,
    constant_pad_nd,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    convolution,
    dropout,
    dropout_,
    embedding,
    feature_alpha_dropout,
    feature_alpha_dropout_,
    feature_dropout,
    feature_dropout_,
    group_norm,
    hardshrink,
    instance_norm,
    layer_norm,
    log_softmax,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool3d,
    prelu,
    relu,
    relu_,
    rms_norm,
    selu,
    selu_,
    softmax,
    threshold,
    threshold_,
)
from mortice.ops.queries import (
    is_complex,
    is_conj,
    is_floating_point,
    is_inference,
    is_neg,
    is_nonzero,
    is_same_size,
    is_signed,
    is_storage,
    is_tensor,
    numel,
    result_type,
)
from mortice.ops.random import *  # noqa: F403
from mortice.ops.reduce import *  # noqa: F403
from mortice.ops.scan import *  # noqa: F403
from mortice.ops.sort import *  # noqa: F403
from mortice.ops.special import *  # noqa: F403
from mortice.ops.statistics import *  # noqa: F403
from mortice.ops.strided import as_strided, diagonal
from mortice.ops.unary import *  # noqa: F403
from mortice.ops.views import (
    adjoint,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    broadcast_tensors,
    chunk,
    detach,
    detach_,
    dsplit,
    flatten,
    hsplit,
    moveaxis,
    movedim,
    narrow,
    narrow_copy,
    ravel,
    select,
    split,
    split_with_sizes,
    swapaxes,
    swapdims,
    tensor_split,
    unbind,
    unflatten,
    unsafe_chunk,
    unsafe_split,
    vsplit,
)
from mortice.printing import get_printoptions, set_printoptions
from mortice.random import Generator, default_generator
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

# The upper layer, and what needs much of the standard library, is imported when first used: `import mortice` stays light.
_LAZY = frozenset(("array_api", "cuda", "func", "nn", "optim", "testing", "utils", "vision"))
_LAZY_NAMES = {"load": "serialize", "save": "serialize", "vmap": "func"}


def __getattr__(name: str) -> object:
    if name not in _LAZY and name not in _LAZY_NAMES:
        raise AttributeError(f"module 'mortice' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"mortice.{_LAZY_NAMES.get(name, name)}")
    found = globals()[name] = getattr(module, name) if name in _LAZY_NAMES else module
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})
