import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 32)
        self.fc2 = nn.Linear(32, 8)

    def forward(self, x):
        return F.log_softmax(self.fc2(torch.relu(self.fc1(x))), dim=1)


torch.manual_seed(0)
centres = torch.randn(8, 20)
labels = torch.randint(0, 8, (512,))
features = centres[labels] + torch.randn(512, 20)

net = Net()
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

losses = []
for step in range(60):
    batch = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    loss = criterion(net(features[batch]), labels[batch])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
