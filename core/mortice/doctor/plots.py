"""Plots as inline SVG that stretches to any width; what is written beside it is HTML, which keeps its size on a phone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

WIDTH, HEIGHT = 1000, 240
Points = Sequence[tuple[float, float | None]]


class Scale:
    """Where a value lies between two ends, from 0 to 1; by orders of magnitude if `log`."""

    def __init__(self, low: float, high: float, log: bool = False, unit: str = "") -> None:
        self.log, self.unit = log, unit
        if log:
            low, high = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
            if high - low < 2:
                low, high = (low, low + 2) if high == low else (low - (high - low < 1), high)
        elif low == high:
            low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
        self.low, self.high = low, high

    def __call__(self, value: float) -> float:
        """Return where it lies; what lies beyond an end is drawn there."""
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Return round values with how they are written."""
        if self.log:
            stride = max(1, -(-int(self.high - self.low) // most))
            return [(10.0**e, power(e)) for e in range(int(self.low), int(self.high) + 1, stride)]
        rough = (self.high - self.low) / most
        unit = 10 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        values = [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return [(v, number(v) + self.unit) for v in values]


def number(v: float, digits: int = 4) -> str:
    """Write a number in a few digits."""
    v = float(f"{v:.{digits}g}")
    if v == 0 or 1e-3 <= abs(v) < 1e5:
        return f"{v:,.4g}" if abs(v) < 1e4 else f"{v:,.0f}"
    return f"{v:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def power(exponent: int) -> str:
    """Write a power of ten."""
    return {0: "1", 1: "10", -1: "0.1"}.get(
        exponent, "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    )


def shade(at: float) -> str:
    """Return the colour of a layer: from that of the first to that of the last, `at` from 0 to 1."""
    return f"color-mix(in oklch, var(--last) {100 * at:.0f}%, var(--first))"


def thinned(points: Points, most: int = 400) -> Points:
    """Leave out points that nobody would see."""
    stride = -(-len(points) // most)
    return points if stride <= 1 else [*points[::stride], points[-1]]


def line(points: Points, x: Scale, y: Scale, colour: str, title: str = "", dots: bool = False) -> str:
    """Return a line through points; it is broken where a value is missing."""
    out, pen = [], "M"
    for at, value in points:
        if value is None:
            pen = "M"
            continue
        out.append(f"{pen}{x(at) * WIDTH:.4g} {(1 - y(value)) * HEIGHT:.4g}")
        pen = "L"
    said = f"<title>{escape(title)}</title>" if title else ""
    path = "".join(out)
    # A point is a line of no length with round ends.
    spots = "".join(f"M{p[1:]}h0" for p in out) if dots or len(out) == 1 else ""
    drawn = f'<path class="dots" d="{spots}" style="stroke:{colour}"/>' if spots else ""
    return f'<g>{said}<path d="{path}" style="stroke:{colour}"/>{drawn}</g>'


def band(y: Scale, low: float, high: float) -> str:
    """Return a band of healthy values."""
    top, bottom = (1 - y(high)) * HEIGHT, (1 - y(low)) * HEIGHT
    return f'<rect class="band" x="0" y="{top:.4g}" width="{WIDTH}" height="{bottom - top:.4g}"/>'


def chart(
    body: Iterable[str], x: Scale, y: Scale, label: str, marks: Iterable[tuple[float, str]] = (), by: str = "step"
) -> str:
    """Return a plot: lines in a frame with ticks; `marks` are moments with what stands at them (HTML)."""
    xs, ys = x.ticks(), y.ticks()
    grid = "".join(
        f'<path class="grid" d="M0 {(1 - y(v)) * HEIGHT:.4g}H{WIDTH}"/>' for v, _ in ys
    )  # fmt: skip
    marks = list(marks)
    moments = "".join(f'<path class="moment" d="M{x(at) * WIDTH:.4g} 0V{HEIGHT}"/>' for at, _ in marks)
    flags = "".join(f'<span class="flag" style="left:{100 * x(at):.2f}%">{said}</span>' for at, said in marks)
    below = "".join(f'<span class="x" style="left:{100 * x(v):.2f}%">{escape(said)}</span>' for v, said in xs)
    beside = "".join(f'<span class="y" style="top:{100 * (1 - y(v)):.2f}%">{escape(said)}</span>' for v, said in ys)
    return (
        f'<div class="chart{" flagged" if marks else ""}"><div class="field">'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f'{grid}{"".join(body)}{moments}</svg>{flags}{beside}{below}<span class="axis">step</span></div></div>'
    )


def legend(names: Sequence[tuple[str, str]]) -> str:
    """Return what the colours mean: (colour, HTML)."""
    return (
        '<div class="legend">' + "".join(f'<span><i style="background:{c}"></i>{n}</span>' for c, n in names) + "</div>"
    )


def ridges(rows: Sequence[tuple[int, list[tuple[float, float]]]], x: Scale, label: str, zones: Iterable[tuple[float, float]] = (),
           ticks: Iterable[tuple[float, str]] | None = None) -> str:  # fmt: skip
    """Return histograms one below the other, (step, [(x, height from 0 to 1)]), the oldest on top."""
    pitch, tall = 26, 44
    height = tall + pitch * (len(rows) - 1) + 2
    out = [
        f'<rect class="zone" x="{x(a) * WIDTH:.4g}" y="0" width="{(x(b) - x(a)) * WIDTH:.4g}" height="{height}"/>'
        for a, b in zones
    ]
    beside = []
    for i, (step, points) in enumerate(rows):
        base = tall + pitch * i
        spots = "".join(f"L{x(at) * WIDTH:.4g} {base - h * (tall - 4):.4g}" for at, h in points)
        first, last = (x(points[0][0]) * WIDTH, x(points[-1][0]) * WIDTH) if points else (0, 0)
        colour = shade(i / max(1, len(rows) - 1))
        out.append(f'<path class="base" d="M0 {base}H{WIDTH}"/>')
        out.append(f'<path class="ridge" d="M{first:.4g} {base}{spots}L{last:.4g} {base}Z" style="fill:{colour};stroke:{colour}">'
                   f"<title>step {step:,}</title></path>")  # fmt: skip
        beside.append(f'<span class="y" style="top:{100 * base / height:.2f}%">{step:,}</span>')
    ticks = x.ticks(4) if ticks is None else ticks
    below = "".join(f'<span class="x" style="left:{100 * x(v):.2f}%">{escape(said)}</span>' for v, said in ticks)
    return (
        f'<div class="chart ridged"><div class="field" style="height:{height}px"><svg viewBox="0 0 {WIDTH} {height}" '
        f'preserveAspectRatio="none" role="img" aria-label="{escape(label)}">{"".join(out)}</svg>{"".join(beside)}{below}</div></div>'
    )
