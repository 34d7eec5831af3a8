"""Which module has which name, so that families of operations load at their first use. Written by tests/write_catalog.py.

Of what a module calls otherwise its own name comes second: `shown=own`.
"""

from __future__ import annotations

OPS = (
    "mutation", "ops.arrange", "ops.blend", "ops.bounds", "ops.compare", "ops.complex", "ops.elementwise",
    "ops.factor", "ops.fft", "ops.fill", "ops.gather", "ops.index_advanced", "ops.index_basic", "ops.joining",
    "ops.ldl", "ops.matmul", "ops.movement", "ops.nn_activation", "ops.nn_attention", "ops.nn_conv", "ops.nn_ctc",
    "ops.nn_grid", "ops.nn_loss", "ops.nn_norm", "ops.nn_pair_loss", "ops.nn_pool", "ops.nn_resize", "ops.nn_rnn",
    "ops.norms", "ops.parts", "ops.products", "ops.reduce", "ops.reflections", "ops.reinterpret", "ops.scan",
    "ops.sort", "ops.special", "ops.special_bessel", "ops.special_polynomial", "ops.statistics", "ops.stft",
    "ops.strided", "ops.unary",
)  # fmt: skip

PUBLIC = {
    "": (
        "_C __config__ __future__ _dynamo accelerator amp array_api autograd compiler cpu cuda distributed "
        "distributions doctor fft func functional futures fx hub jit library linalg masked metrics mps "
        "multiprocessing nn onnx optim overrides printing profiler quasirandom random return_types serialization "
        "signal sparse special storage testing types utils vision xpu"
    ),
    "_C": "PyTorchFileReader",
    "_higher_order_ops.control": (
        "cond sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum while_loop"
    ),
    "accelerator": "get_device_module",
    "amp.autocast_mode": (
        "autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
        "get_autocast_dtype get_autocast_gpu_dtype is_autocast_available is_autocast_cache_enabled "
        "is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype "
        "set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype"
    ),
    "amp.grad_scaler": "GradScaler _amp_foreach_non_finite_check_and_unscale_",
    "ao.quantization.functional": (
        "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fused_moving_avg_obs_fake_quant "
        "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine "
        "per_tensor_symmetric qscheme"
    ),
    "assertions": (
        "_check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with "
        "_check_type _check_value _check_with"
    ),
    "autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "compiler": "_assert _assert_async _assert_tensor_metadata _disable_dynamo=disable compile",
    "cuda.streams": "Event Stream",
    "distributions.gamma_draws": "_sample_dirichlet _standard_gamma",
    "doctor.explanation": "explain",
    "errors": "OutOfMemoryError",
    "func": "vmap",
    "futures": "Future",
    "jit": "DeviceObjType ScriptFunction ScriptModule TensorType",
    "methods.typed": (
        "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor "
        "ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage "
        "HalfTensor IntStorage IntTensor LongStorage LongTensor ShortStorage ShortTensor Storage=FloatStorage "
        "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short "
        "set_default_tensor_type"
    ),
    "nn.functional": (
        "channel_shuffle conv_tbc cosine_similarity native_channel_shuffle=channel_shuffle pairwise_distance pdist "
        "pixel_shuffle pixel_unshuffle rrelu rrelu_"
    ),
    "nn.functional.native": (
        "_aminmax _grouped_mm _has_compatible_shallow_copy_type _shape_as_tensor batch_norm_update_stats "
        "binary_cross_entropy_with_logits cosine_embedding_loss embedding_bag embedding_renorm_ hinge_embedding_loss "
        "kl_div margin_ranking_loss native_dropout poisson_nll_loss triplet_margin_loss"
    ),
    "nn.utils.weight_norm": "_weight_norm norm_except_dim",
    "ops": "_nn=nn",
    "ops.arguments": "_numpy_names=numpy_names",
    "ops.arrange": (
        "as_strided_ block_diag cartesian_prod combinations diag diag_embed diagflat diagonal_scatter flip fliplr "
        "flipud meshgrid repeat_interleave roll rot90 tile tril tril_indices triu triu_indices unravel_index"
    ),
    "ops.blend": "addcdiv addcmul lerp",
    "ops.bounds": "clamp clamp_max clamp_min clip fmax fmin maximum minimum",
    "ops.calculus": "cumulative_trapezoid gradient trapezoid trapz",
    "ops.compare": (
        "allclose bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq equal ge "
        "greater greater_equal gt isclose isfinite isinf isnan isneginf isposinf isreal le less less_equal "
        "logical_and logical_not logical_or logical_xor lt ne not_equal signbit"
    ),
    "ops.complex": (
        "angle complex conj conj_physical imag polar real resolve_conj resolve_neg view_as_complex view_as_real"
    ),
    "ops.copies": (
        "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy "
        "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy "
        "view_as_complex_copy view_as_real_copy view_copy"
    ),
    "ops.counts": "binomial poisson",
    "ops.covariance": "corrcoef cov",
    "ops.creation": (
        "arange empty empty_like eye full full_like linspace logspace ones ones_like range=range_ scalar_tensor zeros "
        "zeros_like"
    ),
    "ops.data": "_range_of=range_of",
    "ops.einsum": "einsum",
    "ops.elementwise": (
        "add copysign div divide float_power floor_divide fmod heaviside ldexp mul multiply nextafter pow remainder "
        "rsub sub subtract true_divide"
    ),
    "ops.fill": "fill fill_ masked_fill masked_scatter masked_select select_scatter slice_scatter zero_",
    "ops.fused": "_apart _beside_capture _captures _capturing _each_ _fused_step_ _unscale_ _vector_norms",
    "ops.gather": "gather scatter scatter_add scatter_reduce take_along_dim",
    "ops.histogram": "bincount histc histogram histogramdd",
    "ops.index": "index_put index_put_ where",
    "ops.index_rows": "index_add index_copy index_fill index_reduce index_select narrow_copy put take",
    "ops.inplace": (
        "abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_ "
        "clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ "
        "frac_ gcd_ i0_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ "
        "round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_"
    ),
    "ops.joining": "cat column_stack concat concatenate dstack hstack row_stack stack vstack",
    "ops.linalg": (
        "cholesky=torch_cholesky cholesky_inverse cholesky_solve det=torch_det inverse logdet lu=torch_lu "
        "lu_solve=torch_lu_solve lu_unpack qr=torch_qr slogdet=torch_slogdet svd=torch_svd triangular_solve"
    ),
    "ops.linalg_derived": "matrix_exp matrix_power pca_lowrank pinverse svd_lowrank vander=torch_vander",
    "ops.lobpcg": "lobpcg",
    "ops.matmul": "_int_mm addbmm addmm addmv addmv_ addr baddbmm bmm dot ger matmul mm mv outer vdot",
    "ops.movement": "broadcast_to clone permute reshape squeeze t transpose unsqueeze",
    "ops.nn_activation": (
        "_softmax_backward_data alpha_dropout alpha_dropout_ celu celu_ dropout dropout_ feature_alpha_dropout "
        "feature_alpha_dropout_ feature_dropout feature_dropout_ hardshrink log_softmax prelu relu relu_ selu selu_ "
        "softmax threshold threshold_"
    ),
    "ops.nn_attention": "bilinear",
    "ops.nn_conv": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution",
    "ops.nn_ctc": "ctc_loss",
    "ops.nn_grid": (
        "affine_grid_generator=affine_grid grid_sampler grid_sampler_2d=grid_sampler grid_sampler_3d=grid_sampler"
    ),
    "ops.nn_loss": "embedding",
    "ops.nn_norm": (
        "batch_norm group_norm instance_norm layer_norm native_batch_norm native_group_norm native_layer_norm "
        "rms_norm"
    ),
    "ops.nn_pool": (
        "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d"
    ),
    "ops.nn_resize": "constant_pad_nd",
    "ops.nn_rnn": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "ops.nonzero": "argwhere nonzero nonzero_static",
    "ops.parts": "frexp gcd lcm",
    "ops.products": "cdist chain_matmul cross inner kron tensordot trace",
    "ops.queries": (
        "get_device is_complex is_conj is_floating_point is_inference is_neg is_nonzero is_same_size is_signed "
        "is_storage is_tensor numel result_type typename"
    ),
    "ops.random": (
        "bernoulli get_rng_state initial_seed manual_seed multinomial normal rand rand_like randint randint_like "
        "randn randn_like randperm seed set_rng_state"
    ),
    "ops.reduce": "all amax amin aminmax any argmax argmin count_nonzero max mean min nanmean nansum prod sum",
    "ops.reflections": "geqrf orgqr ormqr",
    "ops.scan": "cummax cummin cumprod cumsum diff logcumsumexp",
    "ops.segments": "_segment_reduce=segment_reduce segment_reduce",
    "ops.sort": "argsort bucketize isin msort searchsorted sort topk unique unique_consecutive",
    "ops.special": "digamma erf erfc erfinv igamma igammac lgamma logit mvlgamma polygamma sinc xlogy",
    "ops.special_bessel": "i0",
    "ops.statistics": (
        "dist kthvalue logsumexp median mode nanmedian nanquantile norm quantile renorm std std_mean var var_mean"
    ),
    "ops.stft": "istft stft",
    "ops.storage": "StorageBase TypedStorage UntypedStorage from_file resize_as_",
    "ops.strided": "as_strided as_strided_scatter diagonal empty_permuted empty_strided",
    "ops.unary": (
        "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh "
        "ceil cos cosh deg2rad exp exp2 expm1 fix floor frac hypot log log10 log1p log2 logaddexp logaddexp2 "
        "nan_to_num neg negative positive rad2deg reciprocal round rsqrt sgn sigmoid sign sin sinh sqrt square tan "
        "tanh trunc"
    ),
    "ops.views": (
        "adjoint atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors chunk detach detach_ dsplit "
        "flatten hsplit moveaxis movedim narrow ravel select split split_with_sizes swapaxes swapdims tensor_split "
        "unbind unflatten unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit"
    ),
    "ops.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "optim.foreach": (
        "_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv "
        "_foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan "
        "_foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ _foreach_clamp_min "
        "_foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_ "
        "_foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp "
        "_foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ "
        "_foreach_lerp _foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ "
        "_foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum "
        "_foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_mm _foreach_mul _foreach_mul_ _foreach_neg "
        "_foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ "
        "_foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ "
        "_foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ _foreach_sqrt "
        "_foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ "
        "_foreach_trunc _foreach_trunc_ _foreach_zero_"
    ),
    "overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    "printing": "get_printoptions set_printoptions",
    "random": "Generator default_generator",
    "serialize": "load save",
    "settings": (
        "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision "
        "get_num_interop_threads get_num_threads is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled "
        "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads "
        "set_num_threads set_warn_always use_deterministic_algorithms"
    ),
    "sparse": (
        "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo ccol_indices_copy col_indices_copy "
        "crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_ row_indices_copy saddmm smm "
        "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor "
        "sparse_csr_tensor spmm sspaddmm values_copy"
    ),
    "types": "SymBool SymFloat SymInt",
    "utils.dlpack": "to_dlpack",
    "utils.summary": "summary",
}  # fmt: skip

