"""What a report of a fault should say of where it happened: `python -m mortice.utils.collect_env` prints it."""

import platform
import sys

import mortice
from mortice.__config__ import show


def get_pretty_env_info() -> str:
    """Return the versions of mortice, Python and the system, and the backends that are installed, as lines."""
    return (
        f"PyTorch version: {mortice.__version__}\nIs CUDA available: {mortice.cuda.is_available()}\n"
        f"OS: {platform.platform()}\nPython version: {sys.version}\n{show()}"
    )


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
