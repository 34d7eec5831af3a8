"""The doctor has nothing to warn of in the programs of examples/ and in the models that benchmarks train."""

import contextlib
import importlib
import importlib.util
import io
import runpy
import sys
from pathlib import Path

import pytest
from program_runs import GALLERY, GALLERY_SHARED, GALLERY_SMALL, PROGRAMS, SMALL, TINY_NET

import mortice as mt
from mortice import doctor

ROOT = Path(__file__).resolve().parents[3]
BACKENDS = ["cpu_numpy", "cpu_cext", "strict"]


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Return each backend's name in turn, with it as the default."""
    if request.param == "cpu_cext" and importlib.util.find_spec("mortice_cpu_cext") is None:
        pytest.skip("the C extension is not installed here")
    with mt.use_backend(request.param):
        mt.manual_seed(0)
        yield request.param


@contextlib.contextmanager
def clean():
    """Require that what runs inside gets no warning."""
    with doctor.watch(strict=True, quiet=True) as session, contextlib.redirect_stdout(io.StringIO()):
        yield
    assert [str(found) for found in session.findings if found.level != "info"] == []


@pytest.mark.any_backend
@pytest.mark.parametrize("name", SMALL)
def test_programs_of_examples(name, backend, monkeypatch):
    monkeypatch.syspath_prepend(str(PROGRAMS))
    build, train = SMALL[name]
    with clean():
        made = runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name=name)
        built = made["build"](**build)
        made["train"](*(built if isinstance(built, tuple) else (built,)), **train)


@pytest.mark.parametrize("name", ["mlp", "reinforce", "sine_lbfgs"])
def test_programs_from_their_command_line(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.setattr("sys.argv", [f"{name}.py", "--steps", "10"])
    with clean():
        runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")


@pytest.fixture
def gallery(backend, monkeypatch):
    """Return a function that runs a program of the gallery; what programs import of one another is forgotten afterwards."""
    where = ["--device", "strict:0"] if backend == "strict" else []
    monkeypatch.syspath_prepend(str(GALLERY))
    before = {part: sys.modules.pop(part, None) for part in GALLERY_SHARED}

    def run(name, arguments):
        runpy.run_path(str(GALLERY / f"{name}.py"), run_name=name)["main"]([*arguments, *where])

    with mt.use_backend("cpu_numpy" if where else backend):  # data are read on the CPU and sent to the device
        yield run
    for part, module in before.items():
        sys.modules.pop(part, None)
        if module is not None:
            sys.modules[part] = module


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return where the checkpoint of a network that knows a few digits lies, and whether it is there yet."""
    return tmp_path_factory.mktemp("trained")


@pytest.mark.any_backend
@pytest.mark.parametrize("name", GALLERY_SMALL)
def test_programs_of_the_gallery(name, gallery, trained, tmp_path):
    pytest.importorskip("PIL", reason="pictures need Pillow: pip install 'mortice[vision]'")
    always = ["--niter", "1", "--manualSeed", "3", "--outf"]
    start = []
    if name == "finetune":
        start = ["--net", str(trained / "checkpoint.pt")]
        if not (trained / "checkpoint.pt").exists():
            first = [*TINY_NET, "--classes", *"01234", "--limit", "200", "--batchSize", "32"]
            with clean():
                gallery("cifar_resnet", [*first, *always, str(trained)])
    with clean():
        gallery(name, [*GALLERY_SMALL[name][0], *start, *always, str(tmp_path)])


@pytest.mark.any_backend
def test_digits(backend, monkeypatch, tmp_path):
    pytest.importorskip("tqdm")
    monkeypatch.setattr("sys.argv", ["digits.py", "--epochs", "1", "--out", str(tmp_path)])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with clean():
        runpy.run_path(str(ROOT / "examples" / "digits.py"), run_name="__main__")


def test_models_of_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    models = importlib.import_module("benchmarks.models")
    training = importlib.import_module("benchmarks.training")
    doctored = importlib.import_module("benchmarks.doctor")
    steps = [case.setup(mt) for case in training.CASES]
    steps += [models.mlp("SGD", 16, lr=1e-3)(mt), models.tiny_mlp(mt), models.dcgan(mt, 4, 4), doctored.tiny(mt)]
    for step in steps:
        with clean():
            for _ in range(12):
                step()
