# raises: the first backward was at
import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
x, y = torch.randn(64, 5), torch.randn(64, 1)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

losses = []
for step in range(20):
    optimizer.zero_grad()
    error = model(x) - y
    squared = (error**2).mean()
    squared.backward()
    penalty = squared * 0.1
    penalty.backward()  # <- D29
    optimizer.step()
    losses.append(squared.item())
