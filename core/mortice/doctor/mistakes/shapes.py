"""Shapes that fit by accident."""

from __future__ import annotations

import linecache
import re
from typing import Any

from mortice.doctor import events, trail
from mortice.doctor.events import Call
from mortice.doctor.finding import Site
from mortice.doctor.memory import Notes
from mortice.doctor.mistakes.loss import OF_NUMBERS
from mortice.doctor.rule import Rule, register


@register
class ViewAsPermute(Rule):
    """A view to the same sizes in another order, where dims were to be swapped."""

    id = "D06"
    title = "view/reshape where permute was meant"
    why = (
        "view() reads the elements row by row and cuts them into rows of another length: it moves nothing, so that values of "
        "different samples and positions get mixed. The shape is right, the contents are not."
    )
    remedy = "To swap dimensions use permute() or transpose()."

    def start(self) -> None:
        self.regrouped: set[frozenset[int] | None] = set()

    def view(self, event: Call) -> None:
        x, sizes = event.input, event.args[1:]
        if x.numel() <= 64:
            return
        have, want = [n for n in x.shape if n != 1], [n for n in sizes if n != 1]
        if (
            have != want
            and all(isinstance(n, int) for n in want)
            and sorted(have) == sorted(want)
            and (self.session.running or self.session.from_loader(x))
            and events.direct()
            and not self._regrouped(have, want)
        ):
            order = _order(have, want)
            self.report(
                f"view{tuple(sizes)} of a tensor of shape {tuple(x.shape)} only swaps dimension sizes: elements are re-read "
                "row by row, so samples get mixed.",
                remedy=f"To swap dimensions use permute{order} or transpose." if order else None,
                shape=str(tuple(x.shape)),
                sizes=str(tuple(sizes)),
            )

    def _regrouped(self, have: list[int], want: list[int]) -> bool:
        """Tell whether a dim was split and its parts merged with the neighbour, or that is undone: the line computes sizes."""
        pair = _pair(have, want)
        if pair and _computed(events.here()):
            self.regrouped.add(pair)
        return pair in self.regrouped


def _order(have: list[int], want: list[int]) -> tuple[int, ...] | None:
    """Return the permutation that gives those sizes, where there is only one."""
    return tuple(have.index(n) for n in want) if len(set(have)) == len(have) else None


def _pair(have: list[int], want: list[int]) -> frozenset[int] | None:
    """Return the sizes of two neighbours that (T, B, H * D) to (T, B * H, D) would exchange as well; None if it cannot."""
    unlike = [i for i, (a, b) in enumerate(zip(have, want)) if a != b]
    if len(unlike) != 2 or unlike[1] != unlike[0] + 1:
        return None
    a, b = have[unlike[0]], have[unlike[1]]
    return frozenset((a, b)) if a % b == 0 or b % a == 0 else None


def _computed(site: Site) -> bool:
    """Tell whether a line computes sizes, as what splits and merges dims does."""
    text = linecache.getline(site.file, site.line)
    return re.search(r"\w\s*(\*|//)\s*\w", text.partition("view(")[2] or text.partition("reshape(")[2]) is not None


# What gives (n, 1) because its author wanted a column, not because a layer has one output.
_COLUMNS = frozenset(
    "view reshape getitem expand permute unsqueeze sum mean amax amin norm linalg_vector_norm std var prod".split()
)


