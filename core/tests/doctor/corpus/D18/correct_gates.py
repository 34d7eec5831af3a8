"""Gates of a recurrent cell are sigmoids that may be open or closed; the state's tanh is not saturated."""

import mortice as torch
import mortice.nn as nn


class Cell(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.gates = nn.Linear(size + hidden, 2 * hidden)
        self.candidate = nn.Linear(size + hidden, hidden)
        nn.init.constant_(self.gates.bias, 2.0)

    def forward(self, x, h):
        z, r = torch.sigmoid(self.gates(torch.cat([x, h], dim=1))).chunk(2, dim=1)
        n = torch.tanh(self.candidate(torch.cat([x, r * h], dim=1)))
        return z * h + (1 - z) * n


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = Cell(3, 12), nn.Linear(12, 1)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 12)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.out(h)


torch.manual_seed(0)
x = torch.randn(32, 6, 3)
y = x.sum(dim=(1, 2)).unsqueeze(1)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(60):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
