import csv
import gzip
from pathlib import Path

import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

path = next(p for p in Path(__file__).parents if (p / "examples").is_dir()) / "examples/data/digits/digits.csv.gz"
with gzip.open(path, "rt") as file:
    table = torch.tensor([[int(v) for v in row] for row in csv.reader(file) if row and row[0].strip().isdigit()][:360])
images, labels = table[:, :64].float() / 16, table[:, 64]

torch.manual_seed(0)
dataset = TensorDataset(images, labels)
loader = DataLoader(dataset, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []  # of each epoch
for epoch in range(12):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x) / len(images)
    losses.append(total)
with torch.no_grad():
    right = 0
    for x, y in DataLoader(dataset, batch_size=120, shuffle=True):
        right += (model(x).argmax(1) == y).sum().item()
