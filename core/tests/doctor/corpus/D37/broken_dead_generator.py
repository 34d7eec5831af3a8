import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(256, 1, 6, 6)
loader = DataLoader(TensorDataset(images), batch_size=32, shuffle=True)


class Generator(nn.Module):
    def __init__(self, nz):
        super().__init__()
        self.fc = nn.Linear(nz, 32)
        self.out = nn.Linear(32, 36)
        nn.init.normal_(self.fc.weight, 0.0, 1e-4)  # so small that the noise is lost
        nn.init.constant_(self.fc.bias, 0.5)

    def forward(self, z):
        return torch.sigmoid(self.out(torch.relu(self.fc(z)))).view(-1, 1, 6, 6)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


G, D = Generator(8), Critic()
g_opt = torch.optim.RMSprop(G.parameters(), lr=1e-5)
d_opt = torch.optim.RMSprop(D.parameters(), lr=1e-4)
for epoch in range(20):
    for (real,) in loader:
        with torch.no_grad():
            fake = G(torch.randn(32, 8))
        loss_d = D(fake).mean() - D(real).mean()  # <- D37
        d_opt.zero_grad()
        loss_d.backward()
        d_opt.step()
        loss_g = -D(G(torch.randn(32, 8))).mean()  # <- D37
        g_opt.zero_grad()
        loss_g.backward()
        g_opt.step()
