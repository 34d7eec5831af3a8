"""mortice where programs look for PyTorch: `import torch` and `import torchvision` give mortice, in libraries too.

`python -m mortice run train.py` runs a script so, with PyTorch's random numbers on the CPU and its type promotion;
`install()` does the former for what a program imports from then on.
"""

from __future__ import annotations

import builtins
import copyreg
import importlib
import importlib.util
import inspect
import io
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from multiprocessing import spawn
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import mortice
from mortice import return_types
from mortice.autograd import function
from mortice.nn.modules import as_pytorch_names

__all__ = ["install"]

_PLACES = {"torch": "mortice", "torchvision": "mortice.vision", "functorch": "mortice.functorch"}
# Modules that load what is compiled against PyTorch, with the function that does, which says False where it is not installed:
# the library then computes in Python.
_COMPILED = {"torchaudio._extension.utils": "_load_lib"}
# Modules whose classes libraries look for by PyTorch's names, once they are loaded. Each optimizer but the youngest has a file there.
_LOOKED_FOR = frozenset([f"mortice.utils.data.{part}" for part in ("dataloader", "dataset", "distributed", "sampler")])
_LOOKED_FOR |= {"mortice.optim", "mortice.optim.lr_scheduler", "mortice.optim.swa_utils"}
_OPTIMIZERS = {"SparseAdam": ".sparse_adam", "Adafactor": "", "Muon": ""}


class _Loader(Loader):
    """Hands over a module that is loaded already; the import system changes its `__spec__`, which is put back."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        name = module.__spec__.name
        module.__spec__ = self.spec
        here = f"{self.spec.name}."
        for place, part in list(sys.modules.items()):
            # Libraries look for PyTorch's loaded parts in sys.modules. And importing a part would set it on its package:
            # `torch.autograd.gradcheck` must stay the function of that name.
            if place.startswith(here):
                sys.modules.setdefault(f"{name}.{place.removeprefix(here)}", part)


class _AndThen:
    """Runs a module with its own loader, and then does something to it."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self.loader, self.then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        self.then(module)


def _in_python_alone(module: ModuleType) -> None:
    vars(module)[_COMPILED[module.__name__]] = lambda lib: False


def _as_pytorch_has_it(module: ModuleType) -> None:
    place = module.__name__.replace("mortice", "torch", 1)
    own = "mortice.optim" if place in ("torch.optim", "torch.optim.lr_scheduler") else module.__name__
    for name, kind in list(vars(module).items()):
        if isinstance(kind, type) and kind.__module__.startswith(own):
            _move(kind, place + _OPTIMIZERS.get(name, f".{name.lower()}") if place == "torch.optim" else place)


class _Distribution(Distribution):
    """What libraries ask whether PyTorch is installed, and in which version."""

    def __init__(self, name: str, version: str) -> None:
        self.text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(mortice.__file__).parent / path


class _Finder(MetaPathFinder):
    """Finds PyTorch's modules at mortice's."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        head, _, rest = fullname.partition(".")
        then = _in_python_alone if fullname in _COMPILED else _as_pytorch_has_it if fullname in _LOOKED_FOR else None
        if then is not None:
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None:
                spec.loader = _AndThen(spec.loader, then)
            return spec
        if head not in _PLACES:
            return None
        place = f"{_PLACES[head]}.{rest}" if rest else _PLACES[head]
        try:
            return ModuleSpec(fullname, _Loader(importlib.import_module(place)), is_package=True)
        except ModuleNotFoundError as error:
            if not rest or error.name is None or not place.startswith(error.name):
                raise  # a part that is not installed, or something else that the module needs
            return None

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        asked = (context or DistributionFinder.Context()).name
        for name in ("torch", "torchvision"):
            if (asked is None or asked == name) and importlib.util.find_spec(_PLACES[name]) is not None:
                yield _Distribution(name, str(importlib.import_module(_PLACES[name]).__version__))


class _Again:
    """What a process that `multiprocessing` spawns reads before it runs the program's module: it installs there too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (mortice.random.get_engine(), mortice.get_type_promotion())


def _again(engine: str, type_promotion: str) -> None:
    install()
    mortice.random.set_engine(engine)
    mortice.set_type_promotion(type_promotion)