TENSOR_KERNELS = {
    "ops.arrange": "diag_embed flip repeat roll tril triu",
    "ops.blend": "addcdiv addcmul lerp",
    "ops.bounds": "clip fmax fmin maximum minimum where",
    "ops.compare": (
        "bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor equal greater "
        "greater_equal isfinite isinf isnan less less_equal logical_and logical_not logical_or logical_xor not_equal "
        "signbit"
    ),
    "ops.complex": "angle complex conj imag real view_as_complex view_as_real",
    "ops.elementwise": (
        "add copysign div_floor div_trunc divide floor_divide floordiv fmod heaviside multiply nextafter pow rdivide "
        "remainder subtract"
    ),
    "ops.factor": (
        "cholesky_ex cholesky_solve det eig eigh eigvalsh inv_ex linalg_pinv lu_ex qr slogdet solve_ex "
        "solve_triangular svd svdvals"
    ),
    "ops.fft": "fftn fftn_real ifftn irfftn rfftn",
    "ops.fill": "fill",
    "ops.gather": "gather scatter_add scatter_combine scatter_write take_along_axis",
    "ops.index_advanced": "index_add index_write take",
    "ops.index_basic": "getitem setitem",
    "ops.joining": "cat concat stack",
    "ops.ldl": "linalg_ldl_factor linalg_ldl_solve",
    "ops.matmul": "matmul",
    "ops.movement": "astype broadcast_to cast contiguous copy permute_dims reshape view",
    "ops.nn_activation": (
        "dropout elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish prelu "
        "relu silu softmax softplus softshrink threshold"
    ),
    "ops.nn_attention": "attention linear",
    "ops.nn_conv": "conv conv_input_grad conv_weight_grad fold unfold",
    "ops.nn_ctc": "ctc_loss ctc_loss_grad",
    "ops.nn_grid": "grid_sample",
    "ops.nn_loss": "cross_entropy cross_entropy_grad embedding embedding_bag embedding_grad nll_loss",
    "ops.nn_norm": "batch_norm batch_norm_eval group_norm layer_norm rms_norm",
    "ops.nn_pair_loss": "binary_cross_entropy binary_cross_entropy_with_logits huber_loss mse_loss smooth_l1_loss",
    "ops.nn_pool": (
        "adaptive_avg_pool adaptive_avg_pool_grad adaptive_max_pool avg_pool avg_pool_grad max_pool max_pool_grad "
        "max_pool_take max_pool_values"
    ),
    "ops.nn_resize": "interpolate interpolate_grad pad_border pad_border_grad",
    "ops.nn_rnn": "gru_layer gru_layer_grad lstm_layer lstm_layer_grad rnn_layer",
    "ops.norms": "vector_norm",
    "ops.parts": "frexp gcd lcm",
    "ops.products": "cross euclidean_distance own_distance row_distance",
    "ops.reduce": "all any argmax argmin count_nonzero max max_dim mean min min_dim nansum prod sum sum_all",
    "ops.reflections": "geqrf",
    "ops.reinterpret": "reinterpret",
    "ops.scan": "cumulative_max cumulative_min cumulative_prod cumulative_sum logcumsumexp",
    "ops.sort": "argsort searchsorted sort topk unique_all unique_rows",
    "ops.special": (
        "digamma entr erf erfc erfcx erfinv gammainc gammaincc lgamma log_ndtr logit ndtri polygamma sinc xlog1py "
        "xlogy zeta"
    ),
    "ops.special_bessel": (
        "airy_ai bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 "
        "bessel_k1e bessel_y0 bessel_y1 spherical_bessel_j0"
    ),
    "ops.special_polynomial": (
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
        "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
        "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
        "shifted_chebyshev_polynomial_w"
    ),
    "ops.statistics": "kthvalue logsumexp median median_dim mode norm std var",
    "ops.stft": "frames overlap_add",
    "ops.strided": (
        "as_strided as_strided_copy constant diagonal diagonal_copy diagonal_write sliding_window strided unfold_copy"
    ),
    "ops.unary": (
        "abs acos acosh asin asinh atan atan2 atanh ceil cos cosh deg2rad exp exp2 expm1 floor frac hypot log log10 "
        "log1p log2 logaddexp logaddexp2 nan_to_num negative rad2deg reciprocal round rsqrt sgn sigmoid sign sin sinh "
        "sqrt square tan tanh trunc"
    ),
}  # fmt: skip

