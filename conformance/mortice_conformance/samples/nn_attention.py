"""Samples of sampling at the points of a grid; attention itself is among the samples of nn."""

from __future__ import annotations

from mortice_conformance.domain import Domain, real
from mortice_conformance.record import sample
from mortice_conformance.references_grid import grid_sample

_point = Domain("point", -1.4, 1.4)
_PADDINGS = ("zeros", "border", "reflection")
_IMAGES = [
    (((2, 3, 4, 5), (2, 3, 2, 2)), {"mode": mode, "padding": padding, "align_corners": corners})
    for mode in ("nearest", "linear", "cubic") for padding in _PADDINGS for corners in (False, True)
]  # fmt: skip
_VOLUMES = [
    (((1, 2, 3, 4, 2), (1, 2, 1, 3, 3)), {"mode": "linear", "padding": padding, "align_corners": corners})
    for padding, corners in zip(_PADDINGS, (True, False, True))
]  # fmt: skip
sample("grid_sample", grid_sample, real, _point, kind="nn", dtypes="f", cases=[*_IMAGES, *_VOLUMES])
