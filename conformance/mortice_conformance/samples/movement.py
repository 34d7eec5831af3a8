"""Samples of casts, copies, views, joining, rearranging: values move and none is computed."""

from __future__ import annotations

import numpy as np

import mortice as mt
from mortice_conformance.record import sample

_CUBE = (2, 3, 4)

# ---- casts and copies ----
sample("cast", lambda x: x.astype(np.complex128), call=lambda x: x.to(x.dtype.to_complex()), dtypes="f", result="complex_part",
       kind="exact", tolerance={"complex64": 1}, reason="bfloat16 and float16 widen exactly")  # fmt: skip
sample(
    "cast",
    np.real,
    call=lambda x: x.to(x.dtype.to_real()),
    dtypes="c",
    result="real_part",
    kind="exact",
    variant="to real",
)
sample("cast", lambda x: x.astype(np.float32), call=lambda x: x.to(mt.float32), dtypes="buif", result="float32",
       kind="arithmetic", variant="to float32", grad="float32 is too coarse for the differences of float64")  # fmt: skip
sample("clone", np.array, kind="exact")
sample("contiguous", np.array, kind="exact")

# ---- views ----
sample("view", lambda x, shape: x.reshape(shape), call=lambda x, shape: x.view(shape), kind="exact",
       cases=[((2, 3), {"shape": (6,)}), (_CUBE, {"shape": (6, -1)}), (_CUBE, {"shape": (2, 1, 12)})],
       edges=[((), {"shape": (1, 1)}), ((0, 3), {"shape": (3, 0)})], grad="see the variant",
       layouts=False, reason="a view needs strides that allow it",
       misuse=[(lambda: mt.ones(2, 3).view(4), "view: shape '[4]' is invalid for input of size 6."),
               (lambda: mt.ones(2, 3).view(-1, -1), "view: only one dimension can be inferred; got [-1, -1]."),
               (lambda: mt.ones(2, 3).t().view(6),
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                "contiguous subspaces). Use .reshape(...) instead.")])  # fmt: skip
sample("reshape", lambda x, shape: x.T.reshape(shape), call=lambda x, shape: x.t().reshape(shape), kind="exact",
       cases=[((2, 3), {"shape": (6,)}), ((4, 6), {"shape": (3, 8)})],
       misuse=[(lambda: mt.ones(2, 3).reshape(5), "reshape: shape '[5]' is invalid for input of size 6.")])  # fmt: skip
sample("view", lambda x, shape: x.reshape(shape), call=lambda x, shape: x.reshape(shape), kind="exact", variant="reshape",
       cases=[((2, 3), {"shape": (6,)}), (_CUBE, {"shape": (6, -1)})])  # fmt: skip
sample("permute", lambda x, axes: x.transpose(axes), kind="exact",
       cases=[((2, 3), {"axes": (1, 0)}), (_CUBE, {"axes": (2, 0, 1)}), (_CUBE, {"axes": (0, 2, 1)})],
       edges=[((), {"axes": ()}), ((0, 3), {"axes": (1, 0)})],
       misuse=[(lambda: mt.ones(2, 3).permute(0, 0), "permute: duplicate dims are not allowed; got (0, 0)."),
               (lambda: mt.ones(2, 3).transpose(0, 2),
                "transpose: Dimension out of range (expected to be in range of [-2, 1], but got 2).")])  # fmt: skip
sample("expand", lambda x, shape: np.broadcast_to(x, shape), kind="exact",
       cases=[((3,), {"shape": (2, 3)}), ((2, 1), {"shape": (2, 4)}), ((1, 3), {"shape": (2, 2, 3)})],
       edges=[((), {"shape": (2, 2)}), ((1,), {"shape": (0,)})],
       misuse=[(lambda: mt.ones(2, 3).expand(4, 3),
                "expand: The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 0. "
                "Target sizes: [4, 3]. Tensor sizes: [2, 3].")])  # fmt: skip
_DIAGONALS = [
    {"offset": 0, "axis1": 0, "axis2": 1},
    {"offset": 1, "axis1": 0, "axis2": 1},
    {"offset": -1, "axis1": 1, "axis2": 0},
]
for _name in ("diagonal", "diagonal_copy"):
    sample(
        _name,
        np.diagonal,
        kind="exact",
        shares=True,
        cases=[(s, a) for s in ((4, 4), (3, 5), (2, 3, 4)) for a in _DIAGONALS],
    )


def _write_diagonal(x: object, part: object, offset: int, axis1: int, axis2: int) -> object:
    out = np.array(x)
    rows, columns = np.diag_indices(part.shape[-1])  # type: ignore[attr-defined]
    np.moveaxis(out, (axis1, axis2), (-2, -1))[..., rows + max(-offset, 0), columns + max(offset, 0)] = part
    return out


sample("diagonal_write", _write_diagonal, kind="exact",
       cases=[(((4, 4), (4,)), _DIAGONALS[0]), (((3, 5), (3,)), _DIAGONALS[1]),
       (((2, 4, 3), (3, 2)), {**_DIAGONALS[0], "axis1": 1, "axis2": 2})][:2])  # fmt: skip


def _windows(x: object, axis: int, size: int, step: int) -> object:
    seen = np.lib.stride_tricks.sliding_window_view(x, size, axis)  # type: ignore[call-overload]
    return seen[(slice(None),) * axis + (slice(None, None, step),)]


