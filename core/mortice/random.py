"""Generators: which words of which random stream a draw gets. The streams are in `backends.philox`.

A generator is a seed and an offset; a draw takes as many words as its result has elements and moves the
offset. There is one default generator a process, for every device and backend: a stream does not depend on
them. Captured work draws from where a generator is when it is replayed (`CapturedDraws`).

With `set_engine("mt19937")` what is drawn on the CPU is what PyTorch draws there; `backends.mt19937` has that.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mortice.device import Device
from mortice.errors import DTypeError
from mortice.modes import modes

# PyTorch's, for a new generator. The default one begins at a seed of the operating system.
DEFAULT_SEED = 67280421310721
_WORDS = 1 << 64
_STATE_TAG = b"philox64"
_STATE_SIZE = len(_STATE_TAG) + 16
_PYTORCH_SIZE = 5056
_CAPTURED_TAG = b"captured"  # then the capture, its words so far, and a state as above


class Generator:
    """A position in the random stream of a seed. Methods may be called from several threads.

    Args:
        device: where its user means to draw; the stream is the same on every device.
    """

    __slots__ = ("device", "_seed", "_offset", "_engine", "_lock", "__weakref__")

    def __init__(self, device: str | Device | None = "cpu") -> None:
        self.device = Device("cpu" if device is None else device)
        self._seed = DEFAULT_SEED
        self._offset = 0
        self._engine = _engines[get_engine()](DEFAULT_SEED)
        self._lock = threading.Lock()

    def manual_seed(self, seed: int) -> Generator:
        """Go to the start of a seed's stream; a negative seed means 2**64 + seed."""
        value = _checked_seed(seed)
        _not_captured("manual_seed")
        self._set(value, 0)
        return self

    def seed(self) -> int:
        """Take a seed of 53 bits from the operating system, go to its start and return it."""
        _not_captured("seed")
        seed = int.from_bytes(os.urandom(8), "little") >> 11
        self._set(seed, 0)
        return seed

    def initial_seed(self) -> int:
        """Return the seed of the stream."""
        return self._seed

    @property
    def offset(self) -> int:
        """The number of words taken so far."""
        return self._offset

    def engine_for(self, device: Device) -> Any:
        """Return what makes this generator's numbers on a device, None where words of the stream do."""
        return self._engine if device.type == "cpu" and device.backend.has_values else None

    def take(self, n_words: int, device: Device | None = None) -> tuple[Any, int]:
        """Reserve the next words for one draw, and return the seed and the offset of the first of them.

        `device` says where it is made: captured work gets memory of the device in place of the seed.
        """
        if device is not None and (capture := modes.capture) is not None and capture.device is device.base:
            return capture.take(self, n_words)
        with self._lock:
            seed, start = self._seed, self._offset
            if not 0 <= n_words < _WORDS - start:
                raise RuntimeError(
                    f"Generator.take: expected 0 to {_WORDS - 1 - start} words, all the stream has left; "
                    f"got {n_words}. Seed the generator anew."
                )
            self._offset = start + n_words
        return seed, start

    def get_state(self) -> Any:
        """Return the state as a uint8 tensor, for `set_state`."""
        return wrap_state(self.state_bytes())

    def set_state(self, state: Any) -> Generator:
        """Go back to a state of `get_state`: bytes, or a sequence of 8-bit integers such as a uint8 tensor; return self."""
        self.load_state_bytes(state)
        return self

    def state_bytes(self) -> bytes:
        """Return 24 bytes: a tag, the seed and the offset, both little-endian; more while work is captured.

        With the engine mt19937 they are PyTorch's 5056 bytes, before these 24 if another device has drawn too.
        """
        with self._lock:
            state = _STATE_TAG + self._seed.to_bytes(8, "little") + self._offset.to_bytes(8, "little")
            if self._engine is not None:
                state = self._engine.state(self._seed) + (state if self._offset else b"")
        return state if modes.capture is None else modes.capture.state_of(self) + state

    def load_state_bytes(self, state: Any) -> None:
        """Return to a state of `state_bytes`, or of a CPU generator of PyTorch; its engine becomes the state's."""
        try:
            data = b"" if isinstance(state, int) else bytes(state.tolist() if hasattr(state, "tolist") else state)
        except (TypeError, ValueError):
            data = b""
        if not data and not isinstance(state, (bytes, bytearray)):
            raise TypeError(f"set_state: expected the bytes that get_state gave; got {type(state).__name__}.")
        if data.startswith(_CAPTURED_TAG):
            data = _captured("set_state").load(self, data)
        engine, seed = None, 0
        if len(data) in (_PYTORCH_SIZE, _PYTORCH_SIZE + _STATE_SIZE):
            engine = _mt19937(0)
            seed = engine.load(data[:_PYTORCH_SIZE])
            data = data[_PYTORCH_SIZE:] or _STATE_TAG + seed.to_bytes(8, "little") + bytes(8)
        if len(data) != _STATE_SIZE or not data.startswith(_STATE_TAG):
            raise RuntimeError(
                f"set_state: expected the {_STATE_SIZE} bytes of get_state, beginning with {_STATE_TAG!r}, or the "
                f"{_PYTORCH_SIZE} of a CPU generator of PyTorch; got {len(data)} bytes beginning with {data[:8]!r}. "
                "States of other libraries do not carry over."
            )
        with self._lock:
            self._seed, self._offset = (int.from_bytes(data[at : at + 8], "little") for at in (8, 16))
            self._engine = engine

    def clone_state(self) -> Generator:
        """Return another generator at the same position."""
        return _restore(str(self.device), self.state_bytes())

    def _set(self, seed: int, offset: int, engine: bool = True) -> None:
        with self._lock:
            self._seed, self._offset = seed, offset
            if engine and self._engine is not None:
                self._engine.seed(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (str(self.device), self.state_bytes())

    def __repr__(self) -> str:
        return f"Generator(device='{self.device}', seed={self._seed}, offset={self._offset})"


class CapturedDraws:
    """What captured work draws: as many words at each replay, from where its generators are by then.

    The backend makes a cell of device memory for each generator, and kernels get it in place of the seed: it holds the
    seed and the offset that theirs counts from.
    """

    _numbers = itertools.count()

    def __init__(self, device: Device, beside: Callable[[Device], Any]) -> None:
        self.device, self._number = device, next(self._numbers)
        self.beside = beside  # the context of work that is done at once, beside the capture
        self._cells: dict[Generator, Any] = {}
        self._taken: dict[Generator, int] = {}

    def take(self, generator: Generator, n_words: int) -> tuple[Any, int]:
        """Return the generator's cell, and where words of this draw begin, counted from the offset there."""
        if generator not in self._cells:
            self._cells[generator] = self.device.backend.random_cell(self.device)
        start = self._taken.get(generator, 0)
        self._taken[generator] = start + n_words
        return self._cells[generator], start

    def replay(self) -> None:
        """Take the words of a replay, and tell the device where they begin."""
        for generator, cell in self._cells.items():
            _not_captured("replay")
            self.device.backend.set_random_cell(cell, *generator.take(self._taken[generator]))

    def state_of(self, generator: Generator) -> bytes:
        """Return where the capture is in a generator's stream."""
        numbers = (self._number, self._taken.get(generator, 0))
        return _CAPTURED_TAG + b"".join([n.to_bytes(8, "little") for n in numbers])

    def load(self, generator: Generator, state: bytes) -> bytes:
        """Return to a place of `state_of`; return the rest of the state."""
        number, taken = (int.from_bytes(state[at : at + 8], "little") for at in (8, 16))
        if number != self._number:
            raise RuntimeError("set_state: expected a state of this capture; got another one's. Get it inside.")
        self._taken[generator] = taken
        return state[24:]


def _captured(name: str) -> Any:
    if modes.capture is None:
        raise RuntimeError(f"{name}: this state is a place in captured work; it holds only while that is captured.")
    return modes.capture


def _not_captured(name: str) -> None:
    if modes.capture is not None:
        raise RuntimeError(
            f"{name}: not permitted while work is captured; its random numbers begin where the generator is at each replay. "
            "Do it outside."
        )


def _restore(device: str, state: bytes) -> Generator:
    generator = Generator(device)
    generator.load_state_bytes(state)
    return generator


def _checked_seed(seed: Any) -> int:
    """Return the seed as a word, or refuse it."""
    try:
        value = operator.index(seed)
    except TypeError:
        raise DTypeError(f"manual_seed: expected an integer; got {seed!r} ({type(seed).__name__}).") from None
    if not -(1 << 63) <= value < _WORDS:
        raise ValueError(f"manual_seed: Overflow when unpacking long long; expected an integer from -2**63 to 2**64 - 1, got {value}.")
    return value % _WORDS


def wrap_state(state: bytes) -> Any:
    """Return a state as users get it; `ops.random` makes it a uint8 tensor."""
    return state


def _mt19937(seed: int) -> Any:
    from mortice.backends.mt19937 import MT19937

    return MT19937(seed)


_engines: dict[str, Callable[[int], Any]] = {"philox": lambda seed: None, "mt19937": _mt19937}
_engine = "philox"


def get_engine() -> str:
    """Return the name of the engine that makes the random numbers of new generators."""
    return _engine


def set_engine(name: str) -> None:
    """Choose which random numbers a seed gives: "philox", mortice's own, or "mt19937", PyTorch's.

    Philox gives one seed the same numbers on every backend and device. With mt19937 what is drawn on the CPU after
    `manual_seed` is what PyTorch 2.13 draws there: the same weights, the same order of a DataLoader, the same dropout; draws
    are slower except on backends with a `twister`, and other devices keep to Philox. Draws of the Wishart distribution,
    rrelu, and draws into tensors whose memory has gaps are other ones than PyTorch's.

    The default generator goes to the start of its seed, and generators made from now on have the engine; those that are
    there keep theirs. The environment variable MORTICE_RANDOM chooses one at the start.

    Raises:
        ValueError: for another name.
    """
    global _engine
    if name not in _engines:
        raise ValueError(f"set_engine: expected one of {', '.join(map(repr, _engines))}; got {name!r}.")
    _not_captured("set_engine")
    _engine = name
    generator = default_generator
    with generator._lock:
        generator._engine, generator._offset = _engines[name](generator._seed), 0


default_generator = Generator()
default_generator._seed = int.from_bytes(os.urandom(8), "little")
if "MORTICE_RANDOM" in os.environ:
    set_engine(os.environ["MORTICE_RANDOM"])


def _after_fork() -> None:
    # Another thread may have held the lock at the fork, and it does not run in the child.
    default_generator._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, which serves every device, and return it."""
    return default_generator.manual_seed(int(seed))


def seed_beside(seed: int, there: bool) -> None:
    """Seed the default generator for devices beside the CPU, if there are any; an engine draws on as before."""
    if there or default_generator._engine is None:
        value = _checked_seed(seed)
        _not_captured("manual_seed")
        default_generator._set(value, 0, engine=False)


def seed() -> int:
    """Seed the default generator from the operating system, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return the default generator's state as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Return the default generator to a state of `get_rng_state`."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str | None = None) -> Iterator[None]:
    """Put the default generator back where it was when the block ends.

    `devices` and `device_type` are accepted and have no effect: one generator serves all devices.
    """
    if not enabled:
        yield
        return
    state = default_generator.state_bytes()
    try:
        yield
    finally:
        default_generator.load_state_bytes(state)


def worker_seed(base_seed: int, worker_id: int) -> int:
    """Return the seed of a data loading worker: base_seed + worker_id, as PyTorch documents it.

    Neighbouring seeds are different keys of the cipher, so their streams have nothing in common.
    """
    if worker_id < 0:
        raise ValueError(f"worker_seed: expected a worker number from 0; got {worker_id}.")
    return (_checked_seed(base_seed) + worker_id) % _WORDS
