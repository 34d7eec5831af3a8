"""mortice.nn.functional: PyTorch's functional interface, without state."""

from mortice import _nn
from mortice import misuse as _misuse
from mortice.nn import grad
from mortice.nn.functional.activation import (
    alpha_dropout,
    celu,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    elu,
    feature_alpha_dropout,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from mortice.nn.functional.attention import multi_head_attention_forward
from mortice.nn.functional.distance import cosine_similarity, normalize, one_hot, pairwise_distance, pdist
from mortice.nn.functional.fractional import (
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from mortice.nn.functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    linear_cross_entropy,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from mortice.nn.functional.norm import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from mortice.nn.functional.sparse import embedding, embedding_bag, grouped_mm
from mortice.nn.functional.spatial import (
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    channel_shuffle,
    conv_tbc,
    fold,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)

# ---- the ops that are torch-shaped as they are ----

linear, bilinear = _nn.linear, _nn.bilinear
scaled_dot_product_attention = _nn.scaled_dot_product_attention
conv1d, conv2d, conv3d = _nn.conv1d, _nn.conv2d, _nn.conv3d
conv_transpose1d, conv_transpose2d, conv_transpose3d = _nn.conv_transpose1d, _nn.conv_transpose2d, _nn.conv_transpose3d
avg_pool1d, avg_pool2d, avg_pool3d = _nn.avg_pool1d, _nn.avg_pool2d, _nn.avg_pool3d
adaptive_avg_pool1d = _nn.adaptive_avg_pool1d
adaptive_avg_pool2d = _nn.adaptive_avg_pool2d
adaptive_avg_pool3d = _nn.adaptive_avg_pool3d
gelu, glu, logsigmoid, prelu = _nn.gelu, _nn.glu, _nn.logsigmoid, _nn.prelu
hardshrink, softplus, softshrink = _nn.hardshrink, _nn.softplus, _nn.softshrink
interpolate, pad = _nn.interpolate, _nn.pad
affine_grid, grid_sample = _nn.affine_grid, _nn.grid_sample

# ---- in place ----

relu_, threshold_, hardtanh_, leaky_relu_ = _nn.relu_, _nn.threshold_, _nn.hardtanh_, _nn.leaky_relu_
elu_, selu_, celu_ = _nn.elu_, _nn.selu_, _nn.celu_


def rrelu_(input: object, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> object:
    """Do `rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)

_misuse.guard_namespace(globals())
