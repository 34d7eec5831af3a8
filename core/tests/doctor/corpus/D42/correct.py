import tempfile
from pathlib import Path

from mortice.vision.datasets import ImageFolder
from PIL import Image

root = Path(tempfile.mkdtemp())
for kind in ("bee", "wasp"):
    (root / kind).mkdir()
    for i in range(2):
        Image.new("RGB", (8, 8)).save(root / kind / f"{i}.png")
dataset = ImageFolder(root)
assert len(dataset) == 4 and dataset.classes == ["bee", "wasp"]
