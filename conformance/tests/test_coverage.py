"""Everything registered is tested and documented: ops, samples, kernels, checks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mortice
from mortice.backends import REQUIRED
from mortice.backends.backend import REQUIRED_COMPLEX
from mortice.op import OPS
from mortice_conformance import test_kit
from mortice_conformance.catalog import catalog
from mortice_conformance.record import load_samples
from mortice_conformance.subject import Subject
from mortice_conformance.suites import load_suites
from mortice_conformance.suites.kernels import KERNELS

SAMPLES = load_samples()
BY_OP: dict[str, list[object]] = {}
for _sample in SAMPLES.values():
    BY_OP.setdefault(_sample.op, []).append(_sample)
# Ops that the engine runs by a way of its own: a write through a view is recorded after it, plain reads need no call.
BY_THE_ENGINE = {"view_scatter", "getitem"}
# Kernels that the storage suite tests, not a record.
ELSEWHERE = {"full", "arange", "astype"}


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op_has_a_sample(name: str) -> None:
    assert name in BY_OP, f"{name}: add a line `sample({name!r}, ...)` to mortice_conformance/samples."


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op_has_a_docstring_of_one_sentence(name: str) -> None:
    doc = OPS[name].doc
    told = f"{name}: its docstring begins with one sentence on one line; got {doc!r}."
    assert doc and doc[0].isupper() and doc.split("\n")[0].rstrip().endswith((".", "`")), told


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op_has_a_gradient_or_says_why_not(name: str) -> None:
    op = OPS[name]
    assert op.joint is not None or op.formulas or op.no_grad_reason, f"{name}: give it .vjp(...), or .no_grad() with the reason."


def test_an_op_that_names_its_kernel_has_no_body_beside_it() -> None:
    written_twice = [
        f"{path.name}: {fn.name}"
        for path in Path(mortice.__file__).parent.glob("ops/*.py")
        for fn in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(fn, ast.FunctionDef) and len(fn.body) > 1
        for call in fn.decorator_list
        if isinstance(call, ast.Call) and "kernel" in [argument.arg for argument in call.keywords]
    ]
    assert written_twice == []


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_sample_runs_the_op_that_it_names(name: str) -> None:
    sample = SAMPLES[name]
    if sample.record is None:
        assert sample.call is not None, f"{name}: no op is called {sample.op!r}."
        return
    subject = Subject("strict")
    k, done = subject.backend, set()
    for dtype in sample.dtypes(subject.available):
        k.table.clear()
        sample.apply(subject.operands(sample, sample.cases[0], dtype)[1], sample.cases[0].attrs)
        done |= {op.name for op in k.table}
    assert sample.op in done or sample.op in BY_THE_ENGINE


def test_every_gradient_left_out_has_its_reason() -> None:
    for sample in SAMPLES.values():
        assert sample.grad is not False, f"{sample.id}: give the reason as grad='...'."


def test_every_required_kernel_has_a_record() -> None:
    names = {n for group, line in REQUIRED.items() if group != "housekeeping" for n in line.split()}
    names |= set(REQUIRED_COMPLEX)
    assert names - {k.partition(":")[0] for k in KERNELS} - ELSEWHERE == set()


def test_every_check_has_a_pytest_function() -> None:
    checks = {item.check for name in ("strict", "cpu_numpy") for item in catalog(Subject(name))}
    functions = {n.removeprefix("test_") for n in vars(test_kit) if n.startswith("test_")}
    assert checks == functions


def test_ids_are_unique_and_every_level_has_checks() -> None:
    items = catalog(Subject("strict"))
    ids = [item.id for item in items]
    assert len(set(ids)) == len(ids)
    assert {item.level for item in items} == set(range(7))
    assert "test_values[exp-float32-strict]" in ids


def test_every_suite_entry_has_a_docstring_or_a_named_check() -> None:
    assert all(entry.name and entry.suite for entry in load_suites())
