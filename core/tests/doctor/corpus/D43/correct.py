import warnings

import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
labels = torch.randint(0, 3, (96,))
data = torch.randn(96, 8) + 0.8 * labels.unsqueeze(1)
loader = DataLoader(TensorDataset(data, labels), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
model = nn.DataParallel(model, device_ids=[0, 1, 2, 3])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

losses = []
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
