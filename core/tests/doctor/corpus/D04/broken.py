import mortice as torch
import mortice.nn.functional as F
from mortice import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.fc2 = nn.Linear(64, 5)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return F.softmax(self.fc2(x), dim=1)


torch.manual_seed(0)
centres = 2 * torch.randn(5, 20)
labels = torch.randint(0, 5, (512,))
features = centres[labels] + torch.randn(512, 20)

net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

losses = []
for step in range(60):
    batch = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    loss = criterion(net(features[batch]), labels[batch])  # <- D04
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
