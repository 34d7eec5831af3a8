"""Does a search over a hyper-parameter end inside its range?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mortice.doctor.mistakes.checks import BestAtTheEdge
from mortice.doctor.tools.chart import Chart, Line, Mark, Plotted
from mortice.doctor.tools.result import Result


class Sweep(Plotted, Result):
    """What `sweep_verdict` returns.

    Attributes:
        tried: (value, loss) in the order of values.
        best: the value of the lowest loss.
        name: what was searched for.
    """

    def __init__(self, name: str, tried: list[tuple[float, float]]) -> None:
        super().__init__("sweep_verdict")
        self.name, self.tried = name, tried
        self.best = min((pair for pair in tried if math.isfinite(pair[1])), key=lambda p: p[1], default=(math.nan, 0))[
            0
        ]

    def lines(self) -> list[str]:
        return [f"{value:<10g} {loss:.4g}{'  <- best' if value == self.best else ''}" for value, loss in self.tried]

    def chart(self) -> Chart:
        xs, ys = [v for v, _ in self.tried], [loss for _, loss in self.tried]
        marks = [] if math.isnan(self.best) else [Mark("best", self.best)]
        return Chart(f"Sweep over {self.name}", self.name, "loss", [Line("loss", xs, ys)], marks, xs[0] > 0)


def sweep_verdict(losses: Mapping[float, Any], *, name: str = "learning rate") -> Sweep:
    """Tell whether the best value of a search is the smallest or largest tried, so that the range should be extended.

    Args:
        losses: the loss (the lower the better) of each value tried: {0.01: 0.61, 0.1: 0.42, 1.0: 0.55}. A run that
            diverged may be there as inf or nan.
        name: what was searched for.
    """
    try:
        tried = sorted((float(value), float(loss)) for value, loss in losses.items())
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(
            f"sweep_verdict: expected a dict from values to losses, numbers both; got {losses!r}."
        ) from error
    if not tried:
        raise ValueError("sweep_verdict: expected at least one value that was tried; got none.")
    result = Sweep(name, tried)
    ranked = sorted(loss for _, loss in tried if math.isfinite(loss))
    if len(tried) < 3 or len(ranked) < 2 or ranked[1] - ranked[0] < 0.01 * abs(ranked[0]):
        return result.told()
    values = [value for value, _ in tried]
    for edge, inside, kind, way in ((0, 1, "smallest", "downwards"), (-1, -2, "largest", "upwards")):
        if result.best != values[edge]:
            continue
        ratio = values[edge] / values[inside] if values[inside] and values[0] > 0 else 0.0
        next_ones = [values[edge] * ratio, values[edge] * ratio**2] if ratio else []
        result.find(
            BestAtTheEdge,
            f"The best {name} {result.best:g} is the {kind} one tried; extend the range {way}.",
            remedy=f"Try {' and '.join(f'{v:.3g}' for v in next_ones)} as well." if next_ones else None,
            best=result.best,
        )
    return result.told()
