"""mortice.signal: signal processing under the names of `torch.signal`."""

from mortice.signal import windows

__all__ = ["windows"]
