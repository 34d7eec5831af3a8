import mortice as torch
from mortice import nn

torch.manual_seed(0)
centres = torch.randn(4, 16)
labels = torch.randint(0, 4, (512,))
features = centres[labels] + 0.5 * torch.randn(512, 16)


class Net(nn.Module):
    def __init__(self, depth=8, width=24):
        super().__init__()
        self.first = nn.Linear(16, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.last = nn.Linear(width, 4)
        for layer in (self.first, *self.hidden):
            nn.init.kaiming_normal_(layer.weight)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.last(x)


net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

losses = []
for step in range(60):
    batch = torch.randint(0, 512, (64,))
    loss = criterion(net(features[batch]), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
