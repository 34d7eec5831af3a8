# static
# The names of another folder, those of the same one in order, and a walk that matches nothing.
import os

from torchvision.datasets import ImageFolder

root = "data/train"
dataset = ImageFolder(root)
extra = os.listdir("data/unlabelled")
for i in range(len(extra)):
    print(extra[i])
names = sorted(os.listdir(root))
print([names[i] for i in dataset.targets])
for folder in os.listdir(root):
    print(folder, len(os.listdir(os.path.join(root, folder))))
