"""Samples of reading and writing by index: slices, positions, masks, gather and scatter."""

from __future__ import annotations

import numpy as np

import mortice as mt
from mortice_conformance.domain import Domain, below, distinct, indices_into, nonzero, real
from mortice_conformance.record import sample
from mortice_conformance.references import indexed, scattered

_KEYS: list[object] = [
    1, -1, slice(None, None, -1), (slice(1, None, 2), 0), (Ellipsis, 2), (None, Ellipsis, None),
    (slice(None), None, slice(2, 0, -1)), slice(0, 0), (), Ellipsis, (1, 2), slice(-3, None), (slice(None), slice(4, None, -2)),
]  # fmt: skip


def _read(x: object, key: object) -> object:
    return x[key]  # type: ignore[index]


sample("getitem", _read, call=_read, kind="exact", cases=[((4, 5), {"key": key}) for key in _KEYS],
       edges=[((), {"key": ()}), ((), {"key": None}), ((0, 2), {"key": (slice(None), 1)})],
       misuse=[(lambda: mt.ones(3)[3], "index 3 is out of bounds for dimension 0 with size 3"),
               (lambda: mt.ones(3)[0, 0], "too many indices for tensor of dimension 1; got 2."),
               (lambda: mt.ones(())[0],
                "invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number."),
               (lambda: mt.ones(3)[..., ...], "an index can only have a single ellipsis ('...')."),
               (lambda: mt.ones(3)[mt.tensor([0.5])],
                "tensors used as indices must be long, int, byte or bool tensors; got mortice.float32. Use .long().")])  # fmt: skip


def _write(x: object, value: object, key: object) -> object:
    out = np.array(x)
    out[key] = value  # type: ignore[index]
    return out


def _write_call(x: object, value: object, key: object) -> object:
    out = x.clone()  # type: ignore[attr-defined]
    out[key] = value
    return out


_WRITES = [(((4, 5), (5,)), {"key": 1}), (((4, 5), ()), {"key": slice(None, None, 2)}),
           (((4, 5), (4, 2)), {"key": (slice(None), slice(4, 0, -2))}), (((4, 5), (1, 5)), {"key": Ellipsis})]  # fmt: skip
sample("view_scatter", _write, call=_write_call, kind="exact", cases=_WRITES, edges=[(((), ()), {"key": Ellipsis})],
       misuse=[(lambda: mt.zeros(2, 3).__setitem__(0, mt.ones(2)),
                "setitem: The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0. "
                "Target sizes: [3]. Tensor sizes: [2].")])  # fmt: skip
sample("setitem", _write, kind="exact",
       cases=[(((4, 5), (5,)), {"key": (1,)}), (((4, 5), ()), {"key": (slice(None, None, 2),)}),
              (((4, 5), (4, 2)), {"key": (slice(None), slice(4, 0, -2))})], edges=[(((3, 0), (0,)), {"key": (1,)})])  # fmt: skip

# ---- positions along one axis ----
_ROWS = [(((5, 3), (4,)), {"axis": 0}), (((5, 3), (7,)), {"axis": 1}), (((2, 3, 4), (3,)), {"axis": 2})]
sample("take", lambda x, i, axis: np.take(x, i, axis), real, indices_into(), kind="exact", cases=_ROWS,
       edges=[(((4, 2), (0,)), {"axis": 0}), (((3, 0), (2,)), {"axis": 0})])  # fmt: skip
_SLICES = [(((5, 3), (4,), (4, 3)), {"axis": 0}), (((5, 3), (7,), (5, 7)), {"axis": 1})]
sample("index_add", indexed(lambda a, b: a + b), real, indices_into(), real, kind="reduction", cases=_SLICES,
       edges=[(((4,), (0,), (0,)), {"axis": 0})])  # fmt: skip


def _some(rng: object, shape: tuple[int, ...], dtype: object, case: object) -> object:
    size = case.shapes[0][case.attrs["axis"]]  # type: ignore[attr-defined]
    return rng.permutation(size)[: shape[0]]  # type: ignore[attr-defined]


