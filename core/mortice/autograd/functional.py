"""Whole derivatives of functions: Jacobians, Hessians and their products with vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from mortice.autograd.gradients import grad, zeros_for
from mortice.autograd.trees import leaves, rebuild, tree_map
from mortice.levels.dual import DualLevel
from mortice.levels.vmap import MapLevel
from mortice.modes import enable_grad, modes, set_grad_enabled
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
                f"type {type(t)}."
            )
    return several, found


def _open(inputs: tuple[Any, ...], create_graph: bool, need_graph: bool = True) -> tuple[Any, ...]:
    """Return inputs to differentiate by: in the caller's graph under create_graph, else cut off from it."""
    # By methods, which a class derived from Tensor may have taken over.
    with enable_grad():
        return tuple([t.view_as(t) if create_graph and t._rg else t.detach().requires_grad_(need_graph) for t in inputs])


def _close(value: Any, create_graph: bool) -> Any:
    """Cut results off from the graph, unless it was asked for."""
    if isinstance(value, TensorBase):
        return value if create_graph else value._share()
    return tuple([_close(v, create_graph) for v in value])


def _unpack(value: tuple[Any, ...], several: bool) -> Any:
    return value if several else value[0]


_OUTPUTS = "outputs of the user-provided function"


def _call(name: str, func: Fn, inputs: tuple[Any, ...]) -> tuple[bool, tuple[Any, ...]]:
    return _tuple(name, _OUTPUTS, func(*inputs))


def _strict_outputs(outs: tuple[Any, ...], strict: bool) -> None:
    for i, o in enumerate(outs):
        if strict and not o._rg:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )


def grads(
    outs: Sequence[Any], inputs: Sequence[Any], vs: Sequence[Any], create_graph: bool, keep: bool = True
) -> tuple[Any, ...]:
    """Call `grad` for the outputs that have a graph; None for inputs that none of them depends on."""
    pairs = [(o, v) for o, v in zip(outs, vs) if o._rg]
    if not pairs:
        return (None,) * len(inputs)
    return grad([o for o, _ in pairs], inputs, [v for _, v in pairs], keep, create_graph, allow_unused=True)  # type: ignore[no-any-return]


def _filled(found: tuple[Any, ...], inputs: tuple[Any, ...], strict: bool, flat: str | None, why: str) -> tuple[Any, ...]:
    """Put zeros for inputs without influence; in strict mode they are an error, and by `flat` what has no graph."""
    out = []
    for i, (g, t) in enumerate(zip(found, inputs)):
        if g is None:
            if strict:
                raise RuntimeError(why.format(i=i))
            g = zeros_for(t)
        elif strict and flat and not g._rg:
            raise RuntimeError(flat.format(i=i))
        out.append(g)
    return tuple(out)


_STRICT = "of the user-provided function is independent of input {i}. This is not allowed in strict mode"
INDEPENDENT = f"The output {_STRICT}."
_FLAT_GRADIENT = (
    "The gradient with respect to input {i} is independent of the inputs of the user-provided function. This is not allowed "
    "in strict mode."
)
_FLAT_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for example)."
)


def _flat(create_graph: bool, what: str = "jacobian") -> str | None:
    """Return what strict mode says of a derivative without a graph, where one was asked for."""
    return f"The {what} {_STRICT} when create_graph=True." if create_graph else None


def _check_v(name: str, v: Any, others: tuple[Any, ...], several: bool) -> tuple[Any, ...]:
    """Return v as a tuple, refusing shapes other than those of what it multiplies."""
    _, vs = _tuple(name, "v", tuple(v) if isinstance(v, list) else v)
    if len(vs) != len(others):
        if not several:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(vs)}.")
    for i, (a, b) in enumerate(zip(vs, others)):
        if a.shape != b.shape:
            entry = f"Entry {i} in v" if several else "v"
            raise RuntimeError(f"{entry} has invalid size: should be {b.shape} but got {a.shape}.")
    return vs


def _ones(ts: tuple[Any, ...], what: str = "the input to the user-provided function is") -> tuple[Any, ...]:
    if len(ts) != 1 or prod(ts[0].shape) != 1:
        raise RuntimeError(f"The vector v can only be None if {what} a single Tensor with a single element.")
    return (k.ones_like(ts[0].detach()),)


