import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

torch.manual_seed(0)
model = nn.Linear(10, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 10)
tags = (torch.rand(64, 6) < 0.4).float()
for step in range(8):
    loss = F.cross_entropy(model(x), tags)  # <- D11
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
