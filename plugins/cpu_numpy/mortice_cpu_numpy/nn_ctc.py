"""ctc_loss with one step's states in cache: shifted states are views of one buffer with room at its left.

What cannot be is the kernels' NEVER, so that a step from outside and a forbidden one are plain additions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice.backends.nn_ctc import NEVER
from mortice_cpu_numpy.nn_tools import FULL, silent


class CTCOverrides:
    """ctc_loss and its gradient; half precision goes the default way."""

    @silent
    def ctc_loss(
        self, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any, *, blank: int = 0,
        zero_infinity: bool = False,
    ) -> Any:  # fmt: skip
        if log_probs.dtype not in FULL:
            attrs = {"blank": blank, "zero_infinity": zero_infinity}
            return super().ctc_loss(log_probs, labels, input_lengths, target_lengths, **attrs)
        emitted, forbidden = _lattice(log_probs, labels, blank)
        reached = np.empty_like(emitted)
        reached[0] = NEVER
        reached[0, :, :2] = 0
        last, ways = _shifts(emitted)
        top, work, total = np.empty((3, *forbidden.shape), emitted.dtype)
        for t in range(1, len(emitted)):
            np.add(reached[t - 1], emitted[t - 1], out=last)
            skipped = np.add(ways[2], forbidden, out=reached[t])
            np.maximum(last, ways[1], out=top)
            np.maximum(top, skipped, out=top)
            np.exp(np.subtract(skipped, top, out=total), out=total)
            for way in ways[:2]:
                np.exp(np.subtract(way, top, out=work), out=work)
                np.add(total, work, out=total)
            np.add(np.log(total, out=total), top, out=reached[t])
        _, total = _ends(reached, emitted, input_lengths, target_lengths)
        return np.where(total <= NEVER / 2, total.dtype.type(0 if zero_infinity else np.inf), -total), reached

    @silent
    def ctc_loss_grad(
        self, g: Any, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any, reached: Any = None, *,
        blank: int = 0, zero_infinity: bool = False,
    ) -> Any:  # fmt: skip
        if log_probs.dtype not in FULL or reached is None:
            attrs = {"blank": blank, "zero_infinity": zero_infinity}
            return super().ctc_loss_grad(g, log_probs, labels, input_lengths, target_lengths, reached, **attrs)
        emitted, forbidden = _lattice(log_probs, labels, blank)
        finals, total = _ends(reached, emitted, input_lengths, target_lengths)
        possible = ~(total <= NEVER / 2)  # nan is
        samples = np.arange(len(total))
        occupied, here = np.zeros_like(emitted), np.zeros((forbidden.shape[0], forbidden.shape[1] + 2), emitted.dtype)
        last, ways = _shifts(emitted)
        back = _views(here)
        taken = np.empty_like(forbidden)
        for t in range(len(emitted) - 1, -1, -1):
            now = occupied[t]
            now[...] = back[0]
            ending = samples[(input_lengths == t + 1) & possible]
            for number, share in zip((2 * target_lengths, 2 * target_lengths - 1), finals):
                some = ending[number[ending] >= 0]
                now[some, number[some]] = np.exp(share - total)[some]
            if t == 0:
                break
            np.add(reached[t - 1], emitted[t - 1], out=last)
            here[...] = 0
            for number, way in enumerate(ways):
                np.subtract(way, reached[t], out=taken)
                if number == 2:
                    np.add(taken, forbidden, out=taken)
                np.exp(taken, out=taken)
                np.multiply(taken, now, out=taken)
                np.add(back[number], taken, out=back[number])
        out = np.exp(log_probs)
        out[:, :, blank] -= np.add.reduce(occupied[:, :, ::2], axis=2)
        for s in range(labels.shape[1]):  # one label of each sample: no place twice
            out[:, samples, labels[:, s]] -= occupied[:, :, 2 * s + 1]
        out *= np.where(possible, g + 0 * total, g.dtype.type(0 if zero_infinity else np.nan))[:, None]
        out[np.arange(len(out))[:, None] >= input_lengths] = 0
        return out


def _lattice(log_probs: Any, labels: Any, blank: int) -> tuple[Any, Any]:
    """Return what each state emits at each time (T, N, 2 S + 1), and NEVER where a state is not entered over a blank."""
    time, n, classes = log_probs.shape
    states = np.full((n, 2 * labels.shape[1] + 1), blank)
    states[:, 1::2] = labels
    at = states + np.arange(n)[:, None] * classes
    emitted = np.maximum(np.take(log_probs.reshape(time, n * classes), at, axis=1), log_probs.dtype.type(NEVER))
    forbidden = np.full(states.shape, NEVER, log_probs.dtype)
    forbidden[:, 2:][states[:, 2:] != states[:, :-2]] = 0
    return emitted, forbidden


def _views(x: Any) -> list[Any]:
    """Return states (N, L) in a buffer (N, L + 2), and the same one and two to the right."""
    return [x[:, 2:], x[:, 1:-1], x[:, :-2]]


def _shifts(emitted: Any) -> tuple[Any, list[Any]]:
    """Return a place for a time's states, and how they are seen from themselves and the two states after."""
    ways = _views(np.full((emitted.shape[1], emitted.shape[2] + 2), NEVER, emitted.dtype))
    return ways[0], ways


def _ends(reached: Any, emitted: Any, input_lengths: Any, target_lengths: Any) -> tuple[Any, Any]:
    """Return the log-likelihoods of ending in the last blank and in the last label, and the log of their sum."""
    samples, last = np.arange(len(input_lengths)), np.maximum(input_lengths - 1, 0)
    at = (2 * target_lengths, np.maximum(2 * target_lengths - 1, 0))
    ended, label = (reached[last, samples, s] + emitted[last, samples, s] for s in at)
    never = label.dtype.type(NEVER)
    label = np.where(target_lengths == 0, never, label)
    total = np.logaddexp(ended, label)
    return (ended, label), np.where(input_lengths == 0, np.where(target_lengths == 0, 0, never), total)
