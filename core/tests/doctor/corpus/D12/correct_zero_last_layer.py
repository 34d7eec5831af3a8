import mortice as torch
from mortice import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
nn.init.zeros_(actor[2].weight)  # every action equally likely at first
nn.init.zeros_(actor[2].bias)
optimizer = torch.optim.Adam(actor.parameters(), lr=1e-2)
for step in range(12):
    x, y = torch.randn(32, 6), torch.randint(0, 4, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(actor(x), y).backward()
    optimizer.step()

softmax_regression = nn.Linear(6, 3)
with torch.no_grad():
    softmax_regression.weight.zero_()
    softmax_regression.bias.zero_()
optimizer = torch.optim.SGD(softmax_regression.parameters(), lr=0.1)
for step in range(12):
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(softmax_regression(x), y).backward()
    optimizer.step()