for _name in ("unfold", "unfold_copy"):
    sample(_name, _windows, kind="exact", shares=True,
           cases=[((7,), {"axis": 0, "size": 3, "step": 2}), ((3, 6), {"axis": 1, "size": 2, "step": 1}),
                  ((5, 4), {"axis": 0, "size": 2, "step": 2})])  # fmt: skip


def _strided(x: object, shape: tuple[int, ...], steps: tuple[int, ...], offset: int) -> object:
    flat = np.ravel(x)  # type: ignore[call-overload]
    at = offset + sum(np.arange(n).reshape([-1 if i == j else 1 for j in range(len(shape))]) * s
                      for i, (n, s) in enumerate(zip(shape, steps)))  # fmt: skip
    return flat[np.broadcast_to(at, shape)]


_STRIDED = [
    ((3, 4), {"shape": (2, 3), "steps": (4, 1), "offset": 1}),
    ((12,), {"shape": (3, 3), "steps": (2, 1), "offset": 0}),
]
for _name in ("as_strided", "as_strided_copy"):
    sample(_name, _strided, kind="exact", shares=True, cases=_STRIDED if _name == "as_strided" else _STRIDED[1:],
           call=(lambda x, shape, steps, offset: mt.as_strided(x, shape, steps, offset)) if _name == "as_strided" else None,
           layouts=False, reason="it reads memory, whatever strides its operand has")  # fmt: skip

sample("reinterpret", lambda x: x.astype(np.uint64), call=lambda x: x.view(mt.uint64), dtypes=("int64",), result="uint64",
       kind="exact", shares=True, transfers=1, reason="without a kernel of the backend's own the bytes go through the host",
       misuse=[(lambda: mt.tensor(1.0).view(mt.int16),
                "view: self.dim() cannot be 0 to view Float as Short (different element sizes)"),
               (lambda: mt.ones(2, 3).view(mt.float64),
                "view: self.size(-1) must be divisible by 2 to view Float as Double (different element sizes), but got 3"),
               (lambda: mt.ones(2, 3).t().view(mt.int16),
                "view: self.stride(-1) must be 1 to view Float as Short (different element sizes), but got 3. Use "
                ".contiguous() first.")])  # fmt: skip

# ---- joining ----
sample("cat", lambda *x, axis: np.concatenate(x, axis), kind="exact",
       cases=[(((2, 3), (4, 3)), {"axis": 0}), (((2, 3), (2, 1), (2, 2)), {"axis": 1}), (((2, 3, 1), (2, 3, 2)), {"axis": 2})],
       edges=[(((0,), (0,)), {"axis": 0}), (((2, 3), (0, 3)), {"axis": 0})],
       misuse=[(lambda: mt.cat([mt.ones(2, 3), mt.ones(2, 4)]),
                "cat: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in "
                "the list."),
               (lambda: mt.cat([]), "cat: expected a non-empty list of Tensors."),
               (lambda: mt.cat(mt.ones(2)),
                "cat: argument 'tensors' must be tuple of Tensors, not Tensor. Put them into a list.")])  # fmt: skip
sample(
    "stack",
    lambda *x: np.stack(x, 1),
    call=lambda *x: mt.stack(x, 1),
    kind="exact",
    shapes=[((2, 3), (2, 3)), ((4,),) * 3],
)

# ---- rearranging ----
sample("flip", lambda x, axis: np.flip(x, axis), kind="exact",
       cases=[((5,), {"axis": (0,)}), ((3, 4), {"axis": (0, 1)}), (_CUBE, {"axis": (1,)})], edges=[((0, 2), {"axis": (0,)})])  # fmt: skip
sample("roll", lambda x, shifts, axes: np.roll(x, shifts, axes), kind="exact",
       cases=[((5,), {"shifts": (2,), "axes": (0,)}), ((3, 4), {"shifts": (1, -1), "axes": (0, 1)})],
       edges=[((0,), {"shifts": (2,), "axes": (0,)})])  # fmt: skip
sample("repeat", lambda x, reps: np.tile(x, reps), kind="exact",
       cases=[((3,), {"reps": (2,)}), ((2, 3), {"reps": (2, 2)}), ((2,), {"reps": (3, 2)})], edges=[((2,), {"reps": (0,)})])  # fmt: skip
for _name, _reference in (("tril", np.tril), ("triu", np.triu)):
    sample(_name, lambda x, diagonal, fn=_reference: fn(x, diagonal), kind="exact",
           cases=[((4, 4), {"diagonal": 0}), ((3, 5), {"diagonal": 1}), ((2, 4, 3), {"diagonal": -1})],
           edges=[((0, 3), {"diagonal": 0})])  # fmt: skip


def _embedded(x: object, offset: int, axis1: int, axis2: int) -> object:
    n = x.shape[-1] + abs(offset)  # type: ignore[attr-defined]
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)  # type: ignore[attr-defined]
    at = np.arange(x.shape[-1])  # type: ignore[attr-defined]
    out[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (axis1, axis2))


sample("diag_embed", _embedded, kind="exact",
       cases=[((3,), {"offset": 0, "axis1": 0, "axis2": 1}), ((2, 3), {"offset": 1, "axis1": 1, "axis2": 2}),
              ((3,), {"offset": -2, "axis1": 0, "axis2": 1})])  # fmt: skip
