"""A classifier that has learned its data: its last sigmoid is near 0 or 1, as it should be."""

import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
y = torch.randint(0, 2, (200, 1)).float()
x = 3 * (2 * y - 1) + 0.5 * torch.randn(200, 8)

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
losses = []
for step in range(160):
    loss = nn.functional.binary_cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
