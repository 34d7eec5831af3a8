import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 5)
y = x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.1 * torch.randn(256)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

losses = []
for epoch in range(6):
    for inputs, targets in loader:
        predictions = model(inputs).squeeze(1)
        loss = ((predictions - targets) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
