"""Whole derivatives of functions: Jacobians, Hessians and their products with vectors, by calls of `grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mortice.autograd.gradients import grad, zeros_for
from mortice.modes import enable_grad, modes
from mortice.node import TENSOR_KERNELS
from mortice.shape import prod
from mortice.tensor import TensorBase

Fn = Callable[..., Any]
k: Any = TENSOR_KERNELS


def _tuple(name: str, what: str, value: Any) -> tuple[bool, tuple[Any, ...]]:
    """Return whether several tensors were given, and them as a tuple."""
    several = isinstance(value, tuple)
    found = value if several else (value,)
    for i, t in enumerate(found):
        if not isinstance(t, TensorBase):
            given = f"value at index {i} of the {what}" if several else what
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the given {given} has "
                f"type {type(t).__name__}."
            )
    return several, found


def _open(inputs: tuple[Any, ...], create_graph: bool, need_graph: bool = True) -> tuple[Any, ...]:
    """Return inputs to differentiate by: in the caller's graph under create_graph, else cut off from it."""
    if not create_graph:
        return tuple([t.detach().requires_grad_(need_graph) for t in inputs])
    with enable_grad():
        return tuple([k.reshape(t, t.shape) if t._rg else k.copy(t).requires_grad_(need_graph) for t in inputs])


def _close(value: Any, create_graph: bool) -> Any:
    """Cut results off from the graph, unless it was asked for."""
    if isinstance(value, TensorBase):
        return value if create_graph else value.detach()
    return tuple([_close(v, create_graph) for v in value])


def _unpack(value: tuple[Any, ...], several: bool) -> Any:
    return value if several else value[0]


def _call(name: str, func: Fn, inputs: tuple[Any, ...]) -> tuple[bool, tuple[Any, ...]]:
    return _tuple(name, "outputs of the user-provided function", func(*inputs))


def _strict_outputs(outs: tuple[Any, ...], strict: bool) -> None:
    for i, o in enumerate(outs):
        if strict and not o._rg:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )


def _grads(
    outs: Sequence[Any], inputs: tuple[Any, ...], vs: Sequence[Any], create_graph: bool, keep: bool = True
) -> tuple[Any, ...]:
    """Call `grad` for the outputs that have a graph; None for inputs that none of them depends on."""
    pairs = [(o, v) for o, v in zip(outs, vs) if o._rg]
    if not pairs:
        return (None,) * len(inputs)
    return grad([o for o, _ in pairs], inputs, [v for _, v in pairs], keep, create_graph, allow_unused=True)


def _filled(found: tuple[Any, ...], inputs: tuple[Any, ...], strict: bool, create_graph: bool, why: str) -> tuple[Any, ...]:
    """Put zeros for inputs without influence; in strict mode they are an error."""
    out = []
    for i, (g, t) in enumerate(zip(found, inputs)):
        if g is None:
            if strict:
                raise RuntimeError(why.format(i=i))
            g = zeros_for(t)
        elif strict and create_graph and not g._rg:
            raise RuntimeError(
                f"The gradient for input {i} is independent of the input. This is not allowed in strict mode when "
                "create_graph=True."
            )
        out.append(g)
    return tuple(out)


INDEPENDENT = "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."


def _check_v(v: Any, others: tuple[Any, ...], several: bool, what: str) -> tuple[Any, ...]:
    """Return v as a tuple, refusing shapes other than those of what it multiplies."""
    _, vs = _tuple("functional", "v", tuple(v) if isinstance(v, list) else v)
    if len(vs) != len(others):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(vs)}.")
    for i, (a, b) in enumerate(zip(vs, others)):
        if a.shape != b.shape:
            entry = f"Entry {i} in v" if several else "v"
            raise RuntimeError(f"{entry} has invalid size: should be {list(b.shape)} but got {list(a.shape)}.")
    return vs


