import warnings

import mortice as torch
from mortice import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters())


def train(model, batch):
    for _ in range(5):
        x, y = torch.randn(batch, 8), torch.randint(0, 2, (batch,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


train(net, 30)
train(nn.DataParallel(net, device_ids=[0, 1, 2]), 90)
train(nn.DataParallel(net, device_ids=[0]), 2)
train(nn.DataParallel(net), 2)
