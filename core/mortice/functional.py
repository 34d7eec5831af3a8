"""What PyTorch keeps in torch.functional: functions that are found in `mortice` too."""

from __future__ import annotations

from typing import Any

import mortice

__all__ = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum istft lu "
    "meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index"
).split()


def __getattr__(name: str) -> Any:
    if name == "F":  # editors offer `from torch.functional import F`
        return mortice.nn.functional
    if name not in (*__all__, "Tensor"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(mortice, name)  # where they may be replaced by ones that ask classes


def __dir__() -> list[str]:
    return __all__
