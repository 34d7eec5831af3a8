"""What the transforms share: inputs of their own, what a result depends on, and a look inside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any

from mortice.autograd.trees import leaves, rebuild, tree_map
from mortice.graph import Node, next_seq
from mortice.lazy import load
from mortice.levels import here
from mortice.levels.mapped import Mapped
from mortice.node import TENSOR_KERNELS
from mortice.tensor import TensorBase

Fn = Callable[..., Any]
k: Any = TENSOR_KERNELS


def open_input(t: Any) -> Any:
    """Return a tensor to differentiate by, at the level of the running transform; inside t's graph if it has one."""
    t = here(t)
    if t._rg:
        return t.view_as(t)
    made = t._share().requires_grad_()
    made.__dict__["_opened"] = next_seq()
    return made


def others(outs: Sequence[Any], own: Sequence[Any]) -> bool:
    """Tell whether outputs depend on anything that requires grad beside what we and transforms inside have opened."""
    if any(t._node is not None for t in own):
        return True
    since = min([t.__dict__["_opened"] for t in own], default=inf)
    stack: list[Any] = [o if o._node is None else o._node for o in outs if o._rg]
    seen: set[int] = set()
    while stack:
        at = stack.pop()
        if at is None or id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Node):
            stack.extend(at.edges)
        elif at.__dict__.get("_opened", 0) < since:
            return True
    return False


def places(argnums: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return which arguments `argnums` means."""
    if argnums == ():
        raise RuntimeError("argnums must be non-empty")
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    wanted = argnums if isinstance(argnums, tuple) else (argnums,)
    for n in wanted:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    found = tuple([n % len(args) for n in wanted])
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def real(name: str, ts: Sequence[Any], what: str) -> None:
    """Refuse complex tensors, of which a Jacobian would lose a half."""
    for i, t in enumerate(ts):
        if t.dtype.is_complex:
            raise RuntimeError(f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}")


def opened(args: tuple[Any, ...], at: Iterable[int]) -> tuple[list[Any], list[Any]]:
    """Return the arguments with those at certain places opened, and the opened tensors."""
    given, own = list(args), []
    for n in at:
        made = []
        for t in leaves(args[n]):
            if not isinstance(t, TensorBase):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
            made.append(open_input(t))
        own += made
        given[n] = rebuild(args[n], iter(made))
    return given, own


def like_argnums(args: tuple[Any, ...], at: tuple[int, ...], argnums: Any, flat: Iterator[Any]) -> Any:
    """Return values, one for each opened tensor, in the form that `argnums` asks for."""
    found = tuple([rebuild(args[n], flat) for n in at])
    return found if isinstance(argnums, tuple) else found[0]


def drop(x: Any, keep: bool) -> Any:
    """Cut a tensor off from the graph unless something outside needs it; tangents of outer levels stay."""
    return x._share() if isinstance(x, TensorBase) and x._rg and not keep else x


def dropped(tree: Any, keep: bool) -> Any:
    """Cut all tensors of a nest off."""
    return tree_map(lambda x: drop(x, keep), tree)


def structure(tree: Any) -> Any:
    """Return what messages say of the form of a nest."""
    return load("mortice.utils._pytree", "tree_structure")(tree)


def name_of(func: Fn) -> str:
    """Return what messages call a function."""
    return getattr(func, "__name__", repr(func))


def wraps(func: Fn) -> Callable[[Fn], Fn]:
    """Do what functools.wraps does, for modules and partial functions too."""
    return functools.wraps(func, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(func, a)], updated=())


def functionalize(func: Fn, *, remove: str = "mutations") -> Fn:
    """Return a function that computes the same; here functions with writes in place transform as they are."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove=...): received invalid argument for remove=. Valid options are "
            f"'mutations' and 'mutations_and_views'; got {remove!r}."
        )

    return wraps(func)(lambda *args, **kwargs: func(*args, **kwargs))


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """Return what a tensor inside a transform wraps, to look at: of a vmap the whole batch, of a jvp the value."""
    while tensor._device.level is not None:
        data = tensor._buffer
        tensor = tensor._device.level.inside(data.data if type(data) is Mapped else data.primal, tensor)
        if not recurse:
            break
    return tensor
