"""Profilers: what is recorded, sums and tables, traces, schedules; and that nothing is left behind."""

from __future__ import annotations

import gc
import gzip
import inspect
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import mortice as mt
from mortice.backends import plugins
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
    assert len(prof.function_events) == before and "Self CPU time total" in str(prof)
    assert "aten::relu" in {e.name for e in prof.function_events}
    with mt.autograd.profiler.profile(enabled=False):
        work()


def test_a_profiler_that_was_left_running_is_ended_by_who_starts_the_next() -> None:
    left = mt.autograd.profiler.profile().__enter__()
    work()
    assert mt.autograd._profiler_enabled()
    mt.autograd._disable_profiler()
    assert not mt.autograd._profiler_enabled()
    mt.autograd._disable_profiler()
    with mt.autograd.profiler.profile() as prof:
        left.__exit__(None, None, None)
        work()
        assert mt.autograd._profiler_enabled()
    assert "aten::relu" in {e.name for e in prof.function_events} & {e.name for e in left.function_events}
    assert mt.profiler._default_schedule_fn(3) is profile().schedule(0) is ProfilerAction.RECORD


def test_tables() -> None:
    with profile(with_stack=True, record_shapes=True) as prof:
        work()
    text = prof.key_averages(group_by_stack_n=1).table(sort_by="cpu_time_total", row_limit=2, header="run")
    lines = text.splitlines()
    assert lines[1] == "run" and "Self CPU %" in lines[3] and "Source Location" in lines[3] and "test_profiler.py" in text
    assert sum("%" in line for line in lines) == 3 and lines[-1].startswith("Self CPU time total:")
    assert len(prof.key_averages(group_by_input_shape=True)) >= len(prof.key_averages())
    assert len(prof.events().key_averages(group_by_overload_name=True)) == len(prof.key_averages(group_by_overload_name=True))


def test_traces(tmp_path: Path) -> None:
    with profile(with_stack=True) as prof:
        work()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    plain = json.loads((tmp_path / "trace.json").read_text())
    assert plain == json.loads(gzip.open(tmp_path / "trace.json.gz", "rt").read())
    calls = [e for e in plain["traceEvents"] if e["ph"] == "X"]
    kinds = {e["name"]: e["cat"] for e in calls}
    assert kinds["block"] == "user_annotation" and kinds["aten::relu"] == "cpu_op"
    assert all(e["dur"] >= 0 for e in calls) and {e["ph"] for e in plain["traceEvents"]} == {"X", "M", "s", "f"}
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


def traced(tmp_path: Path, **settings: Any) -> tuple[Any, dict[str, Any]]:
    """Profile `work` and return the profile with the trace that it has written, read again."""
    with profile(**settings) as prof:
        work()
    prof.add_metadata("who", "me")
    prof.add_metadata_json("sizes", "[20, 20]")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    found: dict[str, Any] = json.loads((tmp_path / "trace.json").read_text())
    return prof, found


def test_calls_of_a_trace_lie_within_each_other(tmp_path: Path) -> None:
    prof, found = traced(tmp_path, record_shapes=True)
    calls = [e for e in found["traceEvents"] if e["ph"] == "X"]
    assert len(calls) == len(prof.events()) and {"ts", "dur", "pid", "tid", "args", "name", "cat"} <= set(calls[0])
    open_: list[Any] = []
    parents = {}
    for e in sorted(calls, key=lambda e: (e["ts"], -e["dur"])):
        while open_ and open_[-1]["ts"] + open_[-1]["dur"] <= e["ts"]:
            open_.pop()
        if open_:  # what begins within another call ends within it, up to the rounding of doubles
            assert e["tid"] == open_[-1]["tid"] and e["ts"] + e["dur"] <= open_[-1]["ts"] + open_[-1]["dur"] + 1e-3
        parents[e["args"]["External id"]] = open_[-1]["args"]["External id"] if open_ else None
        open_.append(e)
    assert parents == {e.id: e.cpu_parent and e.cpu_parent.id for e in prof.events()}
    matmul = next(e for e in calls if e["name"] == "aten::matmul")
    assert matmul["args"]["Input Dims"] == [[20, 20], [20, 20]] and matmul["args"]["Input type"] == ["float32", "float32"]
    assert matmul["args"]["Kernel"] == "matmul" and matmul["args"]["Body"] == "own"
    beneath = [e for e in calls if e["name"] == f"{matmul['args']['Backend']}::matmul"]
    assert len(beneath) == 2  # the gradients of both operands, within the node
    names = {e["args"]["External id"]: e["name"] for e in calls}
    assert {names[parents[e["args"]["External id"]]] for e in beneath} == {"MmBackward0"}
    assert (found["who"], found["sizes"], found["record_shapes"]) == ("me", [20, 20], 1) and len(found["trace_id"]) == 32


