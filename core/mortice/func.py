"""Functions of functions: grad, vjp, jvp, jacrev, jacfwd, hessian, vmap, linearize, functional_call.

They wrap inputs in tensors of their own, so calls nest. `argnums` may point at nests of tuples, lists and dicts.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mortice.autograd import functional
from mortice.autograd.gradients import grad as _grad
from mortice.autograd.gradients import zeros_for
from mortice.graph import Node
from mortice.modes import enable_grad
from mortice.node import TENSOR_KERNELS
from mortice.shape import prod
from mortice.tensor import TensorBase

Fn = Callable[..., Any]
k: Any = TENSOR_KERNELS

# ---- nests of tuples, lists and dicts ----


def _leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a nest, in order."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from _leaves(value)
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from _leaves(value)
    else:
        yield tree


def _rebuild(tree: Any, leaves: Iterator[Any]) -> Any:
    """Return a nest of the same form with other leaves."""
    if isinstance(tree, dict):
        return type(tree)((key, _rebuild(value, leaves)) for key, value in tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_rebuild(value, leaves) for value in tree])
    if isinstance(tree, (tuple, list)):
        return type(tree)([_rebuild(value, leaves) for value in tree])
    return next(leaves)


def _map(fn: Fn, tree: Any) -> Any:
    return _rebuild(tree, iter([fn(leaf) for leaf in _leaves(tree)]))


def _tensors(name: str, tree: Any, what: str) -> list[Any]:
    """Return the leaves of a nest, all of which must be tensors."""
    found = list(_leaves(tree))
    for leaf in found:
        if not isinstance(leaf, TensorBase):
            raise ValueError(f"{name}: Expected all {what} to be Tensors; got {type(leaf).__name__}.")
    return found


def _float(name: str, ts: Sequence[Any]) -> None:
    for t in ts:
        if t.dtype.kind not in "fc":
            raise RuntimeError(f"{name}: expected inputs of a floating point or complex dtype; got {t.dtype}.")


# ---- levels: inputs of our own, and what else a result depends on ----


def _open(t: Any) -> Any:
    """Return a tensor to differentiate by: inside the graph of `t` if it has one."""
    return k.reshape(t, t.shape) if t._rg else t.detach().requires_grad_()


def _others(outs: Sequence[Any], own: Sequence[Any]) -> bool:
    """Tell whether outputs depend on anything that requires grad beside our own inputs."""
    mine = {id(t) if t._node is None else id(t._node) for t in own}
    if any(t._node is not None for t in own):
        return True
    stack: list[Any] = [o if o._node is None else o._node for o in outs if o._rg]
    seen: set[int] = set()
    while stack:
        at = stack.pop()
        if at is None or id(at) in seen or id(at) in mine:
            continue
        seen.add(id(at))
        if not isinstance(at, Node):
            return True
        stack.extend(at.edges)
    return False


def _argnums(name: str, argnums: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool) or argnums == ():
        raise RuntimeError(f"{name}: argnums must be an int or a non-empty Tuple[int]; got {argnums!r}.")
    wanted = argnums if isinstance(argnums, tuple) else (argnums,)
    for n in wanted:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"{name}: Got argnum={n}, but only {len(args)} positional inputs")
    found = tuple([n % len(args) for n in wanted])
    if len(set(found)) != len(found):
        raise RuntimeError(f"{name}: argnums elements must be unique; got {argnums!r}.")
    return found


def _opened(name: str, args: tuple[Any, ...], places: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """Return the arguments with those at `places` opened, and the opened tensors."""
    given, own = list(args), []
    for n in places:
        ts = _tensors(name, args[n], "differentiated inputs")
        _float(name, ts)
        opened = [_open(t) for t in ts]
        own += opened
        given[n] = _rebuild(args[n], iter(opened))
    return given, own


def _like_argnums(args: tuple[Any, ...], places: tuple[int, ...], argnums: Any, flat: Iterator[Any]) -> Any:
    found = tuple([_rebuild(args[n], flat) for n in places])
    return found if isinstance(argnums, tuple) else found[0]


def _drop(x: Any, keep: bool) -> Any:
    return x.detach() if isinstance(x, TensorBase) and x._rg and not keep else x


def _pull(outs: Sequence[Any], own: Sequence[Any], vs: Sequence[Any], keep: bool) -> list[Any]:
    """Return vᵀJ, zeros where nothing depends on an input."""
    live = [(o, v) for o, v in zip(outs, vs) if o._rg]
    if not live:
        return [zeros_for(t) for t in own]
    found = _grad(
        [o for o, _ in live], own, [v for _, v in live], retain_graph=True, create_graph=keep, allow_unused=True
    )
    return [zeros_for(t) if g is None else g for g, t in zip(found, own)]


# ---- gradients ----


def grad_and_value(func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Fn:
    """Return a function that computes (gradient, value) of `func`, or (gradient, (value, aux)) with `has_aux`."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = _argnums("grad_and_value", argnums, args)
        with enable_grad():
            given, own = _opened("grad_and_value", args, places)
            value = func(*given, **kwargs)
            aux = None
            if has_aux:
                value, aux = _pair("grad_and_value", value)
            if not isinstance(value, TensorBase):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a single tensor, got "
                    f"{type(value).__name__}"
                )
            if value.shape:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{len(value.shape)} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            keep = _others([value], own)
            found = _pull([value], own, [k.ones_like(value.detach())], keep)
        gradient = _like_argnums(args, places, argnums, iter(found))
        keep_value = keep and value._rg
        value = _drop(value, keep_value)
        return gradient, ((value, _map(lambda x: _drop(x, keep), aux)) if has_aux else value)

    return wrapper


