import numpy as np

import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, Dataset
from mortice.vision import transforms


class Scans(Dataset):
    """Images that were read as floats from 0 to 255."""

    def __init__(self, transform=None):
        self.images = np.random.default_rng(0).integers(0, 256, (24, 16, 16, 1)).astype("float32")
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        return (self.transform(image) if self.transform else image), i % 2


torch.manual_seed(0)
data = Scans(transforms.Compose([transforms.ToTensor(), transforms.RandomHorizontalFlip()]))
loader = DataLoader(data, batch_size=8)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 196, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for x, y in loader:  # <- D27
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
