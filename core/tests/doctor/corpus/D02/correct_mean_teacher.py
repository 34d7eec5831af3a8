import copy

import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

student = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)


@torch.no_grad()
def update(decay=0.99):
    for old, new in zip(teacher.parameters(), student.parameters()):
        old.mul_(decay).add_(new, alpha=1 - decay)


losses = []
for epoch in range(4):
    student.train()
    teacher.train()  # its dropout is part of the method
    for inputs, targets in loader:
        out = student(inputs + 0.1 * torch.randn_like(inputs))
        with torch.no_grad():
            wanted = teacher(inputs + 0.1 * torch.randn_like(inputs)).softmax(1)
        loss = nn.functional.cross_entropy(out, targets) + nn.functional.mse_loss(out.softmax(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update()
        losses.append(loss.item())
