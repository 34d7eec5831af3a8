"""QConfig: which observers or fake quantizers a layer gets for its activations and for its weights, and the usual choices."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import mortice
from mortice import nn
from mortice.ao.quantization import fake_quantize as fake
from mortice.ao.quantization import observer as seen


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """What makes the modules that watch or round activations, and weights: classes, or what `with_args` returns."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override "
                "arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

default_qconfig = QConfig(seen.default_observer, seen.default_weight_observer)
default_debug_qconfig = QConfig(seen.default_debug_observer, seen.default_weight_observer)
default_per_channel_qconfig = QConfig(seen.default_observer, seen.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(seen.default_dynamic_quant_observer, seen.default_weight_observer)
per_channel_dynamic_qconfig = QConfig(seen.default_dynamic_quant_observer, seen.default_per_channel_weight_observer)
float16_static_qconfig = QConfig(*[seen.PlaceholderObserver.with_args(dtype=mortice.float16)] * 2)
float16_dynamic_qconfig = QConfig(
    seen.PlaceholderObserver.with_args(dtype=mortice.float16, is_dynamic=True), seen.PlaceholderObserver.with_args(dtype=mortice.float16)
)
float_qparams_weight_only_qconfig = QConfig(seen.default_placeholder_observer, seen.default_float_qparams_observer)
default_qat_qconfig = QConfig(fake.default_fake_quant, fake.default_weight_fake_quant)
default_qat_qconfig_v2 = QConfig(fake.default_fused_act_fake_quant, fake.default_fused_wt_fake_quant)
default_dynamic_qat_qconfig = QConfig(fake.default_dynamic_fake_quant, fake.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(nn.Identity, fake.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fake.default_fake_quant, nn.Identity)
default_reuse_input_qconfig = QConfig(seen.default_reuse_input_observer, seen.NoopObserver)
default_embedding_qat_qconfig = QConfig(seen.NoopObserver.with_args(dtype=mortice.float32), fake.default_embedding_fake_quant)
default_quint8_weight_qconfig = QConfig(seen.HistogramObserver, seen.MinMaxObserver)
_signed = seen.HistogramObserver.with_args(dtype=mortice.qint8, reduce_range=False, eps=2**-12)
default_symmetric_qnnpack_qconfig = QConfig(_signed, seen.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(_signed, seen.per_channel_weight_observer_range_neg_127_to_127)
_rounded = fake.FusedMovingAvgObsFakeQuantize.with_args(
    observer=seen.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=mortice.qint8, reduce_range=False, eps=2**-12
)
default_symmetric_qnnpack_qat_qconfig = QConfig(_rounded, fake.fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(_rounded, fake.fused_per_channel_wt_fake_quant_range_neg_127_to_127)


def _check(name: str, backend: str, version: int | None, known: tuple[int | None, ...]) -> None:
    if backend not in ("fbgemm", "x86", "qnnpack", "onednn"):
        raise AssertionError(f"{name}: backend: {backend} not supported. backend must be one of fbgemm, x86, qnnpack, onednn")
    if version not in known:
        raise AssertionError(f"{name}: Version number: {version} is not supported; expected one of {known}.")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Return the usual observers for a backend of PyTorch's, whose ranges differ.

    Raises:
        AssertionError: for another backend, or a version other than 0.
    """
    _check("get_default_qconfig", backend, version, (0,))
    weight = seen.default_weight_observer if backend == "qnnpack" else seen.default_per_channel_weight_observer
    return QConfig(seen.HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int | None = 1) -> QConfig:
    """Return the usual fake quantizers for a backend of PyTorch's; of version 1 they are the fused ones.

    Raises:
        AssertionError: for another backend, or a version other than 0, 1 and None.
    """
    _check("get_default_qat_qconfig", backend, version, (0, 1, None))
    kind = fake.FusedMovingAvgObsFakeQuantize if version == 1 else fake.FakeQuantize
    by_channel = backend != "qnnpack"
    if version == 1:
        weight = fake.default_fused_per_channel_wt_fake_quant if by_channel else fake.default_fused_wt_fake_quant
    elif version == 0:
        weight = fake.default_per_channel_weight_fake_quant if by_channel else fake.default_weight_fake_quant
    else:
        return default_qat_qconfig
    halved = {} if backend == "onednn" else {"reduce_range": backend in ("fbgemm", "x86")}
    return QConfig(kind.with_args(observer=seen.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **halved), weight)


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Tell whether two make the same modules."""
    if q1 is None or q2 is None:
        return q1 is q2
    parts = [(getattr(part, "func", part), getattr(part, "keywords", {})) for q in (q1, q2) for part in q]
    return parts[:2] == parts[2:]


__all__ = ["QConfig", "QConfigAny", "get_default_qat_qconfig", "get_default_qconfig", "qconfig_equals"] + [
    n for n in dir() if not n.startswith(("_", "get_")) and ("_qconfig" in n and n != "qconfig_equals")
]
