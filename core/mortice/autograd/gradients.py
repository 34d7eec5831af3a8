"""`backward` and `grad`: from tensors and their gradients to a walk of the engine, with the checks users meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mortice import call as _call
from mortice.autograd.graph import GradientEdge
from mortice.backward import backward as walk
from mortice.errors import ShapeError
from mortice.graph import AccumulateGrad, Node
from mortice.layout import contiguous_format
from mortice.lazy import load
from mortice.levels import CrossNode, chain, raise_to
from mortice.levels.vmap import MapLevel
from mortice.modes import set_grad_enabled
from mortice.notice import warn
from mortice.ops.fused import _each_
from mortice.ops.movement import contiguous, format_of, is_contiguous
from mortice.shape import prod
from mortice.strides import layout
from mortice.tensor import TensorBase, make


def as_tuple(x: Any) -> tuple[Any, ...]:
    """Return a tensor, or several, as a tuple; a tensor without a value stands for an edge of the graph."""
    if isinstance(x, TensorBase):
        return (x,)
    if not isinstance(x, GradientEdge) and not hasattr(x, "__iter__"):
        raise TypeError(f"autograd: expected a Tensor or a sequence of them; got {type(x).__name__}.")
    return tuple([_at(t) if isinstance(t, GradientEdge) else t for t in ((x,) if isinstance(x, GradientEdge) else x)])


def _wanted(name: str, inputs: Any) -> tuple[Any, ...]:
    if type(inputs) is dict:
        return as_tuple(inputs.values())
    if not isinstance(inputs, (TensorBase, tuple, list)) and isinstance(inputs, Mapping):
        raise TypeError(f"`inputs` argument to `{name}()` must be a dict, not {type(inputs).__name__}, or a sequence of tensors.")
    return as_tuple(inputs)


def _at(edge: GradientEdge) -> Any:
    if isinstance(edge.node, AccumulateGrad):
        return edge.node.variable
    place = edge.node.place(edge.output_nr)
    t = make(None, place.device, place.dtype, place.shape)
    t._rg, t._node = True, place
    return t


def _seed(name: str, i: int, t: Any, g: Any, create_graph: bool) -> Any:
    """Return the gradient to start from at output `i`, as a Tensor."""
    if not t._rg:
        raise RuntimeError(
            f"element {i} of tensors does not require grad and does not have a grad_fn; it was computed under no_grad, from "
            "detached tensors, or from none that requires grad."
        )
    device, d = t._device, t.dtype
    if g is None:
        if prod(t.shape) != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs; got shape {list(t.shape)}. "
                "Pass gradient=, or reduce the output first."
            )
        if d.is_complex:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {d}")
        data = device.backend.full(t.shape, 1, dtype=d, device=device)
        return make(data, device, d, t.shape)
    if not isinstance(g, TensorBase):
        raise TypeError(f"{name}: gradients can be either Tensors or None, but got {type(g).__name__}.")
    if g.shape != t.shape:
        raise ShapeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {t.shape}."
        )
    if g.dtype.is_complex != d.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
            f"dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {d}."
        )
    if g._device.base is not device.base:
        raise RuntimeError(
            f"{name}: grad_output[{i}] must be where output[{i}] is; got {g.device} and {t.device}. Move it with .to(...)."
        )
    if g.dtype is not d:
        with set_grad_enabled(bool(create_graph)):
            g = _call.CAST(g, d)
    if g._device is not device and len(chain(g._device)) < len(chain(device)):
        return raise_to(g, device)
    return g


def _enters(node: Any, level: Any) -> bool:
    """Tell whether a graph leads to a tensor below a level."""
    left: list[Any] = [node]
    seen: set[Any] = set()
    while left:
        node = left.pop()
        if node not in seen and isinstance(node, Node):
            seen.add(node)
            if isinstance(node, CrossNode) and node.device.level is level:
                return True
            left += node.edges
    return False


def _value(t: Any, g: Any, inputs: Any) -> tuple[Any, Any]:
    """Return what is differentiated of an output, and its gradient: in forward mode the value, if the inputs lie below."""
    level = t._device.level
    while hasattr(level, "primal") and t._buffer is not None and t._rg:
        if not _enters(t._node, level) if inputs is None else any([level in chain(i._device) for i in inputs]):
            break
        t, g = level.primal(t), level.primal(g) if isinstance(g, TensorBase) else g
        level = t._device.level
    return t, g


def _start(
    name: str, tensors: Any, grads: Any, create_graph: bool, inputs: Any = None
) -> tuple[tuple[Any, ...], list[Any], bool]:
    """Return outputs, their gradients (a missing one is 1 for a one-element tensor), and whether these stay Tensors.

    They do where a graph is made, and where one is of a level that its output knows nothing of.
    """
    outs = as_tuple(tensors)
    given: Sequence[Any] = (None,) * len(outs) if grads is None else as_tuple(grads)
    if len(given) != len(outs):
        raise RuntimeError(f"{name}: got {len(outs)} tensors and {len(given)} gradients.")
    for t in outs:
        if t._device.level is not None:
            with set_grad_enabled(True):
                outs, given = zip(*[_value(t, g, inputs) for t, g in zip(outs, given)])
            break
    seeds, above = [], False
    for i, t in enumerate(outs):
        g = _seed(name, i, t, given[i], create_graph)
        above = above or g._device is not t._device
        seeds.append(g)
    return outs, seeds if create_graph or above else [g._buffer for g in seeds], above


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of tensors with respect to the leaves (or `inputs`) and add them to their `.grad`."""
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _wanted("backward", inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for t in inputs:
            if not t._rg:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
    if create_graph:
        warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient: "
            "the .grad that it keeps holds the graph that ends at it. Use autograd.grad, or set .grad to None after use."
        )
    outs, seeds, above = _start("backward", tensors, grad_tensors, create_graph, inputs)
    keep = create_graph if retain_graph is None else retain_graph
    walk(outs, seeds, retain_graph=keep, create_graph=create_graph, inputs=inputs, tensors=above)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of outputs with respect to inputs: a tuple, or of a dict of inputs a dict.

    Raises:
        RuntimeError: when an input was not used in the graph, unless `allow_unused` (None is then returned for it).
    """
    wanted = _wanted("grad", inputs)
    if type(inputs) is dict:
        options = retain_graph, create_graph, only_inputs, allow_unused, is_grads_batched, materialize_grads
        return dict(zip(inputs, grad(outputs, wanted, grad_outputs, *options)))
    if materialize_grads:
        if allow_unused is False:
            raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
        allow_unused = True
    for t in wanted:
        if not t._rg:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(as_tuple(outputs), wanted, grad_outputs, keep, create_graph, allow_unused, materialize_grads)
    outs, seeds, above = _start("grad", outputs, grad_outputs, create_graph, wanted)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    found = walk(
        outs, seeds, retain_graph=keep, create_graph=create_graph, inputs=wanted, accumulate=False, tensors=above
    )
    assert found is not None
    for i, g in enumerate(found):
        if g is not None:
            found[i] = laid_out(g, wanted[i])
        elif materialize_grads:
            if wanted[i]._buffer is None:
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge.")
            found[i] = zeros_for(wanted[i]).requires_grad_(create_graph)
        elif not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
    return tuple(found)


def laid_out(g: Any, like: Any = None) -> Any:
    """Return a gradient for user code to `view` and to write into: row by row, if neither in a memory format nor as its tensor."""
    as_it_is = g._device.is_outline or is_contiguous(g) or format_of(g) is not contiguous_format
    if as_it_is or (isinstance(like, TensorBase) and like._buffer is not None and layout(g) == layout(like)):  # no edge
        return g
    with set_grad_enabled(g._rg):  # what create_graph has made stays in its graph, though the caller records nothing
        return contiguous(g)


# Filled in by `subclasses`: zeros like a tensor of a class that says itself what its elements are.
OUTLINE_ZEROS: Any = None


def zeros_for(t: Any) -> Any:
    """Make the zero gradient of a tensor."""
    if t._device.is_outline:
        return OUTLINE_ZEROS(t)
    return make(t._device.backend.full(t.shape, 0, dtype=t.dtype, device=t._device), t._device, t.dtype, t.shape)


def _batched(
    outs: tuple[Any, ...], wanted: tuple[Any, ...], grads: Any, keep: bool, create_graph: bool, unused: Any, zeros: bool
) -> tuple[Any, ...]:
    """Run `grad` once for all slices along the first dim of the gradients."""
    given = (None,) * len(outs) if grads is None else as_tuple(grads)
    for i, (t, g) in enumerate(zip(outs, given)):
        if g is not None and g.shape[1:] != t.shape:
            raise ShapeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {t.shape}."
            )
    n = next((len(g) for g in given if g is not None), 0)
    if n and any([t is not None and t._device.is_outline for t in (*outs, *wanted, *given)]):
        one_by_one = load("mortice.subclasses.lanes", "by_gradient")
        return one_by_one(outs, wanted, given, n, keep, create_graph, unused, zeros)  # type: ignore[no-any-return]
    with MapLevel(n, "error") as level:
        each = [None if g is None else level.enter(g) for g in given]
        found = grad(outs, wanted, each, keep, create_graph, allow_unused=unused, materialize_grads=zeros)
        return tuple([None if g is None else level.leave(g) for g in found])


def clear_grads(parameters: Iterable[Any], set_to_none: bool) -> None:
    """Drop gradients, or make them zeros that are outside the graph."""
    zeros = []
    for p in parameters:
        g = p.grad
        if g is None:
            continue
        if set_to_none:
            p.grad = None
            continue
        if g.grad_fn is not None:
            g.detach_()
        elif g.requires_grad:
            g.requires_grad_(False)
        zeros.append(g)
    if zeros and not _each_("zero_", [zeros], (), (TensorBase.cls,)):
        for g in zeros:
            g.zero_()
