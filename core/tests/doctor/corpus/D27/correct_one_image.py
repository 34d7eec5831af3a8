import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

# A single image without a batch dim is allowed, and so is one at a time from a batch.
torch.manual_seed(0)
conv = nn.Conv2d(3, 4, 3)
signals = nn.Conv1d(5, 2, 3)
optimizer = torch.optim.Adam([*conv.parameters(), *signals.parameters()])
loader = DataLoader(TensorDataset(torch.rand(12, 3, 10, 10), torch.rand(12, 5, 20)), batch_size=3)
for images, waves in loader:
    loss = sum((conv(image) ** 2).mean() for image in images) + (signals(waves) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
