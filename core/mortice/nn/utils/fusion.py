"""Folding a batch normalisation in evaluation mode into the convolution or linear layer before it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import mortice
from mortice.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight: Any, bias: Any, mean: Any, var: Any, eps: float, gamma: Any, beta: Any, dim: int) -> Any:
    """Return weight and bias with a normalisation of the channels, which lie along `dim` of the weight, folded in."""
    scale = mortice.rsqrt(var + eps) * (1 if gamma is None else gamma)
    shape = [1] * weight.ndim
    shape[dim] = -1
    shift = (0 if bias is None else bias) - mean
    made = (weight * scale.reshape(shape), shift * scale + (0 if beta is None else beta))
    likes = (weight, weight if bias is None else bias)
    wanted = (weight.requires_grad, bias is not None and bias.requires_grad)
    return tuple(Parameter(t.to(like.dtype), grad) for t, like, grad in zip(made, likes, wanted))


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Any, Any]:
    """Return the weight and bias of a convolution with a batch normalisation folded in."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Return the weight and bias of a linear layer with a batch normalisation folded in."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fuse(fuse: Any, layer: Any, bn: Any, *more: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    made = deepcopy(layer)
    made.weight, made.bias = fuse(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, *more
    )
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return one convolution that does what a convolution and the batch normalisation after it do in evaluation."""
    return _fuse(fuse_conv_bn_weights, conv, bn, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return one linear layer that does what a linear layer and the batch normalisation after it do in evaluation."""
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fuse(fuse_linear_bn_weights, linear, bn)
