# static
import mortice as torch
from mortice import nn

torch.manual_seed(0)
centres = 2 * torch.randn(4, 10)
labels = torch.randint(0, 4, (256,))
features = centres[labels] + torch.randn(256, 10)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = self.fc1(x)
        x.relu()  # <- D39
        return self.fc2(x)


def clip(weights, limit):
    weights.data.clamp_(-limit, limit)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
losses = []
for step in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(features), labels)
    loss.backward()
    optimizer.step()
    clip(net.fc1.weight, 0.1)
    losses.append(loss.item())
