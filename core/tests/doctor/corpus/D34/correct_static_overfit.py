# static
# The same batch on purpose, taken once.
import torch
from torch import nn

inputs, targets = next(iter(train_loader))
model = nn.Linear(10, 2)
optimizer = torch.optim.Adam(model.parameters())
first = next(iter(model.parameters()))
for step in range(200):
    device = next(model.parameters()).device
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs.to(device)), targets.to(device)).backward()
    optimizer.step()
