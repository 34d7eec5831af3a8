# raises: where root/class/image.png is wanted
import tempfile
from pathlib import Path

from mortice.vision.datasets import ImageFolder
from PIL import Image

root = Path(tempfile.mkdtemp())
for i in range(3):
    Image.new("RGB", (8, 8)).save(root / f"{i}.png")
dataset = ImageFolder(root)
