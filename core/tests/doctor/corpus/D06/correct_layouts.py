import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Views that split and merge: heads, windows, patches, groups of channels that are shuffled, time folded into the batch.
torch.manual_seed(0)
x = torch.randn(96, 4, 8, 8)
y = torch.randint(0, 3, (96,))
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.project, self.head = nn.Conv2d(4, 8, 3, padding=1), nn.Linear(32, 16), nn.Linear(16, 3)

    def forward(self, x):
        b, c, h, w = x.shape
        x = self.conv(x)
        x = x.view(b, 2, 4, h, w).transpose(1, 2).reshape(b, 8, h, w)
        patches = x.view(b, 8, 4, 2, 4, 2).permute(0, 2, 4, 1, 3, 5).reshape(b, 16, 32)
        h = self.project(patches)
        heads = h.view(b, 16, 4, 4).transpose(1, 2).contiguous().view(b * 4, 16, 4)
        h = heads.view(b, 4, 16, 4).transpose(1, 2).reshape(b, 16, 16)
        windows = h.view(b, 4, 4, 16).view(b * 4, 4, 16)
        return self.head(windows.view(b, 16, 16).mean(1))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
