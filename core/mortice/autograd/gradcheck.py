"""gradcheck and gradgradcheck: gradients compared with differences of the function's own values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib import import_module
from itertools import compress
from typing import Any

from mortice import call as _call
from mortice.autograd.functional import basis
from mortice.autograd.gradients import as_tuple, grad, zeros_for
from mortice.dtype import complex128, float64
from mortice.layout import strided
from mortice.modes import enable_grad, no_grad
from mortice.node import TENSOR_KERNELS
from mortice.notice import warn
from mortice.shape import prod
from mortice.strides import layout
from mortice.tensor import TensorBase

k: Any = TENSOR_KERNELS
Numbers = list[Any]
Matrix = list[Numbers]  # [element of the input][element of the output]


class GradcheckError(RuntimeError):
    """Analytical and numerical derivatives disagree; the text has both."""


def _inputs(given: Sequence[Any]) -> list[Any]:
    """Return the inputs to differentiate by, after the checks that PyTorch makes."""
    found = []
    t: Any
    for i, t in enumerate(given):
        if not isinstance(t, TensorBase) or not t._rg:
            continue
        if t.dtype not in (float64, complex128):
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                "likely fail if all the inputs are not of double precision floating point or complex."
            )
        if any(s == 0 and n > 1 for s, n in zip(layout(t), t.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping "
                "to be able to compute the numerical gradients correctly. You should call .contiguous on the input "
                "before passing it to gradcheck."
            )
        found.append(t)
        if t._node is not None:
            t.retain_grad()
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True."
        )
    return found


def _by_values(func: Callable[..., Any], given: tuple[Any, ...], masked: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function of the values of sparse inputs: of the elements that are there, or of all."""
    places: dict[int, Any] = {}
    inputs = list(given)
    for i, t in enumerate(given):
        if getattr(t, "layout", strided) is strided or not t._rg:
            continue
        coo, like = import_module("mortice.sparse.coo"), t.detach()
        if not masked:
            block = getattr(t._buffer, "block", None) or None
            like = like.to_dense().fill_(1).to_sparse(layout=t.layout, blocksize=block, dense_dim=t.dense_dim())
        places[i] = like._buffer if like._buffer.distinct else coo.merge(like)._buffer
        inputs[i] = coo.take(t, places[i]).detach().clone().requires_grad_()
    if not places:
        return func, given
    return lambda *args: func(*[coo.place(places[i], a) if i in places else a for i, a in enumerate(args)]), tuple(inputs)


def _differentiable(result: Any) -> list[Any]:
    outs: list[Any] = [o for o in ([result] if isinstance(result, TensorBase) else result) if isinstance(o, TensorBase)]
    if any([o.layout is not strided for o in outs]):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
        )
    return [o for o in outs if o.dtype.kind in "fc"]


def _values(outs: Sequence[Any]) -> list[Numbers]:
    """Return the elements of each output as Python numbers."""
    return [k.reshape(_call.CAST(o.detach(), complex128 if o.dtype.is_complex else float64), (-1,)).tolist() for o in outs]


def _places(t: Any) -> list[tuple[int, ...]]:
    places: list[tuple[int, ...]] = [()]
    for n in t.shape:
        places = [(*p, i) for p in places for i in range(n)]
    return places


def _alike(outs: list[Any], others: list[Any], by: str) -> None:
    """Refuse outputs whose shape or dtype depends on the values of the inputs."""
    for x, y in zip(outs, others):
        for what in ("shape", "dtype"):
            if getattr(x, what) != getattr(y, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {by}, but got: "
                    f"{what}s {getattr(x, what)} and {getattr(y, what)}."
                )


def _moved(fn: Callable[[], list[Any]], t: Any, place: tuple[int, ...], step: complex, eps: float) -> list[Numbers]:
    """Return the derivative of all outputs as one element of t moves along `step`."""
    data = t.data
    before = data[place].item()
    with no_grad():
        data[place] = before + eps * step
        outs = fn()
        up = _values(outs)
        data[place] = before - eps * step
        others = fn()
        down = _values(others)
        data[place] = before
    _alike(others, outs, f"on index {place} by {eps}")
    return [[(a - b) / (2 * eps) for a, b in zip(u, d)] for u, d in zip(up, down)]


def _parts(column: Numbers, is_complex: bool) -> Numbers:
    """Return complex outputs as their real parts, then their imaginary parts."""
    return [z.real for z in column] + [z.imag for z in column] if is_complex else column


