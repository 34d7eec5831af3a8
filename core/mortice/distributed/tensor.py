"""The type of a tensor spread over processes, which libraries ask about; there are none."""

__all__ = ["DTensor"]


class DTensor:
    """The type of a tensor spread over processes, for `isinstance`."""
