import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10):
    x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
    loss = criterion(model(x), y)  # <- D14
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