def _numerical(fn: Callable[[], list[Any]], t: Any, outs: Sequence[Any], eps: float) -> list[Matrix]:
    """Return for each output the matrix of differences; by a complex input, d/dx + i d/dy."""
    matrices: list[Matrix] = [[] for _ in outs]
    for place in _places(t):
        columns = [_parts(c, o.dtype.is_complex) for c, o in zip(_moved(fn, t, place, 1, eps), outs)]
        if t.dtype.is_complex:
            across = [_parts(c, o.dtype.is_complex) for c, o in zip(_moved(fn, t, place, 1j, eps), outs)]
            columns = [[x + 1j * y for x, y in zip(a, b)] for a, b in zip(columns, across)]
        for matrix, column in zip(matrices, columns):
            matrix.append(column)
    return matrices


def _analytical(out: Any, ts: Sequence[Any]) -> tuple[list[Matrix], list[Any]]:
    """Return for each input the matrix of gradients of one output, and the last gradients for their dtypes."""
    rows: list[list[Numbers]] = [[] for _ in ts]
    found: Sequence[Any] = [None] * len(ts)
    units = [1, 1j] if out.dtype.is_complex else [1]
    for unit in units:
        for i in range(prod(out.shape)):
            found = grad(out, ts, k.multiply(basis(out, i), unit), retain_graph=True, allow_unused=True)
            for row, g, t in zip(rows, found, ts):
                if g is not None and g.shape != t.shape:
                    raise GradcheckError("Analytical gradient has incorrect size")
                row.append(_values([zeros_for(t) if g is None else g])[0])
    n = [prod(t.shape) for t in ts]
    return [[[r[j] for r in row] for j in range(m)] for row, m in zip(rows, n)], list(found)


def _close(a: Matrix, b: Matrix, rtol: float, atol: float) -> bool:
    for row_a, row_b in zip(a, b):
        for x, y in zip(row_a, row_b):
            if x != y and not abs(x - y) <= atol + rtol * abs(y):
                return False
    return True


def _text(matrix: Matrix) -> str:
    return "[" + ",\n ".join("[" + ", ".join(f"{x:.6g}" for x in row) + "]" for row in matrix) + "]"


def _mismatch(i: int, j: int, numerical: Matrix, analytical: Matrix, what: str = "") -> GradcheckError:
    return GradcheckError(
        f"Jacobian {what}mismatch for output {i} with respect to input {j},\nnumerical:{_text(numerical)}\n"
        f"analytical:{_text(analytical)}\n"
    )


def _where_told(check: Callable[..., bool]) -> Callable[..., bool]:
    """Have what a check computes with tensors of classes with `__torch_dispatch__` told to these."""

    @wraps(check)
    def call(func: Callable[..., Any], inputs: Any, *args: Any, **options: Any) -> bool:
        if not any([isinstance(t, TensorBase) and t._device.is_outline for t in as_tuple(inputs)]):
            return check(func, inputs, *args, **options)
        with import_module("mortice.subclasses").telling():
            return check(func, inputs, *args, **options)

    return call


