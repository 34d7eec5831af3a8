import mortice as torch
from mortice import nn
from mortice.utils.checkpoint import checkpoint
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10)) for _ in range(4)
        )
        self.head = nn.Linear(10, 2)

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.head(x)


net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
