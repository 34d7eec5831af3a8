"""`torch.cuda.comm`: tensors copied, split, joined and added up between devices, outside the graph of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def broadcast(tensor: Any, devices: Sequence[Any] | None = None, *, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Return copies of a tensor on devices; that on its own device is the tensor itself."""
    _one_of("broadcast", "devices", devices, out)
    return tuple([tensor.detach().to(device) for device in devices or ()]) if out is None else _into(out, [tensor] * len(out))


def broadcast_coalesced(tensors: Sequence[Any], devices: Sequence[Any], buffer_size: int = 10 << 20) -> list[tuple[Any, ...]]:
    """Return copies of several tensors, a tuple for each device; each is sent by itself, whatever the size of the buffer."""
    return [tuple([tensor.detach().to(device) for tensor in tensors]) for device in devices]


def reduce_add(inputs: Sequence[Any], destination: Any = None) -> Any:
    """Return the sum of tensors of one shape on a device, by default the current one."""
    shapes = {tuple(x.shape) for x in inputs}
    if len(shapes) != 1:
        raise ValueError(f"reduce_add: expected tensors of one shape; got {sorted(shapes)}.")
    first, *others = [x.detach().to("cuda" if destination is None else destination) for x in inputs]
    total = first.clone()
    for x in others:
        total.add_(x)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Any]], destination: Any = None, buffer_size: int = 10 << 20
) -> tuple[Any, ...]:
    """Return the sums of the tensors at each place of several rows, on a device."""
    return tuple([reduce_add(row, destination) for row in zip(*inputs, strict=True)])


def scatter(
    tensor: Any, devices: Sequence[Any] | None = None, chunk_sizes: Sequence[int] | None = None, dim: int = 0,
    streams: Sequence[Any] | None = None, *, out: Sequence[Any] | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the parts of a tensor along a dim, each on its device; copies go to the current streams."""
    _one_of("scatter", "devices", devices, out)
    x = tensor.detach()
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError(f"scatter: expected no chunk_sizes beside out; got {list(chunk_sizes)}. The sizes of out are taken.")
        return _into(out, x.split([part.shape[dim] for part in out], dim))
    parts = x.chunk(len(devices or ()), dim) if chunk_sizes is None else x.split(list(chunk_sizes), dim)
    return tuple([part.to(device) for part, device in zip(parts, devices or ())])


def gather(tensors: Sequence[Any], dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
    """Return tensors joined along a dim, on a device or in `out`; by default on the current device."""
    if out is None:
        size = list(tensors[0].shape)
        size[dim] = sum([x.shape[dim] for x in tensors])
        out = tensors[0].new_empty(size, device="cuda" if destination is None else "cpu" if destination == -1 else destination)
    elif destination is not None:
        raise RuntimeError(f"gather: expected either destination or out; got destination={destination} and out on {out.device}.")
    begin = 0
    for x in tensors:
        out.narrow(dim, begin, x.shape[dim]).copy_(x.detach())
        begin += x.shape[dim]
    return out


def _one_of(name: str, other: str, given: Any, out: Any) -> None:
    if (given is None) == (out is None):
        raise RuntimeError(f"{name}: expected either {other} or out; got {other}={given} and out={out}.")


def _into(out: Sequence[Any], made: Sequence[Any]) -> tuple[Any, ...]:
    for x, y in zip(out, made, strict=True):
        x.copy_(y)
    return tuple(out)
