"""mortice.nn.utils: clipping, vectors of parameters, normalised and parametrized weights, pruning, fusion, packing."""

from mortice.nn.utils import parametrizations, parametrize, prune, rnn, stateless
from mortice.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from mortice.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from mortice.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from mortice.nn.utils.init import skip_init
from mortice.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from mortice.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from mortice.nn.utils.weight_norm import remove_weight_norm, weight_norm
