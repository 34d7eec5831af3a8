"""The exceptions of mortice. Each derives from what PyTorch raises in the same place, so existing `except` clauses work."""


class ShapeError(RuntimeError, ValueError):
    """Sizes or dimensions that do not fit the operation."""


class DTypeError(NotImplementedError, TypeError):
    """A dtype, or a mix of dtypes, that the operation does not take. A RuntimeError, as NotImplementedError is one."""


class PartError(DTypeError, AttributeError):
    """The imaginary part of real numbers. An AttributeError too: `hasattr` of what no tensor of the dtype has says False."""


class DataError(TypeError, ValueError, RuntimeError):
    """Data that no tensor can be made of; PyTorch raises one or another of the three."""


class SwitchError(TypeError, RuntimeError):
    """What is neither True nor False where a switch asks for one; PyTorch raises one or another of the two."""


class DeviceError(RuntimeError, ValueError):
    """Tensors of different devices or backends in one operation, or a device that does not exist."""


class DimError(IndexError, RuntimeError):
    """A dimension number outside the tensor's range."""


class BackendNotFound(RuntimeError):
    """No backend of that name, or none for that device."""


class PluginError(RuntimeError):
    """A plugin that breaks the contract of `mortice.backends`."""


class LinAlgError(RuntimeError):
    """A matrix that is singular, or not positive-definite, where it must not be."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """A backend could not allocate the memory that a result needs. A MemoryError too, as Python has it."""


def too_big(name: str, argument: str, value: int) -> TypeError:
    """Return the error for an integer that is, or is in, an argument, and takes more than 64 bits."""
    return TypeError(f"{name}: expected `{argument}` to fit 64 bits; got {value}. Overflow when unpacking long long.")


def switch(name: str, argument: str, value: bool) -> bool:
    """Return a value that is True or False; a word would count as True, whatever it says."""
    if not isinstance(value, bool):
        got = type(value)
        shown = got.__name__ if got.__module__ == "builtins" else f"{got.__module__}.{got.__name__}"  # NumPy's is a bool too
        raise SwitchError(f"{name}(): argument '{argument}' must be bool, not {shown}")
    return value


_CASTS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16"}


def cast_hint(have: str, want: str, what: str) -> str:
    """Say whose dtypes differ, those of a layer's input and of its `what`, and how to make them one."""
    known = " (NumPy's default)" if have == "float64" else ""
    cast = f"{_CASTS[want]}()" if want in _CASTS else f"to({want})"
    other = f", or convert the module with .{_CASTS[have]}()" if have in _CASTS else ""
    return f"The input is {have}{known}, the {what} {want}. Use input.{cast}{other}."
