"""Line charts as SVG, drawn here: a result's plot needs no library."""

from __future__ import annotations

import math
from html import escape
from typing import Any, NamedTuple

from mortice.doctor.plots import Scale

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 36, 46
COLOURS = ("#2563ab", "#c2571a", "#3c7a3c", "#7a4ca0")


class Line(NamedTuple):
    """Points to join, and what they are called; `faint` ones stand behind the others."""

    name: str
    xs: list[float]
    ys: list[float]
    faint: bool = False


class Mark(NamedTuple):
    """A place on the x axis that has a name."""

    name: str
    x: float


class Chart(NamedTuple):
    """What is to be drawn, by `svg` or on axes of matplotlib."""

    title: str
    x: str
    y: str
    lines: list[Line]
    marks: list[Mark]
    log: bool = False  # of x

    def on(self, axes: Any) -> Any:
        """Draw on axes of matplotlib; returns them."""
        for line in self.lines:
            axes.plot(line.xs, line.ys, label=line.name, alpha=0.35 if line.faint else 1.0)
        for mark in self.marks:
            axes.axvline(mark.x, linestyle="--", color="grey", label=mark.name)
        if self.log:
            axes.set_xscale("log")
        axes.set_title(self.title)
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.y)
        axes.legend()
        return axes

    def svg(self) -> str:
        """Return the chart as SVG."""
        drawn = [
            (n, list(filter(lambda p: all(map(math.isfinite, p)) and (p[0] > 0 or not self.log), zip(n.xs, n.ys))))
            for n in self.lines
        ]
        points = [p for _, line in drawn for p in line]
        if not points:
            points = [(1.0, 0.0), (10.0, 1.0)]
        sound = [y for line, found in drawn if not line.faint for _, y in found] or [y for _, y in points]
        room = 0.06 * (max(sound) - min(sound))
        xs = [x for x, _ in points] + [m.x for m in self.marks]
        across, up = Scale(min(xs), max(xs), self.log), Scale(min(sound) - room, max(sound) + room)

        def px(x: float) -> float:
            return LEFT + across(x) * (WIDTH - LEFT - RIGHT)

        def py(y: float) -> float:
            return TOP + (1 - up(y)) * (HEIGHT - TOP - BOTTOM)

        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            f'<text x="{LEFT}" y="20" font-size="14" fill="#222222">{escape(self.title)}</text>',
        ]
        foot = HEIGHT - BOTTOM
        for value, said in up.ticks():
            out.append(_line(LEFT, py(value), WIDTH - RIGHT, py(value), "#e4e4e4"))
            out.append(_text(LEFT - 6, py(value) + 4, said, "end"))
        for value, said in across.ticks(9 if self.log else 5):
            out.append(_line(px(value), TOP, px(value), foot, "#e4e4e4"))
            out.append(_text(px(value), foot + 16, said, "middle"))
        out.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, self.x, "middle"))
        out.append(
            f'<text x="14" y="{(TOP + foot) / 2:.0f}" text-anchor="middle" fill="#444444" '
            f'transform="rotate(-90 14 {(TOP + foot) / 2:.0f})">{escape(self.y)}</text>'
        )
        legend = 0
        for i, (line, found) in enumerate(drawn):
            colour = COLOURS[i % len(COLOURS)]
            path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in found)
            opacity = 0.35 if line.faint else 1
            out.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8" opacity="{opacity}"/>'
            )
            if len(drawn) > 1:
                legend += 1
                y = TOP + 14 * legend
                out.append(_line(WIDTH - 150, y - 4, WIDTH - 130, y - 4, colour, opacity))
                out.append(_text(WIDTH - 124, y, line.name))
        for mark in self.marks:
            out.append(_line(px(mark.x), TOP, px(mark.x), foot, "#777777", 1, ' stroke-dasharray="4 3"'))
            end = px(mark.x) > WIDTH / 2
            out.append(_text(px(mark.x) + (-5 if end else 5), TOP + 12, mark.name, "end" if end else "start"))
        return "\n".join([*out, "</svg>", ""])


class Plotted:
    """A result that has a chart."""

    def chart(self) -> Chart:
        """Return what is drawn."""
        raise NotImplementedError

    def plot(self, path: Any = None, *, ax: Any = None) -> Any:
        """Draw on axes of matplotlib if given, else write an SVG file; returns the axes, or the SVG's text."""
        if ax is not None:
            return self.chart().on(ax)
        text = self.chart().svg()
        if path is not None:
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        return text

    def _repr_svg_(self) -> str:
        return self.chart().svg()


def _line(x0: float, y0: float, x1: float, y1: float, colour: str, opacity: float = 1, more: str = "") -> str:
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" opacity="{opacity}"{more}/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#444444">{escape(text)}</text>'

