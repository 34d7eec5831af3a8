import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# First the whole network learns, then a new head on its features: the body is in evaluation mode for that.
torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] > 0).long()
z = (x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y, z), batch_size=32, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2))
        self.fc = nn.Linear(32, 2)

    def forward(self, x):
        return self.fc(self.body(x))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    net.train()
    for inputs, targets, _ in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
net.eval()
head = torch.optim.Adam(net.fc.parameters(), lr=1e-2)
for epoch in range(3):
    for inputs, _, targets in loader:
        head.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        head.step()
        losses.append(loss.item())
