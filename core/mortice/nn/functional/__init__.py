"""mortice.nn.functional: PyTorch's functional interface, without state."""

from mortice import _load, _nn
from mortice import misuse as _misuse
from mortice.nn import _reduction as _Reduction  # losses that others write ask F for the numbers of reductions
from mortice.nn import grad as grad
from mortice.nn.functional.activation import *
from mortice.nn.functional.attention import *
from mortice.nn.functional.attention import _canonical_mask as _canonical_mask
from mortice.nn.functional.attention import _none_or_dtype as _none_or_dtype
from mortice.nn.functional.distance import *
from mortice.nn.functional.fractional import *
from mortice.nn.functional.loss import *
from mortice.nn.functional.norm import *
from mortice.nn.functional.sparse import *
from mortice.nn.functional.spatial import *

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


def __getattr__(name: str) -> object:  # for what is written as PyTorch's functions are, which ask their arguments themselves
    if "torch_function" in name:
        return getattr(_load("mortice.", "asking"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_misuse.guard_namespace(globals())
