import mortice as torch
from mortice import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1.forward(x)))  # <- D38


torch.manual_seed(0)
net = Net()
features = {}


def keep(module, args, output):
    features["output"] = output.detach()


net.fc1.register_forward_hook(keep)
x, y = torch.randn(64, 10), torch.randint(0, 3, (64,))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for step in range(10):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print({name: t.shape for name, t in features.items()})
