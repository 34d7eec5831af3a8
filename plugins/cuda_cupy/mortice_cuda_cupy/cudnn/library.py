"""cuDNN as it is installed: its module, its version or why it is not used, and a handle for each thread and device.

The Python module `cudnn` is NVIDIA's frontend; it loads the library, libcudnn, which another wheel brings.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from typing import Any

import cupy

from mortice.backends import cudnn as switches

OLDEST = 90000  # attention without 9 has other restrictions than those that `attention` knows
_INSTALL = "`pip install mortice-cuda-cupy[cudnn]` beside [cuda13], [cudnn12] beside [cuda12]"


@functools.cache
def _found() -> tuple[Any, int, str]:
    """Return the frontend's module, the library's version, and what is missing."""
    try:
        import cudnn
    except ImportError as error:
        if getattr(error, "name", None) == "cudnn":
            return None, 0, f"nvidia-cudnn-frontend is not installed: {_INSTALL}"
        return None, 0, f"nvidia-cudnn-frontend cannot be imported: {_first(error)}"
    try:
        version = int(cudnn.backend_version())
    except Exception as error:  # the frontend raises RuntimeError where it found no library, or not all of it
        return None, 0, f"the frontend finds no libcudnn ({_first(error)}): {_INSTALL}"
    if version < OLDEST:
        return None, 0, f"libcudnn 9 or newer is needed; this is {spelled(version)}: {_INSTALL}"
    return cudnn, version, ""


def module() -> Any:
    """Return the frontend's module, None where something is missing."""
    return _found()[0]


def state() -> tuple[int, str]:
    """Return the version, 0 where cuDNN is not used, and a word for people: why not, or what it had no plan for."""
    _, version, missing = _found()
    return version, missing or "; ".join(f"no plan for {case}: {why}" for case, why in _REFUSED.items())


def spelled(version: int) -> str:
    """Return a version as people write it."""
    return f"{version // 10000}.{version % 10000 // 100}.{version % 100}"


_REFUSED: dict[str, str] = {}


def refuse(case: str, error: Exception) -> None:
    """Note what there was no plan for, the newest of each kind."""
    _REFUSED[case] = _first(error)


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")[:200]


class Place:
    """A thread on a device: its handle, and the plans that were made with it.

    cuDNN wants a handle for each thread, and says nothing of plans that two threads run at a time.
    """

    def __init__(self, index: int) -> None:
        library = module()
        self.index, self._set_stream = index, library.set_stream
        spare = _SPARE.setdefault(index, deque())
        try:
            self.handle = spare.pop()
        except IndexError:
            self.handle = library.create_handle()
        # Older frontends have the number itself.
        self.number = getattr(self.handle, "backend_handle", self.handle)
        self.device = {"handle": self.handle}  # what a graph is told of where it is to run
        self.memory = int(cupy.cuda.runtime.getDeviceProperties(index)["totalGlobalMem"])
        self.stream: int | None = None
        self.plans: dict[Any, Any] = {}

    def follow(self, stream: int) -> None:
        """Send later work to a stream."""
        self._set_stream(self.handle, stream)
        self.stream = stream

    def __del__(self) -> None:
        # When the thread ends. To destroy a handle waits for the device and is forbidden in a capture: the next has it.
        if hasattr(self, "handle"):
            _SPARE[self.index].append(self.handle)


_SPARE: dict[int, deque[Any]] = {}


class _Local(threading.local):
    def __init__(self) -> None:
        self.places: dict[int, Place] = {}


_local = _Local()


def here(index: int) -> Place | None:
    """Return this thread's place on the current device, of that index, on the current stream; None to do without cuDNN."""
    if not switches.enabled:
        return None
    place = _local.places.get(index)
    if place is None:
        if module() is None:
            return None
        try:
            place = _local.places[index] = Place(index)
        except RuntimeError as error:
            refuse("a handle", error)
            return None
    stream = cupy.cuda.get_current_stream().ptr
    if stream != place.stream:
        place.follow(stream)
    return place
