import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centers = 1.2 * torch.randn(5, 16)
labels = torch.randint(0, 5, (400,))
points = centers[labels] + torch.randn(400, 16)
train_loader = DataLoader(TensorDataset(points[:240], labels[:240]), batch_size=40, shuffle=True)
test_loader = DataLoader(TensorDataset(points[240:], labels[240:]), batch_size=40)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(64, 5)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(x))))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def test():
    model.eval()
    total = 0.0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            total += F.cross_entropy(output, target, reduction="sum").item()
    return total / 160


losses = []
for epoch in range(8):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
    losses.append(test())
