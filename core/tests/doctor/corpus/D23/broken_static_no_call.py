# static
import mortice as torch
from mortice import nn

model = nn.Linear(10, 1)
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step  # <- D23
