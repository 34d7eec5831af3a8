"""`torch.cuda.nccl`: sums and copies between the devices of this process, made of copies; NCCL itself is not called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice_cuda_cupy.names import comm

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]
SUM = 0


def is_available(tensors: Any) -> bool:
    """Return False: NCCL is not called."""
    return False


def version() -> tuple[int, int, int]:
    """Return the version of NCCL, which is not there."""
    return 0, 0, 0


def all_reduce(inputs: Sequence[Any], outputs: Sequence[Any] | None = None, op: int = SUM, streams: Any = None, comms: Any = None) -> None:
    """Write the sum of inputs into each output, by default the inputs."""
    comm.broadcast(_sum("all_reduce", inputs, inputs[0].device, op), out=inputs if outputs is None else outputs)


def reduce(
    inputs: Sequence[Any], output: Any = None, root: int = 0, op: int = SUM, streams: Any = None, comms: Any = None, *,
    outputs: Sequence[Any] | None = None,
) -> None:  # fmt: skip
    """Write the sum of inputs into an output, by default the input of the number `root`."""
    to = output if output is not None else inputs[root] if outputs is None else outputs[root]
    to.copy_(_sum("reduce", inputs, to.device, op))


def broadcast(inputs: Sequence[Any], root: int = 0, streams: Any = None, comms: Any = None) -> None:
    """Write the input of the number `root` into the others."""
    comm.broadcast(inputs[root], out=[x for i, x in enumerate(inputs) if i != root])


def all_gather(inputs: Sequence[Any], outputs: Sequence[Any], streams: Any = None, comms: Any = None) -> None:
    """Write all inputs, one behind the other, into each output."""
    for out in outputs:
        comm.gather([x.reshape(-1) for x in inputs], out=out.view(-1))


def reduce_scatter(inputs: Sequence[Any], outputs: Sequence[Any], op: int = SUM, streams: Any = None, comms: Any = None) -> None:
    """Write the parts of the sum of inputs into the outputs."""
    comm.scatter(_sum("reduce_scatter", inputs, inputs[0].device, op).reshape(-1), out=[out.view(-1) for out in outputs])


def _sum(name: str, inputs: Sequence[Any], device: Any, op: int) -> Any:
    if op != SUM:
        raise NotImplementedError(f"nccl.{name}: expected op to be SUM, 0; got {op}.")
    return comm.reduce_add(inputs, device)
