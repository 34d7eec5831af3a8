"""What a report of a fault should say of where it happened: `python -m mortice.utils.collect_env` prints it."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import distributions
from typing import NamedTuple

import mortice


class SystemEnv(NamedTuple):
    """What `get_env_info` finds."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    os: str
    python_version: str
    is_cuda_available: str
    cpu_info: str
    backends: str
    pip_packages: str


_TITLES = (
    "PyTorch version", "Is debug build", "CUDA used to build PyTorch", "OS", "Python version", "Is CUDA available", "CPU",
    "Backends of mortice", "Versions of relevant libraries",
)  # fmt: skip


def get_env_info() -> SystemEnv:
    """Return the versions of mortice, Python, the system and libraries, and the backends that are installed."""
    told = ("mortice", "numpy", "cupy", "torch")
    found = sorted({f"\n{d.name}=={d.version}" for d in distributions() if (d.name or "").startswith(told)})
    return SystemEnv(
        mortice.__version__, str(mortice.version.debug), str(mortice.version.cuda), platform.platform(),
        sys.version.replace("\n", ""), str(mortice.cuda.is_available()), f"{platform.machine()}, {os.cpu_count()} cores",
        ", ".join(mortice.backends.list()), "".join(found),
    )  # fmt: skip


def pretty_str(envinfo: SystemEnv) -> str:
    """Return what was found as lines of text."""
    return "\n".join([f"{title}: {value}" for title, value in zip(_TITLES, envinfo, strict=True)])


def get_pretty_env_info() -> str:
    """Return what is found here as lines of text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
