# static
import os

from torchvision.datasets import ImageFolder

dataset = ImageFolder(root="data/val")
for name, (image, label) in zip(os.listdir("data/val/cats"), dataset):  # <- D42
    image.save(f"out/{label}_{name}")