@register
class AccidentalBroadcast(Rule):
    """A column minus, times or compared with a row of as many elements; an index of the whole batch compared with labels."""

    id = "D07"
    title = "Reduction without dim; accidental broadcasting"
    why = "Each of n values is paired with each of n others. The result has a shape that reduces to a number all the same."
    remedy = "Use squeeze(1) on the predictions, or unsqueeze(1) on the targets."
    ops = ("argmax", "argmin")
    functions = OF_NUMBERS

    def start(self) -> None:
        self.wholes = Notes()  # an index of a whole tensor: which op, and the tensor's shape
        self.columns = Notes()  # indices that were asked for with keepdim

    def call(self, event: Call) -> None:
        x = event.input
        if x.ndim < 2:
            return
        if event.attrs["axis"] is None:
            self.wholes[event.out] = (event.op, tuple(x.shape))
        elif event.out.ndim == 2 and event.out.shape[1] == 1:
            self.columns[event.out] = True

    def function(self, event: Call) -> None:
        a, b = event.input, event.target
        if hasattr(b, "shape") and _column_and_row(a, b):
            self._say(event.op, a, b)

    def broadcast(self, event: Call) -> None:
        a, b = event.args
        if event.op == "eq" and (a.ndim == 0 or b.ndim == 0):
            self._whole(*((a, b) if a.ndim == 0 else (b, a)))
        elif _column_and_row(a, b):
            column, row = (a, b) if a.ndim == 2 else (b, a)
            if self._by_accident(column, row, event.op) and events.direct():
                self._say(event.op, a, b)

    def _whole(self, index: Any, labels: Any) -> None:
        op, shape = self.wholes.get(index, ("", ()))
        if op and labels.ndim == 1 and 1 < labels.shape[0] == shape[0]:
            self.report(
                f"{op}() without dim gave one index for the whole batch and is compared with {labels.shape[0]} labels.",
                remedy=f"Use {op}(dim=1).",
                shape=str(shape),
            )

    def _by_accident(self, column: Any, row: Any, op: str) -> bool:
        """Tell predictions and targets, of which one was to be squeezed, from a table that was asked for."""
        base = column._base
        if base is not None and not (base.ndim == 2 and base.shape[1] == 1):
            return False  # a view that made the column
        if re.search(r"cdist|pairwise|outer|distance|matrix|kernel", events.here().function):
            return False
        if column in self.columns:  # argmax(1, keepdim=True) == labels
            return op == "eq" and row._node is None
        outputs, session = self.session.outputs, self.session
        if session.running and next(session.running[0].parameters(), None) is not None:
            return False  # inside a network, tables of inputs and centres are layers
        if column._node is not None:
            node = _beginning(column)
            if trail.op_of(node) not in ("linear", "matmul", "gather", "conv"):
                return False
            # Differences among the answers themselves, as of pairs to be ranked, are of one source.
            return row._node is None or trail.source(row) is not trail.source(column)
        if session.from_loader(column):
            return row._node is not None or row in outputs or session.from_loader(row) or op == "eq"
        if column in outputs:
            return row not in outputs
        return op == "eq" and session.from_loader(row)  # what was made of answers under no_grad: round(), > 0.5

    def _say(self, op: str, a: Any, b: Any) -> None:
        n = a.shape[0]
        text = {"sub": "minus", "mul": "times", "eq": "=="}.get(op, "and")
        shapes = f"({n}, 1) {text} ({n},)" if a.ndim == 2 else f"({n},) {text} ({n}, 1)"
        where = "" if op in ("sub", "mul", "eq") else f"{op}: "
        self.report(
            f"{where}{shapes} gives ({n}, {n}): every prediction is compared with every target.",
            n=n,
            op=op,
        )


def _column_and_row(a: Any, b: Any) -> bool:
    """Tell whether one is (n, 1) and the other (n,), n > 1."""
    if a.ndim + b.ndim != 3:
        return False
    column, row = (a, b) if a.ndim == 2 else (b, a)
    return bool(column.ndim == 2 and column.shape[1] == 1 and 1 < column.shape[0] == row.shape[0])


def _beginning(column: Any) -> Any:
    """Return the earliest node of the same shape from which a column was made element by element; None if it was arranged."""
    node = next(iter(trail.path(column, frozenset())), None)
    while node is not None and trail.op_of(node) not in _COLUMNS:
        node_before = next((n for n in trail.parents(node) if getattr(n, "shape", None) == column.shape), None)
        if node_before is None or trail.op_of(node) in ("linear", "matmul", "gather"):
            return node
        node = node_before
    return None
