"""cpu_cext: what of the random kernels is put together in Python from functions of the extension."""

from __future__ import annotations


class RandomOverrides:
    """Overrides of the random kernels."""
