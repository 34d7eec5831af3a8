"""`mortice.explain`: what is listed, on every backend that is here; and that nothing is left behind."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mortice as mt
from mortice import fast
from mortice.backends import plugins
from mortice.device import watching
from mortice.doctor.explanation import Report
from mortice.profiler import profile

HERE = Path(__file__).name
# One with required kernels alone, whose buffers cannot be written, and those that are installed.
BACKENDS = [name for name in ("cpu_numpy", "cpu_cext", "strict") if name in plugins.list_backends()]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with mt.use_backend(request.param):
        yield request.param


def row(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """Return the one row that has these values."""
    (found,) = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
    return found


def above() -> str:
    """Return the line before the one that calls this, as reports name it."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno - 1}"


def test_ops_their_kernels_and_whose_bodies_those_are(backend: str) -> None:
    x = mt.ones(4, 3)
    with mt.explain() as report:
        mt.nn.functional.gelu(x + x)
        x + x
    assert row(report.ops, name="add") == {
        "name": "add", "phase": "forward", "count": 2, "bytes": 96,
        "operands": [{"operands": "float32[4, 3] float32[4, 3]", "count": 2}],
    }  # fmt: skip
    assert row(report.ops, name="gelu")["count"] == 1
    gelu = row(report.kernels, name="gelu")
    assert (gelu["backend"], gelu["count"]) == (backend, 1) and row(report.kernels, name="add")["body"] == "own"
    if backend == "cpu_cext":
        assert gelu["body"] == "own" and gelu["beneath"] == {} and report.fallbacks == []
    if backend == "strict":
        assert gelu["body"] == "default"
        assert gelu["beneath"]["erf"] == 1 and gelu["beneath"]["multiply"] == 3
        cost = row(report.fallbacks, name="gelu")
        assert cost["reason"] == "no kernel of its own" and cost["calls"] > 5
        assert not any(r["name"] == "erf" for r in report.fallbacks)  # it is part of what gelu costs


def test_an_own_kernel_that_leaves_operands_to_the_default_body() -> None:
    if "cpu_cext" not in BACKENDS:
        pytest.skip("cpu_cext is not installed: no other backend here has kernels for some operands alone")
    with mt.use_backend("cpu_cext"):
        x = mt.ones(2, 1, 5, 5, dtype=mt.complex64)
        w = mt.ones(1, 1, 3, 3, dtype=mt.complex64)
        with mt.explain() as report:
            mt.nn.functional.conv2d(x, w)
    assert row(report.kernels, name="conv")["body"] == "default"
    assert row(report.fallbacks, name="conv")["reason"] == "its kernel left it to the default body"


def test_transfers_name_the_line_that_asks(backend: str) -> None:
    pytest.importorskip("numpy", reason="NumPy is not installed: .numpy() needs it")
    x, at = mt.arange(6.0), mt.tensor([0, 2])
    device = x.device
    lines = {}
    with mt.explain() as report:
        x[0].item()
        lines["item"] = above()
        x.tolist()
        lines["tolist"] = above()
        bool(x[1] > 0)
        lines["__bool__"] = above()
        repr(x)
        lines["__repr__"] = above()
        float(x[2])
        lines["__float__"] = above()
        x[at]
        lines["getitem"] = above()
        x[x > 2]
        lines["masked"] = above()
        mt.tensor([1.0, 2.0])
        lines["tensor"] = above()
        if device.type == "cpu":
            x.numpy()
            lines["numpy"] = above()
    masked = row(report.transfers, where=lines.pop("masked"))
    assert (masked["direction"], masked["bytes"]) == ("to host", 8)
    for via, where in lines.items():
        found = row(report.transfers, where=where, direction="to device" if via == "tensor" else "to host")
        assert (found["via"], found["phase"], found["device"], found["backend"]) == (
            via,
            "forward",
            str(device),
            backend,
        )
    assert row(report.transfers, via="tolist")["bytes"] == 24
    assert report.totals["to_host"] == len(lines) and report.totals["to_device"] == 1


