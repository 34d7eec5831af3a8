"""Branches, loops and scans as functions (cond, while_loop, associative_scan), and the numbers of a compiler."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt

f64 = mt.float64


def draw(*shape: int) -> mt.Tensor:
    return mt.randn(*shape, dtype=f64)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_gives_running_results_and_their_gradients(length: int, reverse: bool) -> None:
    from mortice._higher_order_ops.associative_scan import associative_scan

    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    a, b, weights = draw(2, length, 3).requires_grad_(), draw(2, length, 3).requires_grad_(), draw(2, length, 3)
    products, states = associative_scan(combine, (a, b), 1, reverse=reverse, combine_mode="generic")
    state, product, expected = mt.zeros(2, 3, dtype=f64), mt.ones(2, 3, dtype=f64), []
    for i in reversed(range(length)) if reverse else range(length):
        state, product = a[:, i] * state + b[:, i], product * a[:, i]
        expected.append((product, state))
    by_hand = [mt.stack(x[::-1] if reverse else x, 1) for x in zip(*expected, strict=True)]
    mt.testing.assert_close((products, states), tuple(by_hand))
    grads, expected_grads = (
        mt.autograd.grad((p + s * weights).sum(), (a, b)) for p, s in ((products, states), by_hand)
    )
    mt.testing.assert_close(grads, expected_grads)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_carries_a_tree_along_a_dim(reverse: bool) -> None:
    from mortice._higher_order_ops import scan

    x = mt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    add = lambda carry, part: ({"sum": carry["sum"] + part["x"]}, (carry["sum"] * 2, None))
    last, (outs, none) = scan(add, {"sum": mt.zeros(2)}, {"x": x}, dim=1, reverse=reverse)
    assert last["sum"].tolist() == [6.0, 15.0] and none is None
    assert outs.tolist() == ([[10.0, 22.0], [6.0, 12.0], [0.0, 0.0]] if reverse else [[0.0, 0.0], [2.0, 8.0], [6.0, 18.0]])
    outs.sum().backward()
    assert x.grad[0].tolist() == ([0.0, 2.0, 4.0] if reverse else [4.0, 2.0, 0.0])


def test_scan_and_map_refuse_what_they_cannot_go_along() -> None:
    from mortice.functorch.experimental.control_flow import map

    from mortice._higher_order_ops.scan import scan

    x = mt.arange(6.0).reshape(3, 2)
    pair = map(lambda part, y: (part["a"] + y, part["b"][0] * y), {"a": x, "b": [x]}, mt.ones(2))
    assert [p.tolist() for p in pair] == [(x + 1).tolist(), x.tolist()]
    for xs in ({}, [x, 3.0], [x, x[:2]], x[:0], mt.tensor(1.0)):
        with pytest.raises(RuntimeError, match="map: "):
            map(lambda s: s, xs)
    for call, match in (
        (lambda: scan(None, x, x), "Combine_fn must be a callable"), (lambda: scan(mt.add, [], x), "All init leaves must be a Tensor"),
        (lambda: scan(lambda c, s: ([c], s), x[0], x), "same tree structure"), (lambda: map(lambda s: 3.0, x), "outputs to be"),
        (lambda: scan(lambda c, s: (c.double(), s), x[0], x), "float64"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=match):
            call()


def test_associative_scan_refuses_what_has_no_length() -> None:
    from mortice._higher_order_ops import associative_scan

    with pytest.raises(ValueError, match="expected tensors that are not empty along dim 0"):
        associative_scan(mt.add, mt.ones(0, 2), 0)
    with pytest.raises(ValueError, match="expected combine_mode 'pointwise' or 'generic'; got 'other'"):
        associative_scan(mt.add, mt.ones(2), 0, combine_mode="other")


def test_control_flow_runs_the_branch_and_the_loop_that_the_values_ask_for():
    x = mt.tensor([1.0, 2.0], requires_grad=True)
    for pred, expected in ((True, [2.0, 4.0]), (mt.tensor([False]), [3.0, 12.0]), (mt.tensor(0.5), [2.0, 4.0]), (0, [3.0, 12.0])):
        out = mt.cond(pred, lambda a: a**2, lambda a: a**3, (x,))
        assert mt.autograd.grad(out.sum(), x)[0].tolist() == expected
    assert mt.cond(True, lambda: 1, lambda: 2) == 1
    i, y = mt.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * a), (mt.tensor(0), x))
    assert i.item() == 3 and mt.autograd.grad(y.sum(), x)[0].tolist() == [8.0, 8.0 * 2**7]
    assert mt.while_loop(lambda t: t["n"] > 0, lambda t: [{"n": t["n"] - 1}], [{"n": 4}]) == ({"n": 0},)


def test_control_flow_refuses_what_it_cannot_follow():
    x = mt.ones(2)
    for pred, text in (("s", "bool or tensor, but got 's'"), (x, r"single-element tensor, but got shape \(2,\)")):
        with pytest.raises(RuntimeError, match=text):
            mt.cond(pred, mt.exp, mt.log, (x,))
    with pytest.raises(RuntimeError, match="both branches to be callable"):
        mt.cond(True, mt.exp, 1, (x,))
    for operands in (x, (x, 3)):
        with pytest.raises(RuntimeError, match="operands to be a tuple of"):
            mt.cond(True, mt.exp, mt.log, operands)
    for body in (lambda a: (a[:1],), lambda a: (a.double(),), lambda a: (a, a), lambda a: 1.0):
        with pytest.raises(RuntimeError, match="body_fn to return what it takes"):
            mt.while_loop(lambda a: a.sum() > 0, body, (x,))
    for args, text in (((1, mt.exp, (x,)), "callable"), ((mt.exp, mt.exp, x), "tuple or list"), ((mt.exp, mt.exp, ("s",)), "numbers")):
        with pytest.raises(RuntimeError, match=text):
            mt.while_loop(*args)


def test_numbers_that_a_compiler_may_not_know_are_numbers():
    assert (mt.sym_int(3.7), mt.sym_int(-3.7), mt.sym_float(2), mt.sym_sqrt(4), mt.sym_sum([1, 2])) == (3, -3, 2.0, 2.0, 3)
    assert [type(v) for v in (mt.sym_max(3, 2.0), mt.sym_min(1, 2.0), mt.sym_max(1, 2))] == [float, float, int]
    assert mt.sym_not(True) is False and mt.sym_not(mt.tensor([True])).tolist() == [False] and mt.sym_ite(False, 1, 2) == 2
    with pytest.raises(TypeError, match="two values of one type"):
        mt.sym_ite(True, 1, 2.0)


def test_out_dtype_accumulates_in_the_dtype_that_it_is_given():
    from mortice._higher_order_ops.out_dtype import out_dtype

    x = mt.full((2, 3), 100, dtype=mt.int8)
    found = out_dtype(mt.ops.aten.mm.default, mt.int32, x, x.T)
    assert found.dtype is mt.int32 and found.tolist() == [[30000, 30000]] * 2