@_where_told
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` at `inputs` (float64 or complex128) with central differences.

    Args:
        nondet_tol: by how much two backward runs may differ.
        check_undefined_grad: also run backward with gradients that are zero or missing.
        check_batched_grad, check_batched_forward_grad: also run backward, or forward mode, inside vmap, and compare.
        fast_mode: compare one direction instead of every element.
        check_forward_ad: also compare Jacobian-vector products.
        masked: of sparse inputs, move only the elements that are there.

    Raises:
        GradcheckError: when they differ, unless `raise_exception` is False; False is then returned.
        AssertionError: when neither backward nor forward mode is to be checked, or one only inside vmap.
    """
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    try:
        _check(
            *_by_values(func, as_tuple(inputs), bool(masked)), eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes,
            check_forward_ad, check_backward_ad, fast_mode, check_batched_grad, check_batched_forward_grad,
        )  # fmt: skip
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    func: Callable[..., Any], given: tuple[Any, ...], eps: float, atol: float, rtol: float, nondet_tol: float,
    undefined: bool, dtypes: bool, forward: bool, back: bool, fast: bool, batched: bool, batched_forward: bool,
) -> None:  # fmt: skip
    ts = _inputs(given)

    def fn() -> list[Any]:
        with enable_grad():  # a function may ask what requires grad
            return _differentiable(func(*given))

    outs = fn()
    if not outs:
        return
    if not any(o._rg for o in outs):
        for j, t in enumerate(ts):
            for i, matrix in enumerate(_numerical(fn, t, outs, eps)):
                if not _close(matrix, [[0] * len(row) for row in matrix], rtol, atol):
                    raise GradcheckError(f"Numerical gradient for function expected to be zero; got {_text(matrix)} "
                                         f"for output {i} with respect to input {j}.")  # fmt: skip
        return
    live = [o._rg for o in outs]  # beside outputs that require grad, one that does not is a constant, as in PyTorch
    outs = list(compress(outs, live))

    def live_fn() -> list[Any]:
        return list(compress(fn(), live))

    if back:
        (_fast if fast else _slow)(live_fn, ts, outs, eps, atol, rtol, nondet_tol, dtypes)
    if forward:
        _forward(lambda *args: compress(_differentiable(func(*args)), live), given, ts, live_fn, outs, eps, atol, rtol, batched_forward)
    if undefined and back:
        _undefined(ts, outs)
    for o in outs if batched else ():
        pull = partial(grad, o, ts, retain_graph=True, allow_unused=True)
        _batched(o, partial(pull, is_grads_batched=True), pull)


def _batched(like: Any, together: Callable[..., Any], alone: Callable[..., Any]) -> None:
    """Check that a derivative inside vmap gives what several give."""
    us = [_direction(like, 1000 + i) for i in range(2)]
    failed = "gradcheck or gradgradcheck failed while testing batched gradient"
    try:
        made = together(k.stack(us, 0))
    except RuntimeError as error:
        raise GradcheckError(f"{failed}: {error}") from error
    for n, u in enumerate(us):
        for j, (g, all_g) in enumerate(zip(alone(u), made)):
            if g is not None and not _close(_values([all_g[n]]), _values([g]), 1e-5, 1e-8):
                raise GradcheckError(f"{failed} number {j}.")


def _same_again(again: Matrix, first: Matrix, nondet_tol: float) -> None:
    if not _close(again, first, 0.0, nondet_tol):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            f"different values. The tolerance for nondeterminism was {nondet_tol}."
        )


def _check_dtype(g: Any, t: Any, j: int, dtypes: bool) -> None:
    if dtypes and g is not None and g.dtype is not t.dtype:
        raise GradcheckError(f"Gradient has dtype mismatch: expected {t.dtype} for input {j}; got {g.dtype}.")


def _slow(
    fn: Callable[[], list[Any]], ts: list[Any], outs: list[Any], eps: float, atol: float, rtol: float,
    nondet_tol: float, dtypes: bool,
) -> None:  # fmt: skip
    numerical = [_numerical(fn, t, outs, eps) for t in ts]
    for i, o in enumerate(outs):
        analytical, found = _analytical(o, ts)
        again, _ = _analytical(o, ts)
        for j, t in enumerate(ts):
            _same_again(again[j], analytical[j], nondet_tol)
            _check_dtype(found[j], t, j, dtypes)
        for j in range(len(ts)):
            if not _close(analytical[j], numerical[j][i], rtol, atol):
                raise _mismatch(i, j, numerical[j][i], analytical[j])


def _direction(t: Any, seed: int) -> Any:
    """Return a fixed tensor like t that points nowhere in particular, of length about one."""
    n = prod(t.shape)
    scale = math.sqrt(2 / max(n, 1))
    turns = [math.sin(7.1 * seed + 12.9898 * i + 0.31 * i * i + 0.7) * scale for i in range(2 * n)]
    numbers = [x + 1j * y for x, y in zip(turns[:n], turns[n:])] if t.dtype.is_complex else turns[:n]
    made = t.detach().new_tensor(numbers, dtype=t.dtype).reshape(t.shape)
    return made + zeros_for(t) if t._device.is_outline else made


def _dot(a: Any, b: Any) -> float:
    """Return the real part of conj(a)·b."""
    return float(sum((complex(x).conjugate() * y).real for x, y in zip(*_values([a, b]))))


def _fast(
    fn: Callable[[], list[Any]], ts: list[Any], outs: list[Any], eps: float, atol: float, rtol: float,
    nondet_tol: float, dtypes: bool,
) -> None:  # fmt: skip
    for j, t in enumerate(ts):
        v, data = _direction(t, j), t.data
        before = k.copy(data)
        with no_grad():
            data.copy_(before + v * eps)
            up = [k.copy(o.detach()) for o in fn()]
            data.copy_(before - v * eps)
            down = [k.copy(o.detach()) for o in fn()]
            data.copy_(before)
        _alike(down, up, f"by {eps}")
        for i, o in enumerate(outs):
            u = _direction(o, 1000 + i)
            numerical = _dot(u, (up[i] - down[i]) / (2 * eps))
            (g,) = grad(o, t, u, retain_graph=True, allow_unused=True)
            _check_dtype(g, t, j, dtypes)
            if g is not None:
                (again,) = grad(o, t, u, retain_graph=True)
                _same_again(_values([again]), _values([g]), nondet_tol)
            analytical = 0.0 if g is None else _dot(g, v)
            # What an error of atol in every element comes to in these directions.
            within = atol * math.prod(sum(map(abs, _values([w])[0])) for w in (u, v))
            if not abs(analytical - numerical) <= within + rtol * abs(numerical):
                raise _mismatch(i, j, [[numerical]], [[analytical]])


def _forward(
    func: Callable[..., Any], given: tuple[Any, ...], ts: list[Any], fn: Callable[[], list[Any]], outs: list[Any],
    eps: float, atol: float, rtol: float, batched: bool,
) -> None:  # fmt: skip
    from mortice.autograd.functional import jvp

    where = [i for i, a in enumerate(given) if any(a is t for t in ts)]

    def of_inputs(*moving: Any) -> Any:
        args = list(given)
        for i, t in zip(where, moving):
            args[i] = t
        return tuple(func(*args))

    for j, t in enumerate(ts):

        def push(v: Any, t: Any = t) -> Any:
            return jvp(of_inputs, tuple([x.detach() for x in ts]), tuple([v if x is t else zeros_for(x) for x in ts]))[1]

        if batched:
            _batched(t, import_module("mortice.func").vmap(push), push)
        numerical = _numerical(fn, t, outs, eps)
        for at, unit in ((n, u) for n in range(prod(t.shape)) for u in ([1, 1j] if t.dtype.is_complex else [1])):
            pushed = push(k.multiply(basis(t, at), unit))
            for i, o in enumerate(outs):
                got = _parts(_values([pushed[i]])[0], o.dtype.is_complex)
                want = [(complex(z).imag if unit == 1j else complex(z).real) for z in numerical[i][at]]
                if not _close([got], [want], rtol, atol):
                    raise _mismatch(i, j, [want], [got], "computed with forward mode ")


def _undefined(ts: list[Any], outs: list[Any]) -> None:
    """Check that gradients of zero give zero, and that an output may be left out."""
    zero = grad(outs, ts, [zeros_for(o) for o in outs], retain_graph=True, allow_unused=True)
    for j, g in enumerate(zero):
        if g is not None and any(x != 0 and x == x for x in _values([g])[0]):
            raise GradcheckError(
                f"backward not multiplied by grad_output: a gradient of zeros must give zeros; got {_values([g])[0]} for input {j}."
            )
    for o in outs:
        grad(o, ts, zeros_for(o), retain_graph=True, allow_unused=True)


@_where_told
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the second gradients of `func` at `inputs` with differences of its first gradients.

    Args:
        grad_outputs: the gradients of the outputs to check at; made at random when None.
    """
    given = as_tuple(inputs)
    with enable_grad():
        outs = [o for o in _differentiable(func(*given)) if o._rg]
    if grad_outputs is None:
        seeds = [_direction(o, i).requires_grad_() for i, o in enumerate(outs)]
        if gen_non_contig_grad_outputs:
            seeds = [k.stack([s.detach()] * 2, -1)[..., 0].requires_grad_() for s in seeds]
    else:
        seeds = list(as_tuple(grad_outputs))
    n = len(seeds)

    def first(*args: Any) -> Any:
        at, gs = args[: len(args) - n], args[len(args) - n :]
        ts = [a for a in at if isinstance(a, TensorBase) and a._rg]
        with enable_grad():
            made = [o for o in _differentiable(func(*at)) if o._rg]
            found = grad(made, ts, gs, create_graph=True, allow_unused=True)
        # Where an op passes its gradient on, that is an input of this function, which gradcheck refuses.
        return tuple([g.view_as(g) if any(g is seed for seed in gs) else g for g in found if g is not None])

    return gradcheck(
        first, (*given, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, fast_mode=fast_mode,
        check_batched_grad=check_batched_grad, masked=masked,
    )  # fmt: skip
