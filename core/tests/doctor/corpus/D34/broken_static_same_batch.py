# static
import torch
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)
model = nn.Linear(10, 2)
optimizer = torch.optim.Adam(model.parameters())
for step in range(1000):
    x, y = next(iter(loader))  # <- D34
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
