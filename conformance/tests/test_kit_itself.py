"""The runner, known failures, scorecards, the command line and the pytest plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mortice as mt
from mortice.backends import plugins
from mortice.dtype import float32, int64
from mortice.errors import BackendNotFound
from mortice_conformance import cli, page, record, runner, scorecard
from mortice_conformance.arrays import BY_NAME
from mortice_conformance.catalog import Item, catalog
from mortice_conformance.checks import values
from mortice_conformance.runner import FAILED, KNOWN, PASSED, SKIPPED, UNEXPECTED, KnownFailure, Result, run_item
from mortice_conformance.subject import Failure, Skip, Subject

SUBJECT = Subject("strict")


def item(run: Any, check: str = "values", level: int = 2, op: str = "exp") -> Item:
    return Item(check, (op, "float32"), "strict", level, run, op)


def fail(subject: Any) -> None:
    raise Failure("exp float32: expected 1; got <2> & more")


def skip(subject: Any) -> None:
    raise Skip("the device has no float64")


def crash(subject: Any) -> None:
    raise ZeroDivisionError("a kernel")


def warn(subject: Any) -> None:
    import warnings

    warnings.warn("invalid value", RuntimeWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("run", "outcome", "text"),
    [(lambda s: None, PASSED, ""), (fail, FAILED, "expected 1"), (skip, SKIPPED, "no float64"), (crash, FAILED,
    "ZeroDivisionError: a kernel"),
     (warn, FAILED, "RuntimeWarning: invalid value")],
)  # fmt: skip
def test_a_check_ends_as(run: Any, outcome: str, text: str) -> None:
    result = runner.run_item(item(run), SUBJECT)
    assert result.outcome == outcome and text in result.message
    assert result.id == "test_values[exp-float32-strict]"


@pytest.mark.parametrize(
    ("kernel", "wrong", "text"),
    [
        ("to_host", lambda right: lambda x: right(x).tobytes(), "to_host must return a HostBuffer; got bytes."),
        ("to_host", lambda right: lambda x: type(right(x))(right(x).view, (), int64), r"to_host gives mortice.int64 \(\) for a buffer"),
        ("shape_of", lambda right: lambda x: list(right(x)), r"shape_of must return a tuple of ints; got list \[2, 3\]."),
        ("shape_of", lambda right: lambda x: tuple(map(np.int64, right(x))), r"shape_of must return a tuple of ints; got tuple \(np"),
    ],
)  # fmt: skip
def test_a_housekeeping_method_that_gives_something_else_is_named(kernel: str, wrong: Any, text: str, monkeypatch: Any) -> None:
    t = SUBJECT.tensor(np.ones((2, 3), np.float32), float32)
    monkeypatch.setattr(SUBJECT.backend, kernel, wrong(getattr(SUBJECT.backend, kernel)))
    with pytest.raises(Failure, match=text):
        SUBJECT.read(SUBJECT.wrap(t._buffer, float32))


def test_an_error_says_where_in_modules_and_nothing_of_the_machine() -> None:
    def raising(subject: Any) -> None:
        json.loads("{")

    message = runner.run_item(item(raising), SUBJECT).message
    assert message.startswith("JSONDecodeError: ") and 'File "json.decoder", line ' in message and "raw_decode" in message
    assert "scan_once(s, idx)" in message
    assert os.path.dirname(json.__file__) not in message and str(Path(__file__).parent) not in message


def test_a_known_failure_must_fail() -> None:
    known = {
        "test_values[exp-float32-strict]": KnownFailure(
            "test_values[exp-float32-strict]", "vendor bug", "https://example.org/1"
        )
    }
    failed, passed = (runner.judge(runner.run_item(item(r), SUBJECT), known) for r in (fail, lambda s: None))
    assert (failed.outcome, failed.bad) == (KNOWN, False)
    assert failed.message == "vendor bug https://example.org/1"
    assert (passed.outcome, passed.bad) == (UNEXPECTED, True)


def test_an_unknown_id_is_told() -> None:
    known = {"test_values[nothing-float32-strict]": KnownFailure("test_values[nothing-float32-strict]", "old")}
    assert runner.unknown_ids(known, [item(fail)]) == ["test_values[nothing-float32-strict]"]


def test_known_failures_are_read_from_the_plugins_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("class B: ...\n")
    file = package / "known_failures.toml"
    monkeypatch.syspath_prepend(str(tmp_path))
    import some_plugin  # type: ignore[import-not-found]

    assert runner.known_failures(some_plugin.B()) == {}
    file.write_text('[[failure]]\nid = "test_x[a-b]"\nreason = "r"\nlink = "l"\n')
    assert runner.known_failures(some_plugin.B()) == {"test_x[a-b]": KnownFailure("test_x[a-b]", "r", "l")}
    file.write_text('[[failure]]\nid = "test_x[a-b]"\n')
    with pytest.raises(ValueError, match="needs an id and a reason"):
        runner.known_failures(some_plugin.B())


def card(*outcomes: str) -> dict[str, Any]:
    results = [
        Result(f"test_values[op{i}-float32-strict]", "values", f"op{i}", i % 7, o, 0.001, "a <b> & c\nmore")
        for i, o in enumerate(outcomes)
    ]
    return scorecard.make(SUBJECT, results, 6, 1.25)


@pytest.mark.parametrize(
    ("outcomes", "reached"),
    [((PASSED,) * 7, 6), ((PASSED, PASSED, FAILED), 1), ((FAILED,), -1), ((PASSED, KNOWN, SKIPPED, UNEXPECTED), 2)],
)
def test_the_level_reached_is_below_the_first_failure(outcomes: Any, reached: int) -> None:
    assert card(*outcomes)["reached"] == reached


def test_a_scorecard_is_text_json_junit_html_and_a_badge(tmp_path: Path) -> None:
    made = card(PASSED, FAILED, SKIPPED, KNOWN, UNEXPECTED)
    text = scorecard.terminal(made)
    assert "L1 required kernels" in text and "FAIL test_values[op1-float32-strict]" in text and "reached L0" in text
    scorecard.save_json(made, tmp_path / "a.json")
    assert scorecard.load_json(tmp_path / "a.json") == json.loads(json.dumps(made))
    scorecard.save_junit(made, tmp_path / "a.xml")
    root = ElementTree.parse(tmp_path / "a.xml").getroot()
    assert len(root.findall(".//testcase")) == 5
    assert len(root.findall(".//failure")) == 2 and len(root.findall(".//skipped")) == 2
    html = page.render(made)
    assert html.startswith("<!doctype html>") and "{{" not in html
    assert "http://" not in html.replace("http://www.w3.org", "") and "https://" not in html
    ElementTree.fromstring(scorecard.badge(made))


def test_failures_of_one_op_are_one_entry_and_an_error_says_where_it_was_raised() -> None:
    where = 'KeyError: 77\n  File "some_plugin.backend", line 5, in exp\n    return launch(x)\n'
    results = [
        Result(f"test_values[{op}-{dtype}-strict]", "values", op, 2, FAILED, 0.0, where)
        for op in ("exp", "log") for dtype in ("float32", "float64")
    ]  # fmt: skip
    lines = scorecard.terminal(scorecard.make(SUBJECT, results, 6, 0.0)).splitlines()
    at = lines.index("  FAIL test_values[exp-float32-strict] and 1 like it")
    assert lines[at + 1 : at + 3] == ["       KeyError: 77", "       at some_plugin.backend:5, in exp: return launch(x)"]
    assert lines[at + 3] == "  FAIL test_values[log-float32-strict] and 1 like it" and "4 failed" in lines
    ids = ("storage[full-bool", "storage[full-int8", "kernel[operands-exp", "kernel[operands-log")
    results = [Result(f"test_{i}-strict]", i.partition("[")[0], "", 1, FAILED, 0.0, "wrong") for i in ids]
    text = scorecard.terminal(scorecard.make(SUBJECT, results, 6, 0.0))
    assert "test_storage[full-bool-strict] and 1 like it" in text and "full-int8" not in text
    assert "test_kernel[operands-exp-strict]\n" in text and "test_kernel[operands-log-strict]\n" in text


def test_a_part_that_no_check_has_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "strict", "--only", "pow-flaot32", "--quiet"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "no id contains 'pow-flaot32'" in said.err


def test_a_buffer_of_another_kind_is_told_from_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    t = SUBJECT.tensor([1.0], mt.float32)
    for name, wrong in (("dtype_of", "float32"), ("device_of", str(SUBJECT.device))):
        with monkeypatch.context() as patch:
            patch.setattr(SUBJECT.backend, name, lambda x, wrong=wrong: wrong, raising=False)
            with pytest.raises(Failure, match=f"{name} gives '{wrong}' for the buffer; its tensor says (mortice|device)"):
                SUBJECT.inspect(t, "made")


def test_a_written_operand_is_for_the_dtypes_that_hold_it_and_says_what_was_overlooked() -> None:
    found: dict[str, Any] = {}
    record.sample("exp", lambda x: x, call=lambda x: x * 2, variant="doubled", into=found, result="promote",
                  given=[(([2.0**20],), {}, "f", "Do not double."), (([300],), {}, "ui", "Do not double.")])  # fmt: skip
    held = [n for n in ("float16", "float32", "uint8", "int16", "bool") if list(found["exp:doubled"].given_cases(BY_NAME[n]))]
    assert held == ["float32", "int16"]
    with pytest.raises(Failure, match=r"given \[300\]: element \[0\]: expected 300\.0; got 600\. Do not double\.$"):
        found["exp:doubled"].cases.clear()
        values.check_values(Subject("cpu_numpy"), found["exp:doubled"], BY_NAME["int16"])


def test_a_backend_without_a_device_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUBJECT.backend, "device_names", lambda: [], raising=False)
    with pytest.raises(BackendNotFound, match="backend 'strict': .* no device here"):
        Subject("strict")


def test_a_difference_names_what_broke_and_what_was_mended() -> None:
    text, worse = scorecard.diff(card(PASSED, FAILED, PASSED), card(FAILED, PASSED, PASSED))
    assert worse
    assert "newly failing: 1" in text and "test_values[op0-float32] (passed -> failed)" in text
    assert "newly passing: 1" in text
    same, worse = scorecard.diff(card(PASSED, FAILED), card(PASSED, FAILED))
    assert not worse and "no difference" in same


def test_the_command_line_runs_a_backend_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {n: tmp_path / f"out/card.{n}" for n in ("json", "junit", "html", "badge")}
    arguments = [a for n, f in files.items() for a in (f"--{n}", str(f))]
    assert cli.main(["run", "strict", "--level", "L1", "--only", "kernel", "--quiet", *arguments]) == 0
    assert "reached L1" in capsys.readouterr().out
    assert all(f.stat().st_size > 100 for f in files.values())
    assert cli.main(["diff", str(files["json"]), str(files["json"])]) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["run", "nothing"], "backend 'nothing'"), (["run", "strict", "--level", "9"], "expected a level from L0 to L6"),
     (["diff", "/nowhere/a", "/nowhere/b"], "diff: ")],
)  # fmt: skip
def test_the_command_line_refuses(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert text in capsys.readouterr().err


def test_the_catalog_is_the_same_every_time() -> None:
    assert [i.id for i in catalog(SUBJECT)] == [i.id for i in catalog(Subject("strict"))]


# ---- the plugin, in a pytest of its own ----


def _pytest(path: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-v", *arguments]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=path, env=found, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def test_the_device_fixture_runs_a_test_on_every_backend(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import mortice as mt\n"
        "def test_it(device):\n    assert mt.ones(2).device == device\n"
        "def test_other():\n    assert mt.ones(1).device.type == 'cpu'\n"
    )
    out = _pytest(tmp_path, "--mortice-backend", "strict", "--mortice-backend", "cpu_numpy")
    assert "mortice backend: strict" in out and "devices strict:0, strict:1, strict_f32" in out
    assert "test_it[strict] PASSED" in out and "test_it[cpu_numpy] PASSED" in out and "3 passed" in out


def test_the_kit_runs_under_pytest_with_readable_ids(tmp_path: Path) -> None:
    out = _pytest(
        tmp_path,
        "--pyargs",
        "mortice_conformance",
        "--mortice-backend",
        "strict",
        "-k",
        "exp-float32",
        "--mortice-level",
        "2",
    )
    assert "test_values[exp-float32-strict] PASSED" in out and "failed" not in out


def test_an_unknown_known_failure_fails_the_run(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from mortice.backends import BackendInfo, plugins\n"
        "from mortice_conformance.strict_kernels import StrictKernels\n"
        "class Mine(StrictKernels):\n    name = 'mine'\n"
        "plugins.register(BackendInfo('mine', ('strict', 'strict_f32'), Mine, priority=-1))\n"
    )
    arguments = ("-p", "mine", "--pyargs", "mortice_conformance", "--mortice-backend", "mine", "-k", "exp-float32")
    assert "failed" not in _pytest(tmp_path, *arguments)
    known = package / "known_failures.toml"
    known.write_text('[[failure]]\nid = "test_values[exp-float32-mine]"\nreason = "none"\n')
    assert "[XPASS(strict)]" in _pytest(tmp_path, *arguments)
    known.write_text('[[failure]]\nid = "test_values[no_such-float32-mine]"\nreason = "none"\n')
    out = _pytest(tmp_path, *arguments)
    assert "no check is called test_values[no_such-float32-mine]" in out


def told(backend: Any, check: str, monkeypatch: pytest.MonkeyPatch, **kernels: Any) -> str:
    """Return what the scorecard says of a check while kernels of a backend are others."""
    for name, kernel in kernels.items():
        monkeypatch.setattr(backend, name, kernel, raising=False)
    subject = Subject("cpu_numpy", backend)
    (item,) = [i for i in catalog(subject) if i.id == f"test_kernel[{check}-cpu_numpy]"]
    return "\n".join(scorecard.terminal(scorecard.make(subject, [run_item(item, subject)], 6, 0.0)).splitlines())


def test_a_failure_of_a_required_kernel_says_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    k = plugins.load("cpu_numpy")

    def widening(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return np.asarray(np.sum(x, axis, keepdims=keepdims))

    text = told(k, "values_and_shapes-sum", monkeypatch, sum=widening)
    assert "expected dtype uint8; got uint64." in text
    assert "due: sum(x, *, axis=None, keepdims=False): Add up along axes, in the dtype of x" in text
    text = told(k, "values_and_shapes-tanh", monkeypatch, tanh=lambda x: None)
    assert "kernel tanh float16 [2, 3]: expected a buffer; got NoneType None." in text
    text = told(k, "numbers-where", monkeypatch, where=lambda cond, x, y: np.where(cond, np.asarray(x), np.asarray(y)))
    assert "A number has the dtype of the other operand." in text
    text = told(k, "values_and_shapes-log", monkeypatch, log=np.log)
    assert "due: no warning: results are IEEE 754's" in text


def test_a_kernel_that_writes_over_its_operand_is_named_though_the_hosts_memory_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    k = plugins.load("cpu_numpy")

    def add(x: Any, y: Any) -> Any:
        fits = isinstance(x, np.ndarray) and x.flags.writeable and np.shape(x) == np.shape(y)
        return np.add(x, y, out=x) if fits else np.add(x, y)

    def from_host(host: Any, device: Any) -> Any:
        made = given(host, device)
        made.flags.writeable = False
        return made

    given = k.from_host
    text = told(k, "operands-add", monkeypatch, add=add, from_host=from_host)
    assert "kernel add float32 [2, 3]: it wrote over its operand 0." in text


def test_a_kernel_whose_results_share_one_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    k, exp = plugins.load("cpu_numpy"), plugins.load("cpu_numpy").exp
    kept: dict[Any, Any] = {}

    def held(x: Any) -> Any:
        out = kept.setdefault((x.shape, x.dtype), np.empty_like(x))
        out[...] = exp(x)
        return out

    text = told(k, "operands-exp", monkeypatch, exp=held)
    assert "kernel exp float32 [2, 3]: the next call changed the result. Each has memory of its own." in text


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("where", lambda c, x, y: x if np.shape(x) == c.shape and c.all() else np.where(c, x, y)),
        ("abs", lambda x: x if x.dtype.kind != "c" and np.equal(x, 1).all() else np.asarray(np.abs(x))),
        ("multiply", lambda x, y: x if np.shape(y) == np.shape(x) and np.equal(y, 1).all() else np.asarray(np.multiply(x, y))),
    ],
)
def test_a_kernel_that_hands_an_operand_back_where_nothing_is_to_compute_is_named(
    name: str, kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = told(plugins.load("cpu_numpy"), f"operands-{name}", monkeypatch, **{name: kernel})
    assert "of ones: a write to its result changed operand" in text and "Return a copy where there is nothing to compute." in text


def test_a_reduction_of_the_first_of_its_axes_alone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    k, prod = plugins.load("cpu_numpy"), plugins.load("cpu_numpy").prod

    def two(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return prod(x, axis=axis[:2] if isinstance(axis, tuple) else axis, keepdims=keepdims)

    text = told(k, "values_and_shapes-prod", monkeypatch, prod=two)
    assert "[2, 3, 2, 2] axis=(0, 1, 3): expected shape (2,); got (2, 2)." in text


def test_a_kernel_without_memory_of_its_own_is_named_where_all_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    k = plugins.load("cpu_numpy")
    take, add, absolute = k.take, k.add, k.abs
    text = told(k, "operands-take", monkeypatch, take=lambda x, i, *, axis: x if list(i) == [0, 1] else take(x, i, axis=axis))
    assert "given [[1, 0], [1, 1]], [0, 1] axis=0: a write to its result changed operand 0" in text
    text = told(k, "operands-concat", monkeypatch, concat=lambda xs, *, axis: xs[0] if len(xs) == 1 else np.concatenate(xs, axis))
    assert "kernel concat float32 [2, 3] axis=0: a write to its result changed operand 0" in text
    text = told(k, "operands-abs", monkeypatch, abs=lambda x: x if x.dtype.kind == "u" else absolute(x))
    assert "kernel abs uint8 [2, 3]: a write to its result changed operand 0" in text
    text = told(k, "numbers-add", monkeypatch, add=lambda x, y: x if type(y) is int and y == 0 else add(x, y))
    assert "[2, 3] with the number 0 second: a write to its result changed operand 0" in text
    same = SimpleNamespace(k=k, astype=k.astype)
    monkeypatch.setattr(k, "astype", lambda x, d: x if k.dtype_of(x) is d else same.astype(x, d), raising=False)
    subject = Subject("cpu_numpy", k)
    (item,) = [i for i in catalog(subject) if i.id == "test_storage[cast-int8-cpu_numpy]"]
    assert "cast int8 to int8: they share memory" in run_item(item, subject).message


def cut(name: str) -> Any:
    """Return a kernel that cuts integers off at the ends of their range."""

    def kernel(*operands: Any, **attrs: Any) -> Any:
        right = getattr(np, {"bitwise_left_shift": "left_shift", "negative": "negative", "abs": "abs", "pow": "power"}.get(name, name))
        d = next(x.dtype for x in operands if isinstance(x, np.ndarray))
        if d.kind not in "ui" or d.itemsize > 4:
            return np.asarray(right(*operands, **attrs))
        wide = [x.astype(np.int64) if isinstance(x, np.ndarray) else x for x in operands]
        return np.asarray(np.clip(right(*wide, **attrs), np.iinfo(d).min, np.iinfo(d).max)).astype(d)

    return kernel


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "negative", "abs", "bitwise_left_shift", "pow", "matmul"])
def test_integers_that_are_cut_at_the_ends_of_their_range_are_told_to_wrap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    k = plugins.load("cpu_numpy")
    text = told(k, f"values_and_shapes-{name}" + ":integers" * (name == "pow"), monkeypatch, **{name: cut(name)})
    assert "wrap" in text or "bits fall off the top" in text, text
    if name in ("add", "subtract", "multiply", "bitwise_left_shift", "pow"):
        monkeypatch.undo()
        right = getattr(k, name)
        numbers = lambda x, y: type(x) is int or type(y) is int
        beside = lambda x, y: (cut(name) if numbers(x, y) else right)(x, y)
        assert "Integers wrap around" in told(k, f"numbers-{name}", monkeypatch, **{name: beside})


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64"])
def test_a_sort_that_writes_over_its_operand_is_named_in_every_dtype(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    k = plugins.load("cpu_numpy")
    argsort, pairs = k.argsort, k.sort_pairs

    def spoiling(right: Any) -> Any:
        def kernel(x: Any, *, axis: int, descending: bool = False) -> Any:
            made = right(x, axis=axis, descending=descending)
            if x.dtype == dtype and x.flags.writeable:
                x.sort(axis=axis)
            return made

        return kernel

    text = told(k, "operands-argsort", monkeypatch, argsort=spoiling(argsort))
    assert f"kernel argsort {dtype} [4, 5]" in text and "wrote over its operand 0" in text
    monkeypatch.setattr(k, "argsort", argsort)
    monkeypatch.setattr(k, "sort_pairs", spoiling(pairs), raising=False)
    subject = Subject("cpu_numpy", k)
    (item,) = [i for i in catalog(subject) if i.id == f"test_values[sort-{dtype}-cpu_numpy]"]
    assert "the call changed operand 0. Return a new buffer." in run_item(item, subject).message


BROKEN: list[tuple[str, Any, str]] = [
    ("max", lambda k, x, **o: np.maximum(k.max(x, **o), -9999), "[-inf, -inf]: expected -inf"),
    ("concat", lambda k, xs, **o: k.concat(*[xs[:8]], **o), "expected shape (40,); got (16,)."),
    ("take", lambda k, x, i, **o: k.take(x, i, **o) if len(i) else x[:0], "[4, 2] [0] axis=1: expected shape (4, 0); got (0, 2)."),
    ("broadcast_to", lambda k, x, shape: k.broadcast_to(x, shape).reshape([n for n in shape if n != 1] or ()), "expected shape (1, 3)"),
    ("matmul", lambda k, x, y: k.matmul(x, y[0] if x.ndim == 1 and y.ndim > 2 else y), "[4] [2, 4, 3]: expected shape (2, 3); got (3,)"),
    ("argsort", lambda k, x, axis, descending=False: np.argsort(x, axis) if len(x) > 99 else k.argsort(x, axis=axis,
     descending=descending), "[1100]"),
    ("sum", lambda k, x, axis=None, keepdims=False: k.sum(x, axis=axis[0] if axis == (2, 0) else axis, keepdims=keepdims), "axis=(2, 0)"),
    ("pow", lambda k, x, y: np.where((x == 0) & (y == 0), 0, k.pow(x, y)).astype(x.dtype), "what is raised to 0 is 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "wrong", "text"), BROKEN, ids=[name for name, *_ in BROKEN])
def test_a_kernel_that_is_broken_in_a_corner_is_named_with_the_corner(name: str, wrong: Any, text: str, monkeypatch: Any) -> None:
    k = plugins.load("cpu_numpy")
    right = SimpleNamespace(**{name: getattr(k, name)})
    shown = told(k, f"values_and_shapes-{name}", monkeypatch, **{name: lambda *x, **o: np.asarray(wrong(right, *x, **o))})
    assert text in shown, shown


def test_an_op_of_a_kernel_that_a_backend_lacks_says_which_and_what_to_do() -> None:
    from mortice.op import _ops, op

    def of_no_kernel(k: Any, x: Any, /) -> Any:
        """Do what no backend does."""

    with pytest.raises(AttributeError, match="of_no_kernel: backend cpu_numpy has no kernel 'nokernel'. Name one that it has, or give no"):
        try:
            with mt.use_backend("cpu_numpy"):
                op(kernel="nokernel")(of_no_kernel)(mt.ones(2))
        finally:
            del _ops["of_no_kernel"]


@pytest.mark.parametrize("command", ["run strict --level L0 --only item --quiet", "new demo --directory {}", "diff --help"])
def test_a_reader_who_leaves_ends_a_command_without_a_word(command: str, tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    arguments = [sys.executable, "-m", "mortice_conformance", *command.format(tmp_path).split()]
    done = subprocess.run(arguments, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=100)
    os.close(writes)
    assert done.stderr == ""
    assert not command.startswith("new demo") or (tmp_path / "demo/pyproject.toml").exists()


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("of a library's own")


@pytest.mark.parametrize(
    ("error", "text"), [(SystemExit(3), "SystemExit: 3"), (Mute(), "Mute: what it says cannot be shown: ValueError")]
)
def test_whatever_a_kernel_raises_costs_its_own_checks_alone(
    error: BaseException, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def matmul(x: Any, y: Any) -> Any:
        raise error

    shown = told(plugins.load("cpu_numpy"), "values_and_shapes-matmul", monkeypatch, matmul=matmul)
    assert text in shown and "due: matmul(x, y): Multiply matrices" in shown


def test_a_kernel_that_cannot_take_its_arguments_is_named_with_both_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    k = plugins.load("cpu_numpy")
    text = told(k, "signatures", monkeypatch, max=lambda x, *, axis=None: x, softmax=lambda x, dim: x)
    assert "max: expected max(x, *, axis=None, keepdims=False); got max(x, *, axis=None): got an unexpected keyword argument" in text
    assert "softmax: expected softmax(x, *, axis); got softmax(x, dim): " in text
