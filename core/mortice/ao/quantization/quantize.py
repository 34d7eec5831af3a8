"""Models prepared: observers, or what rounds numbers, put behind their layers; those that train exchanged for layers that round weights."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import mortice
from mortice import nn
from mortice.ao.quantization import fake_quantize as fake
from mortice.ao.quantization import intrinsic, intrinsic_qat, qat
from mortice.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [
    "FloatFunctional", "add_quant_dequant", "convert", "get_default_qat_module_mappings", "get_default_qconfig_propagation_list",
    "get_embedding_qat_module_mappings", "no_observer_set", "prepare", "prepare_qat", "propagate_qconfig_", "quantize",
    "quantize_dynamic", "quantize_qat", "swap_module",
]  # fmt: skip


class FloatFunctional(nn.Module):
    """Operations with a place for an observer behind them: `ff.add(x, y)` in a model instead of `x + y`."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Any = nn.Identity()

    def forward(self, x: Any) -> Any:
        """Refuse: it is called by the name of an operation."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the corresponding operation")

    def add(self, x: Any, y: Any) -> Any:
        """Add."""
        return self.activation_post_process(mortice.add(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """Add a number; the range is what it was."""
        return mortice.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """Multiply."""
        return self.activation_post_process(mortice.mul(x, y))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """Multiply by a number; the range is what it was."""
        return mortice.mul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Join tensors along a dim."""
        return self.activation_post_process(mortice.cat(x, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """Add, and take what is positive."""
        return self.activation_post_process(nn.functional.relu(mortice.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """Multiply matrices."""
        return self.activation_post_process(mortice.matmul(x, y))


_NAMES = "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d ConvReLU3d LinearReLU LinearBn1d".split()
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Conv2d: qat.Conv2d, nn.Conv3d: qat.Conv3d, nn.Linear: qat.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear: qat.Linear,
    **{getattr(intrinsic, name): getattr(intrinsic_qat, name) for name in _NAMES},
}  # fmt: skip
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Any, Any] = {
    nn.Hardsigmoid: fake.default_fixed_qparams_range_0to1_fake_quant, nn.Sigmoid: fake.default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: fake.default_fixed_qparams_range_0to1_fake_quant, nn.Tanh: fake.default_fixed_qparams_range_neg1to1_fake_quant,
}  # fmt: skip
_WATCHED = (
    "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Dropout ELU Embedding EmbeddingBag GRU "
    "GRUCell GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LSTM LSTMCell LayerNorm LeakyReLU Linear PReLU RNNCell ReLU6 "
    "Sequential"
).split()


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """Return which layer takes the place of which, to train with rounded weights."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict[Any, Any]:
    """Return them with those of embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, nn.Embedding: qat.Embedding, nn.EmbeddingBag: qat.EmbeddingBag}


def get_default_qconfig_propagation_list() -> set[Any]:
    """Return the types of layers that are watched."""
    fused = {getattr(intrinsic, name) for name in intrinsic.__all__}
    rounding = {*DEFAULT_QAT_MODULE_MAPPINGS.values()}
    marks = {QuantStub, DeQuantStub, FloatFunctional}
    return {getattr(nn, name) for name in _WATCHED} | fused | rounding | {*DEFAULT_QAT_MODULE_MAPPINGS} | marks


def no_observer_set() -> set[Any]:
    """Return the types of layers without an observer: none here."""
    return set()


def propagate_qconfig_(module: Any, qconfig_dict: Any = None, prepare_custom_config_dict: Any = None) -> None:
    """Give each module within a `qconfig`: its own, or that of its type or name in the dict, or that of the module around it."""
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module: Any, known: Any, outer: Any, prefix: str) -> None:
    module.qconfig = getattr(module, "qconfig", known.get(prefix, known.get(type(module), outer)))
    for name, child in module.named_children():
        _propagate(child, known, module.qconfig, f"{prefix}.{name}".lstrip("."))


def _watch_output(self: Any, input: Any, output: Any) -> Any:
    return self.activation_post_process(output)


def _watch_input(self: Any, input: Any) -> Any:
    return self.activation_post_process(input[0])


def _insert(module: Any, make: Any, device: Any) -> None:
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", (make or module.qconfig.activation)())
    if device is not None:
        module.activation_post_process.to(device)
    made = module.qconfig.activation()
    if getattr(getattr(made, "activation_post_process", made), "averaging_constant", 0) == 1:  # it forgets: what comes in is rounded
        module.register_forward_pre_hook(_watch_input, prepend=True)
    else:
        module.register_forward_hook(_watch_output, prepend=True)


