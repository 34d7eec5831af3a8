"""What users of gradients import: backward, grad, modes, Function, checks."""

from __future__ import annotations

from typing import Any

from mortice import graph
from mortice.errors import ShapeError
from mortice.graph import RemovableHandle, enable_grad, inference_mode, no_grad, set_grad_enabled
from mortice.op import TensorBase
from mortice.tensor import make


def _roots(name: str, tensors: Any, grads: Any, create_graph: bool) -> tuple[list[Any], list[Any]]:
    """Pair outputs with their gradients; a missing one is 1 for a one-element tensor."""
    outs = [tensors] if isinstance(tensors, TensorBase) else list(tensors)
    given = [grads] if grads is None or isinstance(grads, TensorBase) else list(grads)
    if len(given) == 1 and given[0] is None:
        given = [None] * len(outs)
    if len(given) != len(outs):
        raise RuntimeError(f"{name}: got {len(outs)} tensors and {len(given)} gradients.")
    roots, seeds = [], []
    for i, (t, g) in enumerate(zip(outs, given)):
        if not t._rg:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        if g is None:
            if t.numel() != 1:
                raise RuntimeError(
                    f"grad can be implicitly created only for scalar outputs; got shape {list(t.shape)}. "
                    "Pass gradient=, or reduce the output first."
                )
            if t.dtype.is_complex:
                raise RuntimeError("grad can be implicitly created only for real scalar outputs but got " + str(t.dtype))
            g = make(t._device.backend.full(t.shape, 1, dtype=t.dtype, device=t._device), t._device, t.dtype, t.shape)
        elif not isinstance(g, TensorBase):
            raise TypeError(f"{name}: gradients can be either Tensors or None; got {type(g).__name__}.")
        elif g.shape != t.shape:
            raise ShapeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {list(g.shape)} and output[{i}] has a shape of "
                f"{list(t.shape)}."
            )
        elif g.dtype.is_complex != t.dtype.is_complex:
            raise RuntimeError(
                f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {t.dtype}."
            )
        roots.append(t)
        seeds.append(g.to(t._device).to(t.dtype) if create_graph else g.detach().to(t._device).to(t.dtype)._data)
    return roots, seeds


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    grad_variables: Any = None, inputs: Any = None,
) -> None:  # fmt: skip
    """Compute the gradients of tensors with respect to the leaves (or `inputs`) and add them to their `.grad`."""
    if inputs is not None:
        inputs = (inputs,) if isinstance(inputs, TensorBase) else tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for t in inputs:
            if not t._rg:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
    roots, seeds = _roots("backward", tensors, grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    with set_grad_enabled(create_graph):
        graph.backward(roots, seeds, retain_graph=keep, create_graph=create_graph, inputs=inputs)


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the gradients of outputs with respect to inputs.

    Raises:
        RuntimeError: when an input was not used in the graph, unless `allow_unused` (None is then returned for it).
    """
    wanted = [inputs] if isinstance(inputs, TensorBase) else list(inputs)
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    for t in wanted:
        if not t._rg:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    roots, seeds = _roots("grad", outputs, grad_outputs, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    with set_grad_enabled(create_graph):
        found = graph.backward(
            roots, seeds, retain_graph=keep, create_graph=create_graph, inputs=wanted, accumulate=False
        )
    assert found is not None
    for i, g in enumerate(found):
        if g is None and materialize_grads:
            found[i] = wanted[i].new_zeros(wanted[i].shape)
        elif g is None and not allow_unused:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
                "if this is the desired behavior."
            )
    return tuple(found)


__all__ = [
    "RemovableHandle", "backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled",
]  # fmt: skip
