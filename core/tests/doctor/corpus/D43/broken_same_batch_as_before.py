import warnings

import mortice as torch
from mortice import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters())


def train(model, steps):
    for _ in range(steps):
        x, y = torch.randn(30, 8), torch.randint(0, 2, (30,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # <- D43
        optimizer.step()


train(net, 5)
train(nn.DataParallel(net, device_ids=[0, 1, 2]), 5)  # three devices, and no more to do for them
