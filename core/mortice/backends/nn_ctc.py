"""Connectionist temporal classification: the log-likelihood of labels under all their alignments, and its gradient.

The labels of a sample with a blank around each of them are its states; every step stays, moves on by one, or moves on
by two over a blank between different labels. All samples and states advance together, one step of time after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, widen
from mortice.dtype import int64

# The logarithm of what cannot be: finite, so that no difference of two of them is nan.
NEVER = -1e30


class CTCKernels(KernelMixin):
    """FREE: `labels` (N, S), S > 0, has any class after a sample's `target_lengths`; lengths are (N,) int64."""

    def ctc_loss(
        self, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any, *, blank: int = 0,
        zero_infinity: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Return (losses (N,), reached (T, N, 2 S + 1)).

        `reached` is the log of the sum over all ways to a state at each time, before the emission there; in float32
        where the losses are narrower.
        """
        dtype = self.dtype_of(log_probs)
        log_probs = widen(self, log_probs)
        states, skips = _states(self, labels, blank)
        emitted = _emitted(self, log_probs, states)
        time = self.shape_of(log_probs)[0]
        start = self.less(_numbers(self, states, 1), 2)
        reached = [self.where(start, self.new_full(emitted, tuple(self.shape_of(states)), 0), NEVER)]
        for t in range(time - 1):
            last = self.add(reached[-1], self.getitem(emitted, (t,)))
            ways = _ways(self, last, skips)
            reached.append(self.logaddexp(self.logaddexp(ways[0], ways[1]), ways[2]))
        found = self.stack(reached, axis=0)
        _, total = _ends(self, self.add(found, emitted), input_lengths, target_lengths)
        losses = self.where(_possible(self, total), self.negative(total), 0 if zero_infinity else float("inf"))
        return narrow(self, losses, dtype), found

    def ctc_loss_grad(
        self, g: Any, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any, reached: Any = None, *,
        blank: int = 0, zero_infinity: bool = False,
    ) -> Any:  # fmt: skip
        """Return g * (exp(log_probs) - share of the class in the likelihood) inside each sample's input length.

        As PyTorch defines it: the gradient of the losses wherever `log_probs` comes out of log_softmax.
        """
        dtype = self.dtype_of(g)
        g, log_probs = widen(self, g), widen(self, log_probs)
        if reached is None:
            reached = self.ctc_loss(log_probs, labels, input_lengths, target_lengths, blank=blank)[1]
        states, skips = _states(self, labels, blank)
        emitted = _emitted(self, log_probs, states)
        ended = self.add(reached, emitted)
        ends, total = _ends(self, ended, input_lengths, target_lengths)
        possible = _possible(self, total)
        likely = self.reshape(self.where(possible, total, 0), (-1, 1))
        # A state's share at the end of its sample, then back in time: each way into a state takes its part of it.
        number, size = _numbers(self, states, 1), self.reshape(self.multiply(target_lengths, 2), (-1, 1))
        final = self.logical_or(self.equal(number, size), self.equal(number, self.subtract(size, 1)))
        shares = self.where(final, self.exp(self.subtract(ends, likely)), 0)
        last_step = self.subtract(input_lengths, 1)
        time = self.shape_of(log_probs)[0]
        occupied = [self.where(_column(self, self.equal(last_step, time - 1)), shares, 0)]
        for t in range(time - 1, 0, -1):
            ways = _ways(self, self.getitem(ended, (t - 1,)), skips)
            into = self.getitem(reached, (t,))
            taken = [self.multiply(occupied[-1], self.exp(self.subtract(way, into))) for way in ways]
            here = self.add(self.add(taken[0], _back(self, taken[1], 1)), _back(self, taken[2], 2))
            occupied.append(self.where(_column(self, self.equal(last_step, t - 1)), shares, here))
        occupied = self.stack(occupied[::-1], axis=0)
        at = self.broadcast_to(self.expand_dims(states, 0), tuple(self.shape_of(occupied)))
        by_class = self.scatter_add(self.zeros_like(log_probs), at, occupied, axis=2)
        # A sample whose likelihood is nan has no gradient but nan, in every class.
        g = self.where(possible, self.add(g, self.multiply(total, 0)), 0 if zero_infinity else float("nan"))
        pulled = self.multiply(self.subtract(self.exp(log_probs), by_class), self.reshape(g, (1, -1, 1)))
        inside = self.less(self.new_arange(input_lengths, 0, time, dtype=int64), _column(self, input_lengths))
        inside = self.expand_dims(self.matrix_transpose(inside), 2)
        return narrow(self, self.where(inside, pulled, 0), dtype)


def _column(k: Any, x: Any) -> Any:
    return k.reshape(x, (-1, 1))


def _numbers(k: Any, like: Any, axis: int) -> Any:
    return k.new_arange(like, 0, k.shape_of(like)[axis], dtype=int64)


def _states(k: Any, labels: Any, blank: int) -> tuple[Any, Any]:
    """Return the class of each state (N, 2 S + 1), and whether it may be entered from two states before."""
    n, size = k.shape_of(labels)
    pairs = k.stack([k.full_like(labels, blank), labels], axis=2)
    states = k.concat([k.reshape(pairs, (n, 2 * size)), k.new_full(labels, (n, 1), blank)], axis=1)
    # Blanks lie two apart, so that none of them differs from the one before.
    differs = k.not_equal(k.getitem(states, (slice(None), slice(2, None))), k.getitem(states, (slice(None), slice(0, -2))))
    never = k.less(k.getitem(states, (slice(None), slice(0, 2))), 0)
    return states, k.concat([never, differs], axis=1)


def _emitted(k: Any, log_probs: Any, states: Any) -> Any:
    """Return what each state emits at each time (T, N, 2 S + 1), no less than NEVER."""
    shape = (k.shape_of(log_probs)[0], *k.shape_of(states))
    at = k.broadcast_to(k.expand_dims(states, 0), shape)
    return k.maximum(k.take_along_axis(log_probs, at, axis=2), NEVER)


def _back(k: Any, x: Any, by: int) -> Any:
    """Move (N, L) back along the states; 0 comes in from outside."""
    return k.pad(k.getitem(x, (slice(None), slice(by, None))), ((0, 0), (0, by)), 0)


def _ways(k: Any, last: Any, skips: Any) -> Sequence[Any]:
    """Return the log-likelihood of coming into each state from itself, the state before, and the one before that."""
    padded = k.pad(last, ((0, 0), (2, 0)), NEVER)
    one, two = (k.getitem(padded, (slice(None), slice(i, -j))) for i, j in ((1, 1), (0, 2)))
    return last, one, k.where(skips, two, NEVER)


def _ends(k: Any, ended: Any, input_lengths: Any, target_lengths: Any) -> tuple[Any, Any]:
    """Return each sample's log-likelihoods at its last time (N, L), and the log of their sum over its final states."""
    _, n, size = k.shape_of(ended)
    at = k.broadcast_to(k.reshape(k.maximum(k.subtract(input_lengths, 1), 0), (1, n, 1)), (1, n, size))
    ends = k.reshape(k.take_along_axis(ended, at, axis=0), (n, size))
    last = k.multiply(target_lengths, 2)
    blank = k.reshape(k.take_along_axis(ends, _column(k, last), axis=1), (n,))
    label = k.reshape(k.take_along_axis(ends, _column(k, k.maximum(k.subtract(last, 1), 0)), axis=1), (n,))
    empty = k.equal(target_lengths, 0)
    total = k.logaddexp(blank, k.where(empty, NEVER, label))
    # Without any input nothing is said, which is right where there is no label.
    return ends, k.where(k.equal(input_lengths, 0), k.where(empty, k.zeros_like(total), NEVER), total)


def _possible(k: Any, total: Any) -> Any:
    return k.logical_not(k.less_equal(total, NEVER / 2))  # nan is
