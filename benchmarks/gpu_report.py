"""From the records of `benchmarks.gpu` to what they say: the bars with their figures, as JSON, Markdown and one HTML page."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.harness import duration

FORMAT = 1
REACHED, MISSED, UNKNOWN = "reached", "missed", "not measured"
SHARE = 0.85  # of the bandwidth of a copy

Stages = dict[str, dict[str, Any]]


@dataclass
class Bar:
    """What is asked for, and what was found."""

    name: str
    wanted: str
    found: str
    verdict: str


def read(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Read records; a last line that its process did not finish is left out."""
    found = []
    for file in files:
        for line in file.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def collected(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the report: of each stage the latest run, and the bars."""
    machine: dict[str, Any] = {}
    stages: Stages = {}
    for record in records:
        machine = record.get("machine", machine)
        if "begin" in record:
            stages[record["stage"]] = {"begun": record["begin"], "status": "unfinished", "rows": [], "notes": []}
            stages[record["stage"]]["gpu"] = machine.get("gpu", "")
        elif (stage := stages.get(record.get("stage", ""))) is not None:
            stage["rows"] += [record["row"]] if "row" in record else []
            stage["notes"] += [record["note"]] if "note" in record else []
            stage |= record.get("end", {})
    for stage in stages.values():  # part of a report may come from another machine
        if (gpu := stage.pop("gpu")) != machine.get("gpu", ""):
            stage["notes"].insert(0, f"**On {gpu or 'an unknown GPU'}.**")
    bars = [asdict(bar) for bar in judged(stages, bool(machine.get("emulated")))]
    return {"format": FORMAT, "machine": machine, "bars": bars, "stages": stages}


# ---- the bars ----


def judged(stages: Stages, emulated: bool = False) -> list[Bar]:
    """Hold the figures against the bars."""
    bars = [
        _kit(stages), _programs(stages), _streams(stages),
        _ratio(stages, "elementwise", 1.0), _share(stages), _ratio(stages, "matmul", 0.97),
        _ratio(stages, "convolution", 0.9), _ratio(stages, "attention", 0.9), _ratio(stages, "steps", 0.9),
        _ratio(stages, "captured", 1.2), _peak(stages),
    ]  # fmt: skip
    if emulated:
        for bar in bars:
            bar.verdict = UNKNOWN  # nothing ran on a GPU
    return bars


TITLES = {
    "compile": "The plugin's CUDA sources, compiled and loaded",
    "kit": "Conformance kit", "programs": "The ten programs give the CPU's losses",
    "random": "Random streams are the CPU's, bit for bit", "elementwise": "Elementwise and reductions, 1e8 elements",
    "matmul": "Matrix products", "convolution": "conv2d", "attention": "Attention",
    "functions": "softmax, layer_norm, cross_entropy, embedding", "steps": "Training steps, eager",
    "captured": "Training steps, captured, beside PyTorch eager", "memory": "Peak memory of training steps",
}  # fmt: skip


def _rows(stages: Stages, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = stages.get(name, {}).get("rows", [])
    return rows


def _bar(stages: Stages, name: str, wanted: str, found: str, good: bool | None, title: str = "") -> Bar:
    """Make a bar; what a stage did not finish is never reached."""
    status = stages.get(name, {}).get("status")
    if found and status != "ok":
        found += f"; the stage: {status}"
    verdict = UNKNOWN if good is None else REACHED if good and status == "ok" else MISSED
    return Bar(title or TITLES[name], wanted, found or f"{UNKNOWN}{f' ({status})' if status else ''}", verdict)


def _kit(stages: Stages) -> Bar:
    wanted = "L6, nothing failed"
    for row in _rows(stages, "kit"):
        found = f"L{row['reached']}, {row['passed']:,} passed, {row['failed']:,} failed" if row["reached"] >= 0 else (
            f"no level, {row['passed']:,} passed, {row['failed']:,} failed")  # fmt: skip
        found += f" ({row['not run']:,} of them not run)" if row["not run"] else ""
        return _bar(
            stages, "kit", wanted, f"{found}, {row['known']:,} known", row["reached"] >= 6 and not row["failed"]
        )
    return _bar(stages, "kit", wanted, "", None)


def _programs(stages: Stages) -> Bar:
    rows = _rows(stages, "programs")
    holding = sum(row["holds"] for row in rows)
    found = f"{holding} of {len(rows)} runs agree" if rows else ""
    return _bar(stages, "programs", "all, in float32 and float64", found, holding == len(rows) if rows else None)


def _streams(stages: Stages) -> Bar:
    rows = _rows(stages, "random")
    different = [row["name"] for row in rows if row["different"]]
    found = f"{len(rows) - len(different)} of {len(rows)} draws identical" if rows else ""
    return _bar(stages, "random", "identical", found, not different if rows else None)


def _ratio(stages: Stages, name: str, least: float) -> Bar:
    rows = [row for row in _rows(stages, name) if row["name"] != "copy"]
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    wrong = sum(bool(row["problems"]) for row in rows)
    wanted = f"median of torch / mortice at least {least}"
    if not ratios:
        return _bar(
            stages,
            name,
            wanted,
            f"{wrong} of {len(rows)} cases with a problem" if wrong else "",
            False if wrong else None,
        )
    median = statistics.median(ratios)
    found = f"{median:.2f} (least {min(ratios):.2f}, {sum(r < least for r in ratios)} of {len(ratios)} below)"
    found += f"; {wrong} with a problem" if wrong else ""
    return _bar(stages, name, wanted, found, median >= least and not wrong)


def bandwidth(rows: list[dict[str, Any]]) -> float:
    """Return the bytes a second of a copy, in the library that copies faster."""
    copies = [row["traffic"] / s for row in rows if row["name"] == "copy" for s in row["seconds"].values()]
    return max(copies, default=0.0)


def share(row: dict[str, Any], most: float) -> float | None:
    """Return the share of that bandwidth at which mortice moves what a case must move."""
    seconds = row["seconds"].get("mortice")
    return row["traffic"] / seconds / most if seconds and most and "traffic" in row else None


def _share(stages: Stages) -> Bar:
    rows = _rows(stages, "elementwise")
    most = bandwidth(rows)
    shares = [s for row in rows if row["name"] != "copy" and (s := share(row, most)) is not None]
    wanted, title = f"median at least {SHARE:.0%} of a copy's bandwidth", f"{TITLES['elementwise']}, bandwidth"
    if not shares:
        return _bar(stages, "elementwise", wanted, "", None, title)
    median, below = statistics.median(shares), sum(s < SHARE for s in shares)
    found = f"{median:.0%} of {most / 1e12:.2f} TB/s (least {min(shares):.0%}, {below} of {len(shares)} below)"
    return _bar(stages, "elementwise", wanted, found, median >= SHARE, title)


def _peak(stages: Stages) -> Bar:
    rows = _rows(stages, "memory")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    wrong = sum(bool(row.get("problems")) for row in rows)
    found = f"at most {max(ratios):.2f} times PyTorch's, median {statistics.median(ratios):.2f}" if ratios else ""
    found += f"{'; ' * bool(found)}{wrong} with a problem" if wrong else ""
    good = not wrong and max(ratios) <= 1.1 if ratios or wrong else None
    return _bar(stages, "memory", "at most 1.1 times PyTorch's", found, good)


# ---- the text ----

Part = tuple[str, Any]  # ("title" | "head" | "text" | "table", what)


def parts(report: dict[str, Any]) -> list[Part]:
    """Return the report as titles, lines and tables, for both formats."""
    machine = report["machine"]
    found: list[Part] = [
        ("title", f"mortice on {machine.get('gpu', 'an unknown GPU')}, {machine.get('date', '')[:10]}")
    ]
    if machine.get("emulated"):
        found.append(
            (
                "text",
                "**On a stand-in for CuPy, on the processor: no GPU took part, and no figure here says anything.**",
            )
        )
    facts = [f"{name} {version}" for name, version in machine.get("versions", {}).items()]
    cuda = machine.get("cuda", {})
    found += [
        ("text", f"CUDA {cuda.get('runtime', '?')} on a driver for {cuda.get('driver', '?')}; Python {machine.get('python', '?')}; "
                 f"{machine.get('system', '')}, {machine.get('cores', '?')} cores; commit {machine.get('commit') or '?'}."),
        ("text", ", ".join([*facts, f"cuDNN {machine['cudnn']}" if machine.get("cudnn") else "mortice without cuDNN"])),
        ("text", "Ratios are PyTorch's time over mortice's: over 1, mortice is faster. Both run in one process, in interleaved "
                 "rounds; times end when the device has finished."),
        ("head", "Bars"),
        ("table", (("bar", "wanted", "found", ""), [[b["name"], b["wanted"], b["found"], b["verdict"]] for b in report["bars"]])),
    ]  # fmt: skip
    for name, stage in report["stages"].items():
        took = f"{stage['seconds']:.0f} s" if "seconds" in stage else ""
        begun = f"begun {stage['begun'][:16].replace('T', ' ')}"
        found += [("head", TITLES.get(name, name)), ("text", ", ".join(filter(None, (stage["status"], took, begun))))]
        found += [("text", note) for note in (*stage["notes"], stage.get("said", "")) if note]
        if stage["rows"]:
            found.append(("table", _TABLES.get(name, _compared)(stage["rows"])))
    return found


def _compared(rows: list[dict[str, Any]]) -> Any:
    most = bandwidth(rows)
    table = []
    for row in rows:
        part = share(row, most)
        times = [duration(row["seconds"][n]) if n in row["seconds"] else "" for n in ("mortice", "torch")]
        ratio = f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})" if "ratio" in row else ""
        table.append([row["name"], *times, ratio, "" if part is None else f"{part:.0%}", "; ".join(row["problems"])])
    return ("case", "mortice", "torch", "torch / mortice", "of a copy's bandwidth", "problems"), table


def _memory(rows: list[dict[str, Any]]) -> Any:
    table = []
    for row in rows:
        sizes = [f"{kind[n] / 2**20:,.1f}" if n in kind else "" for kind in (row["allocated"], row["reserved"])
                 for n in ("mortice", "torch")]  # fmt: skip
        table.append([row["name"], *sizes, f"{row['ratio']:.2f}" if "ratio" in row else "", "; ".join(row["problems"])])
    return (
        "step",
        "mortice MiB",
        "torch MiB",
        "mortice reserved",
        "torch reserved",
        "mortice / torch",
        "problems",
    ), table


def _program_table(rows: list[dict[str, Any]]) -> Any:
    table = []
    for row in rows:
        verdict = "agrees" if row["holds"] else "DIFFERS"
        if "problem" in row:
            table.append([row["name"], "", "", "", "", row["problem"]])
            continue
        losses = [" to ".join(f"{loss:.6g}" for loss in row[where]) for where in ("losses", "on the GPU")]
        table.append([row["name"], *losses, f"{row['apart']:.1e}", f"{row['allowed']:g}", verdict])
    return ("program", "losses on the CPU", "on the GPU", "apart", "allowed", ""), table


def _random_table(rows: list[dict[str, Any]]) -> Any:
    return ("stream", "drawn", "different"), [
        [row["name"], f"{row['count']:,}", f"{row['different']:,}"] for row in rows
    ]


def _kit_table(rows: list[dict[str, Any]]) -> Any:
    names = ("passed", "failed", "not run", "known", "skipped")
    return ("reached", *names), [[f"L{row['reached']}", *(f"{row[name]:,}" for name in names)] for row in rows]


_TABLES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "memory": _memory, "programs": _program_table, "random": _random_table, "kit": _kit_table,
}  # fmt: skip


def markdown(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = []
    for kind, what in parts(report):
        if kind == "table":
            head, rows = what
            cell = lambda text: text.replace("|", "\\|").replace("\n", " ")
            lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
            lines += [f"| {' | '.join(map(cell, row))} |" for row in rows]
        else:
            lines.append({"title": "# ", "head": "## ", "text": ""}[kind] + what)
        lines.append("")
    return "\n".join(lines)


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1d2430;background:#fff}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.3rem .7rem;border-bottom:1px solid #dfe3ea;vertical-align:top}th{font-weight:600}
.reached{color:#1a7f37;font-weight:600}.missed{color:#b42318;font-weight:600}.not{color:#6b7280}
@media(prefers-color-scheme:dark){body{color:#e6e9ef;background:#14171c}th,td{border-color:#2c333d}
.reached{color:#57c878}.missed{color:#ff8a7d}.not{color:#9aa4b2}}
"""


def html(report: dict[str, Any]) -> str:
    """Return the report as one page."""
    body, title = "", ""
    for kind, what in parts(report):
        if kind == "table":
            head, rows = what
            cells = lambda row: "".join(
                f'<td class="{text.split()[0]}">{escape(text)}</td>' if text in (REACHED, MISSED, UNKNOWN)
                else f"<td>{escape(text)}</td>" for text in row)  # fmt: skip
            top = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
            lines = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
            body += f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>\n'
        elif kind == "text":
            body += "<p>" + re.sub(r"[*][*](.+?)[*][*]", r"<b>\1</b>", escape(what)) + "</p>\n"
        else:
            body += f"<h{1 if kind == 'title' else 2}>{escape(what)}</h{1 if kind == 'title' else 2}>\n"
            title = title or what
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n{body}</body></html>\n"
    )


def summary(report: dict[str, Any]) -> str:
    """Return the bars as lines for a terminal."""
    width = max(len(bar["name"]) for bar in report["bars"])
    return "\n".join(f"{b['verdict']:>12}  {b['name']:{width}}  {b['found']}  [{b['wanted']}]" for b in report["bars"])


def write(report: dict[str, Any], folder: Path) -> list[Path]:
    """Write the report in its three formats, named by device and date; return the files."""
    machine = report["machine"]
    name = re.sub(r"[^a-z0-9]+", "-", machine.get("gpu", "unknown").lower()).strip("-")
    stem = f"{name}-{machine.get('date', '')[:10]}"
    formats = {"json": lambda r: json.dumps(r, indent=1) + "\n", "md": markdown, "html": html}
    files = []
    for ending, form in formats.items():
        files.append(folder / f"{stem}.{ending}")
        files[-1].write_text(form(report), encoding="utf-8")
    return files
