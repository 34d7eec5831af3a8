"""mortice: PyTorch's API over pluggable backends. This module holds the public names and nothing else."""

# `name as name`, `from . import` and `*`, which takes `__all__`, are what type checkers count as public.
from math import e as e, inf as inf, nan as nan, pi as pi
from os import environ as _environ

from mortice import version as version
from mortice.backends.plugins import (
    default_backend as default_backend, get_default_device as get_default_device, set_backend as set_backend,
    set_default_device as set_default_device, use_backend as use_backend,
)
from mortice.catalog import PUBLIC as _PUBLIC
from mortice.device import Device as _Device
from mortice.dtype import *
from mortice.dtype import DType as _DType, bool_ as _bool
from mortice.interop import register_bridges as _register_bridges
from mortice.layout import *
from mortice.lazy import load as _load, look_up as _look_up
from mortice.methods import Tensor as Tensor, _disabled_torch_function_impl
from mortice.modes import autocasting as _autocasting
from mortice.modes import *
from mortice.node import node_name as _node_name
from mortice.ops.data import *  # not lazy, since `tensor` is the name of a module too
from mortice.shape import Size as Size
from mortice.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is loaded when it is first used: `catalog` has the list that this one gives
    from . import (
        _C, __config__, __future__, _dynamo, accelerator, amp, array_api, autograd, compiler, cpu, cuda, distributed,
        distributions, doctor, fft, func, functional, futures, fx, hub, jit, library, linalg, masked, metrics, mps,
        multiprocessing, nn, onnx, optim, overrides, printing, profiler, quasirandom, random, return_types,
        serialization, signal, sparse, special, storage, testing, types, utils, vision, xpu,
    )
    from mortice._C import PyTorchFileReader as PyTorchFileReader
    from mortice._higher_order_ops.control import *
    from mortice.accelerator import get_device_module as get_device_module
    from mortice.amp.autocast_mode import *
    from mortice.amp.grad_scaler import GradScaler as GradScaler
    from mortice.amp.grad_scaler import _amp_foreach_non_finite_check_and_unscale_
    from mortice.ao.quantization.functional import *
    from mortice.assertions import (
        _check, _check_index, _check_is_size, _check_not_implemented, _check_tensor_all, _check_tensor_all_with,
        _check_type, _check_value, _check_with,
    )
    from mortice.autograd.anomaly import (
        is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled,
        set_anomaly_enabled as set_anomaly_enabled,
    )
    from mortice.compiler import compile as compile, disable as _disable_dynamo, _assert, _assert_async, _assert_tensor_metadata
    from mortice.cuda.streams import Event as Event, Stream as Stream
    from mortice.distributions.gamma_draws import _sample_dirichlet, _standard_gamma
    from mortice.doctor.explanation import explain as explain
    from mortice.errors import OutOfMemoryError as OutOfMemoryError
    from mortice.func import vmap as vmap
    from mortice.futures import Future as Future
    from mortice.jit import (
        DeviceObjType as DeviceObjType, ScriptFunction as ScriptFunction, ScriptModule as ScriptModule,
        TensorType as TensorType,
    )
    from mortice.nn.functional.native import *
    from mortice.nn.functional.native import _aminmax, _grouped_mm, _has_compatible_shallow_copy_type, _shape_as_tensor
    from mortice.methods.typed import *
    from mortice.methods.typed import FloatStorage as Storage
    from mortice.nn.functional import (
        channel_shuffle as channel_shuffle, channel_shuffle as native_channel_shuffle, conv_tbc as conv_tbc,
        cosine_similarity as cosine_similarity,
        pairwise_distance as pairwise_distance, pdist as pdist, pixel_shuffle as pixel_shuffle,
        pixel_unshuffle as pixel_unshuffle, rrelu as rrelu, rrelu_ as rrelu_,
    )
    from mortice.nn.utils.weight_norm import norm_except_dim as norm_except_dim, _weight_norm
    from mortice.ops import nn as _nn
    from mortice.ops.arguments import numpy_names as _numpy_names
    from mortice.ops.arrange import *
    from mortice.ops.blend import *
    from mortice.ops.bounds import *
    from mortice.ops.calculus import *
    from mortice.ops.compare import *
    from mortice.ops.complex import *
    from mortice.ops.copies import *
    from mortice.ops.counts import *
    from mortice.ops.covariance import *
    from mortice.ops.creation import *
    from mortice.ops.creation import range_ as _range
    from mortice.ops.data import range_of as _range_of
    from mortice.ops.einsum import *
    from mortice.ops.elementwise import *
    from mortice.ops.fill import *
    from mortice.ops.fused import (
        _apart, _beside_capture, _captures, _capturing, _each_, _fused_step_, _unscale_, _vector_norms,
    )
    from mortice.ops.gather import *
    from mortice.ops.histogram import *
    from mortice.ops.index import *
    from mortice.ops.index_rows import *
    from mortice.ops.inplace import *
    from mortice.ops.joining import *
    from mortice.ops.linalg import *
    from mortice.ops.linalg import (
        torch_cholesky as _cholesky, torch_det as _det, torch_lu as _lu, torch_lu_solve as _lu_solve, torch_qr as _qr,
        torch_slogdet as _slogdet, torch_svd as _svd,
    )
    from mortice.ops.linalg_derived import *
    from mortice.ops.linalg_derived import torch_vander as _vander
    from mortice.ops.lobpcg import *
    from mortice.ops.matmul import *
    from mortice.ops.matmul import _int_mm
    from mortice.ops.movement import *
    from mortice.ops.nn_activation import *
    from mortice.ops.nn_activation import _softmax_backward_data
    from mortice.ops.nn_attention import *
    from mortice.ops.nn_grid import *
    from mortice.ops.nn_grid import (
        affine_grid as affine_grid_generator, grid_sampler as grid_sampler_2d, grid_sampler as grid_sampler_3d,
    )
    from mortice.ops.nn_conv import *
    from mortice.ops.nn_ctc import *
    from mortice.ops.nn_loss import *
    from mortice.ops.nn_norm import *
    from mortice.ops.nn_pool import *
    from mortice.ops.nn_resize import *
    from mortice.ops.nn_rnn import *
    from mortice.ops.nonzero import *
    from mortice.ops.parts import *
    from mortice.ops.products import *
    from mortice.ops.queries import *
    from mortice.ops.random import *
    from mortice.ops.reduce import *
    from mortice.ops.reflections import *
    from mortice.ops.scan import *
    from mortice.ops.segments import *
    from mortice.ops.segments import segment_reduce as _segment_reduce
    from mortice.ops.sort import *
    from mortice.ops.special import *
    from mortice.ops.special_bessel import *
    from mortice.ops.statistics import *
    from mortice.ops.stft import *
    from mortice.ops.storage import *
    from mortice.ops.strided import *
    from mortice.ops.unary import *
    from mortice.ops.views import *
    from mortice.ops.windows import *
    from mortice.optim.foreach import *
    from mortice.overrides import (
        DisableTorchFunction as DisableTorchFunction, DisableTorchFunctionSubclass as DisableTorchFunctionSubclass,
    )
    from mortice.printing import get_printoptions as get_printoptions, set_printoptions as set_printoptions
    from mortice.random import Generator as Generator, default_generator as default_generator
    from mortice.serialize import load as load, save as save
    from mortice.settings import *
    from mortice.sparse import (
        ccol_indices_copy as ccol_indices_copy, col_indices_copy as col_indices_copy,
        crow_indices_copy as crow_indices_copy, dsmm as dsmm, hsmm as hsmm, hspmm as hspmm,
        indices_copy as indices_copy, resize_as_sparse_ as resize_as_sparse_, row_indices_copy as row_indices_copy,
        saddmm as saddmm, smm as smm, sparse_bsc_tensor as sparse_bsc_tensor, sparse_bsr_tensor as sparse_bsr_tensor,
        sparse_compressed_tensor as sparse_compressed_tensor, sparse_coo_tensor as sparse_coo_tensor,
        sparse_csc_tensor as sparse_csc_tensor, sparse_csr_tensor as sparse_csr_tensor, spmm as spmm,
        sspaddmm as sspaddmm, values_copy as values_copy, _convert_indices_from_coo_to_csr, _convert_indices_from_csr_to_coo,
    )
    from mortice.types import SymBool as SymBool, SymFloat as SymFloat, SymInt as SymInt
    from mortice.utils.dlpack import to_dlpack as to_dlpack
    from mortice.utils.summary import summary as summary

    cholesky, det, lu, lu_solve, qr, range = _cholesky, _det, _lu, _lu_solve, _qr, _range
    slogdet, svd, vander = _slogdet, _svd, _vander