def _ones(name: str, outs: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if len(outs) != 1 or prod(outs[0].shape) != 1:
        raise RuntimeError(
            f"The vector v can only be None if {what} returns a single Tensor with a single element."
            if name != "jvp"
            else "The vector v can only be None if the input to the user-provided function is a single Tensor with a "
            "single element."
        )
    return (k.ones_like(outs[0].detach()),)


def vjp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (outputs, vᵀJ) of a function at `inputs`; v has the shape of the outputs."""
    several, given = _tuple("vjp", "inputs", inputs)
    with enable_grad():
        at = _open(given, create_graph)
        outs_several, outs = _call("vjp", func, at)
        _strict_outputs(outs, strict)
        vs = _ones("vjp", outs, "the user-provided function") if v is None else _check_v(v, outs, outs_several, "outputs")
    keep = create_graph or modes.grad
    found = _filled(_grads(outs, at, vs, create_graph, keep), at, strict, create_graph, INDEPENDENT)
    return _unpack(_close(outs, create_graph), outs_several), _unpack(_close(found, create_graph), several)


def jvp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (outputs, Jv) of a function at `inputs`; v has the shape of the inputs. Backward runs twice."""
    several, given = _tuple("jvp", "inputs", inputs)
    vs = _ones("jvp", given, "") if v is None else _check_v(v, given, several, "inputs")
    with enable_grad():
        at = _open(given, create_graph)
        outs_several, outs = _call("jvp", func, at)
        _strict_outputs(outs, strict)
        found = _forward(outs, at, vs, create_graph, strict)
    return _unpack(_close(outs, create_graph), outs_several), _unpack(_close(found, create_graph), outs_several)


def _forward(
    outs: tuple[Any, ...], at: tuple[Any, ...], vs: tuple[Any, ...], create_graph: bool, strict: bool = False
) -> tuple[Any, ...]:
    """Return Jv: uᵀJ is linear in u, so its derivative along u, times v, is Jv."""
    us = tuple([zeros_for(o).requires_grad_() for o in outs])
    back = _grads(outs, at, us, True)
    back = _filled(back, at, strict, True, INDEPENDENT)
    found = _grads(back, us, vs, create_graph, True)
    why = "The derivative of output {i} is independent of the input. This is not allowed in strict mode."
    return _filled(found, us, strict, create_graph, why)


def jacobian(
    func: Fn,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian: for each output and input a tensor of shape (*output.shape, *input.shape).

    Args:
        vectorize: accepted; the rows are computed one by one.
        strategy: "reverse-mode" runs backward per element of the outputs, "forward-mode" per element of the inputs.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f'Expected strategy to be either "forward-mode" or "reverse-mode", got "{strategy}".')
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and `strategy='forward-mode'` are not supported "
            "together (yet). Please either set `create_graph=False` or `strategy='reverse-mode'`."
        )
    several, given = _tuple("jacobian", "inputs", inputs)
    with enable_grad():
        at = _open(given, create_graph)
        outs_several, outs = _call("jacobian", func, at)
        _strict_outputs(outs, strict)
        by_column = strategy == "forward-mode" and vectorize
        blocks = _columns(outs, at) if by_column else [_rows(o, at, create_graph, strict) for o in outs]
    blocks = _close(tuple([tuple(row) for row in blocks]), create_graph)
    rows = tuple([_unpack(row, several) for row in blocks])
    return _unpack(rows, outs_several)


def basis(t: Any, i: int) -> Any:
    """Return zeros shaped like t with a 1 at flat position i."""
    flat = k.equal(k.new_arange(t, 0, max(prod(t.shape), 1)), i)
    return k.reshape(k.astype(flat, t.dtype), t.shape)