def test_what_computes_moves_nothing(backend: str) -> None:
    net = mt.nn.Sequential(mt.nn.Linear(5, 4), mt.nn.ReLU(), mt.nn.LayerNorm(4))
    x = mt.ones(3, 5)
    opt = mt.optim.SGD(net.parameters(), lr=0.1)
    with mt.explain() as report:
        net(x).sum().backward()
        opt.step()
    assert report.totals["to_host"] == report.totals["to_device"] == 0 and report.transfers == []


def test_transfers_are_those_that_the_strict_backend_counts() -> None:
    with mt.use_backend("strict"):
        strict = plugins.load("strict")
        x = mt.arange(12.0).reshape(3, 4)
        before = strict.transfers  # type: ignore[attr-defined]
        with mt.explain() as report:
            x.sum().item(), x.tolist(), bool((x > 1).all()), str(x[1:])
        assert report.totals["to_host"] == strict.transfers - before == 4  # type: ignore[attr-defined]


def test_copies_and_why_they_are_made(backend: str) -> None:
    x, y = mt.ones(4, 3), mt.zeros(4, 3)
    with mt.explain() as report:
        x.clone()
        cloned = above()
        x.t().contiguous()
        laid_out = above()
        x.t().reshape(-1)
        reshaped = above()
        x.reshape(-1).view(3, 4)
        y[1:] = x[1:]
        wrote = above()
    assert row(report.copies, where=cloned)["kind"] == row(report.copies, where=laid_out)["kind"] == "asked for"
    assert row(report.copies, where=wrote, kernel="setitem")["bytes"] == 36
    assert {r["kind"] for r in report.copies if r["where"] == wrote} == {"write"}
    if backend != "strict":  # of what cannot be written nobody can tell a copy from a view
        found = row(report.copies, where=reshaped)
        assert (found["kind"], found["via"], found["bytes"], found["shape"]) == ("layout", "reshape", 48, "[12]")
        assert report.totals["copies"] == 4


def test_casts_and_why_they_are_made(backend: str) -> None:
    x, n = mt.ones(4), mt.arange(4)
    with mt.explain() as report:
        x.double()
        asked = above()
        x + n
        promoted = above()
        x.float()
        x + 1
    assert len(report.casts) == 2 == report.totals["casts"]
    found = row(report.casts, where=asked)
    assert (found["from"], found["to"], found["kind"], found["bytes"], found["via"]) == (
        "float32",
        "float64",
        "asked for",
        32,
        "double",
    )
    found = row(report.casts, where=promoted)
    assert (found["from"], found["to"], found["kind"], found["via"]) == ("int64", "float32", "promotion", "add")


def test_forward_backward_and_optimizer_are_told_apart(backend: str) -> None:
    w = mt.ones(3, 3, requires_grad=True)
    opt = mt.optim.SGD([w], lr=0.1, momentum=0.9)
    with mt.explain() as report:
        (w @ w).tanh().sum().backward()
        opt.step()
    phases = {r["name"]: r["phase"] for r in report.ops}
    assert phases["tanh"] == "forward" and phases["TanhBackward0"] == "backward" and phases["sgd_step"] == "optimizer"
    assert row(report.kernels, name="matmul")["phases"] == {"forward": 1, "backward": 2}
    assert set(row(report.kernels, name="sgd_step")["phases"]) == {"optimizer"}


def test_memory_is_counted(backend: str) -> None:
    x = mt.ones(1000, 250)
    size = 1_000_000
    with mt.explain() as report:
        y = x * 2
        z = y + 1
        del y, z
        y = x * 3
    (found,) = report.memory
    assert found["allocated"] == report.totals["allocated"] == 3 * size
    assert found["counted_by"] == ("allocator" if backend == "cpu_cext" else "results")
    # An allocator rounds up.
    assert (
        2 * size <= found["peak"] - found["start"] < 2.1 * size and size <= found["end"] - found["start"] < 1.1 * size
    )
    del y