def vjp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (outputs, vᵀJ) of a function at `inputs`; v has the shape of the outputs."""
    several, given = _tuple("vjp", "inputs", inputs)
    with enable_grad():
        at = _open(given, create_graph)
        outs_several, outs = _call("vjp", func, at)
        _strict_outputs(outs, strict)
        vs = _ones(outs, "the user-provided function returns") if v is None else _check_v("vjp", v, outs, outs_several)
    keep = create_graph or modes.grad
    found = _filled(grads(outs, at, vs, create_graph, keep), at, strict, _flat(create_graph), INDEPENDENT)
    return _unpack(_close(outs, create_graph), outs_several), _unpack(_close(found, create_graph), several)


def jvp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (outputs, Jv) of a function at `inputs`; v has the shape of the inputs."""
    several, given = _tuple("jvp", "inputs", inputs)
    vs = _ones(given) if v is None else _check_v("jvp", v, given, several)
    if strict or any([t._device.is_outline for t in given]):  # what depends on what is known in the graph alone
        with enable_grad():
            at = _open(given, create_graph)
            outs_several, outs = _call("jvp", func, at)
            _strict_outputs(outs, strict)
            found = twice(outs, at, vs, create_graph, strict)
    else:

        def whole(*at: Any) -> Any:
            several, outs = _call("jvp", func, at)
            return _unpack(outs, several)

        with set_grad_enabled(bool(create_graph)):
            out, _, pushed = forward(whole, _open(given, True) if create_graph else given, vs)
        outs_several = isinstance(out, tuple)
        outs, found = (out, pushed) if outs_several else ((out,), (pushed,))
    return _unpack(_close(outs, create_graph), outs_several), _unpack(_close(found, create_graph), outs_several)


def twice(
    outs: tuple[Any, ...], at: tuple[Any, ...], vs: tuple[Any, ...], create_graph: bool, strict: bool = False,
    what: str = "jacobian",
) -> tuple[Any, ...]:
    """Return Jv by two backward runs: uᵀJ is linear in u, so its derivative along u, times v, is Jv."""
    us = tuple([zeros_for(o).requires_grad_() for o in outs])
    back = grads(outs, at, us, True)
    back = _filled(back, at, strict, _FLAT_GRADIENT, INDEPENDENT)
    found = grads(back, us, vs, create_graph, True)
    why = f"The {what} of the user-provided function is independent of entry {{i}} of what is differentiated a second time. "
    return _filled(found, us, strict, _flat(create_graph, what), why + "This is not allowed in strict mode.")


# ---- what `func` and this module share ----


JVP = "jvp(f, primals, tangents)"


def pair(name: str, value: Any) -> tuple[Any, Any]:
    """Return (output, aux) of a function that gives both."""
    if not (isinstance(value, tuple) and len(value) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return value


def outputs(name: str, value: Any) -> list[Any]:
    """Return the tensors that a function gave, of which there must be one at least."""
    found = list(leaves(value))
    if all([t is None for t in found]):
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {found})")
    for t in found:
        if not isinstance(t, TensorBase):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(t)}")
    return found


def forward(
    func: Fn, primals: Any, tangents: Sequence[Any], has_aux: bool = False, strict: bool = False
) -> tuple[Any, Any, Any]:
    """Return (output, aux, Jt) of a function called once with inputs that carry tangents, one for each leaf."""
    with DualLevel() as level:
        duals = [level.carry(x, t) for x, t in zip(leaves(primals), tangents)]
        out = func(*rebuild(primals, iter(duals)))
        aux = None
        if has_aux:
            out, aux = pair(JVP, out)
        pushed = []
        for o in outputs(JVP, out):
            pushed.append(level.tangent(o))
            if pushed[-1] is None:
                if strict:
                    raise RuntimeError(
                        "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                        "not allowed with strict=True."
                    )
                pushed[-1] = k.zeros_like(level.primal(o).detach())
        below = lambda x: level.primal(x) if isinstance(x, TensorBase) else x
        return tree_map(below, out), tree_map(below, aux), rebuild(out, iter(pushed))


