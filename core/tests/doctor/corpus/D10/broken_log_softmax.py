import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 36, 10)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = F.relu(self.fc(x.flatten(1)))
        return F.log_softmax(x, dim=1)  # <- D10


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(6):
    x, y = torch.rand(16, 1, 8, 8), torch.randint(0, 10, (16,))
    loss = F.nll_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
