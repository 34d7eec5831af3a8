"""mortice.array_api: the Python array API standard, version 2025.12, over the one Tensor class.

`Tensor.__array_namespace__()` returns this module. Where the standard and PyTorch give a function one name and two
meanings, the meaning here is the standard's; `docs/array_api.md` lists them. Every function calls mortice's own
operations, so what they can differentiate can be differentiated here.
"""

from mortice import (
    bfloat16, bool, complex64, complex128, e, float16, float32, float64, inf, int8, int16, int32, int64, nan,
    newaxis, pi, uint8, uint16, uint32, uint64,
)
from mortice.array_api import fft, linalg, special
from mortice.array_api.beyond import *
from mortice.array_api.creation import *
from mortice.array_api.dtypes import *
from mortice.array_api.elementwise import *
from mortice.array_api.info import Info, __array_namespace_info__
from mortice.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from mortice.array_api.manipulation import *
from mortice.array_api.nan_reductions import *
from mortice.array_api.reductions import *
from mortice.array_api.searching import *
from mortice.array_api.sets import *
from mortice.version import release as __version__

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def namespace_for(api_version: str | None) -> object:
    """Return this namespace, which serves every version of the standard up to its own."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"__array_namespace__: expected a version among {', '.join(VERSIONS)}; got {api_version!r}.")
    import mortice.array_api

    return mortice.array_api
