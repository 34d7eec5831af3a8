"""cpu_cext: what of the linalg kernels is put together in Python from functions of the extension."""

from __future__ import annotations


class LinalgOverrides:
    """Overrides of the linalg kernels."""
