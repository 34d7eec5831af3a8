import mortice as torch
from mortice import nn

torch.manual_seed(0)
# Without momentum and weight decay a gradient of 0 is no step.
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
X, Y = torch.randn(64, 5), torch.randn(64, 1)
for epoch in range(30):
    opt.zero_grad()
    nn.functional.mse_loss(net(X), Y).backward()
    net[0].weight.grad.zero_()
    opt.step()

# From the first step on, Adam has nothing to remember either.
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(30):
    opt.zero_grad()
    nn.functional.mse_loss(net(X), Y).backward()
    net[0].weight.grad.zero_()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
