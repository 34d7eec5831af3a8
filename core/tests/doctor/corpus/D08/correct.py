import csv
import gzip
from pathlib import Path

import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

path = next(p for p in Path(__file__).parents if (p / "examples").is_dir()) / "examples/data/digits/digits.csv.gz"
with gzip.open(path, "rt") as file:
    table = torch.tensor([[int(v) for v in row] for row in csv.reader(file) if row and row[0].strip().isdigit()][:800])
table = table[table[:, 64].argsort(stable=True)]  # all zeros, then all ones, ...
images, labels = table[:, :64].float() / 16, table[:, 64]

torch.manual_seed(0)
loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

losses = []
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
