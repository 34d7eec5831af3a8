# static
import os

import mortice as torch
from mortice.vision import datasets, transforms

root = "data/hymenoptera/train"
train_data = datasets.ImageFolder(root, transforms.ToTensor())
class_names = os.listdir(root)  # <- D42
image, label = train_data[0]
print(class_names[label])
