"""mortice: PyTorch's API over pluggable backends. This module holds the public names and nothing else."""

from math import e, inf, nan, pi
from os import environ as _environ

from mortice import version
from mortice.backends.plugins import default_backend, get_default_device, set_backend, set_default_device, use_backend
from mortice.catalog import PUBLIC as _PUBLIC
from mortice.device import Device as device
from mortice.dtype import (
    DType as dtype,
)
from mortice.dtype import (
    bfloat16,
    can_cast,
    complex32,
    complex64,
    complex128,
    finfo,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    get_type_promotion,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    qint8,
    qint32,
    quint8,
    set_default_dtype,
    set_type_promotion,
    uint8,
    uint16,
    uint32,
    uint64,
)
from mortice.dtype import (
    bool_ as bool,
)
from mortice.interop import register_bridges as _register_bridges
from mortice.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from mortice.lazy import load as _load
from mortice.lazy import look_up as _look_up
from mortice.methods import Tensor, _disabled_torch_function_impl
from mortice.modes import autocasting as _autocasting
from mortice.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from mortice.node import node_name as _node_name
from mortice.ops.data import *  # not lazy, since `tensor` is the name of a module too
from mortice.shape import Size
from mortice.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is loaded when it is first used: `catalog` has the list that this one gives
    from mortice import (
        _C,
        __config__,
        __future__,
        _dynamo,
        accelerator,
        amp,
        array_api,
        autograd,
        compiler,
        cpu,
        cuda,
        distributed,
        distributions,
        doctor,
        fft,
        func,
        functional,
        futures,
        fx,
        hub,
        jit,
        library,
        linalg,
        masked,
        metrics,
        mps,
        multiprocessing,
        nn,
        onnx,
        optim,
        overrides,
        printing,
        profiler,
        quasirandom,
        random,
        return_types,
        serialization,
        signal,
        sparse,
        special,
        storage,
        testing,
        types,
        utils,
        vision,
        xpu,
    )
    from mortice._C import PyTorchFileReader
    from mortice._higher_order_ops.control import (
        cond,
        sym_float,
        sym_int,
        sym_ite,
        sym_max,
        sym_min,
        sym_not,
        sym_sqrt,
        sym_sum,
        while_loop,
    )
    from mortice.accelerator import get_device_module
    from mortice.amp.autocast_mode import (
        autocast,
        autocast_decrement_nesting,
        autocast_increment_nesting,
        clear_autocast_cache,
        get_autocast_cpu_dtype,
        get_autocast_dtype,
        get_autocast_gpu_dtype,
        is_autocast_available,
        is_autocast_cache_enabled,
        is_autocast_cpu_enabled,
        is_autocast_enabled,
        set_autocast_cache_enabled,
        set_autocast_cpu_dtype,
        set_autocast_cpu_enabled,
        set_autocast_dtype,
        set_autocast_enabled,
        set_autocast_gpu_dtype,
    )
    from mortice.amp.grad_scaler import GradScaler
    from mortice.assertions import (
        _check,
        _check_index,
        _check_is_size,
        _check_not_implemented,
        _check_tensor_all,
        _check_tensor_all_with,
        _check_type,
        _check_value,
        _check_with,
    )
    from mortice.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
    from mortice.compiler import _assert, _assert_async, compile
    from mortice.cuda.streams import Event, Stream
    from mortice.distributions.gamma_draws import _sample_dirichlet, _standard_gamma
    from mortice.doctor.explanation import explain
    from mortice.errors import OutOfMemoryError
    from mortice.func import vmap
    from mortice.futures import Future
    from mortice.jit import DeviceObjType, ScriptFunction, ScriptModule, TensorType
    from mortice.methods.typed import *
    from mortice.nn.functional import (
        channel_shuffle,
        conv_tbc,
        cosine_similarity,
        pairwise_distance,
        pdist,
        pixel_shuffle,
        pixel_unshuffle,
        rrelu,
        rrelu_,
    )
    from mortice.nn.utils.weight_norm import _weight_norm, norm_except_dim
    from mortice.ops import nn as _nn
    from mortice.ops.arguments import numpy_names as _numpy_names
    from mortice.ops.arrange import (
        as_strided_,
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
    from mortice.ops.blend import *
    from mortice.ops.bounds import *
    from mortice.ops.calculus import *
    from mortice.ops.compare import *
    from mortice.ops.complex import *
    from mortice.ops.copies import *
    from mortice.ops.counts import binomial, poisson
    from mortice.ops.covariance import corrcoef, cov
    from mortice.ops.creation import *
    from mortice.ops.creation import range_ as range
    from mortice.ops.data import range_of as _range_of
    from mortice.ops.einsum import einsum
    from mortice.ops.elementwise import *
    from mortice.ops.fill import (
        fill,
        fill_,
        masked_fill,
        masked_scatter,
        masked_select,
        select_scatter,
        slice_scatter,
        zero_,
    )
    from mortice.ops.fused import (
        _apart,
        _beside_capture,
        _captures,
        _capturing,
        _each_,
        _fused_step_,
        _unscale_,
        _vector_norms,
    )
    from mortice.ops.gather import gather, scatter, scatter_add, scatter_reduce, take_along_dim
    from mortice.ops.histogram import *
    from mortice.ops.index import index_put, index_put_, where
    from mortice.ops.index_rows import (
        index_add,
        index_copy,
        index_fill,
        index_reduce,
        index_select,
        put,
        take,
    )
    from mortice.ops.inplace import *
    from mortice.ops.joining import cat, stack
    from mortice.ops.linalg import (
        cholesky_inverse,
        cholesky_solve,
        inverse,
        logdet,
        lu_unpack,
        triangular_solve,
    )
    from mortice.ops.linalg import (
        torch_cholesky as cholesky,
    )
    from mortice.ops.linalg import (
        torch_det as det,
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
        torch_slogdet as slogdet,
    )
    from mortice.ops.linalg import (
        torch_svd as svd,
    )
    from mortice.ops.linalg_derived import (
        matrix_exp,
        matrix_power,
        pca_lowrank,
        pinverse,
        svd_lowrank,
    )
    from mortice.ops.linalg_derived import (
        torch_vander as vander,
    )
    from mortice.ops.lobpcg import lobpcg
    from mortice.ops.matmul import (
        _int_mm,
        addbmm,
        addmm,
        addmv,
        addmv_,
        addr,
        baddbmm,
        bmm,
        dot,
        ger,
        matmul,
        mm,
        mv,
        outer,
        vdot,
    )
    from mortice.ops.movement import broadcast_to, clone, permute, reshape, squeeze, t, transpose, unsqueeze
    from mortice.ops.nn_activation import (
        _softmax_backward_data,
        alpha_dropout,
        alpha_dropout_,
        celu,
        celu_,
        dropout,
        dropout_,
        feature_alpha_dropout,
        feature_alpha_dropout_,
        feature_dropout,
        feature_dropout_,
        hardshrink,
        log_softmax,
        prelu,
        relu,
        relu_,
        selu,
        selu_,
        softmax,
        threshold,
        threshold_,
    )
    from mortice.ops.nn_attention import bilinear
    from mortice.ops.nn_conv import (
        conv1d,
        conv2d,
        conv3d,
        conv_transpose1d,
        conv_transpose2d,
        conv_transpose3d,
        convolution,
    )
    from mortice.ops.nn_ctc import ctc_loss
    from mortice.ops.nn_loss import embedding
    from mortice.ops.nn_norm import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
    from mortice.ops.nn_pool import (
        adaptive_avg_pool1d,
        adaptive_max_pool1d,
        avg_pool1d,
        max_pool1d,
        max_pool1d_with_indices,
        max_pool2d,
        max_pool3d,
    )
    from mortice.ops.nn_resize import constant_pad_nd
    from mortice.ops.nn_rnn import gru, gru_cell, lstm, lstm_cell, rnn_relu, rnn_relu_cell, rnn_tanh, rnn_tanh_cell
    from mortice.ops.nonzero import argwhere, nonzero, nonzero_static
    from mortice.ops.parts import *
    from mortice.ops.products import cdist, chain_matmul, cross, inner, kron, tensordot, trace
    from mortice.ops.queries import (
        get_device,
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
        typename,
    )
    from mortice.ops.random import *
    from mortice.ops.reduce import *
    from mortice.ops.reflections import geqrf, orgqr, ormqr
    from mortice.ops.scan import *
    from mortice.ops.segments import segment_reduce
    from mortice.ops.segments import segment_reduce as _segment_reduce
    from mortice.ops.sort import *
    from mortice.ops.special import *
    from mortice.ops.special_bessel import *
    from mortice.ops.statistics import *
    from mortice.ops.stft import istft, stft
    from mortice.ops.storage import *
    from mortice.ops.strided import as_strided, as_strided_scatter, diagonal, empty_permuted, empty_strided
    from mortice.ops.unary import *
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
        unsafe_split_with_sizes,
        vsplit,
    )
    from mortice.ops.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window
    from mortice.optim.foreach import *
    from mortice.overrides import DisableTorchFunction, DisableTorchFunctionSubclass
    from mortice.printing import get_printoptions, set_printoptions
    from mortice.random import Generator, default_generator
    from mortice.serialize import load, save
    from mortice.settings import (
        are_deterministic_algorithms_enabled,
        get_deterministic_debug_mode,
        get_float32_matmul_precision,
        get_num_interop_threads,
        get_num_threads,
        is_deterministic_algorithms_warn_only_enabled,
        is_warn_always_enabled,
        set_deterministic_debug_mode,
        set_float32_matmul_precision,
        set_flush_denormal,
        set_num_interop_threads,
        set_num_threads,
        set_warn_always,
        use_deterministic_algorithms,
    )
    from mortice.sparse import (
        _convert_indices_from_coo_to_csr,
        ccol_indices_copy,
        col_indices_copy,
        crow_indices_copy,
        dsmm,
        hsmm,
        hspmm,
        indices_copy,
        resize_as_sparse_,
        row_indices_copy,
        saddmm,
        smm,
        sparse_bsc_tensor,
        sparse_bsr_tensor,
        sparse_compressed_tensor,
        sparse_coo_tensor,
        sparse_csc_tensor,
        sparse_csr_tensor,
        spmm,
        sspaddmm,
        values_copy,
    )
    from mortice.types import SymBool, SymFloat, SymInt
    from mortice.utils.dlpack import to_dlpack
    from mortice.utils.model_summary import summary

del TYPE_CHECKING

legacy_contiguous_format = contiguous_format
newaxis = None
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
    "ao": "quantisation", "export": "exporting programs", "nested": "nested tensors", "quantization": "quantisation",
    "symeig": "what linalg.eigh does", **{n: f"what linalg.{n} does" for n in ("eig", "lstsq", "matrix_rank", "solve")},
}  # fmt: skip


_WHERE = _look_up(_PUBLIC)
# Other addresses of what is elsewhere, which PyTorch has without an import.
_BUILT = {"has_cuda": "cuda.is_built", "has_cudnn": "cudnn.is_available", "has_mkldnn": "mkldnn.is_available", "has_mps": "mps.is_built"}
_UNASKED = ("_VF", "_dynamo", "_functorch", "_inductor", "_jit_internal", "_subclasses", "_tensor", "_tensor_str", "_utils")


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
        left_out = f": {_LEFT_OUT[name]} is left out" if name in _LEFT_OUT else ""
        raise AttributeError(f"module 'mortice' has no attribute {name!r}{left_out}")
    found = globals()[name] = _load(*where)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


_register_bridges()
if _environ.get("MORTICE_DOCTOR", "0") != "0":
    _load("mortice.", "doctor").from_environment()
