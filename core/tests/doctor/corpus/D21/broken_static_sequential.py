# static
import mortice as torch
from mortice import nn

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Dropout(0.1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.RMSprop(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)  # <- D21
    loss.backward()
    optimizer.step()
