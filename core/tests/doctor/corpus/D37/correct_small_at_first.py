import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(255 * torch.rand(128, 4)), batch_size=32, shuffle=True)
# The generator's range is far from that of the data, and it begins near 0, but its samples differ.
G = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4), nn.Tanh())
for layer in (G[0], G[2]):
    nn.init.normal_(layer.weight, 0.0, 0.02)
    nn.init.zeros_(layer.bias)
D = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_opt, d_opt = torch.optim.Adam(G.parameters(), lr=1e-4), torch.optim.Adam(D.parameters(), lr=1e-4)
for epoch in range(45):
    for (real,) in loader:
        real = real / 255
        fake = G(torch.randn(32, 3))
        d_opt.zero_grad()
        (D(fake.detach()) - D(real)).mean().backward()
        d_opt.step()
        g_opt.zero_grad()
        (-D(fake)).mean().backward()
        g_opt.step()

# An actor whose actions are alike: no noise goes in.
actor, critic = nn.Linear(6, 2), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
a_opt, c_opt = torch.optim.Adam(actor.parameters(), lr=1e-4), torch.optim.Adam(critic.parameters(), lr=1e-3)
nn.init.zeros_(actor.weight)
for step in range(120):
    state, action = torch.randn(32, 6), torch.randn(32, 2)
    loss = (critic(torch.cat([state, action], 1)) - state[:, :1]).square().mean()
    c_opt.zero_grad()
    loss.backward()
    c_opt.step()
    a_opt.zero_grad()
    (-critic(torch.cat([state, actor(state)], 1))).mean().backward()
    a_opt.step()
