"""Switches of what `nn.Module` does to its parameters when it converts them, or loads a state_dict."""

from __future__ import annotations

_switches = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Say whether `module.to(...)` and its kin make new parameters instead of changing those that there are."""
    _switches["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether conversions make new parameters."""
    return _switches["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Say whether conversions, and `load_state_dict`, exchange what parameters hold through `swap_tensors`."""
    _switches["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether parameters are swapped."""
    return _switches["swap"]
