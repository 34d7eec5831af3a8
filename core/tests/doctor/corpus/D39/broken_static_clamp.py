# static
import torch
from torch import nn

critic = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
for real in dataloader:
    optimizer.zero_grad()
    (critic(torch.randn(64, 2)).mean() - critic(real).mean()).backward()
    optimizer.step()
    critic[0].weight.data.clamp(-0.01, 0.01)  # <- D39
