"""The programs of examples/programs: they train alike on each backend, and as in PyTorch once their imports name it."""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import re
import types
from pathlib import Path

import pytest

import mortice

PROGRAMS = Path(__file__).resolve().parents[2] / "examples" / "programs"

# What makes each small: the arguments of its `build` and of its `train`.
SMALL = {
    "mlp": ({"hidden": 32}, {"steps": 20, "batch_size": 32}),
    "lenet": ({}, {"steps": 20, "batch_size": 16}),
    "resnet": ({"width": 4, "blocks": (1, 1, 1)}, {"steps": 12, "batch_size": 32}),
    "dcgan": ({"nz": 8, "ngf": 8, "ndf": 8}, {"steps": 16, "batch_size": 16}),
    "vae": ({"hidden": 32}, {"steps": 20}),
    "char_lstm": ({"embedding": 8, "hidden": 32}, {"steps": 16, "batch_size": 4}),
    "gpt": ({"width": 16, "layers": 2, "block_size": 16}, {"steps": 20, "batch_size": 8}),
    "siamese": ({"channels": 4}, {"steps": 16, "batch_size": 16}),
    "reinforce": ({"hidden": 32}, {"steps": 30, "longest": 50}),
    "sine_lbfgs": ({"hidden": 8}, {"steps": 8, "count": 4, "length": 24}),
}
# The curve that shows learning, where it is not the loss, and whether it falls (-1) or rises (1).
PROGRESS = {"dcgan": ("discriminator", -1), "reinforce": ("length", 1)}
DEVICES = {"sine_lbfgs": "strict:0"}  # it computes in float64, which strict_f32 has not

# Relative tolerances. The order of summation is all that may differ, but training magnifies it: where a gradient is
# nearly 0 Adam moves by the sign that rounding left, and a unit that rounding moves across the kink of a ReLU changes its
# gradient at once. So float64 is the proof; float32 is what a user sees.
BACKENDS, FLOAT32, FLOAT64 = 1e-5, 2e-4, 1e-10
KINKED = {"resnet": 0.1, "siamese": 0.02}  # float32: PyTorch without oneDNN differs as much from PyTorch with it
MAGNIFIED = {"sine_lbfgs": 1e-6}  # float64: eighty iterations of LBFGS without a line search
NEAR_0 = 1e-5  # absolute: the loss of REINFORCE is a sum of both signs


@pytest.fixture
def program(monkeypatch):
    """Return a function that loads a program: as it stands, or with the imports of mortice naming another library."""
    monkeypatch.syspath_prepend(str(PROGRAMS))

    def load(name, library="mortice"):
        path = PROGRAMS / f"{name}.py"
        source = path.read_text(encoding="utf-8")
        module = types.ModuleType(f"{name}_in_{library}")
        exec(compile(with_imports_of(library, source), str(path), "exec"), vars(module))
        return module

    return load


def with_imports_of(library, source):
    """Return the source of a program with `mortice` replaced in the lines that import it, and nowhere else."""
    return re.sub(r"^(import|from) mortice\b", rf"\1 {library}", source, flags=re.MULTILINE)


def modules_of(built):
    """Return what `build` gave, one module or several, as a tuple."""
    return built if isinstance(built, tuple) else (built,)


def curves_of(history):
    """Return what `train` gave, a list of losses or several lists by name, by name."""
    return history if isinstance(history, dict) else {"loss": history}


def copied(save, state, load):
    """Return a state dict after its way through a file."""
    file = io.BytesIO()
    save(state, file)
    file.seek(0)
    return load(file)


@contextlib.contextmanager
def in_float64(library):
    """Make float64 the default dtype of a library for a while."""
    before = library.get_default_dtype()
    library.set_default_dtype(library.float64)
    try:
        yield
    finally:
        library.set_default_dtype(before)


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
