import mortice as torch
import mortice.nn as nn

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0
for step in range(10):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 8)).square().mean()
    loss.backward()
    optimizer.step()
    total += loss.item()
