import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.fc2 = nn.Linear(64, 6)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return self.fc2(self.dropout(x))


torch.manual_seed(0)
centres = 2 * torch.randn(6, 20)
labels = torch.randint(0, 6, (512,))
features = centres[labels] + torch.randn(512, 20)

net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

losses = []
for step in range(80):
    batch = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    loss = criterion(net(features[batch]), labels[batch])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
