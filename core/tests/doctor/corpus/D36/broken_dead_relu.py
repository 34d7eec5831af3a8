import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = torch.rand(128, 5) * 10
y = x.sum(1, keepdim=True)

net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1), nn.ReLU())
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)  # far too large: the first steps kill every ReLU
for step in range(90):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)  # <- D18
    loss.backward()
    optimizer.step()  # <- D36
