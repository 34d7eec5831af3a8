"""The types of modules that quantize, which libraries ask about; there are none."""

from mortice.nn.module import Module

__all__ = ["FakeQuantizeBase", "ObserverBase"]


class ObserverBase(Module):
    """The type of a module that watches the range of numbers, for `isinstance`."""


class FakeQuantizeBase(Module):
    """The type of a module that rounds as quantized numbers would, for `isinstance`."""
