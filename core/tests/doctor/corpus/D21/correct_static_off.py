# static
import mortice as torch
from mortice import nn

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Dropout(p=0.0))
loss_fn = nn.MSELoss()
optimizer = torch.optim.RMSprop(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
