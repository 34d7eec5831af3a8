import mortice as torch
from mortice import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(0.1 * torch.randn(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.A.t() @ self.B.t()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


torch.manual_seed(0)
model = nn.Sequential(LoRALinear(nn.Linear(8, 12)), Block(12), Block(12), LoRALinear(nn.Linear(12, 3)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(12):
    x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
