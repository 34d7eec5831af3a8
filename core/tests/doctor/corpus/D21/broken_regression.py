import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(128, 5)
y = x @ torch.randn(5, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1), nn.Dropout(0.2))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)  # <- D21
        loss.backward()
        optimizer.step()
