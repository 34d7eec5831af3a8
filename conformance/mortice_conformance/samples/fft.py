"""Samples of Fourier transforms: lengths that are short, that split into factors, and that have none; then frames."""

from __future__ import annotations

import mortice as mt
from mortice_conformance import references_fft as reference
from mortice_conformance.domain import positive, real
from mortice_conformance.record import sample

_REAL, _COMPLEX = ("float32", "float64"), ("complex64", "complex128")


def _along(*axes: int, norm: str = "backward", **more: int) -> dict[str, object]:
    return {"axes": axes, "norm": norm, **more}


# 72 and 130 split into factors, 67 has none.
_CASES = [
    ((2, 6), _along(1)), ((3, 4, 5), _along(2, 0, norm="ortho")), ((7,), _along(0, norm="forward")), ((72,), _along(0)),
    ((67, 2), _along(0, norm="forward")), ((130,), _along(0, norm="ortho")), ((3, 1), _along(0, 1)),
    ((2, 3, 4, 2), _along(2, 1)),
]  # fmt: skip
_EDGES = [((0, 4), _along(1)), ((1,), _along(0)), ((2, 0, 3), _along(0, 2))]
sample("fftn", reference.fftn, dtypes=_COMPLEX, kind="smooth", cases=_CASES, edges=_EDGES)
sample("ifftn", reference.ifftn, dtypes=_COMPLEX, kind="smooth", cases=_CASES, edges=_EDGES)
sample("fftn_real", reference.fftn, dtypes=_REAL, kind="smooth", cases=_CASES, edges=_EDGES)
sample("rfftn", reference.rfftn, dtypes=_REAL, kind="smooth", cases=_CASES, edges=_EDGES)
# Operands are no half of a Hermitian spectrum: imaginary parts that cannot be there must not count.
sample(
    "irfftn", reference.irfftn, dtypes=_COMPLEX, kind="smooth",
    cases=[((2, 4), _along(1, n=6)), ((2, 4), _along(1, n=7, norm="forward")), ((3, 4, 3), _along(2, 0, n=4, norm="ortho")),
           ((37,), _along(0, n=72)), ((34, 2), _along(0, n=67, norm="forward")), ((2, 1), _along(0, 1, n=1)),
           ((3, 3), _along(1, 0, n=5)), ((2,), _along(0, n=2))],
    edges=[((0, 3), _along(1, n=4)), ((1,), _along(0, n=1))],
)  # fmt: skip

sample("frames", reference.frames, kind="arithmetic", cases=[
    (((9,), (4,)), {"step": 2}), (((2, 10), (3,)), {"step": 1}), (((11,), (2,)), {"step": 3}), (((5,), (5,)), {"step": 1}),
])  # fmt: skip
sample("overlap_add", reference.overlap_add, kind="reduction", cases=[
    ((3, 4), {"step": 2, "length": 8}), ((2, 5, 3), {"step": 1, "length": 7}), ((4, 2), {"step": 3, "length": 13}),
    ((2, 7), {"step": 2, "length": 10}), ((1, 5), {"step": 2, "length": 5}),
], edges=[((0, 3, 2), {"step": 1, "length": 4})])  # fmt: skip

sample(
    "stft", reference.stft, real, positive, result="complex_part", dtypes=_REAL, kind="smooth",
    call=lambda x, window, step: mt.stft(x, len(window), step, window=window, center=False, return_complex=True),
    cases=[(((20,), (8,)), {"step": 2}), (((2, 12), (5,)), {"step": 3})],
)  # fmt: skip
sample(
    "istft", reference.istft, real, positive, result="real_part", dtypes=_COMPLEX, kind="smooth", grad=(0,),
    call=lambda x, window, step: mt.istft(x, len(window), step, window=mt.real(window), center=False),
    cases=[(((5, 4), (8,)), {"step": 2}), (((2, 4, 3), (6,)), {"step": 3})],
    transfers=1, reason="it refuses windows that leave a point out, which their values decide",
)  # fmt: skip
