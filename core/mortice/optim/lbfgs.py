"""L-BFGS, and the line search that finds points of the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mortice
from mortice import Tensor
from mortice.optim.fused import check_lr
from mortice.optim.optimizer import Optimizer


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last `history_size` changes of parameters and gradients; needs a closure."""

    def __init__(
        self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(
            params,
            dict(lr=lr, max_iter=max_iter, max_eval=max_eval, tolerance_grad=tolerance_grad,
                 tolerance_change=tolerance_change, history_size=history_size, line_search_fn=line_search_fn),
        )  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:
        """Take up to `max_iter` steps; `closure` clears the gradients, computes the loss anew and returns it.

        Returns:
            The loss before the first step.
        """
        group = self.param_groups[0]
        lr, max_iter, smallest = group["lr"], group["max_iter"], group["tolerance_change"]
        lr = lr.item() if isinstance(lr, Tensor) else lr
        search = group["line_search_fn"]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate() -> Any:
            with mortice.enable_grad():
                return closure()

        first = evaluate()
        loss, g = _number(first), self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        if not g.numel() or _largest(g) <= group["tolerance_grad"]:
            return first
        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d, t = -g, min(1.0, 1.0 / g.abs().sum()) * lr
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                self._remember(state, g, group["history_size"])
                state.setdefault("al", [None] * group["history_size"])
                d, t = _newton_direction(state, g), lr
            previous = loss
            state.update(d=d, t=t, prev_flat_grad=g, prev_loss=loss)
            slope = g.dot(d)
            if slope > -smallest:
                break
            used = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [p.detach().clone() for p in group["params"]]

                def probe(t: Any) -> Point:
                    self._move(t, d)  # noqa: B023 (called in this iteration)
                    value = _number(evaluate())
                    g = self._gradient()
                    self._put(start)  # noqa: B023
                    return Point(t, value, g, g.dot(d))  # noqa: B023

                most = group["max_eval"] - evaluations
                (t, loss, g, _), used = strong_wolfe(probe, Point(0, loss, g, slope), t, _largest(d), most=most)
                state["t"] = t
                self._move(t, d)
            else:
                self._move(t, d)
                if iteration != max_iter:
                    loss, g, used = _number(evaluate()), self._gradient(), 1
            evaluations += used
            state["func_evals"] += used
            if (
                iteration == max_iter or evaluations >= group["max_eval"] or _largest(g) <= group["tolerance_grad"]
                or _largest(d * t) <= smallest or abs(loss - previous) < smallest
            ):  # fmt: skip
                break
        return first

    def _remember(self, state: dict[str, Any], g: Any, size: int) -> None:
        """Add the last change to the history if the curvature along it is positive."""
        change, way = g - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(way)
        if float(curvature) > 1e-10:
            for name, value in (("old_dirs", change), ("old_stps", way), ("ro", 1.0 / curvature)):
                if len(state[name]) == size:
                    state[name].pop(0)
                state[name].append(value)
            state["H_diag"] = curvature / change.dot(change)

    # ---- all parameters as one vector; complex ones are pairs of reals in it ----

    def _gradient(self) -> Any:
        parts = [mortice.zeros_like(p) if p.grad is None else p.grad.detach() for p in self.param_groups[0]["params"]]
        return mortice.cat([_real(part).reshape(-1) for part in parts])

    def _move(self, t: Any, d: Any) -> None:
        """Go t times d from here."""
        at = 0
        with mortice.no_grad():
            for p in self.param_groups[0]["params"]:
                view = _real(p)
                view.add_(d[at : at + view.numel()].reshape(view.shape), alpha=t)
                at += view.numel()

    def _put(self, values: list[Any]) -> None:
        with mortice.no_grad():
            for p, value in zip(self.param_groups[0]["params"], values):
                p.copy_(value)


def _real(t: Any) -> Any:
    return mortice.view_as_real(t) if t.is_complex() else t


def _number(loss: Any) -> float:
    return float(loss.item() if isinstance(loss, mortice.Tensor) else loss)  # item() does not warn of the gradient


def _largest(x: Any) -> Any:
    return x.abs().max()


def _newton_direction(state: dict[str, Any], g: Any) -> Any:
    """Apply the inverse Hessian that the history implies to -g, by the two loops of L-BFGS."""
    changes, ways, ro, shares = state["old_dirs"], state["old_stps"], state["ro"], state["al"]
    d = -g
    for i in reversed(range(len(changes))):
        shares[i] = ways[i].dot(d) * ro[i]
        d.add_(changes[i], alpha=-shares[i])
    d = d * state["H_diag"]
    for i in range(len(changes)):
        d.add_(ways[i], alpha=shares[i] - changes[i].dot(d) * ro[i])
    return d


class Point(NamedTuple):
    """A step length, and the loss, gradient and slope there.

    The slope is a tensor, and so are the lengths that follow from it: the search is in the precision of the parameters,
    so that it probes PyTorch's points to the last bit.
    """

    t: Any
    loss: float
    g: Any
    slope: Any


def strong_wolfe(
    probe: Callable[[Any], Point], start: Point, t: Any, size: Any, c1: float = 1e-4, c2: float = 0.9,
    smallest: float = 1e-9, most: int = 25,
) -> tuple[Point, int]:  # fmt: skip
    """Find a step that lowers the loss and the slope enough (Nocedal and Wright, algorithms 3.5 and 3.6).

    Args:
        probe: evaluates a step length.
        start: the point of step 0.
        t: the step length to try first.
        size: the largest change of a parameter that step length 1 makes.

    Returns:
        The point found, and how often `probe` was called.
    """

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -c2 * start.slope

    # Go on until a step has passed the valley: then a good one lies between it and the step before.
    before, here, calls = start, probe(t), 1
    while calls <= most:
        if too_high(here) or (calls > 2 and here.loss >= before.loss):
            break
        if flat(here):
            return here, calls
        if here.slope >= 0:
            break
        t = cubic_minimum(before, here, here.t + 0.01 * (here.t - before.t), here.t * 10)
        before, here, calls = here, probe(t), calls + 1
    else:
        before = start

    # Narrow the bracket; `low` is its end with the lower loss.
    low, high = (before, here) if before.loss <= here.loss else (here, before)
    stuck = False
    while calls <= most and abs(high.t - low.t) * size >= smallest:
        left, right = min(low.t, high.t), max(low.t, high.t)
        t = cubic_minimum(low, high, left, right)
        margin = 0.1 * (right - left)
        close = min(right - t, t - left) < margin
        if close and (stuck or t >= right or t <= left):
            t, close = (right - margin if abs(t - right) < abs(t - left) else left + margin), False
        stuck = close
        here, calls = probe(t), calls + 1
        if too_high(here) or here.loss >= low.loss:
            low, high = (low, here) if low.loss <= here.loss else (here, low)
            continue
        if flat(here):
            return here, calls
        if here.slope * (high.t - low.t) >= 0:
            high = low
        low = here
    return low, calls


def cubic_minimum(a: Point, b: Point, left: Any, right: Any) -> Any:
    """Return where the cubic through two points with their slopes is lowest within bounds; their middle if nowhere."""
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (left + right) / 2
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (left + right) / 2
    d2 = square**0.5
    bottom = b.slope - a.slope + 2 * d2
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / bottom) if bottom else right
    return min(max(t, left), right)


# ---- the two by the names and arguments of PyTorch's file, from which other optimizers import them ----


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> Any:
    left, right = bounds or (min(x1, x2), max(x1, x2))
    return cubic_minimum(Point(x1, f1, None, g1), Point(x2, f2, None, g2), left, right)


def _strong_wolfe(
    obj_func: Callable[..., Any], x: Any, t: Any, d: Any, f: Any, g: Any, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
    tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[Any, Any, Any, int]:  # fmt: skip
    def probe(t: Any) -> Point:
        loss, found = obj_func(x, t, d)
        return Point(t, loss, found.clone(), found.dot(d))

    point, calls = strong_wolfe(probe, Point(0, f, g.clone(), gtd), t, d.abs().max(), c1, c2, tolerance_change, max_ls)
    return point.loss, point.g, point.t, calls
