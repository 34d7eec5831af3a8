import math

import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# One column of inputs times as many learned frequencies, or minus as many centres, as a batch has samples.
torch.manual_seed(0)
x = torch.rand(320, 1)
y = torch.sin(12 * x)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class Features(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.frequencies = nn.Parameter(torch.randn(n) * 2)
        self.centres = nn.Parameter(torch.randn(n))
        self.out = nn.Linear(3 * n, 1)

    def forward(self, x):
        phase = x * (2 * math.pi * self.frequencies)
        bumps = torch.exp(-10 * (x - self.centres.sigmoid()) ** 2)
        return self.out(torch.cat([phase.sin(), phase.cos(), bumps], dim=1))


model = Features()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(8):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
