import mortice as torch
import mortice.nn as nn


class ChannelShuffle(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        b, c, h, w = x.size()
        x = x.view(b, self.groups, c // self.groups, h, w).transpose(1, 2)
        return x.reshape(b, c, h, w)


class PixelShuffle(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3)
        return x.reshape(b, c // 4, 2 * h, 2 * w)


torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), ChannelShuffle(4), PixelShuffle(), nn.Flatten(), nn.Linear(512, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    x = torch.randn(8, 64).view(8, 1, 8, 8)
    out = net(x)
    tokens = out.view(-1, 2).view(8, 2, 2).view(2, 16)
    loss = (tokens**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
