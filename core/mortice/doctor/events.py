"""What rules are shown while a program runs."""

from __future__ import annotations

import os
import sys
from typing import Any

from mortice import Tensor
from mortice.doctor.finding import NOWHERE, Site
from mortice.tracing import places

_DOCTOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def here() -> Site:
    """Return the user's line that has called into mortice."""
    at = places.caller()
    return NOWHERE if at is None else Site(at.f_code.co_filename, at.f_lineno, at.f_code.co_name)


def all_tensors(data: Any) -> list[Any]:
    """Return every tensor in nested lists, tuples and dicts."""
    if isinstance(data, Tensor):
        return [data]
    if isinstance(data, dict):
        data = data.values()
    elif not isinstance(data, (list, tuple)):
        return []
    return [t for item in data for t in all_tensors(item)]


def direct() -> bool:
    """Tell whether the call that is shown stands in the user's own code, not in mortice's or an installed library's."""
    at: Any = sys._getframe(1)
    while at is not None and at.f_code.co_filename.startswith(_DOCTOR):
        at = at.f_back
    return at is not None and not (places.is_own(at.f_code.co_filename) or places.is_installed(at.f_code.co_filename))


class Call:
    """A call of an op, `args` as its caller gave them and `out` what it gave; or of a function or method."""

    __slots__ = ("op", "args", "attrs", "out")

    def __init__(self, op: str, args: tuple[Any, ...], attrs: dict[str, Any], out: Any) -> None:
        self.op, self.args, self.attrs, self.out = op, args, attrs, out

    @property
    def input(self) -> Any:
        """The first operand."""
        return self.args[0] if self.args else self.attrs["input"]

    @property
    def target(self) -> Any:
        """The second operand of a loss."""
        return self.args[1] if len(self.args) > 1 else self.attrs["target"]


class Forward:
    """A module's call: `root` says that no other module runs around it; `output` is None before it has run."""

    __slots__ = ("module", "args", "kwargs", "output", "root", "grad")

    def __init__(self, module: Any, args: Any, kwargs: Any, output: Any, root: bool, grad: bool) -> None:
        self.module, self.args, self.kwargs, self.output, self.root, self.grad = (
            module,
            args,
            kwargs,
            output,
            root,
            grad,
        )


class Backward:
    """A backward of `losses`, and the line that asked for it."""

    __slots__ = ("losses", "site", "retain_graph")

    def __init__(self, losses: tuple[Any, ...], site: Site, retain_graph: bool) -> None:
        self.losses, self.site, self.retain_graph = losses, site, retain_graph

    @property
    def loss(self) -> Any:
        """The first of the losses."""
        return self.losses[0]


class Zeroed:
    """A `zero_grad` of an optimiser or a module, as `owner`; `params` are those that it clears."""

    __slots__ = ("owner", "params")

    def __init__(self, owner: Any, params: list[Any]) -> None:
        self.owner, self.params = owner, params


class Step:
    """A step of an optimiser; `number` counts this optimiser's, from 1."""

    __slots__ = ("optimizer", "number")

    def __init__(self, optimizer: Any, number: int) -> None:
        self.optimizer, self.number = optimizer, number

    @property
    def params(self) -> list[Any]:
        """Every parameter of the optimiser."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]


class Epoch:
    """A pass over a DataLoader; `number` counts this loader's, from 1; `batches` how many it has handed out."""

    __slots__ = ("loader", "number", "batches", "finished", "site")

    def __init__(self, loader: Any, number: int, site: Site) -> None:
        self.loader, self.number, self.site = loader, number, site
        self.batches, self.finished = 0, False


class Batch:
    """A batch: `data` as the loader gave it, `index` its place in the pass, from 0."""

    __slots__ = ("epoch", "data", "index", "_tensors")

    def __init__(self, epoch: Epoch, data: Any, index: int) -> None:
        self.epoch, self.data, self.index = epoch, data, index
        self._tensors: list[Any] | None = None

    @property
    def tensors(self) -> list[Any]:
        """All tensors in it."""
        if self._tensors is None:
            self._tensors = all_tensors(self.data)
        return self._tensors

    @property
    def loader(self) -> Any:
        """The loader that it came from."""
        return self.epoch.loader

    @property
    def size(self) -> int:
        """How many samples: the length of the first tensor that has a length; 0 where none has."""
        return next((t.shape[0] for t in self.tensors if t.ndim), 0)


class Mode:
    """A module, and those in it, that went to training mode, or with `mode` False to evaluation mode."""

    __slots__ = ("module", "mode")

    def __init__(self, module: Any, mode: bool) -> None:
        self.module, self.mode = module, mode


class Bypassed:
    """A direct call of the `forward` of a module that has hooks."""

    __slots__ = ("module",)

    def __init__(self, module: Any) -> None:
        self.module = module


class Failed:
    """An error on its way out of `during`: "backward", or the module that raised it."""

    __slots__ = ("error", "during")

    def __init__(self, error: BaseException, during: Any) -> None:
        self.error, self.during = error, during

    def hint(self, text: str) -> None:
        """Add a line to what the error says when it is shown."""
        note = f"mortice.doctor: {text}"
        if note not in getattr(self.error, "__notes__", ()):
            self.error.add_note(note)


class End:
    """The end of a session."""

    __slots__ = ()
