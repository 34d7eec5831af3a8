"""The functions of the neural network ops together: what `mortice.nn` is built on (torch's `torch._C._nn`)."""

# Names are imported here to be looked up here.
# ruff: noqa: F401, F403, I001

from mortice.dtype import check_kind
from mortice.ops.nn_activation import *
from mortice.ops.nn_activation import (
    check_probability, elu, elu_, gelu, glu, hardsigmoid, hardsigmoid_, hardswish, hardswish_, hardtanh, hardtanh_, leaky_relu,
    leaky_relu_, logsigmoid, mish, mish_, relu6, relu6_, silu, silu_, softplus, softshrink,
)
from mortice.ops.nn_attention import *
from mortice.ops.nn_attention import linear, scaled_dot_product_attention
from mortice.ops.nn_conv import *
from mortice.ops.nn_conv import col2im, im2col
from mortice.ops.nn_ctc import *
from mortice.ops.nn_grid import affine_grid, grid_sample
from mortice.ops.nn_loss import *
from mortice.ops.nn_loss import check_rows, cross_entropy, embedding_bag, nll_loss
from mortice.ops.nn_norm import *
from mortice.ops.nn_pair_loss import (
    binary_cross_entropy, binary_cross_entropy_with_logits, huber_loss, mse_loss, smooth_l1_loss,
)
from mortice.ops.nn_pool import *
from mortice.ops.nn_pool import (
    adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool2d, adaptive_max_pool3d, avg_pool2d, avg_pool3d,
    max_pool2d_with_indices, max_pool3d_with_indices,
)
from mortice.ops.nn_resize import *
from mortice.ops.nn_resize import interpolate, pad
from mortice.ops.nn_rnn import *
from mortice.ops.products import own_distances

__all__ = [name for name in dict(globals()) if not name.startswith("_")]
