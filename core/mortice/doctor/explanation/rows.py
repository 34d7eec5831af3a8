"""What `explain` has counted, as rows: dicts of strings and numbers whose names are a promise (`schema` 1)."""

from __future__ import annotations

from typing import Any

from mortice.doctor.explanation.collector import Collector, Row, Rows

# What tells the rows of a section apart, in the order of the collector's keys.
FIELDS = {
    "ops": ("name", "phase"),
    "kernels": ("name", "backend", "body"),
    "transfers": ("direction", "kernel", "via", "device", "backend", "dtype", "shape", "phase", "where"),
    "copies": ("kind", "kernel", "within", "via", "dtype", "shape", "phase", "where"),
    "casts": ("from", "to", "kind", "within", "via", "phase", "where"),
    "fallbacks": ("name", "backend", "reason"),
}


def section(collector: Collector, name: str) -> list[dict[str, Any]]:
    """Return the rows of a section, the dearest first: by time where it was taken, else by bytes."""
    found: Rows = getattr(collector, name)
    timed = collector.waits and name in ("ops", "kernels", "fallbacks")
    rows = [{**dict(zip(FIELDS[name], key)), **_figures(name, row, timed)} for key, row in list(found.items())]
    rows.sort(key=lambda row: (-row.get("seconds", 0.0), -row["bytes"], -row["count"]))
    return rows


def _figures(name: str, row: Row, timed: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"count": row.count, "bytes": row.bytes}
    if name == "ops":
        found["operands"] = [
            {"operands": key, "count": n} for key, n in sorted(row.shapes.items(), key=lambda item: -item[1])
        ]
    if name in ("kernels", "fallbacks"):
        found["phases"] = dict(row.phases)
        found["calls"] = row.calls
        found["beneath"] = dict(sorted(row.beneath.items(), key=lambda item: -item[1]))
    if timed:
        found["seconds"] = row.ns / 1e9
    if timed and name == "kernels":
        found["own_seconds"] = row.own_ns / 1e9
    return found


def memory(collector: Collector) -> list[dict[str, Any]]:
    """Return a row a device: how much was in use, and who says so."""
    found = []
    for (backend, device), place in collector.meter.places.items():
        if place.allocated or place.peak > place.start:
            found.append({
                "device": device, "backend": backend, "counted_by": "allocator" if place.counted else "results",
                "allocated": place.allocated, "start": place.start, "end": place.now, "peak": place.peak,
            })  # fmt: skip
    return sorted(found, key=lambda row: -row["peak"])


def totals(collector: Collector) -> dict[str, int]:
    """Return how much there is of everything."""
    ways = [(key[0], row) for key, row in list(collector.transfers.items())]
    return {
        "ops": _sum(collector.ops), "kernels": _sum(collector.kernels),
        "default_bodies": sum([row.count for key, row in list(collector.kernels.items()) if key[2] == "default"]),
        "to_host": sum([row.count for way, row in ways if way == "to host"]),
        "to_device": sum([row.count for way, row in ways if way == "to device"]),
        "between_devices": sum([row.count for way, row in ways if way == "between devices"]),
        "copies": _sum(collector.copies), "casts": _sum(collector.casts), "fallbacks": _sum(collector.fallbacks),
        "allocated": sum([place.allocated for place in collector.meter.places.values()]),
    }  # fmt: skip


def _sum(rows: Rows) -> int:
    return sum([row.count for row in list(rows.values())])
