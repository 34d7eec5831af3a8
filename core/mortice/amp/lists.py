"""What operations ask of autocast, by name: PyTorch's lists, one for the CPU and one for accelerators.

A name is a function's as users know it, or an op's where that differs (`matmul` serves mm, bmm and `@`).
"""

from __future__ import annotations

LOWER = "lower"  # compute in the lower dtype
FLOAT32 = "float32"
PROMOTE = "promote"  # compute in the widest dtype among the operands
KEEP = "keep"  # compute in the operands' own dtypes, although it is made of operations that would be cast
BANNED = "banned"
BANNED_TEXT = (
    "nn.functional.binary_cross_entropy and nn.BCELoss are unsafe to autocast. Use nn.functional."
    "binary_cross_entropy_with_logits or nn.BCEWithLogitsLoss, which take the scores before the sigmoid."
)


def _table(**names: str) -> dict[str, str]:
    return {name: rule for rule, text in names.items() for name in text.split()}


_LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy hinge_embedding_loss huber_loss kl_div
    l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss
    smooth_l1_loss soft_margin_loss triplet_margin_loss
"""
_PRODUCTS = """
    addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d linear
    matmul mm prelu prelu_kernel scaled_dot_product_attention vecdot
"""

CPU = _table(
    lower=_PRODUCTS + "lstm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    float32=_LOSSES + """
        adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky cholesky_ex
        cholesky_inverse cholesky_solve cond ctc_loss eig eigh eigvals eigvalsh fft fft2 fftn
        fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices geqrf grid_sample hfft
        householder_product ifft ifft2 ifftn ihfft inv inv_ex inverse irfft irfft2 irfftn lstsq lu lu_factor
        lu_factor_ex lu_solve matrix_rank max_pool3d max_unpool1d max_unpool2d max_unpool3d nanquantile
        orgqr ormqr pinverse polar prod qr quantile rfft rfft2 rfftn solve stft svd svdvals
        tensorinv tensorsolve trace triangular_solve view_as_complex
    """,
    promote="cat index_copy stack",
    keep="addmv addr bilinear dot inner matrix_exp mv vdot",
)
ACCELERATOR = _table(
    lower=_PRODUCTS + """
        addmv addr chain_matmul convolution einsum gru_cell lstm_cell multi_dot mv rnn_relu_cell rnn_tanh_cell
    """,
    float32=_LOSSES + """
        acos asin cdist cosh cosine_similarity cumprod cumsum dist erfinv exp expm1 group_norm interpolate layer_norm
        linalg_vector_norm log log10 log1p log2 log_softmax logsumexp matrix_norm norm pdist pow prod reciprocal renorm
        rms_norm rsqrt sinh softmax softplus sum sum_all tan vector_norm
    """,
    promote="addcdiv addcmul atan2 bilinear cat cross dot grid_sample index_put scatter_add stack tensordot vdot",
    banned="binary_cross_entropy",
)  # fmt: skip
