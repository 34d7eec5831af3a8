import copy

import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 10), torch.randint(0, 4, (160,)))
loader = DataLoader(data, batch_size=32, shuffle=True)

student = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
teacher = copy.deepcopy(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05)

for epoch in range(3):
    for x, y in loader:
        with torch.no_grad():
            soft = teacher(x + 0.1 * torch.randn(x.shape)).softmax(1)
        out = student(x)
        loss = nn.functional.cross_entropy(out, y) + nn.functional.cross_entropy(out, soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters()):
                old.mul_(0.9).add_(new, alpha=0.1)

# Exact statistics for BatchNorm: once more over the data, in training mode on purpose.
student.train()
with torch.no_grad():
    for x, _ in loader:
        student(x)
student.eval()
with torch.no_grad():
    print(sum((student(x).argmax(1) == y).sum().item() for x, y in loader) / 160)
