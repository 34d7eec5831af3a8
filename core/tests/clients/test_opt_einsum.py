"""opt_einsum on tensors: it takes einsum, tensordot and transpose from `mortice.utils.opt_einsum`, whatever the backend."""

from __future__ import annotations

import pytest

from .check import check_gradients, check_values
from .record import Client, integers, normal


def expression(f, x, y, z):
    """Compile a contraction, then run it twice."""
    run = f("ab,bc,cd->da", x.shape, y.shape, z.shape)
    return run(x, y, z), run(y, z, x)


def constant(f, x, y, z):
    """Compile one of whose operands is fixed."""
    return f("ab,bc,cd->ad", x, y.shape, z, constants=[0, 2])(y)


def shared(f, x, y, z):
    """Keep what two contractions have in common."""
    with f():
        import opt_einsum

        return opt_einsum.contract("ab,bc,cd->ad", x, y, z), opt_einsum.contract("ab,bc,cd->da", x, y, z)


def into(f, x, y, z):
    """Write the result into an array that is there."""
    out = 0 * x
    return f("ab,bc,cd->ad", x, y, z, out=out), out


def path(f, x, y, z):
    """Find the order of the products, from the shapes alone."""
    return list(f("ab,bc,cd->ad", x, y, z, optimize="optimal")[0])


THREE = [normal(4, 4)] * 3
CLIENTS = [
    Client("opt_einsum.contract", THREE, lambda f, x, y, z: f("ab,bc,cd->ad", x, y, z), gradient=True, note="chain"),
    Client("opt_einsum.contract", THREE, lambda f, x, y, z: f("ab,bc,ca->", x, y, z), gradient=True, note="trace"),
    Client("opt_einsum.contract", THREE, lambda f, x, y, z: f("ab,ab,cb->ca", x, y, z), gradient=True, note="elementwise"),
    Client("opt_einsum.contract", THREE, lambda f, x, y, z: f("αβ,βγ,γδ->δα", x, y, z), gradient=True, note="Greek"),
    Client("opt_einsum.contract", [normal(2, 3, 4), normal(2, 4, 2)], lambda f, x, y: f("...ab,...bc->...ca", x, y),
           gradient=True, note="ellipsis"),
    Client("opt_einsum.contract", [normal(3, 3), normal(3)], lambda f, x, y: f("aa,a->a", x, y), gradient=True, note="diagonal"),
    Client("opt_einsum.contract", [normal(3), normal(4), normal(2)], lambda f, x, y, z: f("a,b,c->cab", x, y, z), gradient=True,
           note="outer"),
    Client("opt_einsum.contract", THREE, lambda f, x, y, z: f(x, [0, 1], y, [1, 2], z, [2, 3], [0, 3]), gradient=True,
           note="lists of labels"),
    Client("opt_einsum.contract", [normal(3, 3), integers(0, 5, 3)], lambda f, x, n: f("ab,b->a", x, n), gradient=True,
           note="of two dtypes", dtypes=("float64",)),
    Client("opt_einsum.contract", THREE, into, note="out"),
    Client("opt_einsum.contract_expression", THREE, expression, gradient=True),
    Client("opt_einsum.contract_expression", THREE, constant, gradient=True, note="constants"),
    Client("opt_einsum.shared_intermediates", THREE, shared, gradient=True),
    Client("opt_einsum.contract_path", THREE, path),
]  # fmt: skip


def test_the_result_is_numpys(client, device):
    check_values(client, device)


def test_gradients_flow(client, device):
    check_gradients(client, device)


def test_tensors_of_two_backends_do_not_mix():
    import mortice as mt

    opt_einsum = pytest.importorskip("opt_einsum", reason="opt_einsum is not installed: it is not tried with tensors")
    with pytest.raises(RuntimeError, match="strict"):
        opt_einsum.contract("ab,bc->ac", mt.ones(2, 2, device="cpu"), mt.ones(2, 2, device="strict:0"))
