"""einsum: sums of products written with one letter per dim, done by permutations and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mortice.errors import ShapeError
from mortice.modes import autocasting
from mortice.ops import elementwise
from mortice.ops.matmul import matmul
from mortice.ops.movement import permute, reshape
from mortice.ops.strided import diagonal
from mortice.ops.views import many
from mortice.shape import Size, prod
from mortice.tensor import TensorBase

__all__ = ["einsum"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# A dim's label: a letter, or for the dims of an ellipsis its distance from the last of them.
Labels = list[Any]


@autocasting
def einsum(*args: Any) -> Any:
    """Sum products of operands' elements as an equation says: `einsum("bij,bjk->bik", x, y)`.

    Also takes each operand followed by its list of dim numbers, with those of the output last.
    """
    equation, operands = _read(args)
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    inputs, output = _parse(equation, tuple([len(x.shape) for x in operands]))
    if operands[0].dtype.kind in "bui":
        everywhere = [v for labels in inputs for v in dict.fromkeys(labels)]
        if any(everywhere.count(v) == 1 and v not in output for v in everywhere):
            # As in PyTorch, integers that are summed before any product add up in int64.
            operands = [x.long() for x in operands]
    sizes: dict[Any, int] = {}
    terms = []
    for i, (x, labels) in enumerate(zip(operands, inputs)):
        terms.append(_unique(x, labels, i))
        x, labels = terms[-1]
        for label, n in zip(labels, x.shape):
            have = sizes.setdefault(label, n)
            if have == 1:
                sizes[label] = n
            elif n not in (1, have):
                raise ShapeError(
                    f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with "
                    f"previously seen size {have}"
                )
    while len(terms) > 1:
        i, j = (0, 1) if len(terms) == 2 else _cheapest(terms, sizes)
        b, a = terms.pop(j), terms.pop(i)
        needed = tuple(dict.fromkeys([*output, *[v for _, labels in terms for v in labels]]))
        terms.insert(i, _contract(a, b, needed))
    return _finish(*terms[0], output, operands)


def _read(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Return the equation and the operands, from either way of writing them."""
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand")
    if isinstance(args[0], str):
        return args[0], many("einsum", args[1:]) if len(args) > 1 else []
    if not isinstance(args[0], TensorBase):
        raise TypeError(f"einsum(): expected an equation or a Tensor first; got {type(args[0]).__name__}.")

    def letters(subscripts: Any) -> str:
        out = []
        for s in subscripts:
            if s is Ellipsis:
                out.append("...")
            elif isinstance(s, int) and 0 <= s < 52:
                out.append(_LETTERS[s])
            else:
                raise ValueError(
                    f"einsum(): subscript in subscript list is not within the valid range [0, 52); got {s!r}"
                )
        return "".join(out)

    if len(args) < 2:
        raise ValueError("einsum(): expected a list of dim numbers after each operand.")
    pairs = len(args) // 2
    equation = ",".join(letters(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + letters(args[-1])
    return equation, [args[2 * i] for i in range(pairs)]


@lru_cache(1024)
def _parse(equation: str, ranks: tuple[int, ...]) -> tuple[list[Labels], Labels]:
    """Return the labels of operands of so many dims, and the output's; nobody writes into them."""
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        what = "more" if len(ranks) > len(parts) else "fewer"
        raise RuntimeError(f"einsum(): {what} operands were provided than specified in the equation")
    inputs, widest = [], 0
    dotted = False
    for i, (part, rank) in enumerate(zip(parts, ranks)):
        names = _letters(part, f"operand {i}")
        rest = rank - (len(names) - ("..." in names))
        if rest < 0 or ("..." not in names and rest):
            raise ShapeError(
                f"einsum(): the number of subscripts in the equation ({len(names) - ('...' in names)}) "
                f"{'is more than' if rest < 0 and '...' in names else 'does not match'} the number of dimensions ({rank}) for "
                f"operand {i}{'' if '...' in names else ' and no ellipsis was given'}"
            )
        labels: Labels = []
        for name in names:
            if name == "...":
                dotted = True
                widest = max(widest, rest)
                labels.extend(range(rest, 0, -1))
            else:
                labels.append(name)
        inputs.append(labels)
    if arrow:
        names = _letters(right, "output")
        output: Labels = []
        seen = {label for labels in inputs for label in labels}
        for name in names:
            if name == "...":
                output.extend(range(widest, 0, -1))
                continue
            if name in output:
                raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
            if name not in seen:
                raise RuntimeError(
                    f"einsum(): output subscript {name} does not appear in the equation for any input operand"
                )
            output.append(name)
        return inputs, output
    counts: dict[Any, int] = {}
    for labels in inputs:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    once = sorted(label for label, n in counts.items() if n == 1 and isinstance(label, str))
    return inputs, [*(range(widest, 0, -1) if dotted else ()), *once]


def _letters(part: str, where: str) -> list[str]:
    names, i = [], 0
    while i < len(part):
        if part[i] == ".":
            if "..." in names:
                there = "but an ellipsis (...)" if where == "output" else "for which an ellipsis"
                raise RuntimeError(f"einsum(): found '.' for {where} {there} was already found")
            if part[i : i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis (...)")
            names.append("...")
            i += 3
        elif part[i] == " ":
            i += 1
        elif part[i].isascii() and part[i].isalpha():
            names.append(part[i])
            i += 1
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in [a-zA-Z]"
            )
    return names


def _unique(x: Any, labels: Labels, number: int) -> tuple[Any, Labels]:
    """Take diagonals where an operand has a label twice."""
    while len(set(labels)) < len(labels):
        label = next(v for v in labels if labels.count(v) > 1)
        a = labels.index(label)
        b = labels.index(label, a + 1)
        if x.shape[a] != x.shape[b]:
            raise ShapeError(
                f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't match, {x.shape[b]} "
                f"!= {x.shape[a]}"
            )
        x = diagonal(x, 0, a, b)
        labels = [v for i, v in enumerate(labels) if i not in (a, b)] + [label]
    return x, labels


def _cheapest(terms: list[tuple[Any, Labels]], sizes: dict[Any, int]) -> tuple[int, int]:
    """Pick the pair whose product takes the fewest multiplications."""
    pairs = [(i, j) for j in range(len(terms)) for i in range(j)]
    return min(pairs, key=lambda p: prod(sizes[v] for v in {*terms[p[0]][1], *terms[p[1]][1]}))


def _arrange(x: Any, order: tuple[int, ...] | None, dims: tuple[int, ...], view: bool = True) -> Any:
    """Bring the dims into an order, then sum the last ones: the sum lies in memory in that order, as in PyTorch.

    Where those are 1 it may be a view.
    """
    if order is not None:
        x = permute(x, order)
    if not dims:
        return x
    if view and all(x.shape[d] == 1 for d in dims):
        return reshape(x, x.shape[: dims[0]])
    return x.sum(dims, dtype=x.dtype)


class _Pair:
    """How to multiply two terms of given labels and shapes, and sum the labels that nothing else needs."""

    def __init__(self, lx: tuple[Any, ...], ly: tuple[Any, ...], x: Size, y: Size, needed: tuple[Any, ...]) -> None:
        sx, sy = dict(zip(lx, x)), dict(zip(ly, y))
        # A shared dim that is 1 on one side only broadcasts: it belongs to the other side. One that is 1 on both and not
        # needed is no sum: where no other is left the dtypes may differ, as for any product of elements.
        shared = [v for v in lx if v in sy and (sx[v] == 1) == (sy[v] == 1) and (sx[v] != 1 or v in needed)]
        mine = [v for v in lx if v in shared or v not in sy or sx[v] != 1]
        its = [v for v in ly if v in shared or v not in sx or sy[v] != 1]
        # Dims lie in the order of the output, as PyTorch has them; so the product is often the output as it stands.
        only_x = [v for v in needed if v in mine and v not in shared]
        only_y = [v for v in needed if v in its and v not in shared]
        inner = [v for v in shared if v not in needed]
        batch = [v for v in needed if v in shared]
        at = needed.index
        # A dim that is 1 on both sides counts as the second one's where PyTorch asks which operand comes first.
        first = [v for v in only_x if sx[v] != 1]
        second = [v for v in needed if v not in first and (v in only_x or v in only_y or v in batch and sx[v] == 1)]
        self.swapped = bool(inner and first and second) and at(second[-1]) < at(first[0])
        left_x, left_y = {*only_x, *shared}, {*only_y, *shared}
        self.labels = [*batch, *only_x, *only_y] if inner else sorted((*batch, *only_x, *only_y), key=at)
        b, n, m = [sx[v] for v in batch], [sx[v] for v in only_x], [sy[v] for v in only_y]
        self.shape = (*b, *n, *m)
        self.inner = tuple(range(len(b), len(b) + len(inner)))  # of what is multiplied element by element
        self.apart = not inner
        order_x, order_y = (*batch, *only_x, *inner), (*batch, *inner, *only_y)
        if not inner:
            order_x, order_y = tuple(sorted(left_x, key=at)), tuple(sorted(left_y, key=at))
            self.shape_x = tuple([sx[v] if v in left_x else 1 for v in self.labels])
            self.shape_y = tuple([sy[v] if v in left_y else 1 for v in self.labels])
        else:
            lead, inside = (prod(b),) if batch else (), prod([sx[v] for v in inner])
            self.shape_x, self.shape_y = (*lead, prod(n), inside), (*lead, inside, prod(m))
        # What is summed beforehand goes last, for the sum to lie in that order, too.
        self.sum_x, self.sum_y = tuple(range(len(order_x), len(lx))), tuple(range(len(order_y), len(ly)))
        self.order_x = _order(lx, (*order_x, *[v for v in lx if v not in order_x]))
        self.order_y = _order(ly, (*order_y, *[v for v in ly if v not in order_y]))
        # Rows times rows: an elementwise product and a sum beat as many products of one row and one column.
        self.rows = bool(batch and inner and not only_x and not only_y)


def _order(labels: Sequence[Any], wanted: tuple[Any, ...]) -> tuple[int, ...] | None:
    order = tuple([labels.index(v) for v in wanted])
    return None if order == tuple(range(len(order))) else order


_pair = lru_cache(1024)(_Pair)


def _contract(a: tuple[Any, Labels], b: tuple[Any, Labels], needed: tuple[Any, ...]) -> tuple[Any, Labels]:
    """Multiply two terms and sum the labels that nothing else needs."""
    (x, lx), (y, ly) = a, b
    plan = _pair(tuple(lx), tuple(ly), x.shape, y.shape, needed)
    if plan.swapped:
        return _contract(b, a, needed)
    x, y = _arrange(x, plan.order_x, plan.sum_x), _arrange(y, plan.order_y, plan.sum_y)
    if plan.rows and x.dtype.itemsize >= 4:  # a shorter float would round each product
        return elementwise.mul(x, y).sum(plan.inner, dtype=x.dtype), plan.labels
    if x.shape != plan.shape_x:
        x = reshape(x, plan.shape_x)
    if y.shape != plan.shape_y:
        y = reshape(y, plan.shape_y)
    if plan.apart:
        return elementwise.mul(x, y), plan.labels
    product = matmul(x, y)
    return product if product.shape == plan.shape else reshape(product, plan.shape), plan.labels


def _finish(x: Any, labels: Labels, output: Labels, operands: list[Any]) -> Any:
    kept = [v for v in output if v in labels]
    order = _order(labels, (*kept, *[v for v in labels if v not in kept]))
    x = _arrange(x, order, tuple(range(len(kept), len(labels))), view=len(operands) > 1)  # what is given shares no memory
    # An ellipsis of the output may be wider than what any operand filled in: those dims are 1.
    if len(kept) < len(output):
        x = reshape(x, [x.shape[kept.index(v)] if v in kept else 1 for v in output])
    return x.clone() if any(x is operand for operand in operands) else x
