"""Where tools work: copies of the user's model and optimiser, random numbers that are put back, no session that watches."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import mortice
from mortice import Tensor, nn
from mortice.doctor import probes
from mortice.doctor.events import all_tensors
from mortice.utils.data import DataLoader
from mortice.utils.data.fetch import generators_kept

Forward = Callable[[Any, Any], Any]


@contextmanager
def apart(*kept: Any) -> Iterator[None]:
    """Run a block that no session watches, with gradients on, and leave generators and `kept` as they were.

    What is kept: of modules and optimisers the gradients, which a loss that reads their parameters would add to; of
    loaders the generators.
    """
    params = {id(p): p for thing in kept for p in _parameters(thing)}.values()
    gradients = [(p, p.grad) for p in params]
    generators = {id(g): g for thing in kept for g in _generators(thing)}.values()
    states = [(g, g.get_state()) for g in generators]
    with ExitStack() as stack:
        stack.enter_context(probes.paused())
        stack.enter_context(generators_kept())
        stack.enter_context(mortice.enable_grad())
        for p, _ in gradients:
            p.grad = None
        try:
            yield
        finally:
            for p, grad in gradients:
                p.grad = grad
            for generator, state in states:
                generator.set_state(state)


def _parameters(thing: Any) -> Iterable[Any]:
    if isinstance(thing, nn.Module):
        return list(thing.parameters())
    groups = getattr(thing, "param_groups", ())
    return [p for group in groups for p in group["params"]]


def _generators(thing: Any) -> Iterator[Any]:
    if isinstance(thing, DataLoader):
        sampler = thing.batch_sampler
        for owner in (thing, thing.sampler, sampler, getattr(sampler, "sampler", None)):
            generator = getattr(owner, "generator", None)
            if hasattr(generator, "get_state"):
                yield generator


def copies(tool: str, *things: Any) -> tuple[Any, ...]:
    """Copy a model, and an optimiser that then steps the copy; what a scheduler hung on it stays behind."""
    for thing in things:
        if isinstance(thing, nn.Module):
            break
    else:
        raise TypeError(f"{tool}: expected a model, a Module; got {', '.join(type(t).__name__ for t in things)}.")
    try:
        copied = copy.deepcopy(things)
    except Exception as error:
        raise TypeError(
            f"{tool}: the model cannot be copied, and the tool works on a copy: {type(error).__name__}: {error}. "
            "Keep tensors with a graph, locks and open files out of its attributes."
        ) from error
    for thing in copied:
        if hasattr(thing, "param_groups"):
            vars(thing).pop("step", None)  # wrapped by a scheduler, around the original
        if isinstance(thing, nn.Module):
            thing.zero_grad(set_to_none=True)
    return copied


def loss_of(tool: str, model: Any, loss_fn: Any, batch: Any, forward: Forward | None) -> tuple[Any, Any, Any]:
    """Return the loss of a batch, what the model gave, and the targets; the two are None where `forward` does it all."""
    if forward is not None:
        loss, output, target = forward(model, batch), None, None
    elif isinstance(batch, Tensor):
        output, target = model(batch), batch
        loss = loss_fn(output, target)
    elif isinstance(batch, (list, tuple)) and len(batch) > 1:
        *inputs, target = batch
        output = model(*inputs)
        loss = loss_fn(output, target)
    else:
        raise TypeError(
            f"{tool}: expected a batch (inputs, targets); got {type(batch).__name__}. "
            "Give forward=lambda model, batch: loss for a batch of another form."
        )
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        got = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise ValueError(f"{tool}: expected a loss that is one number; got {got}. Reduce it by mean() or sum().")
    return loss, output, target


def passes(tool: str, loader: Any) -> Iterator[Any]:
    """Yield batches of a loader, pass after pass, from a copy that has its own place in it."""
    if iter(loader) is loader:
        raise TypeError(
            f"{tool}: expected a loader that can be gone through again; got an iterator, {type(loader).__name__}, "
            "whose batches would be gone. Give the loader itself, or a list of batches."
        )
    loader = copy.copy(loader) if isinstance(loader, DataLoader) else loader
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise ValueError(f"{tool}: expected a loader with batches; got one without.")


def first_batches(tool: str, data: Any, n: int) -> list[Any]:
    """Return up to `n` batches: of one pass over a loader, or the batch itself."""
    if isinstance(data, (Tensor, dict)) or (isinstance(data, (list, tuple)) and data and _is_batch(data)):
        return [data]
    if not hasattr(data, "__iter__"):
        raise TypeError(f"{tool}: expected a batch or a loader; got {type(data).__name__}.")
    if iter(data) is data:
        raise TypeError(f"{tool}: expected a batch or a loader; got an iterator, whose batches would be gone.")
    return list(itertools.islice(copy.copy(data) if isinstance(data, DataLoader) else data, n))


def _is_batch(data: Any) -> bool:
    return any(isinstance(item, Tensor) for item in data) or not all_tensors(data)


def numbers(tensors: list[Any]) -> list[float]:
    """Return numbers on devices as floats, with one transfer for each device."""
    found: dict[int, float] = {}
    by_device: dict[Any, list[int]] = {}
    for i, t in enumerate(tensors):
        by_device.setdefault(t.device, []).append(i)
    for places in by_device.values():
        joined = mortice.stack([tensors[i].detach().reshape(()).to(mortice.float32) for i in places])
        found.update(zip(places, joined.tolist()))
    return [found[i] for i in range(len(tensors))]


def real(t: Any) -> Any:
    """Return the values of a tensor as real floats."""
    t = t.detach()
    if t.is_complex():
        t = t.abs()
    return t if t.dtype in (mortice.float32, mortice.float64) else t.to(mortice.float32)


def norms(tensors: list[Any]) -> list[float]:
    """Return the Euclidean norm of each tensor."""
    return numbers([real(t).square().sum().sqrt() for t in tensors])


def quiet_dropout(model: Any) -> None:
    """Turn the dropout of a model off and leave its other layers in their mode."""
    for module in model.modules():
        if "Dropout" in type(module).__name__:
            module.eval()
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
