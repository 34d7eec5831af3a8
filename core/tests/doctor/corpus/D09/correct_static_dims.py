# static
import torch
import torch.nn as nn
import torch.nn.functional as F

policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2), nn.Softmax(dim=-1))
scores = torch.randn(3, 5)
a = F.softmax(scores, 1)
b = F.log_softmax(scores, dim=-1)
c = scores.softmax(0)
d = nn.Softmax2d()
