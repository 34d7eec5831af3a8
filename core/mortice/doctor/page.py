"""The report as a self-contained HTML page: nothing fetched and no script; the findings, and plots where looking is better."""

from __future__ import annotations

import importlib.resources
import linecache
import math
import os
import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any

import mortice
from mortice.doctor import plots
from mortice.doctor.finding import Finding, Site
from mortice.doctor.samples import DECADES, PER_DECADE, Track
from mortice.doctor.table import near, ordered, summary

if TYPE_CHECKING:
    from mortice.doctor.session import Session

AROUND = 3  # lines of the source shown on either side
ROWS = 7  # histograms of a layer, over time
AT_ONCE = 12  # layers shown before the rest is folded away
UPDATES = (
    "How far a step moves a layer's weights, over their size. Healthy: around 10⁻³, in the shaded band; far above it learning is "
    "unstable, far below it the layer stands still."
)
NORMS = (
    "The length of each layer's gradient. Healthy: all layers within a few orders of magnitude; lines that fan out from the last "
    "layer to the first one show gradients that vanish or explode."
)
ACTIVATIONS = (
    "What each layer gives, sampled over the run, the first sample on top. Healthy: a hill that neither drifts nor collapses; what "
    "lies in the red ends of a tanh or sigmoid is saturated."
)
GRADIENTS = (
    "The weights' gradients by order of magnitude. Healthy: one hill that drifts to the left slowly as the loss falls; one that is "
    "far to the left gets no signal."
)
DEAD = "The share of each ReLU's channels that gave 0 for the whole batch. Healthy: few, and not rising; a dead channel learns no more."
LOSS = "Healthy: it falls fast at first, then slowly, and stays finite."
MARKED = " The numbers mark when each finding above was first made."
COLOURS = tuple(f"var(--{name})" for name in ("one", "two", "three", "four"))
ZONES = {"tanh": ((-1.0, -0.97), (0.97, 1.0)), "sigmoid": ((0.0, 0.03), (0.97, 1.0))}


