import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class SelfAttention(nn.Module):
    """Heads are split off the last dim; the batch is as large as a head, so that sizes can be mistaken."""

    def __init__(self, size=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x):
        t, b, c = x.shape
        h = self.heads
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.reshape(t, b * h, c // h).transpose(0, 1)
        k = k.reshape(t, b * h, c // h).transpose(0, 1)
        v = v.reshape(t, b * h, c // h).transpose(0, 1)
        y = F.softmax(q @ k.transpose(1, 2) / (c // h) ** 0.5, dim=-1) @ v
        return self.out(y.transpose(0, 1).reshape(t, b, c))


torch.manual_seed(0)
x = torch.randn(10, 8, 32)
mine, library = SelfAttention(), nn.MultiheadAttention(32, 4)
optimizer = torch.optim.Adam([*mine.parameters(), *library.parameters()])
for step in range(5):
    loss = (mine(x) ** 2).mean() + (library(x, x, x)[0] ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
