import numpy as np

import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, Dataset
from mortice.vision import transforms


class Scans(Dataset):
    def __init__(self, transform, kind):
        self.images = np.random.default_rng(0).integers(0, 256, (24, 16, 16, 1)).astype(kind)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i]), i % 2


torch.manual_seed(0)
scaled = Scans(transforms.ToTensor(), "uint8")
normal = Scans(transforms.Compose([transforms.ToTensor(), transforms.Normalize((127.5,), (74.0,))]), "float32")
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 196, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for data in (scaled, normal):
    for x, y in DataLoader(data, batch_size=8, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
