# static
import torch
from torch import nn

model = nn.Sequential(nn.Linear(10, 10), nn.Dropout(0.5))
model.eval  # <- D23
print(model(torch.randn(1, 10)))
