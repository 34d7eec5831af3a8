"""Bridges to other libraries: NumPy arrays out of tensors, and what registers with a library once it is imported."""

from __future__ import annotations

import importlib
import sys

from mortice.dtype import by_name, promote_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.dtype import DType

# ---- NumPy: the only place above plugins that asks for it, when it is called for ----


def is_ndarray(value: Any) -> bool:
    """Tell whether an object is a NumPy array, without importing NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_number(value: Any) -> bool:
    """Tell whether an object is a number of NumPy's: it has a buffer, which is nobody's to write."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def is_capsule(value: Any) -> bool:
    """Tell whether an object is a capsule, such as DLPack's."""
    return type(value).__name__ == "PyCapsule"


def as_ndarray(value: Any) -> Any:
    """Return an array of another library as NumPy has it, by whichever way the library offers."""
    return numpy_for("an array without a buffer").asarray(value)


def numpy_for(what: str) -> Any:
    """Import NumPy for something that needs it."""
    known = sys.modules.get("numpy")
    if known is not None:
        return known
    try:
        return importlib.import_module("numpy")
    except ModuleNotFoundError as error:
        raise RuntimeError(f"numpy: {what} needs NumPy, which is not installed (pip install numpy).") from error


def to_numpy(t: Any) -> Any:
    """Return a NumPy array over the tensor's host memory."""
    np, host = numpy_for(".numpy()"), t._host()
    if host.view.format != "B" or not host.raw:
        made = np.asarray(host.view)
        # The buffer protocol's "q" is NumPy's longlong: of as many bits as its int64 and yet another type.
        code = made.dtype.char
        return made.view(np.int64) if code == "q" else made.view(np.uint64) if code == "Q" else made
    name = t.dtype.name
    if t.dtype.stored is not t.dtype:
        raise TypeError(f"Got unsupported ScalarType {name.capitalize()}. Use .float().numpy(), or .view(mortice.uint8).numpy().")
    dtype = importlib.import_module("ml_dtypes").bfloat16 if name == "bfloat16" else name
    return np.frombuffer(host.view, dtype=dtype).reshape(host.shape)


def numpys_dtype(function: str, x: DType, y: DType) -> DType:
    """Return the dtype in which NumPy's function computes with two dtypes, PyTorch's where NumPy has one of them not."""
    np = numpy_for("an array beside a tensor")
    try:
        given = [np.dtype(d.name) for d in (x, y)]
    except TypeError:  # bfloat16 and float8
        return promote_types(x, y)
    return by_name(getattr(np, function).resolve_dtypes((*given, None))[0].name)


# ---- libraries that keep a register of array types ----

# The module of a library after which its bridge can be imported -> the bridge.
_BRIDGES = {
    "einops._backends": "mortice.utils.einops",
    "opt_einsum.backends.dispatch": "mortice.utils.opt_einsum",
    "visdom": "mortice.utils.visdom",
}


class _Register:
    """An import hook that finds nothing of its own: it imports a bridge after the module that the bridge is for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec that another finder has, with the bridge to follow."""
        if name in _BRIDGES:
            for finder in sys.meta_path:
                spec = None if finder is self else finder.find_spec(name, path, target)
                if spec is not None:
                    spec.loader = _Followed(spec.loader)
                    return spec
        return None


class _Followed:
    """A loader that imports the bridge when the module is complete."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        """Leave it to the module's own loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run the module, which keeps its own loader, then its bridge."""
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _connect(module.__name__)


class _Addresses:
    """An import hook for what no file below mortice has: PyTorch keeps some things at other addresses."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module that leads to where it is here."""
        if not name.startswith("mortice."):
            return None
        return importlib.import_module("mortice.addresses").find_spec(name)


def _connect(name: str) -> None:
    try:
        importlib.import_module(_BRIDGES[name])
    except Exception as error:  # whatever another version of the library breaks, importing it must not fail
        library = name.partition(".")[0]
        from mortice.notice import warn

        warn(f"{library} will not take mortice tensors: {error!r}", RuntimeWarning)


def register_bridges() -> None:
    """Connect to the libraries that are imported, and to the others when they will be."""
    for name in _BRIDGES:
        if name in sys.modules:
            _connect(name)
    sys.meta_path.insert(0, _Register())
    sys.meta_path.append(_Addresses())
