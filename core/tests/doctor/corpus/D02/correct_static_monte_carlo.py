# static
# Dropout stays on, so that many passes tell how sure the network is.
import torch
from torch import nn

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()

with torch.no_grad():
    for x, y in test_loader:
        draws = torch.stack([model(x).softmax(dim=1) for _ in range(50)])
        mean, spread = draws.mean(0), draws.std(0)
        print((mean.argmax(1) == y).float().mean(), spread.mean())