def _rows(o: Any, at: tuple[Any, ...], create_graph: bool, strict: bool) -> list[Any]:
    """Return the Jacobian of one output, a gradient per element."""
    n = prod(o.shape)
    rows: list[list[Any]] = [[] for _ in at]
    for i in range(n):
        found = _grads((o,), at, (basis(o, i),), create_graph)
        for column, g in zip(rows, _filled(found, at, strict, create_graph, INDEPENDENT)):
            column.append(g)
    return [
        k.reshape(k.stack(column, 0), (*o.shape, *t.shape)) if n else zeros_like_block(o, t)
        for column, t in zip(rows, at)
    ]


def zeros_like_block(o: Any, t: Any) -> Any:
    """Return the Jacobian of an output without elements."""
    return k.new_full(t.detach(), (*o.shape, *t.shape), 0, dtype=o.dtype)


def _columns(outs: tuple[Any, ...], at: tuple[Any, ...]) -> list[list[Any]]:
    """Return all blocks, a Jacobian-vector product per element of the inputs."""
    blocks: list[list[Any]] = [[] for _ in outs]
    for j, t in enumerate(at):
        columns: list[list[Any]] = [[] for _ in outs]
        for i in range(prod(t.shape)):
            vs = tuple([basis(x, i) if n == j else zeros_for(x) for n, x in enumerate(at)])
            for column, part in zip(columns, _forward(outs, at, vs, False)):
                column.append(part)
        for block, column, o in zip(blocks, columns, outs):
            whole = k.stack(column, len(o.shape)) if column else zeros_like_block(o, t)
            block.append(k.reshape(whole, (*o.shape, *t.shape)))
    return blocks


def _scalar(name: str, func: Fn) -> Fn:
    """Wrap the function given to `name`, which must return one number."""

    def checked(*inputs: Any) -> Any:
        out = func(*inputs)
        several, outs = _tuple(name, "outputs of the user-provided function", out)
        if several or len(outs) != 1:
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if prod(outs[0].shape) != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
        return k.reshape(outs[0], ())

    return checked


def hessian(
    func: Fn,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of a function of one number: for each pair of inputs a tensor."""
    several, given = _tuple("hessian", "inputs", inputs)
    checked = _scalar("hessian", func)

    def first(*at: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            at = tuple([t if t._rg else t.requires_grad_() for t in at])
        found = jacobian(checked, at, create_graph=True, strict=strict)
        return found if several else found[0]

    return jacobian(
        first, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy
    )


def _first_gradient(
    name: str, func: Fn, given: tuple[Any, ...], v: Any, several: bool, create_graph: bool, strict: bool
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Return (output, inputs, gradient with its graph, v) for the two Hessian products."""
    if v is None:
        if len(given) != 1 or prod(given[0].shape) != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor with a "
                "single element."
            )
        vs: tuple[Any, ...] = (k.ones_like(given[0].detach()),)
    else:
        vs = _check_v(v, given, several, "inputs")
    at = _open(given, create_graph)
    _, outs = _tuple(name, "outputs of the user-provided function", func(*at))
    _strict_outputs(outs, strict)
    if len(outs) != 1:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if prod(outs[0].shape) != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    first = _grads(outs, at, (k.ones_like(outs[0].detach()),), True)
    return outs[0], at, _filled(first, at, strict, True, INDEPENDENT), vs


def vhp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (output, vᵀH) of a function of one number at `inputs`."""
    several, given = _tuple("vhp", "inputs", inputs)
    with enable_grad():
        out, at, first, vs = _first_gradient("vhp", func, given, v, several, create_graph, strict)
        found = _filled(_grads(first, at, vs, create_graph), at, strict, create_graph, INDEPENDENT)
    return _close(out, create_graph), _unpack(_close(found, create_graph), several)


def hvp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (output, Hv) of a function of one number at `inputs`. `vhp` is the same for smooth functions, and faster."""
    several, given = _tuple("hvp", "inputs", inputs)
    with enable_grad():
        out, at, first, vs = _first_gradient("hvp", func, given, v, several, create_graph, strict)
        found = _forward(first, at, vs, create_graph, strict)
    return _close(out, create_graph), _unpack(_close(found, create_graph), several)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
