"""What libraries ask of PyTorch's ONNX exporter in plain programs: whether it is running. It never is: exporting is left out."""

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is no exporter here."""
    raise NotImplementedError("onnx.export: exporting to ONNX is left out. Load the state_dict in PyTorch and export it there.")