FREE_KERNELS = {
    "backends.elementwise:ElementwiseKernels": (
        "acos acosh addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_invert ceil clip complex copysign cosh "
        "exp2 expm1 floordiv fmod greater greater_equal hypot isfinite isinf lerp less_equal log10 log1p log2 "
        "logaddexp logical_and logical_or logical_xor nan_to_num not_equal positive rdivide reciprocal round rsqrt "
        "sgn sigmoid signbit sinh softplus square tan trunc"
    ),
    "backends.elementwise_extra:ExtraKernels": (
        "frexp gcd lcm logaddexp2 nextafter polygamma view_as_complex view_as_real zeta"
    ),
    "backends.elementwise_special:SpecialKernels": "digamma erf erfc erfcx erfinv lgamma",
    "backends.fft:FFTKernels": "fftn fftn_real ifftn irfftn overlap_add rfftn",
    "backends.linalg:LinalgKernels": (
        "cholesky_ex cross det geqrf inv_ex lu_ex lu_solve pivots_to_order qr slogdet solve_ex solve_triangular"
    ),
    "backends.linalg_eigen:EigenKernels": "eigh eigvalsh svd svdvals",
    "backends.linalg_schur:SchurKernels": "eig",
    "backends.movement:MovementKernels": (
        "constant contiguous diagonal diagonal_write gather index_range refuse_outside reinterpret roll "
        "scatter_combine scatter_places scatter_write sliding_window spread_indices strided strided_places tril triu"
    ),
    "backends.nn_activation:ActivationKernels": (
        "dropout elu elu_grad gelu gelu_grad hardshrink hardsigmoid hardsigmoid_grad hardswish hardswish_grad "
        "hardtanh_grad leaky_relu leaky_relu_grad log_softmax log_softmax_grad logsigmoid logsigmoid_grad mish "
        "mish_grad prelu relu relu_grad sigmoid_grad silu silu_grad softmax softmax_grad softplus_grad softshrink "
        "tanh_grad"
    ),
    "backends.nn_attention:AttentionKernels": "attention attention_grad",
    "backends.nn_conv:ConvKernels": "conv conv_input_grad conv_weight_grad fold unfold",
    "backends.nn_ctc:CTCKernels": "ctc_loss ctc_loss_grad",
    "backends.nn_grid:GridKernels": "grid_sample grid_sample_grad",
    "backends.nn_linear:LinearKernels": "linear linear_weight_grad",
    "backends.nn_loss:LookupKernels": (
        "cross_entropy cross_entropy_grad embedding embedding_bag embedding_grad embedding_grad_take nll_loss "
        "nll_loss_grad"
    ),
    "backends.nn_norm:NormKernels": (
        "batch_norm batch_norm_eval batch_norm_eval_grad batch_norm_eval_weight_grad batch_norm_grad batch_norm_grads "
        "batch_norm_weight_grad blend group_norm group_norm_grad group_norm_grads group_norm_weight_grad layer_norm "
        "layer_norm_grad layer_norm_grads layer_norm_weight_grad rms_norm rms_norm_grad rms_norm_grads "
        "rms_norm_weight_grad"
    ),
    "backends.nn_pool:PoolKernels": (
        "adaptive_avg_pool adaptive_avg_pool_grad adaptive_max_pool avg_pool avg_pool_grad max_pool max_pool_grad "
        "max_pool_take max_pool_values max_pool_window_grad"
    ),
    "backends.nn_resize:ResizeKernels": "interpolate interpolate_grad pad_border pad_border_grad",
    "backends.nn_rnn:RecurrentKernels": (
        "gru_layer gru_layer_grad lstm_layer lstm_layer_grad rnn_layer rnn_layer_grad"
    ),
    "backends.optim:OptimKernels": (
        "adadelta_step adafactor_step adagrad_step adam_step adamax_step asgd_step count_step count_unless_step "
        "downhill each_step fade hold_step muon_step nadam_step plus radam_step rmsprop_step rprop_step run_step "
        "scale_step sgd_step toward toward_square unscale_step vector_norms"
    ),
    "backends.philox:RandomKernels": (
        "_random_draw random_bernoulli random_bits random_chunk random_exponential random_integers random_normal "
        "random_permutation random_uniform"
    ),
    "backends.reduction:ReductionKernels": (
        "all all_equal any argmin count_nonzero cumulative_max cumulative_min cumulative_prod diff flat_nonzero "
        "kthvalue logcumsumexp logsumexp max_dim mean median min_dim nansum row_distances searchsorted sort "
        "sort_pairs std topk unique_all var vector_norm"
    ),
    "backends.special_bessel:BesselKernels": (
        "airy_ai bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 "
        "bessel_k1e bessel_y0 bessel_y1 spherical_bessel_j0"
    ),
    "backends.special_gamma:GammaKernels": "gammainc gammaincc",
}  # fmt: skip
