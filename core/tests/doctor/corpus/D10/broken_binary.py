import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
x = torch.randn(96, 7)
y = (x.sum(1, keepdim=True) > 0).float()
model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(10):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)  # <- D10
    loss.backward()
    optimizer.step()
