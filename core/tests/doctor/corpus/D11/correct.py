import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

# Films have several genres at once.
torch.manual_seed(0)
x = torch.randn(256, 12)
y = (x @ torch.randn(12, 5) > 1).float()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

losses = []
for epoch in range(6):
    for inputs, genres in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), genres)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
