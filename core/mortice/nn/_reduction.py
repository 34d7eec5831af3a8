"""The numbers of reductions, and PyTorch's old arguments for them: losses that others write ask here."""

from __future__ import annotations

from mortice.notice import warn

NAMES = ("none", "mean", "sum")  # by their numbers


def get_enum(reduction: str) -> int:
    """Return the number of a reduction: 0 of "none", 1 of "mean", 2 of "sum"."""
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        return 1
    if reduction not in NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return NAMES.index(reduction)


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that PyTorch's old arguments ask for; None counts as True."""
    found = "none" if reduce is not None and not reduce else "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.")
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that PyTorch's old arguments ask for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
