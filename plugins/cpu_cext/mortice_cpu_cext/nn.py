"""cpu_cext: what of the nn kernels is put together in Python from functions of the extension."""

from __future__ import annotations


class NNOverrides:
    """Overrides of the nn kernels."""
