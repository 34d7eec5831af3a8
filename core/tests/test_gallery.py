"""The programs of examples/gallery: each learns, draws, and goes on from its checkpoint as though it had never stopped."""

from __future__ import annotations

import importlib
import importlib.util
import math
import pickle
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
from program_runs import GALLERY, GALLERY_SHARED, TINY_GAN, TINY_NET, with_imports_of
from program_runs import GALLERY_SMALL as PROGRAMS

import mortice as mt

pytest.importorskip("PIL", reason="pictures need Pillow: pip install 'mortice[vision]'")

ROOT = Path(__file__).resolve().parents[2]



def served(backend):
    if backend == "cpu_cext" and importlib.util.find_spec("mortice_cpu_cext") is None:
        pytest.skip("the C extension is not installed here")
    return mt.use_backend(backend)


@pytest.fixture
def program(monkeypatch):
    """Return a function that loads a program: as it stands, or with other libraries in its import lines."""

    def load(name, library="mortice"):
        for part in dict.fromkeys([*GALLERY_SHARED, name]):
            path = GALLERY / f"{part}.py"
            source = path.read_text(encoding="utf-8")
            if library == "torch":
                source = source.replace("mortice.vision", "torchvision")
            module = types.ModuleType(part)
            module.__file__ = str(path)
            monkeypatch.setitem(sys.modules, part, module)
            exec(compile(with_imports_of(library, source), str(path), "exec"), vars(module))
        return sys.modules[name]

    return load


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the checkpoint of a network that has seen a few of the digits from 0 to 4, trained from a shell."""
    folder = tmp_path_factory.mktemp("trained")
    command = [sys.executable, str(GALLERY / "cifar_resnet.py"), *TINY_NET, "--classes", *"01234", "--niter", "1"]
    command += ["--limit", "200", "--manualSeed", "1", "--batchSize", "32", "--backend", "cpu_numpy", "--outf", str(folder)]
    done = subprocess.run([*command, "--logdir", str(folder)], capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Random Seed:" not in done.stdout and len(list(folder.glob("events.*"))) == 1
    return folder / "checkpoint.pt"


def options(name, folder, trained, *more):
    start = ["--net", str(trained)] if name == "finetune" else []
    if name in ("char_lstm", "gpt"):  # a text that no change of these docs changes
        datasets = pytest.importorskip("sklearn.datasets", reason="the text comes with scikit-learn")
        start = ["--dataset", "file", "--dataroot", str(Path(datasets.__file__).parent / "descr/twenty_newsgroups.rst")]
    return [*PROGRAMS[name][0], *start, "--niter", "2", "--manualSeed", "3", "--outf", str(folder), *more]


def test_every_program_is_listed():
    assert set(PROGRAMS) == {path.stem for path in GALLERY.glob("*.py")} - {"common"}
    page = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}.py`" in page for name in PROGRAMS)


# GN01 to GN06, GN10, GN11, RN05 to RN07, SL04, WF01
@pytest.mark.any_backend
@pytest.mark.parametrize("backend", ["cpu_numpy", "cpu_cext"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_learns_draws_and_goes_on_where_it_was_interrupted(
    name, backend, program, trained, tmp_path, monkeypatch
):
    module, whole, broken = program(name), tmp_path / "whole", tmp_path / "broken"
    run = sys.modules["common"].Run
    with served(backend):
        module.main(options(name, whole, trained))

        with monkeypatch.context() as patch:  # Ctrl-C after the first epoch
            save = run.save

            def save_and_stop(self, path):
                save(self, path)
                raise KeyboardInterrupt

            patch.setattr(run, "save", save_and_stop)
            with pytest.raises(KeyboardInterrupt):
                module.main(options(name, broken, trained))
        module.main(options(name, broken, trained, "--resume"))

    with served(backend):
        first, second = (mt.load(folder / "checkpoint.pt") for folder in (whole, broken))
        assert first["epoch"] == second["epoch"] == 2
        assert second["history"] == first["history"]
        assert all(math.isfinite(value) for each in first["history"].values() for value in each)
        curve, bound, direction = PROGRAMS[name][2]
        last = first["history"][curve][-1:] if curve in ("accuracy", "held_out") else first["history"][curve][-4:]
        assert direction * (sum(last) / len(last) - bound) > 0, first["history"][curve]
        for part, state in first.items():
            if part not in ("epoch", "history"):
                same(state, second[part])
    for drawn in PROGRAMS[name][1]:
        assert (whole / drawn).read_bytes() == (broken / drawn).read_bytes()
    if importlib.util.find_spec("matplotlib"):
        assert list(whole.glob("loss*.png"))
    assert not list(whole.glob("*.new"))


def test_a_run_that_is_over_only_draws_again(program, tmp_path, trained):
    vae = program("vae")
    vae.main([*options("vae", tmp_path, trained), "--niter", "1", "--workers", "1"])
    drawn, checkpoint = (tmp_path / "pairs.png").read_bytes(), (tmp_path / "checkpoint.pt").read_bytes()
    (tmp_path / "pairs.png").unlink()
    vae.main([*options("vae", tmp_path, trained), "--niter", "1", "--resume", str(tmp_path / "checkpoint.pt")])
    assert (tmp_path / "pairs.png").read_bytes() == drawn
    assert (tmp_path / "checkpoint.pt").read_bytes() == checkpoint


def same(one, other):
    """Require that two states are equal to the last bit."""
    if isinstance(one, mt.Tensor):
        assert mt.equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    else:
        assert one == other


def test_frozen_layers_stay_as_they_were_loaded(program, trained, tmp_path):
    program("finetune").main(options("finetune", tmp_path, trained))
    before, after = mt.load(trained)["net"], mt.load(tmp_path / "checkpoint.pt")["net"]
    stayed = {key for key in before if before[key].shape == after[key].shape and mt.equal(before[key], after[key])}
    frozen = {key for key in before if key.split(".")[0] in ("conv1", "bn1", "layer1", "layer2")}
    assert stayed == frozen
    with pytest.raises(SystemExit, match="is of another network: missing"):
        program("finetune").main([*options("finetune", tmp_path, trained), "--depth", "14"])


def test_dcgan_begins_with_the_weights_of_another_run(program, tmp_path):
    gan = program("dcgan")
    mt.manual_seed(0)
    net = gan.Generator(8, 8, 3, 8)
    net.apply(gan.weights_init)
    weight, norm = net.main[0].weight, net.main[1]
    assert abs(weight.std().item() - 0.02) < 0.004 and abs(norm.weight.mean().item() - 1) < 0.02 and not norm.bias.any()
    mt.save(net.state_dict(), tmp_path / "netG.pt")
    arguments = [*TINY_GAN, "--dataset", "fake", "--limit", "64", "--niter", "1", "--netG", str(tmp_path / "netG.pt")]
    gan.main([*arguments, "--lr", "0", "--manualSeed", "1", "--outf", str(tmp_path)])
    assert mt.equal(mt.load(tmp_path / "checkpoint.pt")["netG"]["main.0.weight"], weight)
    with pytest.raises(SystemExit, match="--imageSize 24: expected 8, 16, 32, 64"):
        gan.main(["--imageSize", "24", "--outf", str(tmp_path), "--dataset", "fake"])


def test_a_batch_that_is_never_full_is_an_error(program, tmp_path):
    arguments = ["--batchSize", "64", "--limit", "63", "--imageSize", "8", "--outf", str(tmp_path)]
    with pytest.raises(
        SystemExit, match="^--batchSize 64: expected at most as many as there are samples to learn from$"
    ):
        program("vae").main(arguments)


def test_dcgan_has_the_notes_layers_at_64_pixels(program):
    gan = program("dcgan")
    net, x, sizes = gan.Generator(100, 4, 3, 64), mt.randn(2, 100, 1, 1), []
    for layer in net.main:
        x = layer(x)
        sizes += [tuple(x.shape[1:])] if isinstance(layer, mt.nn.ConvTranspose2d) else []
    assert sizes == [(32, 4, 4), (16, 8, 8), (8, 16, 16), (4, 32, 32), (3, 64, 64)]
    assert gan.Discriminator(4, 3, 64)(x).shape == (2,) and x.abs().max() <= 1


def test_resnet_reads_the_published_batches_of_cifar10(program, tmp_path, monkeypatch, capsys):
    kind, folder = mt.vision.datasets.CIFAR10, tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    draw = mt.Generator().manual_seed(0)
    for name in ("data_batch_1", "test_batch", "batches.meta"):
        data = bytes(mt.randint(0, 256, (20 * 3072,), generator=draw).tolist())
        (folder / name).write_bytes(published(name, data))
    monkeypatch.setattr(kind, "train_list", [["data_batch_1", None]])
    monkeypatch.setattr(kind, "test_list", [["test_batch", None]])
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": None})
    arguments = [
        "--dataset",
        "cifar10",
        "--dataroot",
        str(tmp_path),
        "--depth",
        "8",
        "--niter",
        "1",
        "--batchSize",
        "10",
    ]
    program("cifar_resnet").main([*arguments, "--manualSeed", "1", "--outf", str(tmp_path)])
    assert "20 pictures, 20 held out" in capsys.readouterr().out


def published(name, data):
    """Return a file of CIFAR-10 as published, but for its size."""
    numpy = pytest.importorskip("numpy", reason="the published batches hold arrays of NumPy")
    if name == "batches.meta":
        return pickle.dumps({"label_names": [f"class {i}" for i in range(10)]}, protocol=2)
    rows = numpy.frombuffer(data, numpy.uint8).reshape(20, 3072)
    return pickle.dumps({"data": rows, "labels": [i % 10 for i in range(20)]}, protocol=2)


def test_photos_come_from_a_folder_or_from_scikit_learn(program, tmp_path):
    from PIL import Image

    photos = program("common").Photos
    if importlib.util.find_spec("sklearn"):
        assert [photos()[i][0].size for i in (0, 1)] == [(320, 214)] * 2
    Image.new("RGB", (40, 20), "red").save(tmp_path / "red.png")
    assert len(photos(tmp_path, length=7)) == 7 and photos(tmp_path)[3][0].size == (20, 10)


class Parsed(Exception):
    """A program's options were understood."""


