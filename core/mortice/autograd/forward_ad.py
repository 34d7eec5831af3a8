"""Dual numbers: `dual_level`, `make_dual`, `unpack_dual`. Tangents are found when asked for, by backward run twice."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from mortice.autograd.functional import _forward, _open
from mortice.graph import Node
from mortice.modes import enable_grad


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent."""

    primal: Any
    tangent: Any


class _Levels(threading.local):
    open: tuple[Any, ...] = ()


_levels = _Levels()


class dual_level:
    """Inside, tensors of `make_dual` carry tangents through what is computed with them.

    Differs from torch: what is computed from a dual tensor requires grad; levels nest no deeper than one.
    """

    def __init__(self) -> None:
        self.duals: list[tuple[Any, Any]] = []

    def __enter__(self) -> int:
        if _levels.open:
            raise RuntimeError("Nested forward mode AD is not supported at the moment")
        _levels.open = (self,)
        return 0

    def __exit__(self, *exc: Any) -> None:
        _levels.open = ()
        self.duals = []


def _current(name: str) -> dual_level:
    if not _levels.open:
        raise RuntimeError(
            f"{name}: Trying to use forward AD outside of a level; use `with dual_level():` around it."
        )
    return _levels.open[-1]  # type: ignore[no-any-return]


def make_dual(tensor: Any, tangent: Any, *, level: Any = None) -> Any:
    """Return a tensor with the value of `tensor` that carries `tangent`."""
    inside = _current("make_dual")
    if tensor.dtype.kind not in "fc":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if tensor.shape != tangent.shape or tensor.dtype is not tangent.dtype:
        raise RuntimeError(
            f"make_dual: expected a tangent like the tensor, {list(tensor.shape)} of {tensor.dtype}; got "
            f"{list(tangent.shape)} of {tangent.dtype}."
        )
    with enable_grad():
        (dual,) = _open((tensor,), tensor._rg)
    inside.duals.append((dual, tangent))
    return dual


def unpack_dual(tensor: Any, *, level: Any = None) -> UnpackedDualTensor:
    """Return the value of a tensor and the tangent that reached it, None if none did."""
    if not _levels.open:
        return UnpackedDualTensor(tensor, None)
    duals = _levels.open[-1].duals
    for dual, tangent in duals:
        if dual is tensor:
            return UnpackedDualTensor(tensor.detach(), tangent)
    depends = tensor._node is not None and _reaches(tensor._node, {id(d) if d._node is None else id(d._node) for d, _ in duals})
    if not depends:
        return UnpackedDualTensor(tensor, None)
    with enable_grad():
        (found,) = _forward((tensor,), tuple([d for d, _ in duals]), tuple([t for _, t in duals]), False)
    return UnpackedDualTensor(tensor.detach(), found.detach())


def _reaches(node: Any, targets: set[int]) -> bool:
    """Tell whether the graph above a node has one of the targets."""
    stack, seen = [node], set()
    while stack:
        at = stack.pop()
        if id(at) in targets:
            return True
        if at is None or id(at) in seen or not isinstance(at, Node):
            continue
        seen.add(id(at))
        stack.extend(at.edges)
    return False