del TYPE_CHECKING

legacy_contiguous_format = contiguous_format
newaxis = None
device = _Device
dtype = _DType
bool = _bool
float = float32
double = float64
half = float16
long = int64
int = int32
short = int16
chalf = complex32
cfloat = complex64
cdouble = complex128

_LEFT_OUT = {
    "export": "exporting programs is left out", "nested": "nested tensors are left out",
    "symeig": "PyTorch has removed it. Use linalg.eigh",
    **{n: f"PyTorch has removed it. Use linalg.{n}" for n in ("eig", "lstsq", "matrix_rank", "solve")},
}  # fmt: skip


_WHERE = _look_up(_PUBLIC)
# Other addresses of what is elsewhere, which PyTorch has without an import.
_BUILT = {"has_cuda": "cuda.is_built", "has_cudnn": "cudnn.is_available", "has_mkldnn": "mkldnn.is_available", "has_mps": "mps.is_built"}
_UNASKED = """_VF _dynamo _functorch _guards _inductor _jit_internal _subclasses _tensor _tensor_str _utils
ao quantization subclasses""".split()


def __getattr__(name: str) -> object:
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    where = _WHERE.get(name)
    if where is None:
        if name in _UNASKED:
            return _load("mortice.", name)
        if name in _BUILT:
            kind, _, ask = _BUILT[name].partition(".")
            _load("mortice.notice", "warn")(f"'{name}' is deprecated, please use 'torch.backends.{_BUILT[name]}()'")
            return getattr(_load("mortice.backends.", kind), ask)()
        left_out = f": {_LEFT_OUT[name]}" if name in _LEFT_OUT else ""
        raise AttributeError(f"module 'mortice' has no attribute {name!r}{left_out}")
    found = globals()[name] = _load(*where)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


_register_bridges()
if _environ.get("MORTICE_DOCTOR", "0") != "0":
    _load("mortice.", "doctor").from_environment()