def parse_only(parser, argv):
    parser.parse_args(argv)
    raise Parsed


def test_the_gallery_has_commands_that_parse_and_pictures_that_are_small(program, monkeypatch):
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    pictures = sorted((ROOT / "docs" / "gallery").iterdir())
    assert sorted(re.findall(r"\]\(gallery/([^)]*)\)", page)) == [path.name for path in pictures]
    sizes = [path.stat().st_size for path in pictures]
    assert max(sizes) < 60_000 and sum(sizes) < 400_000
    commands = re.findall(r"^\$ python examples/gallery/(\w+)\.py (.*)$", page, re.MULTILINE)
    assert {name for name, _ in commands} == set(PROGRAMS)
    for name, line in commands:
        module = program(name)
        monkeypatch.setattr(sys.modules["common"], "begin", parse_only)
        with pytest.raises(Parsed):
            module.main(line.split())


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["dcgan", "vae", "char_lstm"])
def test_program_runs_on_pytorch_once_its_imports_name_it(name, program, trained, tmp_path, capsys):
    importlib.import_module("torchvision_side")
    module = program(name, "torch")
    assert module.torch.__name__ == "torch"
    module.main(options(name, tmp_path, trained))
    assert "epoch 2/2" in capsys.readouterr().out
    assert all((tmp_path / drawn).is_file() for drawn in PROGRAMS[name][1])
