import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
height = torch.randn(200, 1)
weight = 2 * height + 0.1 * torch.randn(200, 1)
height[137] = float("nan")  # a missing entry of the table

model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(height, weight), batch_size=20, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()  # <- D18
        optimizer.step()
        losses.append(loss.item())
