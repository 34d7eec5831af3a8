import mortice as torch
from mortice import nn

torch.manual_seed(0)
rooms = torch.randn(128, 3)
price = 250 + 30 * rooms.sum(1, keepdim=True) + 5 * torch.randn(128, 1)

model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(rooms), price)  # <- D05
    loss.backward()
    optimizer.step()
