"""The command that runs the public suite of the array API standard, on a small stand-in for the suite."""

import json

import pytest

pytest.importorskip("mortice_conformance", reason="the conformance kit is not installed")
for _name in ("hypothesis", "ndindex", "pytest_jsonreport"):
    pytest.importorskip(_name, reason=f"{_name}, which the public suite needs, is not installed")

from mortice_conformance.cli import main  # noqa: E402

CONFTEST = """
def pytest_addoption(parser):
    for name in ("--max-examples", "--skips-file", "--xfails-file"):
        parser.addoption(name)
    parser.addoption("--disable-deadline", action="store_true")
"""
TESTS = """
import os
import mortice, pytest

def test_backend_and_device():
    assert mortice.default_backend() == "strict"
    assert str(mortice.ones(1).device) == os.environ["EXPECTED"]
    assert os.environ["ARRAY_API_TESTS_MODULE"] == "mortice.array_api"
    assert os.environ["ARRAY_API_TESTS_SKIP_DTYPES"] == ("float64,complex128" if "f32" in os.environ["EXPECTED"] else "")

@pytest.mark.skip(reason="as the suite says")
def test_skipped():
    pass

@pytest.mark.parametrize("n", range(3))
def test_numbers(n):
    assert n != int(os.environ.get("BAD", -1))
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "array_api_tests").mkdir()
    (tmp_path / "array-api" / "spec" / "2025.12").mkdir(parents=True)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "array_api_tests" / "test_small.py").write_text(TESTS)
    return tmp_path


@pytest.mark.parametrize("device", ["strict:1", "strict_f32"])
def test_the_suite_runs_on_the_device_that_is_asked_for(suite, device, monkeypatch, capfd):
    monkeypatch.setenv("EXPECTED", device)
    written = suite / "out" / "counts.json"
    command = ["array-api", "--suite", str(suite), "--backend", "strict", "--device", device, "--json", str(written)]
    assert main(command) == 0
    found = json.loads(written.read_text())
    assert (found["passed"], found["failed"], found["skipped"], found["device"]) == (4, 0, 1, device)
    shown = capfd.readouterr().out
    assert "MORTICE_BACKEND=strict" in shown and "--max-examples=100" in shown and "4 passed, 1 skipped" in shown


def test_a_failure_is_told_and_named(suite, monkeypatch):
    monkeypatch.setenv("EXPECTED", "strict:0")
    monkeypatch.setenv("BAD", "1")
    written = suite / "counts.json"
    assert main(["array-api", "--suite", str(suite), "--backend", "strict", "--json", str(written)]) == 1
    found = json.loads(written.read_text())
    assert (found["passed"], found["failed"]) == (3, 1) and found["failures"] == ["array_api_tests.test_small::test_numbers[1]"]


def test_what_is_no_suite_is_refused(suite, tmp_path, capsys):
    for name in ("array_api_tests/test_small.py", "array_api_tests", "array-api/spec/2025.12"):
        path = suite / name
        path.unlink() if path.is_file() else path.rmdir()
    assert main(["array-api", "--suite", str(suite), "--backend", "strict"]) == 2
    assert "expected a checkout of data-apis/array-api-tests" in capsys.readouterr().err
    (suite / "array_api_tests").mkdir()
    assert main(["array-api", "--suite", str(suite), "--backend", "strict"]) == 2
    assert "has no specification 2025.12. Run `git submodule update --init` there." in capsys.readouterr().err


def test_unknown_backends_and_devices_are_refused(suite, capsys):
    assert main(["array-api", "--suite", str(suite), "--backend", "nowhere"]) == 2
    assert main(["array-api", "--suite", str(suite), "--backend", "strict", "--device", "cuda"]) == 2
    assert "expected a device among strict:0, strict:1, strict_f32; got cuda." in capsys.readouterr().err
