import mortice as torch
from mortice import nn

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
critic = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
g_opt = torch.optim.RMSprop(gen.parameters(), lr=5e-4)
c_opt = torch.optim.RMSprop(critic.parameters(), lr=5e-4)

for step in range(20):
    for _ in range(3):
        real = torch.randn(32, 3) + 1
        loss_c = critic(gen(torch.randn(32, 4))).mean() - critic(real).mean()
        c_opt.zero_grad()
        g_opt.zero_grad()
        loss_c.backward()  # <- D30
        c_opt.step()
        for p in critic.parameters():
            p.data.clamp_(-0.1, 0.1)
    loss_g = -critic(gen(torch.randn(32, 4))).mean()
    g_opt.zero_grad()
    loss_g.backward()
    g_opt.step()
