"""What libraries ask of PyTorch's compiled module in plain programs: a usage log, and whether a trace is being recorded."""

from __future__ import annotations

from importlib import import_module
from types import NoneType
from typing import Any

from mortice.addresses import attribute
from mortice.backends.plugins import resolve
from mortice.levels import stack
from mortice.methods import Tensor, _disabled_torch_function_impl, _to_arguments
from mortice.mps import is_available as _mps_is_available  # noqa: F401

TensorBase = _TensorBase = Tensor.__mro__[-2]
_TensorMeta, _disabled_torch_dispatch_impl = type(Tensor), _disabled_torch_function_impl
__path__: list[str] = []  # a package to PyTorch; see mortice.addresses


# The graphs that an exporter is given, for annotations; there are none.
Graph = Value = Node = NoneType


class _distributed_rpc:
    PyRRef = NoneType  # the type of a reference to another process's object; there are none


class ScriptMethod:
    """The type of what is compiled, for `isinstance`; there is none."""


ScriptObject = ScriptMethod


class PyTorchFileReader:
    """The type of PyTorch's reader of a file's records, for annotations; there are none."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError("PyTorchFileReader: records are not read one by one. Use load(path, mmap=True).")


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return the device, the dtype, whether later, and the memory format that arguments of `to` mean."""
    device, dtype, _, _, memory_format, later = _to_arguments(args, kwargs)
    return None if device is None else resolve(device), dtype, later, memory_format


class _Family:
    """The functions of a namespace by the names that PyTorch's compiled module has for them, as in graphs of `fx`."""

    def __init__(self, module: str, prefix: str = "", **names: Any) -> None:
        self._module, self._prefix = module, prefix
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self._module), "logsigmoid" if name == "log_sigmoid" else name.removeprefix(self._prefix))


def _upsample(name: str) -> Any:
    mode = name.removesuffix("_aa")[:-2].replace("_", "-")

    def smooth(input: Any, output_size: Any, align_corners: Any, scale_factors: Any = None, *_: Any) -> Any:
        return _nn.interpolate(input, output_size, scale_factors, mode, align_corners, antialias=name.endswith("_aa"))

    def nearest(input: Any, output_size: Any, scale_factors: Any = None, *_: Any) -> Any:
        return smooth(input, output_size, None, scale_factors)

    return nearest if mode[0] == "n" else smooth


_MODES = (
    "nearest1d nearest2d nearest3d linear1d bilinear2d trilinear3d bicubic2d "
    "nearest_exact1d nearest_exact2d nearest_exact3d bilinear2d_aa bicubic2d_aa lanczos2d_aa"
).split()
_nn = _Family(
    "mortice.nn.functional", _parse_to=_parse_to, **{f"{'_' * ('_' in name)}upsample_{name}": _upsample(name) for name in _MODES}
)
_linalg, _fft, _special = (_Family(f"mortice.{name}", f"{name}_") for name in ("linalg", "fft", "special"))


def _log_api_usage_once(event: str) -> None:
    """Do nothing: no usage is logged."""


def _get_tracing_state() -> None:
    """Return None: nothing is traced into a program."""


def _get_default_device() -> str:
    """Return the type of the device of new tensors."""
    return resolve().type


def _is_tracing() -> bool:
    """Return False."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Tell whether a transform that hands tensors of its own to a function, as vmap does, is running; grad hands plain ones."""
    return any(level.transforms for level in stack.levels)


def is_batchedtensor(tensor: Any) -> bool:
    """Tell whether a tensor stands for one sample of those that vmap maps over."""
    return getattr(tensor._device.level, "name", "") == "vmap"


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Return False: there is one vmap."""
    return False


def _is_alias_of(data: Any, other: Any) -> bool:
    """Tell whether two tensors share their memory."""
    return data.untyped_storage()._cdata == other.untyped_storage()._cdata


def _is_torch_function_mode_enabled() -> bool:
    """Tell whether a mode is told of functions."""
    return bool(import_module("mortice.asking")._state.modes)


def _jit_set_profiling_mode(profiling_flag: bool) -> bool:
    """Return that it was off: nothing is compiled."""
    return False


def __getattr__(name: str) -> Any:
    if name.startswith(("_jit_set_", "_jit_override_")):  # nothing is compiled
        return _jit_set_profiling_mode
    if name == "_VariableFunctions":
        return import_module("mortice")
    if name == "_DisableTorchDispatch":
        return import_module("mortice.subclasses").no_dispatch
    if name in ("_LinAlgError", "_set_grad_enabled"):
        return getattr(import_module("mortice.linalg" if name[1] == "L" else "mortice"), name[1:])
    if name in ("_add_batch_dim", "_remove_batch_dim", "get_unwrapped"):
        return getattr(import_module("mortice.utils.vmap_steps"), name)
    found = None if name[0] == "_" else getattr(import_module("mortice"), name, None)
    if isinstance(found, type) or (found and name[:3] in ("get", "is_", "set")):
        return found
    return attribute("mortice._C", name)


__all__ = ["_disabled_torch_function_impl"]
