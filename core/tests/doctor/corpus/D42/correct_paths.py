import tempfile
from pathlib import Path

from mortice.vision.datasets import ImageFolder
from PIL import Image

root = Path(tempfile.mkdtemp())
(root / "all").mkdir()
for i in range(3):
    Image.new("RGB", (8, 8)).save(root / "all" / f"{i}.png")
dataset = ImageFolder(root)
for (image, _), (path, _) in zip(dataset, dataset.samples):
    assert Path(path).name.endswith(".png") and image.size == (8, 8)
