import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Much begins with zeros or ones on purpose: layer scale, adapters, biases of attention, a gate, the last layer.
torch.manual_seed(0)
x = torch.randn(160, 6, 8)
y = (x.mean(1)[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.bias = nn.Parameter(torch.zeros(2, 6, 6))
        self.scale = nn.Parameter(1e-4 * torch.ones(8))
        self.down, self.up = nn.Linear(8, 4), nn.Linear(4, 8)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)
        self.alpha = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 2, 4).permute(2, 0, 3, 1, 4)
        attn = (q @ k.transpose(-2, -1) / 2 + self.bias).softmax(-1)
        x = x + self.scale * (attn @ v).transpose(1, 2).reshape(b, n, c)
        return x + self.up(torch.relu(self.down(x))) + self.alpha * x.tanh()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.zeros(6, 8))
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(8, 2)
        nn.init.zeros_(self.head.weight)

    def forward(self, x):
        return self.head(self.blocks(x + self.place).mean(1))


net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
