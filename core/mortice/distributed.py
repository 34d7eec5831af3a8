"""torch.distributed as PyTorch has it where it is built without: it answers that it is not available.

Scripts ask before they use it, and then go on in one process. The rest of its names are left out.
"""

from __future__ import annotations


def is_available() -> bool:
    """Return False: training over several processes is left out."""
    return False


def is_initialized() -> bool:
    """Return False: there is no group of processes."""
    return False


is_torchelastic_launched = is_initialized
is_gloo_available = is_mpi_available = is_nccl_available = is_ucc_available = is_xccl_available = is_available


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"module 'mortice.distributed' has no attribute {name!r}: training over several processes is left out. "
        "Ask is_available() or is_initialized() first, as scripts for PyTorch do that also run in one process."
    )
