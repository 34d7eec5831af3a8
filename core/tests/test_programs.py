"""The programs of examples/programs: they train alike on each backend, and as in PyTorch once their imports name it."""

from __future__ import annotations

import importlib
import math

import pytest
from program_runs import (
    BACKENDS,
    DEVICES,
    FLOAT32,
    FLOAT64,
    KINKED,
    MAGNIFIED,
    NEAR_0,
    PROGRAMS,
    PROGRESS,
    SMALL,
    copied,
    curves_of,
    in_float64,
    load,
    modules_of,
    with_imports_of,
)

import mortice


@pytest.fixture
def program(monkeypatch):
    """Return a function that loads a program: as it stands, or with the imports of mortice naming another library."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    return load


def norms(module):
    return {name: value.double().norm().item() for name, value in module.state_dict().items()}


def test_every_program_is_listed():
    assert set(SMALL) == {path.stem for path in PROGRAMS.glob("*.py")} - {"example_data"}


@pytest.mark.parametrize("name", SMALL)
def test_program_names_its_library_only_where_it_imports(name):
    source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    assert "mortice" in source
    assert "mortice" not in with_imports_of("torch", source)


@pytest.mark.parametrize("name", SMALL)
def test_program_learns_and_agrees_on_the_strict_backend(name, program):
    made, (build, train) = program(name), SMALL[name]
    mortice.manual_seed(0)
    first = modules_of(made.build(**build))
    second = modules_of(made.build(**build))
    for here, there in zip(first, second):
        there.load_state_dict(here.state_dict())
        there.to(DEVICES.get(name, "strict_f32"))

    curves = curves_of(made.train(*first, **train))
    strict = curves_of(made.train(*second, **train))

    curve, direction = PROGRESS.get(name, ("loss", -1))
    quarter = len(curves[curve]) // 4
    assert direction * (sum(curves[curve][-quarter:]) - sum(curves[curve][:quarter])) > 0, curves[curve]
    for curve, values in curves.items():
        assert len(values) == train["steps"] and all(map(math.isfinite, values))
        assert strict[curve] == pytest.approx(values, rel=KINKED.get(name, BACKENDS), abs=NEAR_0)


@pytest.mark.parametrize("name", SMALL)
def test_program_runs_from_its_command_line(name, program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [f"{name}.py", "--steps", "10" if name == "reinforce" else "2"])
    program(name).main()
    assert len(capsys.readouterr().out.splitlines()) >= 1


@pytest.mark.oracle
@pytest.mark.parametrize("name", SMALL)
def test_program_has_the_losses_of_pytorch(name, program):
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    mine, theirs = program(name), program(name, "torch")
    torch.manual_seed(0)
    wanted, modules = modules_of(theirs.build()), modules_of(mine.build())
    for want, module in zip(wanted, modules):
        module.load_state_dict(copied(torch.save, want.state_dict(), mortice.load))

    expected, curves = curves_of(theirs.train(*wanted, steps=20)), curves_of(mine.train(*modules, steps=20))

    relative = KINKED.get(name, FLOAT32)
    assert list(curves) == list(expected)
    for curve, values in expected.items():
        assert curves[curve] == pytest.approx(values, rel=relative, abs=NEAR_0), curve
    for want, module in zip(wanted, modules):
        assert norms(module) == pytest.approx(norms(want), rel=relative, abs=NEAR_0)
        want.load_state_dict(copied(mortice.save, module.state_dict(), torch.load))
        assert norms(want) == pytest.approx(norms(module), rel=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("name", SMALL)
def test_program_has_the_losses_of_pytorch_in_float64(name, program, monkeypatch):
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    example_data = importlib.import_module("example_data")
    images, labels = example_data.load_digits()
    monkeypatch.setattr(example_data, "load_digits", lambda: (images.astype("float64"), labels.copy()))
    build, train = SMALL[name][0], SMALL[name][1] | {"steps": 20}
    with in_float64(mortice), in_float64(torch):
        mine, theirs = program(name), program(name, "torch")
        mortice.manual_seed(0)
        modules, wanted = modules_of(mine.build(**build)), modules_of(theirs.build(**build))
        for want, module in zip(wanted, modules):
            want.load_state_dict(copied(mortice.save, module.state_dict(), torch.load))
        expected, curves = curves_of(theirs.train(*wanted, **train)), curves_of(mine.train(*modules, **train))

    relative = MAGNIFIED.get(name, FLOAT64)
    for curve, values in expected.items():
        assert curves[curve] == pytest.approx(values, rel=relative), curve
    for want, module in zip(wanted, modules):
        assert norms(module) == pytest.approx(norms(want), rel=relative)
