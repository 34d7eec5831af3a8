"""Samples of comparisons, predicates, logic and bits."""

from __future__ import annotations

import numpy as np

from mortice_conformance.domain import real, shift, tied
from mortice_conformance.record import EDGES, sample

for _name, _reference in (
    ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater),
    ("ge", np.greater_equal),
):  # fmt: skip
    sample(_name, _reference, tied, kind="exact", values=EDGES)

for _name, _reference in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
    sample(
        _name, lambda x, fn=_reference: fn(x.astype(np.int64) if x.dtype.kind == "b" else x), kind="exact", values=EDGES
    )
sample("signbit", lambda x: np.signbit(x.astype(np.int64) if x.dtype.kind == "b" else x), kind="exact", values=EDGES,
       transfers=1, reason="without a kernel of the backend's own the bits, which nan has too, go through the host")  # fmt: skip

for _name, _reference in (
    ("logical_and", np.logical_and),
    ("logical_or", np.logical_or),
    ("logical_xor", np.logical_xor),
):
    sample(_name, _reference, tied, kind="exact", values=EDGES)
sample("logical_not", np.logical_not, tied, kind="exact", values=EDGES)

_BITS = (0, 1, 2, -1, "max", "min", 85)
for _name, _reference in (
    ("bitwise_and", np.bitwise_and),
    ("bitwise_or", np.bitwise_or),
    ("bitwise_xor", np.bitwise_xor),
):
    sample(_name, _reference, kind="exact", values=_BITS)
sample("bitwise_not", np.invert, kind="exact", values=_BITS)
sample("bitwise_left_shift", np.left_shift, real, shift, kind="exact")
sample("bitwise_right_shift", np.right_shift, real, shift, kind="exact")
