import mortice as torch
import mortice.nn as nn

layer = nn.Linear(3, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.ones(4, 3)
for _ in range(5):
    optimizer.zero_grad()
    (x @ layer.weight.view(2, 3).t() + layer.bias).square().mean().backward()
    optimizer.step()