_once = Domain("distinct positions", dtype="int64", draw=_some)
sample("index_write", indexed(lambda a, b: b), real, _once, real, kind="exact",
       cases=[(((5, 3), (4,), (4, 3)), {"axis": 0}), (((5, 3), (2,), (5, 2)), {"axis": 1})],
       edges=[(((4,), (0,), (0,)), {"axis": 0})])  # fmt: skip
sample("index_write", indexed(lambda a, b: b), real, indices_into(), real, kind="exact", variant="repeated", cases=_SLICES,
       grad="of a repeated position only the last write has a gradient, which no direction shows")  # fmt: skip

# ---- gather and scatter ----
_ALONG = [(((5, 3), (4, 3)), {"axis": 0}), (((5, 3), (5, 1)), {"axis": 1}), (((6,), (9,)), {"axis": 0})]
sample("gather",
       lambda x, i, axis: np.take_along_axis(x[tuple(slice(0, n if d != axis else None) for d, n in enumerate(i.shape))], i, axis),
       real, indices_into(), kind="exact", cases=[*_ALONG, (((5, 3), (2, 2)), {"axis": 0})],
       edges=[(((4, 2), (0, 2)), {"axis": 0})],
       misuse=[(lambda: mt.gather(mt.ones(2, 3), 0, mt.ones(2, 3)),
       "gather(): Expected dtype int64 for index; got mortice.float32.")])  # fmt: skip
_SCATTERS = [
    (((5, 3), (4, 3), (4, 3)), {"axis": 0}),
    (((5, 3), (2, 7), (2, 7)), {"axis": 1}),
    (((6,), (40,), (40,)), {"axis": 0}),
]
sample("scatter_add", scattered(lambda a, b: a + b), real, indices_into(), real, kind="reduction", cases=_SCATTERS,
       edges=[(((4,), (0,), (0,)), {"axis": 0})])  # fmt: skip
sample("scatter_write", scattered(lambda a, b: b), real, indices_into(), real, kind="exact", cases=_SCATTERS,
       grad="of a repeated position only the last write has a gradient, which no direction shows")  # fmt: skip


def _combined(x: object, indices: object, values: object, axis: int, how: str) -> object:
    combine = {"prod": lambda a, b: a * b, "max": np.maximum, "min": np.minimum}[how]
    return scattered(combine)(x, indices, values, axis)


_HOWS = [(s, {"axis": 0, "how": how}) for how in ("max", "min") for s in (((5, 3), (4, 3), (4, 3)), ((6,), (9,), (9,)))]
sample("scatter_combine", _combined, distinct, indices_into(), distinct, kind="exact", cases=_HOWS, dtypes="uif")
sample("scatter_combine", _combined, nonzero, indices_into(), nonzero, kind="reduction", variant="prod", dtypes="fc",
       cases=[(((6,), (9,), (9,)), {"axis": 0, "how": "prod"})])  # fmt: skip
sample(
    "fill", lambda x, value: np.full_like(x, value), kind="exact", shapes=[((2, 3), ()), ((7,), ())], edges=[((), ())]
)


# ---- with tensors of indices and masks, as users write them ----
def _advanced(x: object, i: object, j: object) -> object:
    return x[i, :, j]  # type: ignore[index]


sample("advanced index", _advanced, real, below(3), call=_advanced, kind="exact", shapes=[((3, 2, 4), (5,), (5,))], transfers=4,
       reason="the least and greatest index of each tensor are checked on the host")  # fmt: skip


def _masked(x: object, mask: object) -> object:
    return x[mask]  # type: ignore[index]


_mask = Domain("mask", dtype="bool", draw=lambda rng, shape, dtype, case: rng.integers(0, 2, shape))
sample("masked index", _masked, real, _mask, call=_masked, kind="exact", shapes=[((3, 4), (3, 4)), ((5, 2), (5,))], transfers=8,
       reason="how many elements a mask shows depends on the data")  # fmt: skip
