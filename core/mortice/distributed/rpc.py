"""Calls of functions in other processes, which libraries ask about; there are none."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Return False."""
    return False
