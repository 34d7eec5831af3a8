"""`benchmarks.gpu` without a GPU: it refuses; on the stand-in it runs; what its figures say is judged as the bars ask."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import run_on_cpu

from benchmarks import gpu, gpu_report, gpu_site

ROOT = Path(__file__).parents[3]


def _run(*arguments: Any, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MORTICE_EMULATED_DEVICES": "1", **more}
    command = [sys.executable, "-m", "benchmarks.gpu", "--installed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=2400, cwd=ROOT, env=environment)


# ---- running ----


def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    run = _run("--out", tmp_path / "out", CUDA_VISIBLE_DEVICES="")
    assert run.returncode == 1 and not (tmp_path / "out").exists()
    assert "no GPU that mortice can use, so nothing was measured or written" in run.stderr
    assert "device 'cuda': no backend offers it" in run.stderr


def test_what_the_stand_in_gives_is_not_published(tmp_path: Path) -> None:
    run = _run("--emulated", "--tiny")
    assert run.returncode == 2 and "--emulated needs --out" in run.stderr


@pytest.mark.slow
@pytest.mark.skipif(run_on_cpu.compiler() is None, reason="the stand-in needs a C++ compiler")
def test_on_the_stand_in_stages_run_and_are_reported_together(tmp_path: Path) -> None:
    pytest.importorskip("mortice_conformance", reason="the conformance kit is not installed")
    stages = ("compile", "random", "steps")
    chosen = [word for stage in stages for word in ("--stage", stage)]
    for part, words in (("a", chosen), ("b", ["--stage", "kit", "--jobs", "1"])):
        run = _run("--emulated", "--tiny", "--out", tmp_path / part, "--minutes", 40, *words)
        assert run.returncode == 0, run.stdout + run.stderr
    together = _run("--report", *(tmp_path / part / "records.jsonl" for part in "ab"), "--out", tmp_path)
    assert together.returncode == 0, together.stderr

    (file,) = tmp_path.glob("*.json")
    report = json.loads(file.read_text())
    assert report["machine"]["emulated"] and {bar["verdict"] for bar in report["bars"]} == {gpu_report.UNKNOWN}
    found = report["stages"]
    assert {name: stage["status"] for name, stage in found.items()} == dict.fromkeys((*stages, "kit"), "ok"), run.stdout
    assert found["compile"]["notes"] and "2 kernels in" in found["compile"]["notes"][0] and len(found["compile"]["notes"]) == 1
    assert all(row["different"] == 0 for row in found["random"]["rows"]) and len(found["random"]["rows"]) == 39
    assert found["kit"]["rows"][0]["passed"] > 0 and found["kit"]["rows"][0]["failed"] == 0
    assert len(found["steps"]["rows"]) == 3 and not any(row["problems"] for row in found["steps"]["rows"]), found[
        "steps"
    ]
    assert all(row["seconds"]["mortice"] > 0 for row in found["steps"]["rows"])
    if importlib.util.find_spec("torch") is not None:
        assert all(row["ratio"] > 0 for row in found["steps"]["rows"])
    for ending in ("md", "html"):
        (page,) = tmp_path.glob(f"*.{ending}")
        assert "no GPU took part, and no figure here says anything" in page.read_text()
    assert (tmp_path / "b" / "cuda_cupy.html").exists()


class _Failing(gpu.Run):
    """A run whose stages end otherwise than they should: they write a row, then crash, hang, or leave a line unfinished."""

    def _command(self, name: str, seconds: float | None = None) -> list[str]:
        ways = {"random": "os._exit(7)", "matmul": "time.sleep(600)", "steps": 'file.write(\'{"stage": "steps", \')'}
        row = json.dumps(
            {"stage": name, "row": {"name": "first", "different": 0, "problems": [], "seconds": {}, "ratio": 2.0}}
        )
        program = (
            f"import os, time\nprint('the last words')\nfile = open({str(self.records)!r}, 'a')\n"
            f"file.write({row + chr(10)!r}); file.flush()\n{ways[name]}"
        )
        return [sys.executable, "-u", "-c", program]


def test_a_stage_that_crashes_or_hangs_leaves_its_own_figures_and_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(gpu.LIMITS, "matmul", 6 / gpu.EMULATED)
    run = _Failing(gpu.parse(["--out", str(tmp_path), "--emulated", "--tiny"]), [], time.monotonic() + 400)
    for name in ("random", "matmul", "steps"):
        run.stage(name, kept=0)
    run.stage("attention", kept=10_000)
    report = gpu_report.collected(gpu_report.read([run.records]))
    stages = report["stages"]
    assert stages["random"]["status"] == "failed with exit code 7" and stages["random"]["said"] == "the last words"
    assert stages["matmul"]["status"] == "ended after 6 s" and len(stages["matmul"]["rows"]) == 1
    assert stages["steps"]["status"] == "ok" and stages["attention"]["status"] == "not run: no time was left"
    bars = {bar["name"]: bar for bar in report["bars"]}
    assert bars[gpu_report.TITLES["random"]]["verdict"] == gpu_report.MISSED
    assert bars[gpu_report.TITLES["matmul"]]["found"].endswith("the stage: ended after 6 s")
    assert bars[gpu_report.TITLES["matmul"]]["verdict"] == gpu_report.MISSED
    assert bars[gpu_report.TITLES["steps"]]["verdict"] == gpu_report.REACHED


class _Losing(gpu.Run):
    """A run whose second case ends the process."""

    def _command(self, name: str, seconds: float | None = None) -> list[str]:
        program = (
            "import argparse, types\nfrom benchmarks import gpu_stages as g\nfrom pathlib import Path\n"
            "p = argparse.ArgumentParser()\np.add_argument('--after', default='')\n"
            f"o = argparse.Namespace(name='steps', tiny=True, only='', emulated=True, records=Path({str(self.records)!r}),"
            " seconds=60.0, after=p.parse_args().after)\n"
            "stage = g.Stage(o)\n"
            "def wait():\n    if name == 'b': raise RuntimeError('an illegal memory access was encountered')\n"
            "for case in stage.left([types.SimpleNamespace(name=n) for n in 'abc']):\n    name = case.name\n"
            "    stage.emit(row={'name': name, 'seconds': {'mortice': 1.0}, 'ratio': 2.0, 'problems': []}) if name != 'b' else 0\n"
            "    stage.check([types.SimpleNamespace(wait=wait)])\n"
        )
        return [sys.executable, "-c", program]


def test_a_stage_whose_gpu_answers_no_more_goes_on_behind_that_case(tmp_path: Path) -> None:
    run = _Losing(gpu.parse(["--out", str(tmp_path), "--emulated", "--tiny"]), [], time.monotonic() + 400)
    for _ in range(2):  # what an earlier run was at does not count
        run.stage("steps", kept=0)
        stage = gpu_report.collected(gpu_report.read([run.records]))["stages"]["steps"]
        assert [row["name"] for row in stage["rows"]] == ["a", "b", "c"] and stage["status"] == "failed with exit code 3"
        assert "illegal memory access" in stage["rows"][1]["problems"][0] and stage["rows"][2]["ratio"] == 2.0


# ---- judging ----


def _stages(**rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: {"status": "ok", "rows": found, "notes": []} for name, found in rows.items()}


def _timed(name: str, seconds: float, ratio: float, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "seconds": {"mortice": seconds, "torch": seconds * ratio},
        "ratio": ratio,
        "problems": [],
        **more,
    }


def _verdicts(stages: dict[str, Any]) -> dict[str, str]:
    return {bar.name: bar.verdict for bar in gpu_report.judged(stages)}


def test_the_median_of_ratios_decides_and_a_problem_misses() -> None:
    title = gpu_report.TITLES["matmul"]
    rows = [_timed(str(i), 1.0, ratio) for i, ratio in enumerate((0.5, 0.98, 3.0))]
    assert _verdicts(_stages(matmul=rows))[title] == gpu_report.REACHED
    assert _verdicts(_stages(matmul=rows[:2]))[title] == gpu_report.MISSED
    assert _verdicts(_stages(matmul=[{**rows[2], "problems": ["results differ"]}]))[title] == gpu_report.MISSED
    failed = {"name": "a", "seconds": {"torch": 1.0}, "problems": ["mortice failed"]}
    assert _verdicts(_stages(matmul=[failed]))[title] == gpu_report.MISSED
    alone = {"name": "a", "seconds": {"mortice": 1.0}, "problems": []}  # PyTorch is not there
    assert _verdicts(_stages(matmul=[alone]))[title] == gpu_report.UNKNOWN
    assert _verdicts(_stages(matmul=[]))[title] == _verdicts({})[title] == gpu_report.UNKNOWN


def test_the_share_of_bandwidth_is_that_of_the_faster_copy() -> None:
    copy = {**_timed("copy", 2.0, 0.5, traffic=8), "ratio": 0.5}  # 8 bytes a second in PyTorch
    rows = [copy, _timed("x + y", 1.0, 1.1, traffic=7), _timed("sum", 1.0, 1.1, traffic=6), _timed("where", 1.0, 1.1)]
    share = f"{gpu_report.TITLES['elementwise']}, bandwidth"
    assert gpu_report.bandwidth(rows) == 8 and gpu_report.share(rows[1], 8) == 0.875
    assert _verdicts(_stages(elementwise=rows))[share] == gpu_report.MISSED  # the median of 7/8 and 6/8
    assert _verdicts(_stages(elementwise=rows[:2]))[share] == gpu_report.REACHED
    assert _verdicts(_stages(elementwise=rows))[gpu_report.TITLES["elementwise"]] == gpu_report.REACHED


def test_kit_programs_streams_and_memory_must_hold_everywhere() -> None:
    card = {"reached": 6, "passed": 7500, "failed": 0, "not run": 0, "known": 1, "skipped": 7}
    good = _stages(
        kit=[card], programs=[{"holds": True}], random=[{"name": "rand", "different": 0}], memory=[{"ratio": 1.05}]
    )
    bad = _stages(
        kit=[{**card, "reached": 5, "failed": 3, "not run": 2}], programs=[{"holds": True}, {"holds": False}],
        random=[{"name": "rand", "different": 1}], memory=[{"ratio": 1.0}, {"ratio": 1.2}],
    )  # fmt: skip
    names = [gpu_report.TITLES[name] for name in ("kit", "programs", "random", "memory")]
    assert {_verdicts(good)[name] for name in names} == {gpu_report.REACHED}
    lost = {"problems": ["mortice failed"]}  # of a step that has no figure nothing may be concluded
    for rows in ([lost], [{"ratio": 1.0}, lost]):
        assert _verdicts(_stages(memory=rows))[names[3]] == gpu_report.MISSED
    assert gpu.parse([]).minutes == gpu.MINUTES < gpu.parse(["--emulated", "--out", "x"]).minutes
    assert {_verdicts(bad)[name] for name in names} == {gpu_report.MISSED}
    kit = next(bar for bar in gpu_report.judged(bad) if bar.name == names[0])
    assert kit.found == "L5, 7,500 passed, 3 failed (2 of them not run), 1 known"
    assert {bar.verdict for bar in gpu_report.judged(good, emulated=True)} == {gpu_report.UNKNOWN}


def test_pages_show_every_figure_and_escape_what_they_quote() -> None:
    rows = [_timed("a | b <c>", 0.002, 1.5, low=1.4, high=1.6)]
    report = {
        "machine": {"gpu": "Some GPU", "date": "2026-01-02T03:04:05", "versions": {"torch": "1"}},
        "stages": {"matmul": {"status": "ok", "begun": "2026-01-02T03:04:05", "rows": rows, "notes": ["of <note>"]}},
        "bars": [vars(bar) for bar in gpu_report.judged(_stages(matmul=rows))],
    }
    text, page = gpu_report.markdown(report), gpu_report.html(report)
    assert "| a \\| b <c> | 2 ms | 3 ms | 1.50 (1.40 to 1.60) |" in text and "# mortice on Some GPU, 2026-01-02" in text
    assert "a | b &lt;c&gt;" in page and "of &lt;note&gt;" in page and '<td class="reached">reached</td>' in page


# ---- installing ----


def test_requirements_come_from_the_projects() -> None:
    needed, optional = gpu_site._needs()
    assert {"setuptools>=77", "pluggy>=1.5", "pytest>=8"} <= set(needed) and not any("mortice" in r for r in needed)
    assert any(r.startswith("nvidia-cudnn-frontend") for r in optional)
    assert gpu_site._met(f"pytest=={importlib.metadata.version('pytest')}") and not gpu_site._met("pytest<1")


@pytest.mark.slow
def test_the_checkout_is_installed_without_a_network_or_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not gpu_site._met(gpu_site.BUILD[0]):
        pytest.skip(f"{gpu_site.BUILD[0]} is not installed here, which builds without fetching anything")
    monkeypatch.setenv("CC", "/nothing/cc")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    before = set(ROOT.glob("*/build")) | set(ROOT.glob("*/*.egg-info"))
    site = tmp_path / "site"
    said = gpu_site.install(site, tmp_path)
    assert said[-1].endswith("no C compiler, so without its accelerator"), said
    assert gpu_site.install(site, tmp_path) == [f"{site}: up to date"]
    assert set(ROOT.glob("*/build")) | set(ROOT.glob("*/*.egg-info")) == before
    _serves(site, tmp_path)


def _serves(site: Path, folder: Path) -> None:
    program = "import mortice, mortice.backends as b, mortice_conformance.cli; print(mortice.__file__, *b.list())"
    environment = {**os.environ, "PYTHONPATH": str(site)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=folder)
    assert run.stdout.startswith(str(site)) and "cuda_cupy" in run.stdout and "cpu_numpy" in run.stdout, run.stderr


def test_where_pip_cannot_install_the_checkout_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_site, "_pip", lambda *arguments: "error: setuptools is too old")
    site = tmp_path / "site"
    said = gpu_site.install(site, None)
    assert any("so its files are copied: error: setuptools is too old" in line for line in said)
    assert (site / "mortice_cuda_cupy/kernels/scan.cu").exists() and (site / "mortice_cuda_cupy/known_failures.toml").exists()
    _serves(site, tmp_path)
    if shutil.which(os.environ.get("CC") or "cc"):
        assert list((site / "mortice").glob("_engine*.so")) and said[-1].startswith(f"mortice from {ROOT}"), said


def test_what_another_machine_gave_is_marked() -> None:
    one, two = ({"machine": {"gpu": name}} for name in ("One", "Two"))
    stages = gpu_report.collected([one, {"stage": "matmul", "begin": "x"}, two, {"stage": "steps", "begin": "y"}])["stages"]
    assert stages["matmul"]["notes"] == ["**On One.**"] and not stages["steps"]["notes"] and "gpu" not in stages["steps"]


def test_what_a_machine_lacks_is_told_at_first() -> None:
    assert gpu.lacking({"torch sees it": True, "cudnn": 91002}) == []
    assert [line.split()[0] for line in gpu.lacking({"torch sees it": False, "cudnn": None})] == ["PyTorch", "mortice"]


def test_a_step_that_fails_ends_everything_with_the_way_there(capsys: pytest.CaptureFixture[str]) -> None:
    import mortice
    from benchmarks import gpu_stages

    if mortice.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises(SystemExit):
        gpu_stages._try_a_step(mortice)
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and "in _try_a_step" in said and "cuda" in said.splitlines()[-1]
