# static
# Modules move in place, methods with an underscore change their tensor, and some calls are there for what else they do.
import torch
from torch import nn

device = torch.device("cpu")
model = nn.Linear(10, 2)
model.to(device)
model.double()
criterion = nn.CrossEntropyLoss()
criterion.cuda()
x = torch.zeros(3, 1)
x.squeeze_(1)
x.requires_grad_()
seen = set()
seen.add(3)
losses = []
losses.append(x.sum().item())
with torch.autograd.profiler.profile() as report:
    x.to(device)
