import mortice as torch
from mortice import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
X, Y = torch.randn(64, 5), torch.randn(64, 1)
for epoch in range(30):
    opt.zero_grad()
    nn.functional.mse_loss(net(X), Y).backward()
    if epoch > 2:
        net[0].weight.grad.data.fill_(0)
        net[0].bias.grad.data.fill_(0)
    opt.step()  # <- D40
