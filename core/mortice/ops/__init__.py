"""The operations, a family a file."""


def __getattr__(name: str) -> object:
    if name in ("aten", "profiler"):  # PyTorch's names of them; nothing here is written with it
        from importlib import import_module

        return getattr(import_module("mortice._ops"), name)
    raise AttributeError(f"module 'mortice.ops' has no attribute {name!r}")


def load_library(path: object) -> None:
    """Refuse: operators are written in Python here."""
    raise OSError(f"Could not load this library: {path}. It is compiled against PyTorch's own; operators are written in Python here.")
