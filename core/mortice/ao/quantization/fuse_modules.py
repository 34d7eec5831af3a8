"""Layers of a model joined into fused modules, so that what stands between them is not rounded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from mortice import nn
from mortice.ao.quantization import intrinsic
from mortice.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_known_modules", "fuse_linear_bn", "fuse_modules",
    "fuse_modules_qat", "get_fuser_method",
]  # fmt: skip


def _check(is_qat: bool, layer: Any, bn: Any, *rest: Any) -> None:
    if any(m.training != layer.training for m in (bn, *rest)):
        raise AssertionError(f"{type(layer).__name__} and BN both must be in the same mode (train or eval).")
    features = getattr(layer, "out_channels", None) or getattr(layer, "out_features", None)
    if is_qat and (bn.num_features != features or not bn.affine or not bn.track_running_stats):
        raise AssertionError(
            f"fuse_modules_qat: expected a batch norm of {features} features with weights and running statistics; got {bn}."
        )


def _named(layer: Any, kind: str) -> Any:
    return getattr(intrinsic, kind + type(layer).__name__[-2:])


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """Return a convolution and a batch norm as one: to train, a fused module; else a convolution."""
    _check(is_qat, conv, bn)
    return _named(conv, "ConvBn")(conv, bn) if is_qat else fuse_conv_bn_eval(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """Return a convolution, a batch norm and a ReLU as a fused module."""
    _check(is_qat, conv, bn, relu)
    return _named(conv, "ConvBnReLU")(conv, bn, relu) if is_qat else _named(conv, "ConvReLU")(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """Return a linear layer and a batch norm as one: to train, a fused module; else a linear layer."""
    _check(is_qat, linear, bn)
    return intrinsic.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """Return a transposed convolution with the batch norm in its weight; there is none to train."""
    _check(False, convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # as PyTorch has it
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _joined(kind: Any) -> Any:
    return lambda is_qat, *layers: kind(*layers)


_KNOWN: dict[tuple[Any, ...], Any] = {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn, (nn.Linear, nn.ReLU): _joined(intrinsic.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _joined(intrinsic.BNReLU2d), (nn.BatchNorm3d, nn.ReLU): _joined(intrinsic.BNReLU3d),
}  # fmt: skip
for _n in "123":
    _conv, _bn = getattr(nn, f"Conv{_n}d"), getattr(nn, f"BatchNorm{_n}d")
    _KNOWN[_conv, _bn], _KNOWN[_conv, _bn, nn.ReLU] = fuse_conv_bn, fuse_conv_bn_relu
    _KNOWN[_conv, nn.ReLU] = _joined(getattr(intrinsic, f"ConvReLU{_n}d"))
    _KNOWN[getattr(nn, f"ConvTranspose{_n}d"), _bn] = fuse_convtranspose_bn


def get_fuser_method(op_list: Any, additional_fuser_method_mapping: Any = None) -> Any:
    """Return what joins layers of these types.

    Raises:
        AssertionError: where nothing does.
    """
    found = {**_KNOWN, **(additional_fuser_method_mapping or {})}.get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found


def fuse_known_modules(mod_list: Any, is_qat: bool, additional_fuser_method_mapping: Any = None) -> list[Any]:
    """Return what takes the places of modules: the fused one, and then identities. Hooks at either end go along."""
    fused = get_fuser_method(tuple(type(m) for m in mod_list), additional_fuser_method_mapping)(is_qat, *mod_list)
    for taken, register in (
        (mod_list[0]._forward_pre_hooks, fused.register_forward_pre_hook), (mod_list[-1]._forward_hooks, fused.register_forward_hook),
    ):  # fmt: skip
        hooks = list(taken.values())
        taken.clear()
        for hook in hooks:
            register(hook)
    return [fused, *[nn.Identity().train(mod_list[0].training) for _ in mod_list[1:]]]


def _fuse(
    model: Any, modules_to_fuse: Any, is_qat: bool, inplace: bool, fuser_func: Callable[..., Any], fuse_custom_config_dict: Any
) -> Any:
    model = model if inplace else copy.deepcopy(model)
    more = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    for names in [modules_to_fuse] if all(isinstance(name, str) for name in modules_to_fuse) else modules_to_fuse:
        for name, module in zip(names, fuser_func([model.get_submodule(name) for name in names], is_qat, more)):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, module)
    return model


def fuse_modules(
    model: Any, modules_to_fuse: Any, inplace: bool = False, fuser_func: Any = fuse_known_modules, fuse_custom_config_dict: Any = None
) -> Any:
    """Return a model with layers joined, given as lists of names: convolution, batch norm and ReLU, or linear layer and ReLU.

    The fused module is where the first one was, identities where the others were; `inplace` changes the model itself.
    A batch norm goes into the weights, so that the model must be in eval mode: see `fuse_modules_qat`.
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Any, modules_to_fuse: Any, inplace: bool = False, fuser_func: Any = fuse_known_modules, fuse_custom_config_dict: Any = None
) -> Any:
    """Do as `fuse_modules` to train a model on: batch norms stay, in the fused modules."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
