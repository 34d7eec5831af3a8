"""The families of fused kernels, as far as they are built, in the order in which they override each other."""

from __future__ import annotations


class Kernels:
    """Every fused kernel."""
