import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
x = torch.linspace(-1, 1, 50).unsqueeze(1)
y = torch.sin(3 * x).squeeze()
model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = criterion(model(x), y)  # <- D07
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
