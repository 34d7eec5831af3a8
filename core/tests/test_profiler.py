"""Profilers: what is recorded, sums and tables, traces, schedules; and that nothing is left behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import mortice as mt
from mortice.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


def work() -> None:
    x = mt.randn(20, 20, requires_grad=True)
    with record_function("block"):
        y = (x @ x).relu()
    y.sum().backward()


def names(found: Any) -> dict[str, int]:
    return {e.key: e.count for e in found}


def test_ops_blocks_and_backward_nodes_are_recorded() -> None:
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        work()
        work()
    counts = names(prof.key_averages())
    assert counts["block"] == counts["aten::matmul"] == counts["aten::relu"] == counts["ReluBackward0"] == 2
    by_name = {e.key: e for e in prof.events()}
    assert by_name["aten::matmul"].cpu_parent.name == "block" and by_name["aten::matmul"].input_shapes == [[20, 20], [20, 20]]
    for e in prof.events():
        assert e.time_range.end >= e.time_range.start and 0 <= e.self_cpu_time_total <= e.cpu_time_total
    whole = prof.key_averages().total_average()
    assert whole.count == len(prof.events())
    assert whole.self_cpu_time_total == pytest.approx(prof.key_averages().self_cpu_time_total)


def test_nothing_is_recorded_and_nothing_left_behind_afterwards() -> None:
    device = mt.zeros(1)._device
    table = device.table
    with mt.autograd.profiler.profile() as prof:
        work()
        with pytest.raises(RuntimeError, match="do not nest"):
            mt.autograd.profiler.profile().__enter__()
    before = len(prof.function_events)
    assert device.table is table
    work()
    assert len(prof.function_events) == before and "aten::relu" in str(prof)
    with mt.autograd.profiler.profile(enabled=False):
        work()


def test_tables() -> None:
    with profile(with_stack=True, record_shapes=True) as prof:
        work()
    text = prof.key_averages(group_by_stack_n=1).table(sort_by="cpu_time_total", row_limit=2, header="run")
    lines = text.splitlines()
    assert lines[1] == "run" and "Self CPU %" in lines[3] and "Source Location" in lines[3] and "test_profiler.py" in text
    assert sum("%" in line for line in lines) == 3 and lines[-1].startswith("Self CPU time total:")
    assert len(prof.key_averages(group_by_input_shape=True)) >= len(prof.key_averages())


def test_traces(tmp_path: Path) -> None:
    with profile(with_stack=True) as prof:
        work()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    plain = json.loads((tmp_path / "trace.json").read_text())
    assert plain == json.loads(gzip.open(tmp_path / "trace.json.gz", "rt").read())
    kinds = {e["name"]: e["cat"] for e in plain["traceEvents"]}
    assert kinds["block"] == "user_annotation" and kinds["aten::relu"] == "cpu_op"
    assert all(e["ph"] == "X" and e["dur"] >= 0 for e in plain["traceEvents"])
    prof.export_stacks(str(tmp_path / "stacks"))
    assert "test_profiler.py" in (tmp_path / "stacks").read_text()
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "board"), "me")):
        work()
    assert [p.name for p in (tmp_path / "board").iterdir()][0].startswith("me.")


def test_schedules() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    none, warm, record, save = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
    assert [plan(i) for i in range(11)] == [none, none, warm, record, save, none, warm, record, save, none, none]
    traces: list[list[str]] = []
    keep = lambda p: traces.append([e.name for e in p.events() if e.name.startswith("ProfilerStep")])
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=keep) as prof:
        for _ in range(9):
            work()
            prof.step()
    assert traces == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]


def test_labels_without_a_profiler_and_as_decorators() -> None:
    @record_function("mine")
    def f(x: int) -> int:
        return x + 1

    assert f(1) == 2
    with profile() as prof:
        f(1)
        f(2)
    assert names(prof.key_averages()) == {"mine": 2}


def test_ops_inside_vmap_are_recorded() -> None:
    with profile() as prof:
        mt.vmap(lambda r: r.sin().cos())(mt.randn(3, 2))
    assert names(prof.key_averages()).items() >= {"aten::sin": 1, "aten::cos": 1}.items()