def columns(func: Fn, inputs: Any, has_aux: bool = False, randomness: str = "error") -> tuple[Any, Any, list[list[Any]]]:
    """Return (output, aux, Jacobians): per output one for each input; all directions are pushed forward at once."""
    xs = list(leaves(inputs))
    sizes = [prod(x.shape) for x in xs]
    n = sum(sizes)
    with MapLevel(n, randomness) as level:
        starts = [sum(sizes[:i]) for i in range(len(xs))]
        along = tuple([level.enter(_directions(x, -start, n - start)) for x, start in zip(xs, starts)])
        out, aux, pushed = forward(func, inputs, along, has_aux)
        outs = list(leaves(out))
        whole = [level.leave(p) for p in leaves(pushed)]
        settled = lambda x: _settled(level, x)
        out, aux = tree_map(settled, out), tree_map(settled, aux)
    blocks = []
    for o, p in zip(outs, whole):
        p = k.moveaxis(p, 0, -1) if o.shape else p
        cut = [k.getitem(p, (..., slice(start, start + size))) for start, size in zip(starts, sizes)]
        blocks.append([k.reshape(c, (*o.shape, *x.shape)) for c, x in zip(cut, xs)])
    return out, aux, blocks


def _settled(level: Any, x: Any) -> Any:
    """Return a value that may have been computed for every direction alike."""
    if not isinstance(x, TensorBase) or x._device.level is not level:
        return x
    return level.leave(x)[0] if x._buffer.on else level.common(x)


def _directions(t: Any, start: int, stop: int) -> Any:
    """Return the unit directions of t's elements from `start` to `stop`, zeros where there is no such element."""
    rows = k.reshape(k.new_arange(t, start, stop), (stop - start, 1))
    hits = k.equal(rows, k.reshape(k.new_arange(t, 0, prod(t.shape)), (1, prod(t.shape))))
    return k.reshape(k.astype(hits, t.dtype), (stop - start, *t.shape))


def basis(t: Any, i: int) -> Any:
    """Return zeros shaped like t with a 1 at flat position i."""
    return k.reshape(_directions(t.detach(), i, i + 1), t.shape)


def rows(o: Any, at: Sequence[Any], pull: Callable[[Any], Sequence[Any]], chunk_size: int | None = None) -> list[Any]:
    """Return the Jacobian of one output for each of the inputs `at`; `pull(v)` gives vᵀJ, and gets many v at once."""
    n = prod(o.shape)
    # What a wrapper holds, no level has.
    step = 1 if o._device.is_outline else n if chunk_size is None else min(chunk_size, n)
    parts: list[list[Any]] = []
    for start in range(0, n, step or 1):
        stop = min(start + step, n)
        if step == 1:
            parts.append([g.unsqueeze(0) for g in pull(basis(o, start))])
            continue
        with MapLevel(stop - start, "error") as level:
            v = level.enter(_directions(o.detach(), start, stop))
            parts.append([level.leave(g) for g in pull(v)])
    if not parts:
        return [zeros_like_block(o, t) for t in at]
    joined = [list(column) for column in zip(*parts)]
    cat = import_module("mortice").cat  # the public one, which tells the class of a wrapper
    return [(c[0] if len(c) == 1 else cat(c)).reshape((*o.shape, *t.shape)) for c, t in zip(joined, at)]


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
        vectorize: run one backward for all elements of an output, instead of one each.
        strategy: "forward-mode" pushes the elements of the inputs forward instead, all at once.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f'Expected strategy to be either "forward-mode" or "reverse-mode", got "{strategy}".')
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and `strategy='forward-mode'` are not supported "
            "together (yet). Please either set `create_graph=False` or `strategy='reverse-mode'`."
        )
    if strict and (vectorize or strategy == "forward-mode"):
        what = "`vectorized=True`" if strategy == "reverse-mode" else '`strategy="forward-mode"`'
        raise RuntimeError(
            f"torch.autograd.functional.jacobian: `strict=True` and {what} are not supported together (yet)."
        )
    several, given = _tuple("jacobian", "inputs", inputs)
    if strategy == "forward-mode":
        out, _, blocks = columns(func, tuple([t._share() for t in given]))
        outs_several, _ = _tuple("jacobian", _OUTPUTS, out)
        return _unpack(tuple([_unpack(_close(tuple(row), False), several) for row in blocks]), outs_several)
    with enable_grad():
        at = _open(given, create_graph)
        outs_several, outs = _call("jacobian", func, at)
        _strict_outputs(outs, strict)

        def pull(n: int, v: Any) -> tuple[Any, ...]:
            why = f"Output {n} {_STRICT}."
            return _filled(grads((outs[n],), at, (v,), create_graph), at, strict, _flat(create_graph), why)

        found = [rows(o, at, functools.partial(pull, n), None if vectorize else 1) for n, o in enumerate(outs)]
    closed = _close(tuple([tuple(row) for row in found]), create_graph)
    return _unpack(tuple([_unpack(row, several) for row in closed]), outs_several)


