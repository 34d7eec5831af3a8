import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset


class RadialBasis(nn.Module):
    """Each input minus each centre: as many centres as samples, by accident."""

    def __init__(self, centres):
        super().__init__()
        self.squeeze = nn.Linear(2, 1)
        self.centres = nn.Parameter(torch.linspace(-2, 2, centres))
        self.register_buffer("grid", torch.linspace(-1, 1, centres))
        self.out = nn.Linear(2 * centres, 1)

    def forward(self, x):
        near = torch.exp(-((self.squeeze(x) - self.centres) ** 2))
        far = self.squeeze(x) * self.grid
        return self.out(torch.cat([near, far], 1)).squeeze(1)


torch.manual_seed(0)
x = torch.randn(64, 2)
loader = DataLoader(TensorDataset(x, torch.sin(x[:, 0])), batch_size=16)
model = RadialBasis(16)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for inputs, targets in loader:
        loss = ((model(inputs) - targets) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
