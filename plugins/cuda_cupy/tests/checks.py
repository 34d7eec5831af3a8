"""What the tests of kernels share: dtypes, inputs, and agreement in units of the dtype's last place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

DTYPES = [np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
FULL = [np.dtype(d) for d in (np.float32, np.float64)]


def draw(shape: Any, dtype: Any, *, seed: int, scale: float = 1.0) -> Any:
    """Return normal numbers."""
    return np.array(np.random.default_rng(seed).standard_normal(shape) * scale, dtype)


def agree(found: Any, wanted: Any, dtype: Any, ulps: float = 2, floor: float = 1e-2) -> None:
    """Check dtype, shape and values: within `ulps` for single and double 64 times that, as sums are reordered.

    Below `floor` of the largest value, the error is measured against that floor.
    """
    if isinstance(found, (tuple, list)):
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted):
            agree(f, w, dtype, ulps, floor)
        return
    if wanted is None or found is None:
        assert found is None and wanted is None
        return
    assert found.dtype == wanted.dtype, (found.dtype, wanted.dtype)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    if found.size == 0:
        return
    info = ml_dtypes.finfo(found.dtype)
    allowed = float(info.eps) * ulps * (1 if found.dtype.itemsize == 2 else 64)
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    found, wanted = found[finite], wanted[finite]
    if found.size:
        scale = np.maximum(np.abs(wanted), floor * np.abs(wanted).max())
        error = np.abs(found - wanted)
        worst = float((error / np.where(scale == 0, 1, scale)).max())
        assert worst <= allowed, f"off by {worst:.3g}; allowed {allowed:.3g}"
