"""The names of torch.utils.cpp_extension, for programs that fall back on Python: nothing is compiled here."""

from __future__ import annotations

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