def value_and_grad(func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Fn:
    """Return a function that computes (value, gradient) of `func`: JAX's order of `grad_and_value`."""
    inner = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = inner(*args, **kwargs)
        return value, gradient

    return wrapper


def grad(func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Fn:
    """Return a function that computes the gradient of `func`, which returns one number."""
    inner = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = inner(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    if not (isinstance(value, tuple) and len(value) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True; got "
            f"{type(value).__name__}."
        )
    return value


def vjp(func: Fn, *primals: Any, has_aux: bool = False) -> Any:
    """Return (output, vjp function[, aux]); the function maps a cotangent to one gradient per primal."""
    with enable_grad():
        given, own = _opened("vjp", primals, tuple(range(len(primals))))
        out = func(*given)
        aux = None
        if has_aux:
            out, aux = _pair("vjp", out)
        outs = _tensors("vjp", out, "outputs")
        keep = _others(outs, own)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        vs = list(_leaves(tree))
        if len(vs) != len(outs) or any(v.shape != o.shape for v, o in zip(vs, outs)):
            raise RuntimeError(
                "vjp: Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function; got shapes {[list(v.shape) for v in vs]} for {[list(o.shape) for o in outs]}."
            )
        with enable_grad():
            found = iter(_pull(outs, own, vs, keep or any(v._rg for v in vs)))
        result = tuple([_rebuild(p, found) for p in primals])
        return result[0] if len(primals) == 1 else result

    result = _map(lambda x: _drop(x, keep), out)
    return (result, pull, _map(lambda x: _drop(x, keep), aux)) if has_aux else (result, pull)


def jvp(func: Fn, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return (output, Jt[, aux]) at `primals`, pushed along `tangents`. Backward runs twice."""
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError("jvp: Expected primals to be a non-empty tuple.")
    ts = _tensors("jvp", tangents, "tangents")
    with enable_grad():
        given, own = _opened("jvp", primals, tuple(range(len(primals))))
        if len(ts) != len(own) or any(t.shape != x.shape for t, x in zip(ts, own)):
            raise RuntimeError(
                "jvp: Expected primals and tangents to have the same python structure; got shapes "
                f"{[list(x.shape) for x in own]} and {[list(t.shape) for t in ts]}."
            )
        out = func(*given)
        aux = None
        if has_aux:
            out, aux = _pair("jvp", out)
        outs = _tensors("jvp", out, "outputs")
        keep = _others(outs, own) or any(t._rg for t in ts)
        pushed = functional._forward(tuple(outs), tuple(own), tuple(ts), keep)
    result = _map(lambda x: _drop(x, keep), out), _rebuild(out, iter([_drop(p, keep) for p in pushed]))
    return (*result, _map(lambda x: _drop(x, keep), aux)) if has_aux else result


def linearize(func: Fn, *primals: Any) -> tuple[Any, Fn]:
    """Return the output at `primals` and the linear function that maps tangents to the output's."""
    with enable_grad():
        given, own = _opened("linearize", primals, tuple(range(len(primals))))
        out = func(*given)
        outs = _tensors("linearize", out, "outputs")
        keep = _others(outs, own)

    def push(*tangents: Any) -> Any:
        ts = tuple(_leaves(tangents))
        with enable_grad():
            pushed = functional._forward(tuple(outs), tuple(own), ts, keep)
        return _rebuild(out, iter([_drop(p, keep) for p in pushed]))

    return _map(lambda x: _drop(x, keep), out), push


# ---- Jacobians ----


def jacrev(
    func: Fn,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Fn:
    """Return a function that computes the Jacobian of `func`, one backward per element of the output."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = _argnums("jacrev", argnums, args)
        with enable_grad():
            given, own = _opened("jacrev", args, places)
            out = func(*given, **kwargs)
            aux = None
            if has_aux:
                out, aux = _pair("jacrev", out)
            outs = _tensors("jacrev", out, "outputs")
            keep = _others(outs, own)
            blocks = []
            for o in outs:
                rows = [_pull([o], own, [functional.basis(o, i)], keep) for i in range(prod(o.shape))]
                flat = [
                    k.reshape(k.stack([r[j] for r in rows], 0), (*o.shape, *t.shape))
                    if rows else functional.zeros_like_block(o, t)
                    for j, t in enumerate(own)
                ]  # fmt: skip
                blocks.append(_like_argnums(args, places, argnums, iter(flat)))
        result = _rebuild(out, iter(blocks))
        return (result, _map(lambda x: _drop(x, keep), aux)) if has_aux else result

    return wrapper


def jacfwd(
    func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Fn:
    """Return a function that computes the Jacobian of `func`, one Jacobian-vector product per element of the input."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = _argnums("jacfwd", argnums, args)
        with enable_grad():
            given, own = _opened("jacfwd", args, places)
            out = func(*given, **kwargs)
            aux = None
            if has_aux:
                out, aux = _pair("jacfwd", out)
            outs = _tensors("jacfwd", out, "outputs")
            keep = _others(outs, own)
            flat: list[list[Any]] = [[] for _ in outs]
            for j, t in enumerate(own):
                columns = []
                for i in range(prod(t.shape)):
                    vs = tuple([functional.basis(x, i) if n == j else zeros_for(x) for n, x in enumerate(own)])
                    columns.append(functional._forward(tuple(outs), tuple(own), vs, keep))
                for n, o in enumerate(outs):
                    whole = k.stack([c[n] for c in columns], len(o.shape)) if columns else None
                    shape = (*o.shape, *t.shape)
                    flat[n].append(functional.zeros_like_block(o, t) if whole is None else k.reshape(whole, shape))
            blocks = [_like_argnums(args, places, argnums, iter(row)) for row in flat]
        result = _rebuild(out, iter([_map(lambda x: _drop(x, keep), b) for b in blocks]))
        return (result, _map(lambda x: _drop(x, keep), aux)) if has_aux else result

    return wrapper


def hessian(func: Fn, argnums: int | tuple[int, ...] = 0) -> Fn:
    """Return a function that computes the Hessian of `func`, which returns one number."""
    return jacrev(jacrev(func, argnums), argnums)


# ---- vmap ----

_warned = [False]


def vmap(
    func: Fn,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Fn:
    """Return a function that maps `func` over a dim of its inputs and stacks the results.

    Differs from torch: it is a loop over the batch (said once by a warning), so it saves writing, not time, and random
    functions draw anew for each element whatever `randomness` says.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness!r}"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _warned[0]:
            _warned[0] = True
            warnings.warn("vmap: runs as a loop, one call for each element of the batch.", stacklevel=2)
        leaves = list(_leaves(args))
        dims = list(_spread(in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args), args))
        sizes = set()
        for leaf, dim in zip(leaves, dims):
            if dim is None:
                continue
            if not isinstance(leaf, TensorBase):
                raise ValueError(
                    f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the input "
                    f"is of type {type(leaf).__name__}. We cannot vmap over non-Tensor arguments, please use None as the "
                    "respective in_dim"
                )
            if not -len(leaf.shape) <= dim < len(leaf.shape):
                raise ValueError(
                    f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that "
                    f"input is a Tensor of dimensionality {len(leaf.shape)} so expected in_dim to satisfy "
                    f"-{len(leaf.shape)} <= in_dim < {len(leaf.shape)}."
                )
            sizes.add(leaf.shape[dim])
        if not sizes:
            raise ValueError(
                f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): at least one input has to be mapped over; all "
                "in_dims are None."
            )
        if len(sizes) > 1:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)} "
                "for the mapped dimension"
            )
        (n,) = sizes
        if n == 0:
            raise RuntimeError("vmap: the mapped dimension has size 0, so there is nothing to call the function with.")
        results = []
        for i in range(n):
            row = [
                leaf if dim is None else k.getitem(leaf, (*(slice(None),) * (dim % len(leaf.shape)), i))
                for leaf, dim in zip(leaves, dims)
            ]
            results.append(func(*_rebuild(args, iter(row)), **kwargs))
        return _stacked(func, results, out_dims)

    return wrapper


def _name(func: Fn) -> str:
    return getattr(func, "__name__", type(func).__name__)


def _spread(dims: Any, tree: Any) -> Iterator[Any]:
    """Yield a dim for every leaf; one that stands for a nest counts for all its leaves."""
    if dims is None or isinstance(dims, int):
        for _ in _leaves(tree):
            yield dims
        return
    parts, values = (
        ([dims[key] for key in tree], list(tree.values())) if isinstance(tree, dict) else (list(dims), list(tree))
    )
    if len(parts) != len(values):
        raise ValueError(
            f"vmap: in_dims is not compatible with the structure of inputs; got {len(parts)} dims for {len(values)}."
        )
    for part, value in zip(parts, values):
        yield from _spread(part, value)


def _stacked(func: Fn, results: list[Any], out_dims: Any) -> Any:
    columns = list(zip(*[list(_leaves(r)) for r in results]))
    dims = list(_spread(out_dims, results[0])) if not isinstance(out_dims, int) else [out_dims] * len(columns)
    out = []
    for column, dim in zip(columns, dims):
        for leaf in column:
            if not isinstance(leaf, TensorBase):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
                    f"{type(leaf).__name__}."
                )
        out.append(column[0] if dim is None else k.stack(list(column), dim % (len(column[0].shape) + 1)))
    return _rebuild(results[0], iter(out))


# ---- modules as functions ----


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, given by name, in place of its own."""
    given: dict[str, Any] = {}
    for part in parameters_and_buffers if isinstance(parameters_and_buffers, (tuple, list)) else [parameters_and_buffers]:
        given.update(part)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    own = dict(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    unknown = sorted(set(given) - set(own))
    missing = sorted(set(own) - set(given))
    if strict and (unknown or missing):
        raise RuntimeError(
            f"functional_call: expected exactly the names of the module; missing {missing}, unexpected {unknown}."
        )
    if unknown:
        raise KeyError(f"functional_call: the module has no parameter or buffer {unknown[0]!r}.")
    if tie_weights:
        by_id = {id(own[name]): value for name, value in given.items()}
        given = {name: by_id[id(t)] for name, t in own.items() if id(t) in by_id} | given
    swapped: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in given.items():
            path, _, last = name.rpartition(".")
            holder = module.get_submodule(path)
            table = holder._parameters if last in holder._parameters else holder._buffers
            swapped.append((table, last, table[last]))
            table[last] = value
        return module(*args, **(kwargs or {}))
    finally:
        for table, last, value in reversed(swapped):
            table[last] = value


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and buffers of several models of one kind, stacked along a new first dim."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters, buffers = {}, {}
    for name, p in models[0].named_parameters():
        stacked = k.stack([dict(m.named_parameters())[name].detach() for m in models], 0)
        parameters[name] = stacked.requires_grad_(p._rg)
    for name, _ in models[0].named_buffers():
        buffers[name] = k.stack([dict(m.named_buffers())[name].detach() for m in models], 0)
    return parameters, buffers


__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
