import mortice as torch
from mortice import nn

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
critic = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 1))
g_opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
c_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)

for step in range(15):
    for _ in range(3):
        real = torch.randn(32, 3) + 1
        with torch.no_grad():
            fake = gen(torch.randn(32, 4))
        mix = torch.rand(32, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
        loss_c = critic(fake).mean() - critic(real).mean() + 10 * penalty
        c_opt.zero_grad()
        loss_c.backward()
        c_opt.step()
    loss_g = -critic(gen(torch.randn(32, 4))).mean()
    g_opt.zero_grad()
    loss_g.backward()
    g_opt.step()