def test_a_program_of_many_parts(backend: str) -> None:
    with mt.explain(times=True) as report, profile(record_shapes=True, profile_memory=True, with_flops=True) as prof:
        net = mt.nn.Sequential(mt.nn.Conv2d(3, 4, 3), mt.nn.BatchNorm2d(4), mt.nn.ReLU(), mt.nn.MaxPool2d(2))
        x = mt.randn(2, 3, 8, 8)
        with mt.amp.autocast("cpu", dtype=mt.bfloat16):
            net(x).float().sum().backward()
        mt.func.hessian(lambda v: (v**3).sum())(mt.ones(3))
        mt.nn.GRU(3, 4)(mt.randn(2, 1, 3))[0].sum().backward()
        mt.linalg.svd(mt.randn(3, 3)), mt.fft.fft(mt.randn(8)), mt.unique(mt.tensor([1, 2, 1])), mt.randperm(5)
    names = {r["name"] for r in report.kernels}
    assert names >= {"conv", "batch_norm", "max_pool", "gru_layer", "svd", "random_normal"}
    listed = {e.kernel for e in prof.events()}
    assert names <= listed and len(prof.key_averages().table().splitlines()) > 50
    assert len(report.table(rows=3).splitlines()) < 60


def test_views_take_no_memory() -> None:
    for name in set(BACKENDS) - {"strict"}:
        with mt.use_backend(name):
            x = mt.ones(6, 4)
            with mt.explain() as report:
                x.t(), x.view(4, 6), x[1:], x.expand(2, 6, 4), x.reshape(2, 12), x.unsqueeze(0), x[:, 0]
        assert report.totals["allocated"] == 0 and report.copies == [] and len(report.ops) > 3


def test_times_only_when_asked_for(backend: str) -> None:
    x = mt.ones(50, 50)
    with mt.explain(times=True) as report:
        x @ x
    found = row(report.kernels, name="matmul")
    assert 0 < found["own_seconds"] <= found["seconds"] <= row(report.ops, name="matmul")["seconds"] < 10
    with mt.explain() as report:
        x @ x
    assert "seconds" not in report.kernels[0]


def test_blocks_nest_and_a_profiler_may_run_too() -> None:
    x = mt.ones(3)
    with mt.explain() as outer, profile() as prof:
        x.sin()
        with mt.explain() as inner:
            x.cos()
        x.tan()
    assert [r["name"] for r in inner.ops] == ["cos"]
    assert sorted(r["name"] for r in outer.ops) == ["cos", "sin", "tan"]
    assert [e.key for e in prof.events() if e.key.startswith("aten::")] == ["aten::sin", "aten::cos", "aten::tan"]


def test_a_profiler_lists_the_same_kernels() -> None:
    net, x = mt.nn.Sequential(mt.nn.Linear(5, 4), mt.nn.GELU()), mt.ones(3, 5)
    with mt.explain() as report, profile() as prof:
        net(x).sum().backward()
    kernels: dict[str, int] = {}
    for e in prof.events():
        if e.kernel:
            kernels[e.kernel] = kernels.get(e.kernel, 0) + 1
    assert kernels == {r["name"]: r["count"] for r in report.kernels}


def test_threads() -> None:
    x = mt.ones(3)

    def other() -> None:
        x.exp()

    for every in (False, True):
        with mt.explain(all_threads=every) as report:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            x.sin()
        assert sorted(r["name"] for r in report.ops) == ["exp", "sin"][not every :]


def test_blocks_of_several_threads_end_in_any_order() -> None:
    x, together = mt.ones(3), threading.Barrier(4)
    found: dict[int, Report] = {}

    def block(n: int) -> None:
        with mt.explain() as found[n]:
            together.wait()
            for _ in range(50 * n + 50):
                x.sin()

    threads = [threading.Thread(target=block, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n].totals["ops"] for n in range(4)] == [50, 100, 150, 200]
    assert watching == []


