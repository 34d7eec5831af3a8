"""mortice.nn.utils: gradient clipping, parameters as one vector."""

from mortice.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from mortice.nn.utils.convert import parameters_to_vector, vector_to_parameters
