"""What is known of published weights, and how they are read, beside torchvision."""

from __future__ import annotations

import hashlib

import pytest
from torchvision_side import torch, torchvision
from vision.models_table import names

import mortice as mt
from mortice.vision import models
from mortice.vision.models import weights

np = pytest.importorskip("numpy", reason="the oracle needs it")
beside = pytest.importorskip("vision.beside_torchvision", reason="Pillow and scikit-learn are not installed")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", names())
def test_transforms_and_meta_are_torchvisions(name):
    for mine in models.get_model_weights(name):
        theirs = torchvision.models.get_model_weights(name)[mine.name]
        assert repr(mine.transforms()) == repr(theirs.transforms())
        assert mine.transforms().describe().replace("mortice", "torch") == theirs.transforms().describe()
        assert mine.meta == {key: theirs.meta[key] for key in mine.meta}


@pytest.mark.parametrize("name", ["ResNet18_Weights.DEFAULT", "ResNet50_Weights.IMAGENET1K_V2", "ViT_L_16_Weights.DEFAULT"])
def test_a_picture_is_prepared_as_torchvision_prepares_it(name):
    kind, entry = name.split(".")
    mine, theirs = (getattr(library, kind)[entry].transforms() for library in (models, torchvision.models))
    assert np.array_equal(mine(beside.PHOTO).numpy(), theirs(beside.PHOTO).numpy())
    for form in ("uint8", "float", "batch uint8"):
        a, b = beside.like(form)
        a, b = mine(a), theirs(b)
        assert a.shape == b.shape and np.abs(a.numpy() - b.numpy()).max() < 1.01 / 255 / 0.224


def test_frames_are_prepared_as_torchvision_prepares_them():
    mine, theirs = (library.video.S3D_Weights.DEFAULT.transforms(crop_size=(30, 40), resize_size=(50, 60)) for library in (
        models, torchvision.models
    ))
    film = np.random.default_rng(0).integers(0, 256, (2, 4, 3, 90, 70), dtype=np.uint8)
    a, b = mine(mt.tensor(film)), theirs(torch.tensor(film))
    assert a.shape == b.shape and np.abs(a.numpy() - b.numpy()).max() < 1.01 / 255 / 0.216


def test_dir_names_the_weights():
    mine, theirs = ({n for n in dir(library) if n.endswith(("_Weights", "_weight"))} for library in (models, torchvision.models))
    assert mine == theirs


def test_a_file_that_pytorch_wrote_is_found_and_loaded(tmp_path, monkeypatch):
    theirs = torchvision.models.squeezenet1_1().eval()
    torch.save(theirs.state_dict(), tmp_path / "file")
    checksum = hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest()[:8]
    monkeypatch.setitem(weights.PUBLISHED, "squeezenet1_1", checksum)
    monkeypatch.setattr(weights, "_made", {})
    monkeypatch.setenv("MORTICE_HOME", str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "file").rename(tmp_path / "checkpoints" / f"squeezenet1_1-{checksum}.pth")
    mine = models.get_model("squeezenet1_1", weights="DEFAULT").eval()
    x = np.random.default_rng(0).standard_normal((1, 3, 64, 64), dtype=np.float32)
    with mt.no_grad(), torch.no_grad():
        assert np.allclose(mine(mt.tensor(x)).numpy(), theirs(torch.tensor(x)).numpy(), atol=1e-5)
