"""cpu_cext: what of the optim kernels is put together in Python from functions of the extension."""

from __future__ import annotations


class OptimOverrides:
    """Overrides of the optim kernels."""
