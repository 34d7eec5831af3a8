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


for data, target in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(data), target).backward()
    optimizer.step()

# The uncertainty of predictions: dropout stays on, and each batch is seen many times.
votes = []
with torch.no_grad():
    for data, _ in test_loader:
        votes.append(torch.stack([model(data).softmax(1) for _ in range(12)]))
print(torch.cat(votes, dim=1).std(0).mean())
