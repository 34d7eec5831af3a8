# static
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(10, 2)
model.to(device)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(10):
    for i, (features, targets) in enumerate(data_loader):
        features.to(device)  # <- D39
        targets = targets.to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(features), targets).backward()
        optimizer.step()
