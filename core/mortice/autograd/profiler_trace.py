"""What a profiler has found as a trace, in the format that chrome://tracing and Perfetto read."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any


def trace(events: Any, samples: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the trace: a complete event a call, a counter for memory, arrows from forward ops to their nodes."""
    pid = os.getpid()
    rows: list[dict[str, Any]] = [_about("process_name", pid, 0, {"name": os.path.basename(sys.argv[0] or "python")})]
    for thread in dict.fromkeys([e.thread for e in events]):
        rows.append(_about("thread_name", pid, thread, {"name": f"thread {thread}"}))
    for e in events:
        if e.end:
            rows.append(_complete(e, pid))
    for at, place, used in samples:
        rows.append({"ph": "C", "name": f"memory {place}", "pid": pid, "ts": at / 1e3, "args": {"bytes": used}})
    for e in events:
        if e.end and e.forward is not None and e.forward.end:
            arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": e.sequence_nr, "pid": pid}
            rows.append({"ph": "s", **arrow, "tid": e.forward.thread, "ts": e.forward.start / 1e3})
            rows.append({"ph": "f", **arrow, "tid": e.thread, "ts": e.start / 1e3, "bp": "e"})
    return {
        "schemaVersion": 1, "displayTimeUnit": "ms", "host_name": socket.gethostname(), **metadata, "traceEvents": rows,
    }  # fmt: skip


def _about(name: str, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _complete(e: Any, pid: int) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": e.id, "Input Dims": e.input_shapes}
    if e.input_dtypes:
        args["Input type"] = e.input_dtypes
    if e.sequence_nr >= 0:
        args["Sequence number"] = e.sequence_nr
    if e.fwd_thread is not None:
        args["Fwd thread id"] = e.fwd_thread
    if e.kernel:
        args.update({"Kernel": e.kernel, "Backend": e.backend, "Body": e.body})
    if e.stack:
        args["Call stack"] = ";".join(e.stack)
    if e.flops:
        args["Flops"] = e.flops
    return {
        "ph": "X", "cat": "user_annotation" if e.is_user_annotation else "cpu_op", "name": e.name, "pid": pid,
        "tid": e.thread, "ts": e.start / 1e3, "dur": (e.end - e.start) / 1e3, "args": args,
    }  # fmt: skip
