"""Reverse mode as functions of functions: grad, grad_and_value, vjp, jacrev, hessian."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.autograd import functional
from mortice.autograd.functional import outputs, pair
from mortice.autograd.gradients import zeros_for
from mortice.autograd.trees import form, leaves, rebuild
from mortice.func.forward import jacfwd
from mortice.func.levels import Fn, drop, dropped, like_argnums, opened, others, places, real, wraps
from mortice.modes import enable_grad, modes
from mortice.tensor import TensorBase

VJP = "vjp(f, *primals)"


def _pull(outs: Sequence[Any], own: Sequence[Any], vs: Sequence[Any], keep: bool) -> list[Any]:
    """Return vᵀJ, zeros where nothing depends on an input."""
    found = functional.grads(outs, own, vs, keep)
    return [zeros_for(t) if g is None else g for g, t in zip(found, own)]


def grad_and_value(func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Fn:
    """Return a function that computes (gradient, value) of `func`, or (gradient, (value, aux)) with `has_aux`."""

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        at = places(argnums, args)
        recorded = modes.grad
        with enable_grad():
            given, own = opened(args, at)
            value = func(*given, **kwargs)
            aux = None
            if has_aux:
                value, aux = pair("grad_and_value(f)(*args)", value)
            if not isinstance(value, TensorBase):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
            if value.shape:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{len(value.shape)} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            keep = recorded and others([value], own)
            found = _pull([value], own, [None], keep)
        gradient = like_argnums(args, at, argnums, iter(found))
        value = drop(value, keep)
        return gradient, ((value, dropped(aux, keep)) if has_aux else value)

    return wrapper


def value_and_grad(func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Fn:
    """Return a function that computes (value, gradient) of `func`: JAX's order of `grad_and_value`."""
    inner = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = inner(*args, **kwargs)
        return value, gradient

    return wrapper


def grad(func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Fn:
    """Return a function that computes the gradient of `func`, which returns one number.

    Differs from torch: inside this and the other transforms tensors from outside may be written, such as a BatchNorm's statistics.
    """
    inner = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = inner(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Fn, *primals: Any, has_aux: bool = False) -> Any:
    """Return (output, vjp function[, aux]); the function maps a cotangent to a tuple, a gradient per primal."""
    recorded = modes.grad
    with enable_grad():
        given, own = opened(primals, range(len(primals)))
        out = func(*given)
        aux = None
        if has_aux:
            out, aux = pair(VJP, out)
        outs = outputs(VJP, out)
        _moving(outs)
        outside = others(outs, own)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        vs = list(leaves(tree))
        if form(tree) != form(out):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function."
            )
        keep = modes.grad and (outside or any(v._rg for v in vs))
        with enable_grad():
            found = iter(_pull(outs, own, vs, keep))
        return tuple([rebuild(p, found) for p in primals])

    keep = recorded and outside
    result = dropped(out, keep)
    return (result, pull, dropped(aux, keep)) if has_aux else (result, pull)


def _moving(outs: Sequence[Any]) -> None:
    for o in outs:
        if o.dtype.kind not in "fc":
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {o.dtype}"
            )


def _puller(o: Any, own: Sequence[Any], keep: bool) -> Fn:
    return lambda v: _pull([o], own, [v], keep)


def jacrev(
    func: Fn,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Fn:
    """Return a function that computes the Jacobian of `func`: one backward for all elements of an output.

    Args:
        chunk_size: how many elements to take at a time, to save memory; 1 runs a plain backward for each.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        at = places(argnums, args)
        recorded = modes.grad
        with enable_grad():
            given, own = opened(args, at)
            real("jacrev", own, "inputs")
            out = func(*given, **kwargs)
            aux = None
            if has_aux:
                out, aux = pair(VJP, out)
            outs = outputs(VJP, out)
            _moving(outs)
            real("jacrev", outs, "outputs")
            keep = recorded and others(outs, own)
            blocks = []
            for o in outs:
                found = functional.rows(o, own, _puller(o, own, keep), chunk_size)
                blocks.append(like_argnums(args, at, argnums, iter(found)))
        result = rebuild(out, iter(blocks))
        return (result, dropped(aux, keep)) if has_aux else result

    return wrapper


def hessian(func: Fn, argnums: int | tuple[int, ...] = 0) -> Fn:
    """Return a function that computes the Hessian of `func`: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)
