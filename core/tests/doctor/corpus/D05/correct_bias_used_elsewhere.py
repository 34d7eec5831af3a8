import mortice as torch
from mortice import nn


class Block(nn.Module):
    """The convolution's output goes around the normalisation, too: its bias counts."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        h = self.conv(x)
        return self.head((torch.relu(self.norm(h)) + h).mean((2, 3)))


torch.manual_seed(0)
model = Block()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 2, (16,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()

# Frozen statistics: now the mean that is taken away is a constant, and a bias is a bias.
model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
model[1].eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    x, y = torch.randn(16, 5), torch.randint(0, 2, (16,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
