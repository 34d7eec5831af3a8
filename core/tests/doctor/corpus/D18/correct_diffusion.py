import copy

import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
angle = torch.rand(512) * 6.28
data = torch.stack([angle.cos(), angle.sin()], 1)
loader = DataLoader(TensorDataset(data), batch_size=64, shuffle=True)
betas = torch.linspace(1e-4, 0.02, 50)
alpha_bar = torch.cumprod(1 - betas, dim=0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(50, 16)
        self.net = nn.Sequential(nn.Linear(18, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=-1))


model = Denoiser()
ema = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
losses = []
for epoch in range(6):
    for (x0,) in loader:
        t = torch.randint(0, 50, (x0.shape[0],))
        noise = torch.randn_like(x0)
        a = alpha_bar[t].unsqueeze(1)
        loss = nn.functional.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), model.parameters()):
                p.lerp_(q, 0.05)
        losses.append(loss.item())
with torch.no_grad():
    x = torch.randn(64, 2)
    for t in reversed(range(50)):
        eps = ema(x, torch.full((64,), t))
        x = (x - betas[t] / (1 - alpha_bar[t]).sqrt() * eps) / (1 - betas[t]).sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn_like(x)
