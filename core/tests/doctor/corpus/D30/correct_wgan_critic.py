import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = torch.randn(512, 2) * 0.2 + torch.tensor([[1.0, -1.0]])
loader = DataLoader(TensorDataset(data), batch_size=32, shuffle=True, drop_last=True)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0, 0.9))


def gradient_penalty(real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = D(mixed)
    (grads,) = torch.autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True, retain_graph=True)
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


losses = []
for epoch in range(3):
    for i, (real,) in enumerate(loader):
        opt_d.zero_grad()
        fake = G(torch.randn(32, 4)).detach()
        d_loss = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(real, fake)
        d_loss.backward()
        opt_d.step()
        losses.append(d_loss.item())
        if i % 5 == 0:
            opt_g.zero_grad()
            g_loss = -D(G(torch.randn(32, 4))).mean()
            g_loss.backward()
            opt_g.step()
