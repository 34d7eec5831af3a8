"""Quantization as it is trained for: observers, fake quantizers and models prepared with them, in PyTorch's names.

Numbers are rounded as int8 would express them and stay floating-point. Layers that compute with int8 are left out.
"""

from mortice.ao.quantization import fake_quantize, observer, qconfig, stubs
from mortice.ao.quantization.fake_quantize import *
from mortice.ao.quantization.fuse_modules import *
from mortice.ao.quantization.observer import *
from mortice.ao.quantization.qconfig import *
from mortice.ao.quantization.quantize import *
from mortice.ao.quantization.quantize import (
    DEFAULT_MODULE_TO_ACT_POST_PROCESS as DEFAULT_MODULE_TO_ACT_POST_PROCESS,
)
from mortice.ao.quantization.quantize import (
    DEFAULT_QAT_MODULE_MAPPINGS as DEFAULT_QAT_MODULE_MAPPINGS,
)
from mortice.ao.quantization.stubs import *

ObserverOrFakeQuantize = observer.ObserverBase | fake_quantize.FakeQuantizeBase

__all__ = [*observer.__all__, *fake_quantize.__all__, *qconfig.__all__, *stubs.__all__, "ObserverOrFakeQuantize"]
