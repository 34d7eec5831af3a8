"""cpu_cext: what of the numeric kernels is put together in Python from functions of the extension."""

from __future__ import annotations


class NumericOverrides:
    """Overrides of the numeric kernels."""