def _add_observers(module: Any, listed: set[Any], whole: set[Any], device: Any, custom: Any) -> None:
    for name, child in module.named_children():
        kind, wanted = type(child), getattr(child, "qconfig", None) is not None
        if kind is nn.Dropout:
            continue
        if isinstance(child, FloatFunctional):
            if wanted:
                child.activation_post_process = child.qconfig.activation()
                child.activation_post_process.to(device)
        elif isinstance(child, intrinsic._FusedModule) or kind in whole:
            _insert(child, None, device)
        elif child.training and kind in DEFAULT_MODULE_TO_ACT_POST_PROCESS:
            _insert(child, DEFAULT_MODULE_TO_ACT_POST_PROCESS[kind], device)
        elif wanted and kind in custom:
            made = custom[kind].from_float(child)
            setattr(module, name, made)
            _insert(made, None, device)
        else:
            _add_observers(child, listed, whole, device, custom)
    leaf = not module._modules or hasattr(module, "weight_fake_quant")
    if leaf and type(module) in listed and not isinstance(module, nn.Sequential):
        _insert(module, None, device)


def prepare(
    model: Any, inplace: bool = False, allow_list: Any = None, observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Any:  # fmt: skip
    """Return a model with observers behind its layers, as its `qconfig` and those of modules within say; `inplace` changes itself."""
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "prepare: None of the submodule got qconfig applied. Set `.qconfig` of the model, or of modules within.", stacklevel=2
        )
    devices = {t.device for t in (*model.parameters(), *model.buffers()) if t.device.type != "meta"}
    if len(devices) > 1:
        raise AssertionError(f"prepare: expected a model on one device; got {devices}.")
    listed = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    custom = (prepare_custom_config_dict or {}).get("float_to_observed_custom_module_class", {})
    _add_observers(model, listed, set(observer_non_leaf_module_list or ()), next(iter(devices), None), custom)
    return model


def swap_module(mod: Any, mapping: Any, custom_module_class_mapping: Any = None, use_precomputed_fake_quant: bool = False) -> Any:
    """Return the layer that takes a module's place, with its hooks; the module itself where it has no qconfig or the mapping none."""
    kind = {**mapping, **(custom_module_class_mapping or {})}.get(type(mod))
    if getattr(mod, "qconfig", None) is None or kind is None:
        return mod
    made = kind.from_float(mod)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _watch_output:
            made.register_forward_hook(hook)
    return made


def _swap(module: Any, mapping: Any, custom: Any) -> None:
    for name, child in list(module.named_children()):
        if not isinstance(child, intrinsic._FusedModule) and type(child) not in custom:
            _swap(child, mapping, custom)
        module._modules[name] = swap_module(child, mapping, custom)


def convert(
    module: Any, mapping: Any = None, inplace: bool = False, remove_qconfig: bool = True, is_reference: bool = False,
    convert_custom_config_dict: Any = None, use_precomputed_fake_quant: bool = False,
) -> Any:  # fmt: skip
    """Return a model with layers exchanged as a mapping of types says.

    Differs from torch: without a mapping it refuses, since there are no layers that compute with whole numbers.
    """
    if mapping is None:
        raise NotImplementedError(
            "convert: expected a mapping; got None. Layers that compute with int8 are left out: use the trained model as it is."
        )
    module = module if inplace else copy.deepcopy(module)
    _swap(module, mapping, (convert_custom_config_dict or {}).get("observed_to_quantized_custom_module_class", {}))
    if remove_qconfig:
        for m in module.modules():
            m.__dict__.pop("qconfig", None)
    return module


def prepare_qat(model: Any, mapping: Any = None, inplace: bool = False) -> Any:
    """Return a model that trains with rounded weights and activations, as its `qconfig` says.

    Raises:
        AssertionError: where the model is not in training mode.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(mapping.values()))


def add_quant_dequant(module: Any) -> Any:
    """Return a module with each leaf that has a qconfig between a QuantStub and a DeQuantStub."""
    if not module._modules and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def _left_out(name: str) -> Any:
    def refuse(model: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: layers that compute with int8 are left out. Use prepare_qat, which rounds as they would.")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refuse: layers that compute with int8 are left out."
    return refuse


quantize, quantize_dynamic, quantize_qat = _left_out("quantize"), _left_out("quantize_dynamic"), _left_out("quantize_qat")
