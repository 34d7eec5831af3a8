"""What libraries ask of PyTorch's ONNX exporter in plain programs: whether it is running. It never is: exporting is left out."""

from enum import Enum
from typing import Any, NoReturn

from mortice.addresses import attribute

__all__ = ["OperatorExportTypes", "export", "is_in_onnx_export"]
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses


class OperatorExportTypes(Enum):
    """What an exporter is asked to do with operators, for defaults of arguments."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is no exporter here."""
    raise NotImplementedError("onnx.export: exporting to ONNX is left out. Load the state_dict in PyTorch and export it there.")


def shape_as_tensor(x: Any) -> Any:
    """Return the sizes of a tensor as a vector, which an exporter would follow."""
    return x.new_tensor(tuple(x.shape), dtype=int, device="cpu")


def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
    """Reshape to sizes that a vector has."""
    return x.reshape(shape.tolist())


def __getattr__(name: str) -> Any:
    return attribute("mortice.onnx", name)
