"""mortice.distributed: a group of one process, as PyTorch makes it for programs written for one process or many.

Until `init_process_group` it answers as a PyTorch does whose group was never initialised. What one process exchanges
with itself is what it has; a group of several processes is refused.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from typing import Any, TypeVar

from mortice import addresses

__all__ = [
    "Backend", "P2POp", "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object",
    "all_reduce", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "destroy_process_group", "gather", "get_backend", "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "init_process_group", "irecv", "is_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "isend", "new_group", "new_subgroups", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip


_LEFT_OUT = "training over several processes is left out"
_F = TypeVar("_F", bound=Callable[..., Any])


class ProcessGroup:
    """A group of processes: the one that `init_process_group` makes, of this process alone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: {_LEFT_OUT}; ask distributed.is_available() first.")

    def rank(self) -> int:
        """Return 0: this process is the first."""
        return 0

    def size(self) -> int:
        """Return 1: there is one process."""
        return 1


class _Groups(type):
    WORLD = property(lambda self: _world, doc="The group, or None.")


class group(metaclass=_Groups):
    """Holds the group of all processes, WORLD: None until there is one."""


GroupMember = group


class Backend(str):
    """The names of backends; calling it returns a plain string in lower case."""

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi"

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError(
                f"Backend: constructor parameter must be string-ish; got {name!r}. Give a name such as 'gloo'."
            )
        return name.lower()


class ReduceOp(Enum):
    """How values of several processes are combined."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


reduce_op = ReduceOp  # its old name


class Work:
    """What an exchange returns that was not waited for: it is done."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


_world: ProcessGroup | None = None
_backend = "undefined"


def is_available() -> bool:
    """Return False: there is no communication between processes."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_torchelastic_launched = is_available


def is_initialized() -> bool:
    """Tell whether `init_process_group` was called."""
    return _world is not None


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1, rank: int = -1,
    store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Make the group of this process alone; sizes that are not given are those of RANK and WORLD_SIZE.

    Raises:
        NotImplementedError: for more than one process.
        ValueError: when the sizes are not known, or the group is there already.
    """
    global _world, _backend
    if _world is not None:
        raise ValueError("init_process_group: trying to initialize the default process group twice!")
    if world_size < 0 or rank < 0:
        for name in ("RANK", "WORLD_SIZE"):
            if name not in os.environ:
                raise ValueError(
                    f"init_process_group: environment variable {name} expected, but not set; {_LEFT_OUT}. Pass "
                    "world_size=1, rank=0 for the group of this process alone."
                )
        rank = int(os.environ["RANK"]) if rank < 0 else rank
        world_size = int(os.environ["WORLD_SIZE"]) if world_size < 0 else world_size
    if world_size != 1 or rank:
        raise NotImplementedError(
            f"init_process_group: {_LEFT_OUT}: expected world_size 1 and rank 0; got {world_size} and {rank}. Gradients "
            "can be averaged by a library such as mpi4py between backward and step."
        )
    _world, _backend = object.__new__(ProcessGroup), backend or "gloo"


def _of_group(function: _F) -> _F:
    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if _world is None:
            raise ValueError(
                f"{function.__name__}: Default process group has not been initialized; {_LEFT_OUT}. Ask is_initialized() first."
            )
        return function(*args, **kwargs)

    return checked


