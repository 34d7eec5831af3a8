"""The type of a tensor spread over processes, which libraries ask about; there are none."""

from contextlib import nullcontext as implicit_replication

from mortice.distributed import ProcessGroup

__all__ = ["DTensor", "DeviceMesh", "implicit_replication", "init_device_mesh"]


class DeviceMesh(ProcessGroup):
    """The type of a grid of devices, for annotations: making one is refused."""


init_device_mesh = DeviceMesh  # refuses, as the class does


class DTensor:
    """The type of a tensor spread over processes, for `isinstance`."""
