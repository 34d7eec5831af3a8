"""The names of torch.utils.cpp_extension, for programs that fall back on Python: nothing is compiled here."""

from __future__ import annotations

import os
import time
from typing import Any, NoReturn

__all__ = ["CUDA_HOME", "BuildExtension", "CUDAExtension", "CppExtension", "load", "load_inline"]

CUDA_HOME: str | None = None


def _refused(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"cpp_extension.{name}: expected code in Python; got sources for PyTorch's C++ API, which mortice does not have. "
            "Use the program's Python version of it, mortice.library.custom_op, or a backend plugin."
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refuse to compile: sources of such an extension speak PyTorch's C++ API."
    return refuse


load, load_inline, CppExtension, CUDAExtension, BuildExtension = map(
    _refused, ("load", "load_inline", "CppExtension", "CUDAExtension", "BuildExtension")
)


class FileBaton:
    """A file that one process makes and the others wait for."""

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path, self.wait_seconds, self.fd = lock_file_path, wait_seconds, -1

    def try_acquire(self) -> bool:
        """Make the file; False where it is there already."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone."""
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)

    def release(self) -> None:
        """Remove the file."""
        if self.fd >= 0:
            os.close(self.fd)
        os.remove(self.lock_file_path)
