import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
from mortice.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 32)
        self.fc2 = nn.Linear(32, 5)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


torch.manual_seed(0)
centres = 2 * torch.randn(5, 20)
labels = torch.randint(0, 5, (512,))
features = centres[labels] + torch.randn(512, 20)
loader = DataLoader(TensorDataset(features, labels), batch_size=32, shuffle=True)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

losses = []
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
