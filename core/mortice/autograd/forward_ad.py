"""Dual numbers: `dual_level`, `make_dual`, `unpack_dual`. What is computed from a dual tensor carries its tangent."""

from __future__ import annotations

from typing import Any, NamedTuple

from mortice.device import Local
from mortice.levels.dual import DualLevel


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent."""

    primal: Any
    tangent: Any


class _Levels(Local):
    open: tuple[Any, ...] = ()


_levels = _Levels()


def __getattr__(name: str) -> int:
    if name != "_current_level":  # PyTorch's count, -1 outside of all
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return len(_levels.open) - 1


def enter_dual_level() -> int:
    """Open a level, in which tensors of `make_dual` carry tangents, and return its number."""
    if _levels.open:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = DualLevel()
    level.__enter__()
    _levels.open = (level,)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close a level; what was computed in it is no longer of use."""
    if not _levels.open or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    opened, _levels.open = _levels.open[-1], ()
    opened.__exit__(None)


class dual_level:
    """A block in which tensors of `make_dual` carry tangents through what is computed with them."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: Any) -> None:
        exit_dual_level()


def _current(level: int | None) -> DualLevel:
    if not _levels.open or level not in (None, 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    return _levels.open[-1]  # type: ignore[no-any-return]


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a tensor with the value of `tensor` that carries `tangent`; both keep their graphs.

    Differs from torch: of a wrapper, whose class has `__torch_dispatch__`, it is a plain tensor with the same values.
    """
    inside = _current(level)
    if tensor.dtype.kind not in "fc":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if tangent.dtype.kind not in "fc":
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if (tensor.dtype.kind == "f") > (tangent.dtype.kind == "f"):
        raise RuntimeError(f"make_dual: expected a tangent like the tensor, of {tensor.dtype}; got {tangent.dtype}.")
    if inside.tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if inside.tangent(tangent) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level is not supported.")
    made = inside.carry(tensor, tangent)
    made.__dict__["_tangent_given"] = (tangent, inside, made._buffer, made._version)
    return made


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value of a tensor and the tangent that reached it, None if none did."""
    if not _levels.open:
        return UnpackedDualTensor(tensor, None)
    inside = _current(level)
    tangent, at, data, version = tensor.__dict__.get("_tangent_given", (None, None, None, None))
    if at is not inside or data is not tensor._buffer or version != tensor._version:
        tangent = inside.tangent(tensor)
    return UnpackedDualTensor(inside.primal(tensor), tangent)


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
