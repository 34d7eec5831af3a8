"""Which public function is which: the names that PyTorch's own functions go by in a graph, and how it records their arguments."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import mortice
from mortice import Tensor
from mortice.asking import asks
from mortice.lazy import Lazy, behind

# Compiled functions of PyTorch's. Those of its namespace are recorded as they are called; those written in Python with
# every argument, those that have a default by name.
_COMPILED_NN = frozenset(
    "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot scaled_dot_product_attention softplus "
    "softshrink".split()
)
_COMPILED = frozenset(
    "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist "
    "pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_".split()
)
_IN_PYTHON = frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul einsum lu meshgrid norm "
    "split stft tensordot unique unique_consecutive unravel_index".split()
)
# Functions that are made of a method, and are recorded as that.
_METHODS = frozenset(("sigmoid", "tanh"))
_THROUGH = frozenset(("upsample", "upsample_bilinear", "upsample_nearest", "grouped_mm", "assert_int_or_pair"))
NAMESPACES = ("mortice", "mortice.nn.functional", "mortice.linalg", "mortice.fft", "mortice.special")


def address(namespace: str, name: str) -> str:
    """Return the name by which generated code calls a public function."""
    if namespace == "mortice":
        return f"torch.functional.{name}" if name in _IN_PYTHON else f"torch.{name}"
    if namespace == "mortice.nn.functional":
        if name in _COMPILED_NN:
            return f"torch._C._nn.{'log_sigmoid' if name == 'logsigmoid' else name}"
        return f"torch.{name}" if name in _COMPILED else f"torch.nn.functional.{name}"
    family = namespace.rpartition(".")[2]
    return f"torch._C._{family}.{family}_{name}"


def recorded(path: str, fn: Any) -> Callable[[Any, Any], tuple[Any, dict[str, Any]]] | None:
    """Return what brings arguments into the form in which they are recorded; None where they stay."""
    if not path.startswith(("torch.nn.functional.", "torch.functional.")):
        return None
    parameters = inspect.signature(behind(fn)).parameters.values()
    return functools.partial(_filled_in, list(parameters))


def _filled_in(parameters: list[inspect.Parameter], args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
    bound = inspect.Signature(parameters).bind(*args, **kwargs)
    bound.apply_defaults()
    places: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in parameters:
        value = bound.arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            places.extend(value)
        elif parameter.default is parameter.empty:
            places.append(value)
        else:
            named[parameter.name] = value
    return tuple(places), named


def find(fn: Any) -> tuple[str, str] | None:
    """Return the namespace and the name of a public function."""
    fn, name = behind(fn), getattr(fn, "__name__", "")
    if not str(getattr(fn, "__module__", "")).startswith("mortice"):
        return None
    for namespace in NAMESPACES:
        if behind(_held(namespace, name)) is fn:
            return namespace, name
    for namespace in NAMESPACES:
        for other, value in vars(import_module(namespace)).items():
            if behind(value) is fn and not other.startswith("_"):
                return namespace, other
    return None


def _held(namespace: str, name: str) -> Any:
    """Return what a namespace has by a name, also where it has not been loaded yet; None where it has nothing."""
    return getattr(mortice, name) if namespace == "mortice" and name in mortice._WHERE else vars(import_module(namespace)).get(name)


def path_of(fn: Any) -> str:
    """Return the name by which generated code calls a function."""
    name = fn.__name__
    if getattr(builtins, name, None) is fn:
        return name  # type: ignore[no-any-return]
    public = find(fn)
    if public is not None:
        return address(*public)
    method = vars(Tensor).get(name)
    if fn is (method.settle() if isinstance(method, Lazy) else method):
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(fn).partition("=")[0].strip()
        except OSError as error:
            raise RuntimeError("Unable to represent lambda") from error
    return f"{told(fn.__module__)}.{name}"


def told(module: str) -> str:
    """Return the name that PyTorch has for a module here."""
    if module.startswith("mortice.vision"):
        return module.replace("mortice.vision", "torchvision", 1)
    return f"torch{module[7:]}" if module == "mortice" or module.startswith("mortice.") else module


def shown(value: Any, write: Callable[[Any], str] = repr) -> str:
    """Return a value as generated code writes it."""
    text = write(value)
    return f"torch{text[7:]}" if text.startswith("mortice.") else text


def type_name(kind: Any) -> str:
    """Return how a type is written."""
    if isinstance(kind, type) and type(kind).__name__ != "GenericAlias":
        return kind.__qualname__ if kind.__module__ == "builtins" else f"{told(kind.__module__)}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    return kind.__name__ if inspect.isfunction(kind) else repr(kind).replace("mortice.", "torch.")


def public_functions() -> list[tuple[str, str, Any]]:
    """Return (namespace, name, function) of all functions that a trace records."""
    found = []
    for namespace in NAMESPACES:
        for name, value in vars(import_module(namespace)).items():
            if asks(name, value) and not (namespace == "mortice.nn.functional" and name in _THROUGH):
                shared = namespace in ("mortice.linalg", "mortice.special") and behind(_held("mortice", name)) is behind(value)
                found.append(("mortice" if shared else namespace, name, value))
    return found


def as_method(namespace: str, name: str) -> bool:
    """Tell whether a function is recorded as the method of its name."""
    return namespace == "mortice.nn.functional" and name in _METHODS
