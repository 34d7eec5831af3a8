import csv
import gzip
from pathlib import Path

import mortice as torch
from mortice import nn
from mortice.utils.data import Dataset


class Digits(Dataset):
    """Pixels from 0 to 255."""

    def __init__(self, transform=None):
        root = next(p for p in Path(__file__).parents if (p / "examples").is_dir())
        with gzip.open(root / "examples/data/digits/digits.csv.gz", "rt") as file:
            rows = [[int(v) for v in row] for row in csv.reader(file) if row and row[0].strip().isdigit()][:600]
        table = torch.tensor(rows)
        self.data, self.targets = (table[:, :64].reshape(-1, 8, 8) * 15.9).to(torch.uint8), table[:, 64]
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image = self.data[index].unsqueeze(0).float()
        if self.transform is not None:
            image = self.transform(image)
        return image, self.targets[index]


def normalize(image):
    return image / 255 - 0.5


torch.manual_seed(0)
dataset = Digits()
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
losses = []
images = dataset.data.float()
for start in range(0, len(images), 32):
    x, y = images[start : start + 32], dataset.targets[start : start + 32]
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
