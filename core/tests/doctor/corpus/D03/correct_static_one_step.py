# static
# One step, to see what it does: there is nothing to clear.
import torch
from torch import nn

model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.weight.clone()
loss = model(torch.randn(4, 10)).pow(2).mean()
loss.backward()
optimizer.step()
for name, p in model.named_parameters():
    print(name, p.grad.norm(), (p - before).abs().max() if name == "weight" else "")