def html(session: Session) -> str:
    """Return the page."""
    found = ordered(session.findings)
    body = "\n".join(
        (_header(session, found), _findings(session, found), _loss(session, found), _layers(session), _footer(session))
    )
    style = (importlib.resources.files("mortice.doctor") / "page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(summary(found))} · mortice doctor</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section(title: str, note: str, content: str) -> str:
    return f'<section><h2>{title}</h2><p class="note">{note}</p>{content}</section>'


def _empty(head: str, text: str, kind: str = "") -> str:
    return f'<div class="panel empty {kind}"><b>{head}</b>{text}</div>'


# ---- the head ----


def _header(session: Session, found: list[Finding]) -> str:
    worst = found[0].level if found else "good" if session.steps else "none"
    count = sum(f.level == worst for f in found)
    if found:
        seal = f"{count}<small>{worst}{'s' if count > 1 and worst != 'info' else ''}</small>"
    else:
        seal = "✓<small>no findings</small>" if session.steps else "–<small>no steps</small>"
    steps = _plural(session.steps, "step")
    if found:
        places = _plural(len({f.site for f in found}), "place")
        said = f"{summary(found).capitalize()} at {places}, in {steps}."
    elif session.steps:
        said = f"None of {_plural(len(session.rules), 'rule')} found a mistake in {steps}."
    else:
        said = "No optimiser stepped while the doctor watched."
    losses = [v for _, v, _ in session.losses() if v is not None]
    facts = [
        ("steps", f"{session.steps:,}"),
        ("began, UTC", time.strftime("%Y-%m-%d %H:%M", time.gmtime(session.began))),
        ("models", ", ".join(session.samples.models) or "—"),
        ("optimisers", ", ".join(session.samples.optimizers) or "—"),
        ("loss", f"{plots.number(losses[0])} → {plots.number(losses[-1])}" if losses else "—"),
        ("mortice", mortice.version.release),
    ]
    listed = "".join(f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
    return (
        f'<header><div class="seal {worst}">{seal}</div><div><div class="over">mortice doctor</div>'
        f'<h1>{escape(_program(found))}</h1><p>{said}</p></div></header>\n<dl class="facts panel">{listed}</dl>'
    )


def _program(found: list[Finding]) -> str:
    """Return the name of the program that was watched: that of the file with most findings, or of what runs."""
    files = [f.site.file for f in found if f.site.file]
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    name = os.path.basename(max(files, key=files.count) if files else main or "")
    return name or "Training run"


def _footer(session: Session) -> str:
    rules = " ".join(escape(r.id) for r in session.rules)
    return (
        f'<footer>Watched by {_plural(len(session.rules), "rule")}: {rules}. Written by <code>session.report("html")</code> of '
        f"mortice.doctor {escape(mortice.version.release)}; nothing on this page is fetched from elsewhere.</footer>"
    )


def _plural(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


# ---- findings ----


def _findings(session: Session, found: list[Finding]) -> str:
    if found:
        cards = "".join(_card(i, f) for i, f in enumerate(found, 1))
        return _section("Findings", "The gravest first; each is counted once for its line.", cards)
    if session.steps:
        body = _empty(
            "Nothing found", f"{_plural(len(session.rules), 'rule')} watched {_plural(session.steps, 'step')}.", "calm"
        )
    else:
        body = _empty(
            "Nothing to judge yet",
            "The rules look at losses, gradients and steps: train inside <code>doctor.watch()</code>.",
        )
    return f"<section><h2>Findings</h2>{body}</section>"


def _card(number: int, f: Finding) -> str:
    seen = (f"after step {f.step:,}" if f.step else "at the first step") + (
        f" · seen {f.count:,} times" if f.count > 1 else ""
    )
    why = f'<p class="why">{escape(f.why)}</p>' if f.why else ""
    remedy = f'<p class="remedy">→ {escape(f.remedy)}</p>' if f.remedy else ""
    return (
        f'<article class="finding panel {f.level}" id="finding-{number}"><div class="head">'
        f'<span class="name"><span class="number">{number}</span><h3>{escape(f.title)}</h3></span>'
        f'<span class="tag {f.level}">{escape(f.rule)} {f.level}</span>'
        f'<span class="seen">{seen}</span></div><p>{escape(f.message)}</p>{_source(f.site)}{why}{remedy}</article>'
    )


def _source(site: Site) -> str:
    """Return the lines around a place."""
    if not site.file:
        return ""
    lines = linecache.getlines(site.file)
    where = f"<b>{escape(near(site))}</b>" + (
        f" in <code>{escape(site.function)}</code>" if site.function[:1] not in "<" else ""
    )
    shown = range(max(1, site.line - AROUND), min(len(lines), site.line + AROUND) + 1)
    if site.line not in shown:
        return f'<figure class="source"><figcaption>{where}</figcaption></figure>'
    text = [lines[i - 1].rstrip("\n").expandtabs(4) for i in shown]
    margin = min((len(t) - len(t.lstrip()) for t in text if t.strip()), default=0)
    code = "".join(
        f'<span{" class=here" if i == site.line else ""} data-n="{i}">{escape(t[margin:]) or " "}</span>'
        for i, t in zip(shown, text)
    )
    return f'<figure class="source"><figcaption>{where}</figcaption><pre tabindex="0">{code}</pre></figure>'


# ---- the loss ----


def _loss(session: Session, found: list[Finding]) -> str:
    curves: dict[Site, list[tuple[float, float | None]]] = {}
    for step, value, site in session.losses():
        curves.setdefault(site, []).append((step + 1, value))
    curves = dict(sorted(curves.items(), key=lambda c: -len(c[1]))[: len(COLOURS)])
    values = [v for points in curves.values() for _, v in points if v is not None]
    if not values:
        text = (
            "No backward of a finite loss was seen." if curves else "No backward was seen, so there is no loss to draw."
        )
        return _section("Loss", LOSS, _empty("No curve", text))
    log = min(values) > 0 and max(values) > 30 * min(values)
    steps = [s for points in curves.values() for s, _ in points]
    x = plots.Scale(min(steps), max(*steps, session.steps))
    y = plots.Scale(min(values), max(values), log)
    body = [
        plots.line(plots.thinned(points), x, y, colour, f"loss in {near(site)}")
        for (site, points), colour in zip(curves.items(), COLOURS)
    ]
    lost = [s for points in curves.values() for s, v in points if v is None]
    said = f"; nan or infinite from step {min(lost):,.0f} on" if lost else ""
    marks = _moments(found, x)
    names = [(c, f"<code>{escape(near(site))}</code>") for site, c in zip(curves, COLOURS)]
    label = f"loss over steps, from {plots.number(values[0])} to {plots.number(values[-1])}{said}"
    legend = plots.legend(names) if len(curves) > 1 else ""
    drawn = plots.chart(body, x, y, label, marks)
    end = (
        f'<p class="note"><span class="tag error">not finite</span> The loss is nan or infinite from step {min(lost):,.0f} on.</p>'
        if lost
        else ""
    )
    return _section("Loss", LOSS + (MARKED if found else ""), f'<div class="panel plot">{drawn}{legend}{end}</div>')


def _moments(found: list[Finding], x: plots.Scale) -> list[tuple[float, str]]:
    """Return the numbers of findings at their steps, those that would overlap side by side."""
    moments: list[tuple[float, list[str]]] = []
    for i, f in sorted(enumerate(found, 1), key=lambda pair: pair[1].step):
        link = f'<a class="number {f.level}" href="#finding-{i}" title="{escape(f.title)}">{i}</a>'
        if moments and x(f.step + 1) - x(moments[-1][0]) < 0.04:
            moments[-1][1].append(link)
        else:
            moments.append((f.step + 1, [link]))
    return [(at, "".join(links)) for at, links in moments]


# ---- layers ----


def _layers(session: Session) -> str:
    kept = session.samples
    activations = [t for t in kept.activations.values() if t.samples]
    layers = [t for t in kept.layers.values() if t.samples]
    if not activations and not layers:
        if any(r.id == "D18" for r in session.rules):
            text = "Samples are taken at the 1st, 5th, 20th and each 50th step of an optimiser."
        else:
            text = "Rule D18 takes the samples, and it was not among the rules that watched."
        return f"<section><h2>Layers</h2>{_empty('No samples', text)}</section>"
    strip = _common(activations + layers)
    parts = (
        _lines(layers, "update", "Update-to-weight ratio", UPDATES, strip, (3e-4, 3e-3)),
        _lines(layers, "gradient", "Gradient norms", NORMS, strip),
        _histograms(activations, "Activations", ACTIVATIONS, strip, _activation),
        _histograms(layers, "Gradients", GRADIENTS, strip, _gradient),
        _dead([t for t in activations if t.series("dead")], strip),
    )
    return "\n".join(filter(None, parts))


def _common(tracks: list[Track]) -> str:
    """Return the prefix that the names of all layers share, which is left out: that of the only model."""
    heads = {t.name.partition(".")[0] for t in tracks if " " not in t.name}
    head = f"{heads.pop()}." if len(heads) == 1 else ""
    numbered = any(t.name.removeprefix(head)[:1].isdigit() for t in tracks)  # "0" alone would say nothing
    return "" if numbered else head


def _label(track: Track, strip: str) -> str:
    return escape(track.name.removeprefix(strip).replace(f" in {strip}", " in "))


def _lines(
    tracks: list[Track],
    key: str,
    title: str,
    note: str,
    strip: str,
    healthy: tuple[float, float] | None = None,
) -> str:
    series = [(t, t.series(key)) for t in tracks]
    series = [(t, kept) for t, points in series if (kept := [(s, v) for s, v in points if v > 0])]
    if not series:
        return ""
    values = [v for _, points in series for _, v in points] + list(healthy or ())
    steps = [s for _, points in series for s, _ in points]
    x = plots.Scale(min(steps), max(steps))
    y = plots.Scale(max(min(values), 1e-12), min(max(values), 1e12), log=True)
    body = [plots.band(y, *healthy)] if healthy else []
    shades = [plots.shade(i / max(1, len(series) - 1)) for i in range(len(series))]
    body += [
        plots.line(p, x, y, c, f"{t.name}: {plots.number(p[-1][1])}", dots=True) for (t, p), c in zip(series, shades)
    ]
    drawn = plots.chart(body, x, y, f"{title} of {len(series)} layers over steps")
    return _section(title, note, f'<div class="panel plot">{drawn}{_which(series, shades, strip)}</div>')


def _which(series: list[tuple[Track, Any]], shades: list[str], strip: str) -> str:
    if len(series) <= 8:
        return plots.legend([(c, f"<code>{_label(t, strip)}</code>") for (t, _), c in zip(series, shades)])
    first, last = _label(series[0][0], strip), _label(series[-1][0], strip)
    return f'<div class="legend"><span><code>{first}</code> <i class="ramp"></i> <code>{last}</code></span></div>'


def _histograms(tracks: list[Track], title: str, note: str, strip: str, draw: Any) -> str:
    cards = [draw(t, strip) for t in tracks]
    cards = [c for c in cards if c]
    if not cards:
        return ""
    more = cards[AT_ONCE:]
    folded = (
        f'<details><summary>{_plural(len(more), "more layer")}</summary><div class="cards">{"".join(more)}</div></details>'
        if more
        else ""
    )
    return _section(title, note, f'<div class="cards">{"".join(cards[:AT_ONCE])}</div>{folded}')


def _picked(track: Track, key: str) -> list[dict[str, Any]]:
    """Return some samples, evenly over the run, the first and the last among them."""
    known = [s for s in track.samples if s.get(key)]
    if len(known) <= ROWS:
        return known
    return [known[round(i * (len(known) - 1) / (ROWS - 1))] for i in range(ROWS)]


def _activation(track: Track, strip: str) -> str:
    rows, last = _picked(track, "counts"), track.samples[-1]
    if not rows:
        return ""
    zones = ZONES.get(track.kind.lower(), ZONES.get(track.name.partition(" ")[0], ())) if "saturated" in last else ()
    low, high = min(s["low"] for s in rows), max(s["high"] for s in rows)
    if zones:
        low, high = zones[0][0], zones[-1][1]
    x = plots.Scale(low, high)
    drawn = plots.ridges([(s["step"], _density(s)) for s in rows], x, f"histograms of {track.name}", zones)
    tags = []
    if "saturated" in last:
        tags.append(_tag(last["saturated"], "saturated", 0.5, 0.9))
    if "dead" in last:
        tags.append(_tag(last["dead"], "dead", 0.25, 0.75))
    said = f"{plots.number(last['mean'], 2)} ± {plots.number(last['std'], 2)}"
    return _small(track, strip, f"{said} {' '.join(tags)}", drawn)


def _density(sample: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the outline of a histogram; by the square root, since most of a ReLU's values are 0 in one bin."""
    counts, low, high = sample["counts"], sample["low"], sample["high"]
    if low == high:
        return [(low, 0.0), (low, 1.0), (low, 0.0)]
    width, most = (high - low) / len(counts), max(counts)
    middle = [(low + (i + 0.5) * width, math.sqrt(c / most)) for i, c in enumerate(counts)]
    return [(low, middle[0][1]), *middle, (high, middle[-1][1])]


def _gradient(track: Track, strip: str) -> str:
    rows, last = _picked(track, "magnitudes"), track.samples[-1]
    if not rows:
        return ""
    used = [i for s in rows for i, c in enumerate(s["magnitudes"]) if c]
    at = [DECADES[0] + (i + 0.5) / PER_DECADE for i in range(len(rows[0]["magnitudes"]))]
    x = plots.Scale(min(at[min(used, default=0)] - 0.25, -8), max(at[max(used, default=0)] + 0.25, 0))
    drawn = plots.ridges(
        [(s["step"], _magnitudes(s["magnitudes"], at, x)) for s in rows],
        x,
        f"gradient magnitudes of {track.name}",
        ticks=[
            (e, plots.power(e)) for e in range(math.ceil(x.low), math.floor(x.high) + 1, 2 if x.high - x.low < 9 else 4)
        ],
    )
    tag = _tag(last["zero"], "exactly 0", 0.5, 0.9) if last.get("zero") else ""
    return _small(track, strip, f"norm {plots.number(last['gradient'], 2)} {tag}", drawn)


def _magnitudes(counts: list[int], at: list[float], x: plots.Scale) -> list[tuple[float, float]]:
    most = max(counts) or 1
    return [(e, math.sqrt(c / most)) for e, c in zip(at, counts) if x.low <= e <= x.high]


def _tag(share: float, word: str, warn: float, bad: float) -> str:
    kind = "error" if share >= bad else "warning" if share >= warn else "good"
    return f'<span class="tag {kind}">{share:.0%} {word}</span>'


def _small(track: Track, strip: str, said: str, drawn: str) -> str:
    kind = f"<small>{escape(track.kind)}</small>" if track.kind and track.kind not in track.name else ""
    return f'<div class="panel"><h3><span>{_label(track, strip)}</span>{kind}</h3><p>{said}</p>{drawn}</div>'


def _dead(tracks: list[Track], strip: str) -> str:
    if not tracks:
        return ""
    if not any(v for t in tracks for _, v in t.series("dead")):
        return _section(
            "Dead units",
            DEAD,
            _empty("None", f"Every channel of {_plural(len(tracks), 'ReLU')} was alive in every sample.", "calm"),
        )
    series = [(t, t.series("dead")) for t in tracks]
    steps = [s for _, points in series for s, _ in points]
    x, y = plots.Scale(min(steps), max(steps)), plots.Scale(0.0, 100.0, unit="%")
    shades = [plots.shade(i / max(1, len(series) - 1)) for i in range(len(series))]
    body = [
        plots.line([(s, 100 * v) for s, v in p], x, y, c, f"{t.name}: {p[-1][1]:.0%}", dots=True)
        for (t, p), c in zip(series, shades)
    ]
    drawn = plots.chart(body, x, y, "share of dead channels over steps")
    return _section("Dead units", DEAD, f'<div class="panel plot">{drawn}{_which(series, shades, strip)}</div>')
