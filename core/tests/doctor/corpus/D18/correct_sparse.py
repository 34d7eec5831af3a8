"""Half of the channels rest, a last layer begins at zero, a first layer is frozen, and a hinge is 0 once it is learned."""

import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(500, 16)
        self.fc1 = nn.Linear(16, 32)
        self.fc2 = nn.Linear(32, 32)
        self.out = nn.Linear(32, 1)
        self.embed.weight.requires_grad_(False)
        nn.init.zeros_(self.out.weight)
        nn.init.constant_(self.fc1.bias[:16].detach(), -20.0)

    def forward(self, ids):
        h = F.relu(self.fc1(self.embed(ids)))
        return self.out(F.relu(self.fc2(h))).squeeze(1)


torch.manual_seed(0)
ids = torch.arange(64)
sign = torch.where(ids % 2 == 0, 1.0, -1.0)
net = Net()
optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)
for step in range(170):
    optimizer.zero_grad()
    loss = F.relu(1 - sign * net(ids)).mean()
    loss.backward()
    optimizer.step()
