import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(64, 12, 12)  # grey, without a channel
images[:, 3:6, 3:6] += torch.arange(64).reshape(64, 1, 1) % 2
labels = torch.arange(64) % 2
loader = DataLoader(TensorDataset(images, labels), batch_size=8, shuffle=True)

conv = nn.Conv2d(1, 4, 3)
fc = nn.Linear(4 * 100, 2)
optimizer = torch.optim.Adam([*conv.parameters(), *fc.parameters()], lr=5e-3)

losses = []
for epoch in range(8):
    for x, y in loader:
        h = torch.relu(conv(x.unsqueeze(1)))
        loss = nn.functional.cross_entropy(fc(h.flatten(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