def test_nothing_is_left_behind(backend: str) -> None:
    kernels, device = plugins.load(backend), mt.ones(1)._device
    own, tables, overridden = set(kernels.__dict__), (kernels.table, device.table), kernels.overridden
    with pytest.raises(ZeroDivisionError), mt.explain():
        x = mt.ones(3, requires_grad=True)
        x.sinh().asinh().sum().backward()
        assert kernels.overridden == overridden  # it is asked while ops run
        raise ZeroDivisionError
    assert set(kernels.__dict__) - {"_levels"} == own - {"_levels"} and (kernels.table, device.table) == tables
    assert not any(
        "tracing" in getattr(fn, "__module__", "") for fn in kernels.table.values() if hasattr(fn, "__module__")
    )
    assert watching == []
    with mt.explain() as report:
        pass
    x.sin()
    assert report.ops == []


def test_ops_that_fail_are_not_listed() -> None:
    x = mt.ones(3)
    with mt.explain() as report:
        with pytest.raises(RuntimeError):
            x @ mt.ones(4)
        x.sin()
    assert "sin" in [r["name"] for r in report.ops] and "matmul" not in [r["name"] for r in report.kernels]


def test_inside_and_around_function_transforms(backend: str) -> None:
    x = mt.arange(6.0).reshape(3, 2)
    with mt.explain() as report:
        out = mt.vmap(lambda r: r.sin() * 2)(x)
    assert mt.allclose(out, x.sin() * 2)
    assert row(report.ops, name="sin")["count"] == 1 and row(report.kernels, name="sin")["count"] == 1
    found: list[Report] = []

    def f(r: Any) -> Any:
        with mt.explain() as report:
            out = r.sin().cos()
        found.append(report)
        return out.tan()

    for around in (mt.vmap(f), mt.func.grad(lambda r: f(r).sum()), lambda r: mt.func.jvp(f, (r,), (mt.ones_like(r),))):
        found.clear()
        around(x)  # what levels compile for themselves is there already
        around(x)
        for report in found:
            assert [row(report.ops, name=n)["count"] for n in ("sin", "cos")] == [1, 1]
            assert row(report.kernels, name="sin")["backend"] == backend and not any(
                r["name"] == "tan" for r in report.ops
            )
    assert mt.allclose(mt.vmap(f)(x), x.sin().cos().tan())
    primal, tangent = mt.func.jvp(f, (x,), (mt.ones_like(x),))
    assert mt.allclose(tangent, -x.cos() * x.sin().sin() / x.sin().cos().cos() ** 2, atol=1e-5)


def test_double_backward_and_custom_functions() -> None:
    class Twice(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = mt.ones(3, requires_grad=True)
    with mt.explain() as report:
        (g,) = mt.autograd.grad(Twice.apply(x).exp().sum(), x, create_graph=True)
        g.sum().backward()
    phases = {(r["name"], r["phase"]) for r in report.ops}
    assert phases >= {
        ("mul", "forward"),
        ("mul", "backward"),
        ("ExpBackward0", "backward"),
        ("TwiceBackward", "backward"),
    }
    assert x.grad.tolist() == pytest.approx([4 * 7.389056] * 3)


SCRIPT = """
import json, mortice as mt
with mt.explain() as report:  # no backend is loaded yet
    x = mt.ones(4, 4, requires_grad=True)
    ((x[1:] * 2 + x[0]).relu().reshape(-1) @ mt.ones(12)).backward()
    x.grad.sum().item()
print(json.dumps([sorted((r["name"], r["count"]) for r in report.ops), report.totals]))
"""


def test_the_accelerator_changes_nothing_and_a_backend_may_load_within() -> None:
    if not fast.serves():
        pytest.skip("mortice._engine was not built (no compiler, or MORTICE_PURE): there is one way only")
    found = []
    for pure in ({}, {"MORTICE_PURE": "1"}):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, env={**os.environ, **pure}
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1] and ["relu", 1] in found[0][0] and found[0][1]["to_host"] == 1