def _given(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _copied(to: Any, value: Any, async_op: bool) -> Any:
    """Write into a tensor that a program made room with, without recording it."""
    to.detach().copy_(value.detach().reshape(to.shape))
    return _given(async_op)


@_of_group
def destroy_process_group(group: Any = None) -> None:
    """Forget the group."""
    global _world, _backend
    _world, _backend = None, "undefined"


@_of_group
def get_backend(group: Any = None) -> str:
    """Return the name that `init_process_group` was given."""
    return _backend


@_of_group
def get_rank(group: Any = None) -> int:
    """Return 0: this process is the first."""
    return 0


@_of_group
def get_world_size(group: Any = None) -> int:
    """Return 1: there is one process."""
    return 1


@_of_group
def new_group(ranks: Sequence[int] | None = None, *args: Any, **kwargs: Any) -> ProcessGroup | None:
    """Return the group of this process."""
    return _world


@_of_group
def new_subgroups(group_size: int | None = None, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
    """Return the group of this process, and the list of all: it alone."""
    if group_size not in (None, 1):
        raise ValueError(
            f"new_subgroups: The arg 'group_size' ({group_size}) must not exceed the world size (1), and be positive. Give 1."
        )
    return _world, [_world]


@_of_group
def _get_default_group() -> ProcessGroup | None:
    return _world


@_of_group
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait for nobody."""
    return _given(async_op)


@_of_group
def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Leave the tensor, which is the sum, mean or extremum of one."""
    return _given(async_op)


@_of_group
def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False, group_dst: Any = None
) -> Any:
    """Leave the tensor, which is the sum, mean or extremum of one."""
    return _given(async_op)


@_of_group
def broadcast(tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: Any = None) -> Any:
    """Leave the tensor, which this process has."""
    return _given(async_op)


@_of_group
def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """Write the tensor into the one of the list."""
    return _copied(tensor_list[0], tensor, async_op)


@_of_group
def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """Write the tensor into the other."""
    return _copied(output_tensor, input_tensor, async_op)


@_of_group
def gather(
    tensor: Any, gather_list: Any = None, dst: int | None = None, group: Any = None, async_op: bool = False, group_dst: Any = None
) -> Any:
    """Write the tensor into the one of the list."""
    return _copied(gather_list[0], tensor, async_op)


@_of_group
def scatter(
    tensor: Any, scatter_list: Any = None, src: int | None = None, group: Any = None, async_op: bool = False, group_src: Any = None
) -> Any:
    """Write the one of the list into the tensor."""
    return _copied(tensor, scatter_list[0], async_op)


@_of_group
def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Write the one of the list into the tensor."""
    return _copied(output, input_list[0], async_op)


@_of_group
def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False) -> Any:
    """Write the one of the second list into that of the first."""
    return _copied(output_tensor_list[0], input_tensor_list[0], async_op)


@_of_group
def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None, async_op: bool = False
) -> Any:
    """Write the tensor into the other."""
    return _copied(output, input, async_op)


@_of_group
def reduce_scatter_tensor(output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Write the tensor into the other."""
    return _copied(output, input, async_op)


@_of_group
def get_process_group_ranks(group: Any = None) -> list[int]:
    """Return the ranks of all: 0 alone."""
    return [0]


@_of_group
def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the rank among all of who has a rank in a group."""
    return group_rank


@_of_group
def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the rank in a group of who has a rank among all."""
    return global_rank


@_of_group
def all_gather_object(object_list: Any, obj: Any, group: Any = None) -> None:
    """Put the object into the list."""
    object_list[0] = obj


@_of_group
def broadcast_object_list(object_list: Any, src: int | None = None, group: Any = None, device: Any = None, group_src: Any = None) -> None:
    """Leave the list, which this process has."""


def record(fn: _F, error_handler: Any = None) -> _F:
    """Leave a program's main function, whose errors no launcher reads."""
    return fn


_ALONE = "{0}: Invalid {1} rank: {1} rank should not be the same as the rank of the current process."


@_of_group
def send(tensor: Any, dst: int | None = None, *args: Any, **kwargs: Any) -> None:
    """Refuse: there is no other process."""
    raise ValueError(_ALONE.format("send", "destination"))


@_of_group
def recv(tensor: Any, src: int | None = None, *args: Any, **kwargs: Any) -> None:
    """Refuse: there is no other process."""
    raise ValueError(_ALONE.format("recv", "source"))


isend, irecv = send, recv


class P2POp:
    """An exchange with one other process, for `batch_isend_irecv`."""

    def __init__(self, op: Any, tensor: Any, peer: Any = None, group: Any = None, tag: int = 0, group_peer: Any = None) -> None:
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer = self.group_peer = group_peer if peer is None else peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Do exchanges, each of which is refused: there is no other process."""
    return [p.op(p.tensor, p.peer) for p in p2p_op_list]


def __getattr__(name: str) -> Any:
    if name in ("autograd", "rpc"):  # which PyTorch has imported
        return import_module(f"{__name__}.{name}")
    with contextlib.suppress(AttributeError):
        return addresses.attribute(__name__, name)
    raise AttributeError(f"module 'mortice.distributed' has no attribute {name!r}: {_LEFT_OUT}")
