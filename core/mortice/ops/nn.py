"""The functions of the neural network ops together: what `mortice.nn` is built on (torch's `torch._C._nn`)."""

# Names are imported here to be looked up here.
# ruff: noqa: F401

from mortice.ops.nn_activation import (
    alpha_dropout,
    alpha_dropout_,
    celu,
    celu_,
    dropout,
    dropout_,
    elu,
    elu_,
    feature_alpha_dropout,
    feature_alpha_dropout_,
    feature_dropout,
    feature_dropout_,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardsigmoid_,
    hardswish,
    hardswish_,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    mish_,
    prelu,
    relu,
    relu6,
    relu6_,
    relu_,
    selu,
    selu_,
    silu,
    silu_,
    softmax,
    softplus,
    softshrink,
    threshold,
    threshold_,
)
from mortice.ops.nn_attention import bilinear, linear, scaled_dot_product_attention
from mortice.ops.nn_conv import (
    col2im,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    convolution,
    im2col,
)
from mortice.ops.nn_ctc import ctc_loss
from mortice.ops.nn_grid import affine_grid, grid_sample
from mortice.ops.nn_loss import check_rows, cross_entropy, embedding, embedding_bag, nll_loss
from mortice.ops.nn_norm import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from mortice.ops.nn_pair_loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    mse_loss,
    smooth_l1_loss,
)
from mortice.ops.nn_pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from mortice.ops.nn_resize import constant_pad_nd, interpolate, pad
from mortice.ops.nn_rnn import (
    gru,
    gru_cell,
    lstm,
    lstm_cell,
    rnn_relu,
    rnn_relu_cell,
    rnn_tanh,
    rnn_tanh_cell,
)

__all__ = [name for name in dict(globals()) if not name.startswith("_")]
