"""Forward mode as functions of functions: jvp, jacfwd, linearize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.autograd import functional
from mortice.autograd.functional import JVP, outputs, pair
from mortice.autograd.trees import form, leaves, rebuild, tensors
from mortice.func.levels import Fn, drop, dropped, like_argnums, opened, others, places, real, structure, wraps
from mortice.modes import enable_grad, modes


def _floating(ts: Sequence[Any]) -> None:
    for t in ts:
        if t.dtype.kind not in "fc":
            raise ValueError(f"Expected primal to be floating point or complex, but got: {t.dtype}")


def jvp(func: Fn, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return (output, Jt[, aux]) of a function at `primals`, pushed along `tangents`, in one go."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    xs, ts = tensors(JVP, primals, "primals"), tensors(JVP, tangents, "tangents")
    if not xs:
        raise RuntimeError(f"{JVP}: Expected primals to contain at least one Tensor.")
    if form(primals) != form(tangents):
        raise RuntimeError(
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 "
            "tensors, tangents also must be."
        )
    _floating((*xs, *ts))
    if any([x._device.is_outline for x in xs]):  # whose class alone knows what they hold, and no tangents
        beside: list[Any] = []

        def value(*given: Any) -> Any:
            made = func(*given)
            if has_aux:
                made, aux = pair(JVP, made)
                beside.append(aux)
            return made

        out, push = linearize(value, *primals)
        return out, push(*tangents), *dropped(beside, False)
    out, aux, pushed = functional.forward(func, primals, ts, has_aux, strict)
    return (out, pushed, aux) if has_aux else (out, pushed)


def jacfwd(
    func: Fn, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Fn:
    """Return a function that computes the Jacobian of `func`: one call pushes all elements of the input forward."""

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        at = places(argnums, args)
        wanted = tuple([args[n] for n in at])
        xs = tensors(JVP, wanted, "primals")
        _floating(xs)
        real("jacfwd", xs, "inputs")

        def chosen(*given: Any) -> Any:
            full = list(args)
            for n, value in zip(at, given):
                full[n] = value
            return func(*full, **kwargs)

        out, aux, columns = functional.columns(chosen, wanted, has_aux, randomness)
        real("jacfwd", list(leaves(out)), "outputs")
        blocks = [like_argnums(args, at, argnums, iter(row)) for row in columns]
        result = rebuild(out, iter(blocks))
        return (result, aux) if has_aux else result

    return wrapper


def linearize(func: Fn, *primals: Any) -> tuple[Any, Fn]:
    """Return the output at `primals` and the linear function that maps tangents to the output's; `func` runs once."""
    recorded = modes.grad
    with enable_grad():
        given, own = opened(primals, range(len(primals)))
        out = func(*given)
        outs = outputs("linearize(f, *primals)", out)
        outside = others(outs, own)

    def push(*tangents: Any) -> Any:
        ts = tuple(leaves(tangents))
        if form(tangents) != form(primals):
            raise RuntimeError(f"Expected the tangents {structure(tangents)} to have the same argspec as the primals {structure(primals)}")
        for what in ("shape", "dtype"):
            for i, (t, x) in enumerate(zip(ts, own)):
                if (given := getattr(t, what)) != (wanted := getattr(x, what)):
                    raise RuntimeError(
                        f"tangent:{i} with {what} {given} in flattened pytree doesn't match the {what} {wanted} of the "
                        "corresponding primal."
                    )
        keep = modes.grad and outside
        with enable_grad():
            pushed = functional.twice(tuple(outs), tuple(own), ts, keep)
        return rebuild(out, iter([drop(p, keep) for p in pushed]))

    return dropped(out, recorded and outside), push
