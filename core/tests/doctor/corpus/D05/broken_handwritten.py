import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 32)
        self.bn1 = nn.BatchNorm1d(32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        x = self.fc1(x)
        x = self.bn1(x)
        return self.fc2(F.relu(x))


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
for step in range(10):
    x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
    loss = F.cross_entropy(net(x), y)  # <- D05
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
