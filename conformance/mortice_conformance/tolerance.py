"""The one tolerance table: how far a result may be from its reference, in ulp, by class and dtype.

`exact`, `arithmetic` and `elementwise` are measured at each element of the reference. The other classes add up errors
of many elements, or cancel near a zero of the function (`smooth`), and are measured at the largest magnitude among the
results and the operands. `reduction`, `matmul` and `nn` grow with the square root of the number of terms. A sample that
needs another bound gives it with its reason.
"""

from __future__ import annotations

import math

from mortice.backends import DType

_ALL = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")

# class: ulp for                float16 bfloat16 float32 float64 complex64 complex128
_TABLE = {
    "exact":                    (0.0,   0.0,     0.0,    0.0,    0.0,      0.0),
    "arithmetic":               (0.51,  0.51,    0.51,   0.51,   4.0,      4.0),
    "elementwise":              (1.0,   1.0,     4.0,    4.0,    8.0,      8.0),
    "special":                  (2.0,   2.0,     16.0,   16.0,   32.0,     32.0),
    "smooth":                   (4.0,   4.0,     16.0,   16.0,   16.0,     16.0),
    "reduction":                (1.0,   1.0,     2.0,    2.0,    4.0,      4.0),
    "matmul":                   (1.0,   1.0,     2.0,    2.0,    4.0,      4.0),
    "linalg":                   (64.0,  64.0,    64.0,   64.0,   64.0,     64.0),
    "nn":                       (4.0,   4.0,     16.0,   16.0,   16.0,     16.0),
    # A gradient in a narrow dtype against the same gradient in the widest.
    "gradient":                 (64.0,  64.0,    128.0,  128.0,  128.0,    128.0),
    # A derivative against finite differences: 2**32 ulp of float64 are 1e-6 of the result, 2**14 of float32 are 2e-3.
    "difference":               (2.0**4, 2.0**3, 2.0**14, 2.0**32, 2.0**14, 2.0**32),
    "second difference":        (2.0**5, 2.0**4, 2.0**15, 2.0**34, 2.0**15, 2.0**34),
}  # fmt: skip
ULP = {kind: dict(zip(_ALL, row)) for kind, row in _TABLE.items()}
POINTWISE = ("exact", "arithmetic", "elementwise", "special")
_GROWING = ("reduction", "matmul", "nn")


def allowed(kind: str, dtype: DType, terms: int = 1) -> float:
    """Return the ulp allowed for a result of `dtype` in a class, when `terms` elements went into each."""
    if dtype.name not in ULP[kind]:
        return 0.0
    base = ULP[kind][dtype.name]
    return base * math.sqrt(max(terms, 1)) if kind in _GROWING else base