def install() -> None:
    """Let `import torch`, `torchvision` and `functorch` give mortice's modules from now on, in this process.

    Call it before anything imports PyTorch, which need not be installed. Processes that `multiprocessing` starts do the same.

    Raises:
        RuntimeError: when PyTorch itself has been imported.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    there = [name for name in _PLACES if name in sys.modules]
    if there:
        raise RuntimeError(f"as_torch.install: expected PyTorch not to be imported yet; got {there[0]!r} in sys.modules. Call it first.")
    sys.meta_path.insert(0, _Finder())
    vars(mortice)["torch"] = mortice  # PyTorch imports itself, and some write torch.torch
    mortice.__name__ = "torch"  # libraries take a path apart and compare its head with this
    builtins.__build_class__ = _Watched(builtins.__build_class__)
    for shown in (mortice.Size, mortice.dtype, mortice.memory_format):  # programs print them, and read what they print
        shown.__repr__ = _under_torch(shown.__repr__)
    mortice.Tensor.__module__, mortice.nn.Parameter.__module__ = "torch", "torch.nn.parameter"  # libraries look for "torch" there
    for layer, place in list(as_pytorch_names()):  # libraries keep these names in files, and look for "torch." there
        _move(layer, place)
    for name in _LOOKED_FOR & sys.modules.keys():
        _as_pytorch_has_it(sys.modules[name])
    for name in ("Generator", "Size", "device", "dtype", "finfo", "iinfo"):  # programs print what type a shape, a device or a dtype is of
        kind = getattr(mortice, name)
        kind.__module__, kind.__name__, kind.__qualname__ = "torch", name, name
    function.FunctionNode.__module__ = "torch.autograd.function"
    vars(return_types)["_shown"] = "torch.return_types"
    prepare = spawn.get_preparation_data  # names it does not know are left alone at the other end
    vars(spawn)["get_preparation_data"] = lambda name: {**prepare(name), "torch": _Again()}


def _move(kind: type, place: str) -> None:
    """Name a module of PyTorch's as the one that has a class."""
    kind.__module__ = place
    copyreg.pickle(kind, _pickled)


def _pickled(thing: Any) -> tuple[Any, ...]:
    """Return how a layer or a data set is made anew, also where mortice is itself."""
    kind = type(thing)
    return _layer, (kind.__module__.replace("torch", "mortice", 1), kind.__name__), *thing.__reduce_ex__(4)[2:]


def _layer(module: str, name: str) -> Any:
    kind = getattr(importlib.import_module(module), name)
    return kind.__new__(kind)


def _under_torch(write: Any) -> Any:
    return lambda self: write(self).replace("mortice", "torch", 1)


class _Watched:
    """What makes classes, and lets functions ask their arguments once a class defines `__torch_function__`.

    PyTorch's functions always ask. Here that costs every call something, so only programs with such a class pay it.
    """

    def __init__(self, build: Any) -> None:
        self.build = build

    # A property, which is read before the call: no frame of ours lies between the body of a class and the statement that makes
    # it, where libraries look for the names of the bases. The class is the last one to begin at the statement or before.
    @property
    def __call__(self) -> Any:
        frame = sys._getframe(1)
        bodies = [c for c in frame.f_code.co_consts if isinstance(c, CodeType) and not c.co_flags & inspect.CO_OPTIMIZED]
        body = max((c for c in bodies if c.co_firstlineno <= frame.f_lineno), key=lambda c: c.co_firstlineno, default=None)
        if body and "__torch_function__" in body.co_names and not frame.f_globals.get("__name__", "").startswith("mortice."):
            if builtins.__build_class__ is self:
                builtins.__build_class__ = self.build
            importlib.import_module("mortice.overrides")
        return self.build


def run(arguments: Sequence[str], *, module: bool, engine: str, type_promotion: str) -> None:
    """Run a script, or a module by its name, with its arguments, as `python` does; `import torch` gives mortice.

    Random numbers and the meeting of dtypes are as `mortice.random.set_engine` and `mortice.set_type_promotion` have them.
    """
    install()
    mortice.set_type_promotion(type_promotion)
    mortice.random.set_engine(engine)
    sys.argv[:] = arguments
    if module:
        sys.path.insert(0, "")
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        _run_script(arguments[0])


def _run_script(path: str) -> None:
    """Run a file as `__main__`: by its whole path, and in a module that stays until the process ends."""
    whole = os.path.join(os.getcwd(), path)
    if pkgutil.get_importer(whole) is not None:  # a folder, or an archive
        runpy.run_path(path, run_name="__main__")
        return
    main = sys.modules["__main__"] = ModuleType("__main__")
    vars(main).update(__file__=whole, __builtins__=builtins, __cached__=None)
    with io.open_code(whole) as file:
        code = compile(file.read(), whole, "exec", dont_inherit=True)
    exec(code, vars(main))
