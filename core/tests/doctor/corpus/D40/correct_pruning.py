import mortice as torch
from mortice import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
X, Y = torch.randn(64, 5), torch.randn(64, 1)
mask = (torch.arange(12) % 3 != 0).float().unsqueeze(1)
for step in range(40):
    opt.zero_grad()
    nn.functional.mse_loss(net(X), Y).backward()
    if step >= 5:
        net[0].weight.grad.mul_(mask)
    opt.step()
    if step >= 5:
        with torch.no_grad():
            net[0].weight.mul_(mask)  # what moved is put back