def zeros_like_block(o: Any, t: Any) -> Any:
    """Return the Jacobian of an output without elements."""
    return k.new_full(t.detach(), (*o.shape, *t.shape), 0, dtype=o.dtype)


def _one_number(name: str, func: Fn, inputs: tuple[Any, ...], strict: bool) -> Any:
    """Call a function that must return one number."""
    several, outs = _call(name, func, inputs)
    _strict_outputs(outs, strict)
    if several:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if prod(outs[0].shape) != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outs[0]


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
    number = lambda *at: k.reshape(_one_number("hessian", func, at, strict), ())

    def first(*at: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            at = tuple([t if t._rg else t.requires_grad_() for t in at])
        found = jacobian(number, at, create_graph=True)
        _filled(found, at, strict, _FLAT_JACOBIAN, INDEPENDENT)
        return found if several else found[0]

    return jacobian(
        first, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy
    )


def _first_gradient(
    name: str, func: Fn, given: tuple[Any, ...], v: Any, several: bool, create_graph: bool, strict: bool
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Return (output, inputs, gradient with its graph, v) for the two Hessian products."""
    vs = _ones(given) if v is None else _check_v(name, v, given, several)
    at = _open(given, create_graph)
    out = _one_number(name, func, at, strict)
    first = grads((out,), at, (k.ones_like(out.detach()),), True)
    return out, at, _filled(first, at, strict, _FLAT_JACOBIAN, INDEPENDENT), vs


def vhp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (output, vᵀH) of a function of one number at `inputs`."""
    several, given = _tuple("vhp", "inputs", inputs)
    with enable_grad():
        out, at, first, vs = _first_gradient("vhp", func, given, v, several, create_graph, strict)
        flat = _flat(create_graph, "hessian")
        found = _filled(grads(first, at, vs, create_graph), at, strict, flat, f"The jacobian {_STRICT}.")
    return _close(out, create_graph), _unpack(_close(found, create_graph), several)


def hvp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Return (output, Hv) of a function of one number at `inputs`. `vhp` is the same for smooth functions, and faster."""
    several, given = _tuple("hvp", "inputs", inputs)
    with enable_grad():
        out, at, first, vs = _first_gradient("hvp", func, given, v, several, create_graph, strict)
        found = twice(first, at, vs, create_graph, strict, "hessian")
    return _close(out, create_graph), _unpack(_close(found, create_graph), several)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


# ---- what libraries of optimisation import from here, in PyTorch's own words ----

_grad_postprocess = _close


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> tuple[bool, tuple[Any, ...]]:
    """Return whether several tensors were given, and them as a tuple."""
    return _tuple(str(fn_name), str(arg_name), inp)


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """Take results out of the tuples that `_as_tuple` made, of two depths where two answers of it are given."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        return _unpack(res if inner else tuple([r[0] for r in res]), outer)
    return _unpack(res, to_unpack)


def _construct_standard_basis_for(tensors: tuple[Any, ...], tensor_numels: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the unit directions of the elements of all tensors, a row an element, in a part for each tensor."""
    starts = [sum(tensor_numels[:i]) for i in range(len(tensors))]
    whole = sum(tensor_numels)
    return tuple([k.reshape(_directions(t.detach(), -s, whole - s), (whole, prod(t.shape))) for t, s in zip(tensors, starts, strict=True)])
