"""Products of Householder reflections, packed as LAPACK does: geqrf makes them, ormqr and householder_product use them."""

from __future__ import annotations

from typing import Any

from mortice import return_types
from mortice.call import give
from mortice.errors import ShapeError
from mortice.modes import autocasting
from mortice.node import node_name
from mortice.op import op
from mortice.ops.arrange import tril
from mortice.ops.elementwise import undefined
from mortice.ops.factor import full_precision
from mortice.ops.fill import zero
from mortice.ops.linalg import adjoint, check_floats, check_matrix, check_one_dtype, identity
from mortice.ops.matmul import conj, matmul
from mortice.ops.movement import expand, unsqueeze
from mortice.ops.reduce import write_all
from mortice.shape import Size

__all__ = ["geqrf", "orgqr", "ormqr"]


def _packed_shapes(name: str, shape: Size) -> tuple[Size, Size]:
    *batch, m, n = tuple(shape)
    return shape, Size((*batch, min(m, n)))


@op(result=full_precision, shape=_packed_shapes, kernel="geqrf", dtypes="fc", outputs=("a", "tau"), name="geqrf")
def _geqrf(k: Any, x: Any, /) -> Any:
    """Factor by Householder reflections."""


_geqrf.vjp(x=lambda k, g: undefined("geqrf"))


@autocasting
def geqrf(input: Any, *, out: Any = None) -> Any:
    """Factor matrices by Householder reflections: (a, tau), R with the reflections' vectors below it."""
    check_matrix("geqrf", input)
    return write_all("geqrf", out, return_types.geqrf(*_geqrf(input)))


def _vectors(packed: Any, rows: int) -> Any:
    """Return the reflections' vectors as columns, with their leading ones."""
    n = packed.shape[-1]
    return tril(packed, -1) + identity(packed, max(rows, n))[:rows, :n]


def _reflect(vectors: Any, tau: Any, x: Any, turned: bool) -> Any:
    """Multiply x from the left with the product of the reflections, or with its adjoint."""
    count = tau.shape[-1]
    tau = conj(tau) if turned else tau
    for i in range(count) if turned else reversed(range(count)):
        v = vectors[..., :, i : i + 1]
        x = x - matmul(v * unsqueeze(tau[..., i : i + 1], -1), matmul(adjoint(v), x))
    return x + zero(vectors).sum() if count == 0 and vectors._rg else x


@autocasting
@node_name("LinalgHouseholderProductBackward0")
def householder_product(input: Any, tau: Any, *, out: Any = None) -> Any:
    """Return the first columns of a product of Householder reflections, as geqrf stores them."""
    check_matrix("linalg.householder_product", input)
    check_floats("linalg.householder_product", tau)
    m, n = tuple(input.shape)[-2:]
    count = tau.shape[-1]
    if m < n:
        raise ShapeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if n < count:
        raise ShapeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if len(input.shape) - len(tau.shape) != 1 or tuple(input.shape)[:-2] != tuple(tau.shape)[:-1]:
        raise ShapeError(
            f"torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2]; got "
            f"{list(input.shape)} and {list(tau.shape)}."
        )
    check_one_dtype("linalg.householder_product", input, tau)
    start = expand(identity(input, m), (*tuple(input.shape)[:-2], m, m))[..., :, :n]
    return give("linalg.householder_product", out, _reflect(_vectors(input, m), tau, start, False))


@autocasting
def orgqr(input: Any, input2: Any, *, out: Any = None) -> Any:
    """Return the first columns of a product of Householder reflections: another name of linalg.householder_product."""
    return householder_product(input, input2, out=out)


@autocasting
@node_name("OrmqrBackward0")
def ormqr(input: Any, input2: Any, input3: Any, left: bool = True, transpose: bool = False, *, out: Any = None) -> Any:
    """Multiply `other` with the whole product of Householder reflections, as geqrf stores them, or with its adjoint."""
    check_matrix("ormqr", input, input3)
    check_floats("ormqr", input2)
    m = input3.shape[-2 if left else -1]
    if m < input2.shape[-1] or m != input.shape[-2]:
        raise ShapeError(
            f"ormqr: other.shape[{-2 if left else -1}] must be greater than or equal to tau.shape[-1] and equal to "
            f"input.shape[-2]; got {list(input3.shape)}, {list(input2.shape)} and {list(input.shape)}."
        )
    if input2.shape[-1] > input.shape[-1]:
        raise ShapeError(
            f"ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]; got {list(input2.shape)} and {list(input.shape)}."
        )
    if len(input.shape) != len(input2.shape) + 1 or len(input.shape) != len(input3.shape):
        raise ShapeError(
            "ormqr: Expected input and other to have equal numbers of dimensions and tau one less; got "
            f"{list(input.shape)}, {list(input3.shape)} and {list(input2.shape)}."
        )
    batch = tuple(input.shape)[:-2]
    if tuple(input2.shape)[:-1] != batch or tuple(input3.shape)[:-2] != batch:
        raise ShapeError(
            f"ormqr: Expected batch dimensions of tau and other to be equal to input.shape[:-2]; got {list(input2.shape)}, "
            f"{list(input3.shape)} and {list(input.shape)}."
        )
    check_one_dtype("ormqr", input, input2)
    check_one_dtype("ormqr", input, input3)
    vectors = _vectors(input, m)
    if left:
        return give("ormqr", out, _reflect(vectors, input2, input3, transpose))
    return give("ormqr", out, adjoint(_reflect(vectors, input2, adjoint(input3), not transpose)))