def test_arrows_lead_from_an_op_to_its_node(tmp_path: Path) -> None:
    _, found = traced(tmp_path)
    calls = {e["ts"]: e["name"] for e in found["traceEvents"] if e["ph"] == "X"}
    begins = {e["id"]: calls[e["ts"]] for e in found["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: calls[e["ts"]] for e in found["traceEvents"] if e["ph"] == "f"}
    assert {begins[n]: ends[n] for n in begins}.items() >= {"aten::matmul": "MmBackward0", "aten::relu": "ReluBackward0"}.items()
    assert begins.keys() == ends.keys() and all(e["bp"] == "e" for e in found["traceEvents"] if e["ph"] == "f")


@pytest.mark.parametrize("backend", ["cpu_numpy", "cpu_cext", "strict"])
def test_memory_is_followed(backend: str, tmp_path: Path) -> None:
    if backend not in plugins.list_backends():
        pytest.skip(f"{backend} is not installed")
    size = 4 * 100_000
    gc.collect()  # tensors that other tests have left in cycles: what is freed meanwhile is counted, on any backend
    with mt.use_backend(backend):
        x = mt.ones(100_000)
        with profile(profile_memory=True) as prof:
            with record_function("keeps one of two"):
                y = x + 1
                z = y * 2
                del y
            del z
    found = {e.key: e for e in prof.key_averages()}
    assert size <= found["aten::add"].cpu_memory_usage + found["aten::add"].device_memory_usage < 1.1 * size
    whole = found["keeps one of two"]
    assert size <= whole.cpu_memory_usage + whole.device_memory_usage < 1.1 * size
    assert abs(whole.self_cpu_memory_usage + whole.self_device_memory_usage + size) < 0.1 * size  # it freed the other
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage" if backend != "strict" else "self_device_memory_usage")
    assert ("Self CPU Mem" if backend != "strict" else "Self Device Mem") in table
    assert re.search(r" 39\d\.\d\d KB ", table)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    counters = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e["ph"] == "C"]
    used = [e["args"]["bytes"] for e in counters if backend in e["name"]]
    assert len(used) == 2 and used[1] - used[0] == pytest.approx(size, rel=0.1) and counters[0]["ts"] < counters[1]["ts"]


def test_flops_are_counted_as_pytorch_counts_them() -> None:
    x, w = mt.ones(8, 16), mt.ones(4, 16)
    image, filters = mt.ones(2, 3, 8, 8), mt.ones(5, 3, 3, 3)
    with profile(with_flops=True) as prof:
        x @ w.t()
        x + x
        mt.nn.functional.conv2d(image, filters)
    found = {e.key: e.flops for e in prof.key_averages()}
    assert found["aten::matmul"] == 2 * 8 * 16 * 4 and found["aten::add"] == 8 * 16
    assert sum(found.values()) == 2 * 8 * 16 * 4 + 8 * 16 + 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)
    assert "Total MFLOPs" in prof.key_averages().table()


def test_collection_can_pause() -> None:
    x = mt.ones(3)
    with profile() as prof:
        x.sin()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        x.cos()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        x.tan()
    assert [e.name for e in prof.events() if e.name.startswith("aten::")] == ["aten::sin", "aten::tan"]
    named = profile(custom_trace_id_callback=lambda: "mine")
    assert named.get_trace_id() is None
    with named:
        x.sin()
    assert named.get_trace_id() == "mine"


def test_labels_may_end_out_of_turn() -> None:
    first, second = record_function("first"), record_function("second")
    with profile() as prof:
        first.__enter__(), second.__enter__(), first.__exit__()
        mt.ones(3).sin()
        second.__exit__()
        mt.ones(3).cos()
    parents = {e.name: e.cpu_parent and e.cpu_parent.name for e in prof.events()}
    assert (parents["aten::sin"], parents["aten::cos"]) == ("second", None)


def test_threads_have_tracks_of_their_own(tmp_path: Path) -> None:
    with profile() as prof:
        thread = threading.Thread(target=work)
        thread.start()
        work()
        thread.join()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = {e["tid"] for e in rows if e["ph"] == "X"}
    assert len(tracks) == 2 == len([e for e in rows if e["name"] == "thread_name"])
    assert all(e.cpu_parent is None or e.cpu_parent.thread == e.thread for e in prof.events())


@pytest.mark.oracle
def test_the_surface_is_pytorch_s() -> None:
    theirs = pytest.importorskip("torch.profiler", reason="PyTorch is not installed: nothing to compare with")
    mine = mt.profiler
    missing = {n for n in theirs.__all__ if not hasattr(mine, n)}
    assert missing == {"ExecutionTraceObserver"}  # it writes for tools that replay PyTorch's own dispatcher
    for name in ("schedule", "supported_activities", "tensorboard_trace_handler"):
        assert [*inspect.signature(getattr(mine, name)).parameters] == [*inspect.signature(getattr(theirs, name)).parameters]
    methods = {n for n in dir(theirs.profile) if not n.startswith("_")}
    # Deprecated there; the counters of the trace show the same.
    assert methods - {n for n in dir(mine.profile)} == {"export_memory_timeline"}
    given = inspect.signature(theirs.profile.__init__).parameters
    assert given.keys() <= inspect.signature(mine.profile.__init__).parameters.keys()
    with theirs.profile(profile_memory=True) as prof:
        import torch

        torch.ones(3).sin()
    both = "key count flops stack input_shapes is_user_annotation cpu_time cpu_time_total self_cpu_time_total cpu_time_str "
    both += "cpu_memory_usage self_cpu_memory_usage device_memory_usage self_device_memory_usage device_time_total"
    single = "name id thread fwd_thread sequence_nr cpu_children cpu_parent time_range input_dtypes"
    theirs_found = (prof.events()[0], prof.key_averages()[0])
    with profile(profile_memory=True) as prof:
        mt.ones(3).sin()
    for one, other, names_ in zip(theirs_found, (prof.events()[0], prof.key_averages()[0]), (both + " " + single, both)):
        assert [n for n in names_.split() if not (hasattr(one, n) and hasattr(other, n))] == []


def test_ops_inside_vmap_are_recorded() -> None:
    with profile() as prof:
        mt.vmap(lambda r: r.sin().cos())(mt.randn(3, 2))
    assert names(prof.key_averages()).items() >= {"aten::sin": 1, "aten::cos": 1}.items()
