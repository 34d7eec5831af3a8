"""What stands around kernels: with several GPUs each runs on its operands' device, and some refuse to be captured.

CuPy launches on the current device and only warns, or fails, when an operand is elsewhere. With one GPU nothing of this
is used.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import cupy

from mortice.backends import REQUIRED
from mortice.backends.kernels import FreeKernels

ndarray = cupy.ndarray
_OWN = frozenset(["new_full", "new_arange", "full_like", "numel_of"])  # kernels that look at nothing on a device


def home_of(values: Any) -> int | None:
    """Return the device of the first array in arguments, however they are nested."""
    for value in values:
        if value.__class__ is ndarray:
            return value.data.device_id  # type: ignore[no-any-return]
        if value.__class__ in (list, tuple):
            found = home_of(value)
            if found is not None:
                return found
    return None


def at_home(kernel: Any) -> Any:
    """Let a kernel run on its operands' device."""

    @functools.wraps(kernel)
    def run(*args: Any, **attrs: Any) -> Any:
        home = home_of(args)
        if home is None:
            device = attrs.get("device")
            home = getattr(device, "index", None)
        if home is None or home == cupy.cuda.runtime.getDevice():
            return kernel(*args, **attrs)
        with cupy.cuda.Device(home):
            return kernel(*args, **attrs)

    return run


def outside_captures(cls: Any) -> Any:
    """Have the optimisers' kernels that are told a step which Python counted refuse to be captured."""
    for name in dir(FreeKernels):
        kernel = getattr(cls, name) if name.endswith("_step") else None
        if kernel is not None and "step" in inspect.signature(kernel).parameters:
            setattr(cls, name, _outside(kernel))
    return cls


def _outside(kernel: Any) -> Any:
    @functools.wraps(kernel)
    def run(self: Any, *args: Any, **attrs: Any) -> Any:
        if type(attrs["step"]) is not list:
            self.refuse_in_capture("it counts its steps in Python, and each replay would repeat this one")
        return kernel(self, *args, **attrs)

    return run


def public_name() -> str:
    """Return the function of mortice's that the program called."""
    frame, name = sys._getframe(1), ""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "mortice",
        "mortice_cuda_cupy",
    ):
        name, frame = frame.f_code.co_name, frame.f_back
    return name


def refuse_in_capture(why: str) -> None:
    """Raise while the current stream captures work; name what the program called."""
    stream = cupy.cuda.get_current_stream()
    if stream.ptr and stream.is_capturing():
        raise RuntimeError(
            f"{public_name()}: operation not permitted when stream is capturing: {why}. Do it outside the capture."
        )


def guarded(cls: Any, own: dict[str, Any]) -> Any:
    """Return a subclass whose kernels run at home; those that are an instance's own are replaced in `own`."""
    required = {n for family, names in REQUIRED.items() if family != "housekeeping" for n in names.split()}
    names = (
        {n for n in dir(FreeKernels) if not n.startswith("_")}
        | required
        | {"real", "imag", "conj", "copy_to", "to_dlpack"}
    )
    members: dict[str, Any] = {}
    for name in sorted(names - _OWN):
        if name in own:
            own[name] = at_home(own[name])
            continue
        kernel = getattr(cls, name)
        # A default body calls kernels, which find their way themselves.
        if kernel is not getattr(FreeKernels, name, None) and callable(kernel):
            static = isinstance(next(vars(c)[name] for c in cls.__mro__ if name in vars(c)), staticmethod)
            members[name] = staticmethod(at_home(kernel)) if static else at_home(kernel)
    return type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__, **members})
