import mortice as torch
from mortice import nn

# Parameters of odd kinds: complex, empty, of no dims, unused, half precision, sparse gradients, a vector loss.
torch.manual_seed(0)


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.wave = nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.unused = nn.Parameter(torch.randn(3, 3))
        self.empty = nn.Parameter(torch.zeros(0, 4))
        self.lazy = nn.LazyLinear(4)
        self.table = nn.Embedding(10, 4)

    def forward(self, x, i):
        return self.scale * self.lazy(x) * self.wave.abs() + self.table(i)


model = Odd()
x, i = torch.randn(8, 6), torch.randint(0, 10, (8,))
model(x, i)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for step in range(25):
    optimizer.zero_grad()
    each = model(x, i).pow(2).mean(1)
    each.backward(torch.full_like(each, 1 / 8))
    optimizer.step()
    losses.append(each.mean().item())
low = nn.Linear(4, 2).to(torch.bfloat16)
optimizer = torch.optim.SGD(low.parameters(), lr=0.01)
for step in range(6):
    optimizer.zero_grad()
    loss = low(torch.randn(8, 4, dtype=torch.bfloat16)).float().pow(2).mean()
    loss.backward()
    optimizer.step()