class Rows(mt.utils.data.Dataset):
    """Ten rows that ops make."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, i: int) -> Any:
        return mt.full((3,), float(i)).sin().exp()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_workers_of_a_loader_run_untold() -> None:
    loader = mt.utils.data.DataLoader(Rows(), batch_size=5, num_workers=2, multiprocessing_context="fork")
    with mt.explain() as report:
        total = sum([batch.abs().sum().item() for batch in loader])
    assert total == pytest.approx(mt.arange(10.0).sin().exp().sum().item() * 3, rel=1e-5)
    names = [r["name"] for r in report.ops]
    assert "abs" in names and "exp" not in names


def test_the_report_as_data() -> None:
    x = mt.ones(4, 3, requires_grad=True)
    with mt.explain(times=True) as report:
        mt.nn.functional.softmax(x.double() @ mt.ones(3, dtype=mt.float64), 0).clone().sum().backward()
        x.grad.tolist()
    found = report.to_dict()
    assert json.loads(report.json()) == found and found["schema"] == 1
    assert {name: set(rows[0]) for name, rows in found.items() if isinstance(rows, list) and rows} | {
        "fallbacks": 0
    } == {
        "ops": {"name", "phase", "count", "bytes", "operands", "seconds"},
        "kernels": {
            "name",
            "backend",
            "body",
            "count",
            "bytes",
            "phases",
            "calls",
            "beneath",
            "seconds",
            "own_seconds",
        },
        "transfers": {
            "direction",
            "kernel",
            "via",
            "device",
            "backend",
            "dtype",
            "shape",
            "phase",
            "where",
            "count",
            "bytes",
        },
        "copies": {"kind", "kernel", "within", "via", "dtype", "shape", "phase", "where", "count", "bytes"},
        "casts": {"from", "to", "kind", "within", "via", "phase", "where", "count", "bytes"},
        "memory": {"device", "backend", "counted_by", "allocated", "start", "end", "peak"},
        "fallbacks": 0,
    }
    assert set(found["totals"]) == {
        "ops", "kernels", "default_bodies", "to_host", "to_device", "between_devices", "copies", "casts", "fallbacks", "allocated",
    }  # fmt: skip
    with pytest.raises(AttributeError, match="'Report' object has no attribute 'operations'"):
        report.operations  # noqa: B018


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_report_as_text_is_as_wide_as_asked_for(width: int) -> None:
    x = mt.ones(4, 3, requires_grad=True)
    with mt.explain() as report:
        for _ in range(3):
            mt.nn.functional.layer_norm(x.double().clone(), (3,)).sum().backward()
        x.grad.tolist()
    text = report.table(width=width, rows=4)
    lines = text.splitlines()
    assert max(map(len, lines[4:])) <= width and lines[0].endswith("allocated")
    header, *rows = lines[lines.index("kernels") + 1 : lines.index("kernels") + 7]
    assert {row.rstrip()[: header.index("count") + 5].split()[-1].isdigit() for row in rows[:4]} == {True}  # aligned
    assert rows[4].startswith("  ... and ") and f"{HERE[-8:]}:" in text
    assert str(report).splitlines()[0] == lines[0] and repr(report).startswith("<mortice.explain: ")


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")
    script, shown = (page.split(f"```{kind}\n", 1)[1].split("```", 1)[0] for kind in ("python", "text"))
    if "cpu_numpy" not in BACKENDS:
        pytest.skip("cpu_numpy is not installed: the page shows its kernels")
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # When memory is freed is the interpreter's business.
    assert done.stdout.split("\nmemory\n")[0] == shown.split("\nmemory\n")[0]
